// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One row merged in float64.
#pragma once

#include <span>
#include <vector>

namespace wavejit::attention_merge::program {

// O and LSE of one part.
struct PartRow {
  std::span<const float> o;
  double lse;  // −∞: it saw no key, and its O does not count
};

struct MergedRow {
  std::vector<double> o;
  double lse;
};

MergedRow merged(std::span<const PartRow> parts);

}  // namespace wavejit::attention_merge::program
