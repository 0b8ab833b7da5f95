// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which pointers of a call of attention_forward may move in a call that a thread remembers.
#pragma once

#include <array>
#include <cstddef>

#include "families/call/known_calls.h"
#include "wavejit/wavejit.h"

template <>
inline constexpr std::array wavejit::families::moving_pointers<wavejit_attention_forward_arguments> = [] {
  using Call = wavejit_attention_forward_arguments;
  using enum MovingPointer::Of;
  return std::array{MovingPointer{offsetof(Call, q), input},
                    MovingPointer{offsetof(Call, k), input},
                    MovingPointer{offsetof(Call, v), input},
                    MovingPointer{offsetof(Call, o), output},
                    MovingPointer{offsetof(Call, lse), output},
                    MovingPointer{offsetof(Call, modifiers.alibi), input},
                    MovingPointer{offsetof(Call, modifiers.sink), input},
                    MovingPointer{offsetof(Call, scales.k_scale), input},
                    MovingPointer{offsetof(Call, scales.v_scale), input},
                    MovingPointer{offsetof(Call, scales.q_scale), input},
                    MovingPointer{offsetof(Call, output_scale.o_scale), number}};
}();
