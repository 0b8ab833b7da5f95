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

// Phases of a loop that run in turn until one says that nothing is left:
//
//   phase 0 → phase 1 → … → phase n−1 → phase 0 → …   each may leave
//
// A phase gets the state and returns the next one with the condition to go on. The caller guarantees that there is
// something to do at entry. With n = 2 the two halves of a double buffer are different code, and no address is chosen
// at run time.
struct Continued {
  Values state;
  Value* more = nullptr;
};
Values loop_in_phases(Kernel& kernel, int phases, const Values& initial,
                      const std::function<Continued(int phase, const Values&)>& body);

}  // namespace wavejit::language
