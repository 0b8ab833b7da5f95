// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether bits show how a call was made: what a family answers for `wavejit invariance`.
//
// A family draws mixed batches from a seed, runs them, and runs their sequences again with one thing changed: that is a
// dimension. A pair is everything that one sequence gets in two runs that differ in one dimension.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/exit_code.h"

struct wavejit_engine;

namespace wavejit::tools {

struct InvarianceDimension {
  std::string name;     // "token-by-token"
  std::string changes;  // for people: "each query in a call of its own"
  // Why it cannot be asked of this version; empty: it can.
  std::string not_yet = {};
  // It must differ, and shows that differences are seen. It runs when it is named, and at no other time.
  bool control = false;
  // Only one of this many requested pairs is run, where a pair takes seconds.
  std::uint64_t one_in = 1;
  // On a target that refuses its calls it is left out, unless it is named.
  bool of_some_targets = false;
};

// Where two runs of a sequence part.
struct FirstDifference {
  std::string tensor = {};  // "dk"
  std::int64_t token = 0;
  std::int64_t head = 0;
  std::int64_t dim = -1;  // −1: the tensor has none
  double before = 0;
  double after = 0;
};

struct Pair {
  std::string dimension;
  std::uint64_t batch = 0;    // of the seed
  std::int64_t sequence = 0;  // of the batch
  std::string descriptor;     // of the sequence alone
  std::string change;         // "splits=3"
  std::optional<FirstDifference> difference = std::nullopt;
  // Why a call has no answer: a kernel of it does not compile. Of all its sequences in one.
  std::string failure = {};
};

// An engine of the command's device with one more option: "generic tile_queries=64". Empty: none. Made once each, and
// the command's; null where the library refuses the option on this device.
using EngineWith = std::function<Result<wavejit_engine*>(const std::string& pipeline)>;

struct InvarianceRequest {
  std::vector<std::string> dimensions;  // names
  std::uint64_t seed = 1;
  std::uint64_t batch = 0;
  std::int64_t sequences = 0;  // of the batch
  std::int64_t longest = 0;    // keys of a sequence
};

class Invariance {
 public:
  virtual std::vector<InvarianceDimension> dimensions() const = 0;
  // Draws one batch and tells its pairs in each dimension. None may come of one: a batch without what it changes.
  virtual Result<void> run(const InvarianceRequest& request, const EngineWith& engine_with,
                           const std::function<void(Pair)>& tell) const = 0;

 protected:
  ~Invariance() = default;

  // A call that does not compile is told as one pair, and the next is asked. Any other failure ends the run.
  static Result<void> not_compiled(const Failure& failure, Pair pair, const std::function<void(Pair)>& tell) {
    if (failure.code != ExitCode::compile_failed) return std::unexpected(failure);
    pair.failure = failure.what;
    tell(std::move(pair));
    return {};
  }
};

}  // namespace wavejit::tools
