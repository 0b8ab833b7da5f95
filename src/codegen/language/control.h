// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Control flow that every lane of a wave takes together.
//
// Conditions are uniform: a compare of scalars, or any_lane(…) of a lane-wise one. Branching on a lane-wise condition
// itself would cost EXEC bookkeeping and is never done here; per-lane choices are selects.
#pragma once

#include <functional>

#include "codegen/language/kernel.h"

namespace wavejit::language {

// How often a branch is taken; `rarely` moves the block out of the straight path.
enum class Likelihood : std::uint8_t { even, rarely };

// True when any lane of the wave sees `lane_condition`.
Value* any_lane(Kernel& kernel, Value* lane_condition);

// if (condition) values = body(values): what leaves is `body`'s result or, untaken, `values` as they came.
Values if_uniform(Kernel& kernel, Value* condition, Likelihood likelihood, const Values& values,
                  const std::function<Values(const Values&)>& body);

// if (condition) body(), for its effects.
void if_uniform(Kernel& kernel, Value* condition, Likelihood likelihood, const std::function<void()>& body);

// if (condition) the wave ends here; what follows is for the others. For whole workgroups: no barrier may wait for a
// wave that has left.
void leave_if(Kernel& kernel, Value* condition);

// Phases of a loop that run in turn while `more` holds:
//
//   do { phase 0; if (more) { phase 1; if (more) { … } } } while (more);
//
// A phase gets the state and returns the next one; `more` looks at the state after a phase. The caller guarantees that
// there is something to do at entry. With two phases the halves of a double buffer are different code, and no address
// is chosen at run time. One exit: loops with several make the backend rebuild the control flow.
Values loop_in_phases(Kernel& kernel, int phases, const Values& initial,
                      const std::function<Values(int phase, const Values&)>& body,
                      const std::function<Value*(const Values&)>& more);

}  // namespace wavejit::language
