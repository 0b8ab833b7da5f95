// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A kernel of whole calls: problems run as users run them, through an engine, whose cache holds the kernel changed.
// Each change has a process of its own: a simulated device on which a kernel failed is lost to its process, as HIP's
// is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "journal.h"
#include "redundant.h"
#include "support/scratch_directory.h"
#include "wavejit/wavejit.h"

namespace wavejit::tests {

// What a length, a start or an entry that lies may be.
inline constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();

// What a call gave, whatever its family.
struct CallResult {
  wavejit_status status = WAVEJIT_OK;
  std::string reports;              // of the simulated GPU, or the call's error
  bool fence_intact = true;         // nothing around the results was written
  std::vector<std::uint32_t> bits;  // of the results
  std::string wrong;                // against float64, where that was asked for
};

// What every family's output has.
template <typename Output>
CallResult result_of(const Output& output) {
  CallResult result;
  result.status = output.status;
  result.reports = output.status != WAVEJIT_OK && output.reports.empty() ? output.detail : output.reports;
  result.fence_intact = output.fence_intact;
  return result;
}

struct CallProblem {
  // `judges`: against float64, too. Lengths and tables that lie have no exact answer: wrong stays empty.
  std::function<CallResult(wavejit_engine* engine, bool judges)> run;
};
// Made where they run, not where tests are listed.
using Problems = std::function<std::vector<CallProblem>()>;

class CalledKernel {
 public:
  // The kernel whose spec has all these words, among those that the problems' calls launch on a target. `pipeline`: of
  // the engine.
  CalledKernel(std::string target, std::string pipeline, const std::vector<std::string>& words,
               std::vector<CallProblem> problems, Journal journal = Journal({}, {}));

  // Empty: there is one such kernel, and every problem runs silently under all checks, within the bounds of float64.
  const std::string& problem() const { return problem_; }
  const std::vector<std::byte>& code_object() const { return code_object_; }
  // On one problem after another until something shows; first on the one that noticed the change before.
  Outcome run(const std::vector<std::byte>& code_object);

 private:
  bool find_kernel(const std::vector<std::string>& words);
  // What problems in this order find, and notes which ran. Empty: nothing.
  std::string outcome_on(const std::vector<std::size_t>& order, const std::vector<std::byte>& code_object,
                         std::vector<std::uint64_t>& ran) const;

  std::string target_;
  std::string pipeline_;
  std::vector<CallProblem> problems_;
  std::vector<std::uint64_t> whole_;  // digests of the problems' results
  std::vector<std::uint64_t> names_;  // of the problems in the journal: those digests, made different
  std::vector<std::size_t> order_;    // of the problems
  Journal journal_;
  ScratchDirectory cache_;
  std::string file_;  // the kernel's cache entry
  std::vector<std::byte> entry_;
  std::vector<std::byte> code_object_;
  std::string problem_;
};

}  // namespace wavejit::tests
