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
// All waves of the workgroup arrive before any goes on.
void barrier(Kernel& kernel);

}  // namespace wavejit::language
