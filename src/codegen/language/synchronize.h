// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Order between the waves of a workgroup.
//
// The backend orders one wave's own accesses. What another wave wrote or is still reading it cannot know, and
// s_barrier by itself waits for no memory: a wave must have waited for its own transfers before it arrives. Fences
// would do that too, but drain every counter, transfers into other regions included.
//
// Two facts each LDS reuse needs, and the calls that establish them:
//
//   read after write   every writer: wait for its own writes (wait_for_lds, wait_for_lds_fills), then barrier
//   write after read   every reader: its reads have returned (wait_for_lds), then barrier
#pragma once

#include "codegen/language/kernel.h"

namespace wavejit::language {

// This wave's LDS reads and writes are complete.
void wait_for_lds(Kernel& kernel);
// This wave's LDS accesses and its transfers from memory into LDS are complete.
void wait_for_lds_fills(Kernel& kernel);
// This wave's LDS reads and writes are complete, and of its transfers into LDS all but the `fills_left` youngest. The
// other vector memory accesses count as transfers here: one counter holds them all, in order.
void wait_for_lds_and_fills(Kernel& kernel, int fills_left);
// All waves of the workgroup arrive before any goes on. Nothing in a workgroup of one wave, which is always together.
void barrier(Kernel& kernel);
// The same in two, for work between them: this wave has arrived, and all have. They come in turn, and only on targets
// with split barriers; elsewhere nothing may be between them that a barrier orders, so it is refused.
void arrive(Kernel& kernel);
void await_others(Kernel& kernel);
// Which wave of a SIMD issues first, 0 … 3; waves start at 0.
void set_priority(Kernel& kernel, int priority);

// The values are computed before this point: a use that costs nothing, but that the backend may not move code across.
void pin(Kernel& kernel, const Values& values);
// The same of uniform values, which stand in scalar registers: what later code makes anew is this, if it can see it.
void pin_scalars(Kernel& kernel, const Values& values);

// A uniform integer, of which the compiler knows nothing from here on: what is made of the result is made here, and
// neither kept for a later use nor moved out of a loop.
Value* opaque(Kernel& kernel, Value* value);
// The same of a number that may be kept and moved.
Value* opaque_constant(Kernel& kernel, Value* value);
// The same number in each lane, of which the compiler knows nothing: what is made of it is made here.
Value* opaque_in_lanes(Kernel& kernel, Value* value);

}  // namespace wavejit::language
