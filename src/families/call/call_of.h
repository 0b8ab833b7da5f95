// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What all calls share that have a struct of the C ABI and a problem, which a check made of it.
#pragma once

#include <cstdint>

#include "boards/board.h"
#include "families/call/family.h"
#include "families/kernel/toggles.h"
#include "wavejit/wavejit.h"

namespace wavejit::families {

// What a call's flags ask for where its kernels are not loaded.
inline Call::WhenMissing when_missing(std::uint32_t flags) {
  if ((flags & WAVEJIT_NO_COMPILE) == 0) return Call::WhenMissing::make_them;
  return (flags & WAVEJIT_COMPILE_BEHIND) == 0 ? Call::WhenMissing::refuse
                                               : Call::WhenMissing::refuse_and_make_them_behind;
}

// All that it is given must outlive it. `problem.shape` is what its kernels are found by.
template <typename Arguments, typename Problem>
class CallOf : public Call {
 public:
  CallOf(const Arguments& call, const Problem& problem, const boards::Board& board, const Toggles& toggles)
      : Call(problem.shape.shape()), call_(call), problem_(problem), board_(board), toggles_(toggles) {
    report = call.head.report;
  }
  WhenMissing when_missing() const final { return families::when_missing(call_.head.flags); }

 protected:
  ~CallOf() = default;

  const Arguments& call_;
  const Problem& problem_;
  const boards::Board& board_;
  const Toggles& toggles_;
};

}  // namespace wavejit::families
