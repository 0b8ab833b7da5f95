// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Finds the last workgroup to leave its parts: workgroups of one launch that together make what is merged then, on whichever die
// they run. Parts are stored and loaded past the dies' caches (language::Reach::agent), since a die's L2 writes back
// for one workgroup after the other. Each wave of a workgroup has a counter with its likes of the other workgroups:
//
//   every wave     its stores are where every die sees them (wait), and so are those of its workgroup (barrier); then
//   it
//                  counts itself
//   the last one   may load all parts, with the same reach
//
// A counter goes from 0 to as many as are expected, and back to 0 in the same step: that of the last one. So it has to
// be cleared once, before its first launch, and nobody clears it behind a launch.
#pragma once

#include "codegen/language/kernel.h"

namespace wavejit::attention {

// Counts this wave at counter `counter` (i32) of those at `counters` (i64). Uniform: whether the `others` that are
// expected, without itself, have been counted already.
language::Value* arrives_last(language::Kernel& kernel, language::Value* counters, language::Value* counter,
                              language::Value* others);

}  // namespace wavejit::attention
