// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where shared emission finds a window in the arguments.
#pragma once

#include "templates/attention/emit/visible_keys.h"
#include "templates/attention_backward/kernel/arguments.h"

namespace wavejit::attention_backward {

inline constexpr attention::WindowFields window_fields = {.left = offsetof(Arguments, seen.window_left),
                                                          .right = offsetof(Arguments, seen.window_right)};

}  // namespace wavejit::attention_backward
