// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cases of attention whose results get faults, and what the checker sees of them (docs/fault-injection.md).
#pragma once

#include <array>
#include <string>
#include <vector>

#include "support/attention_run.h"
#include "support/faulty_rows.h"

namespace wavejit::tests {

struct FaultCase {
  std::string name;
  std::string target;
  AttentionCase (*make)(Storage storage);
};
const std::vector<FaultCase>& fault_cases();

// What is seen of rows that have a fault alone.
struct Seen {
  int rows = 0;     // that were flagged
  int changed = 0;  // in which the fault changed a bit
};
using SeenFaults = std::array<Seen, faults.size()>;

struct FaultResult {
  SeenFaults seen{};
  // A true row that was flagged, or a fault in a tile of rows that was not; empty: none.
  std::string wrong;
};

// Runs the case on its simulated target and puts each fault into its result.
FaultResult inject(const FaultCase& which, Storage storage);

// Without a device: 32 rows of one head that see this many keys.
SeenFaults inject_at_length(Storage storage, int keys, bool uniform);

}  // namespace wavejit::tests
