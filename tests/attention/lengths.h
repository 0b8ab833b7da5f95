// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every length of the list as a query length and as a key length, equal, shorter and longer than its partner; heads in
// groups of 1, 4 and 8; layouts.
#pragma once

#include <array>

#include "support/attention_run.h"

namespace wavejit::tests {

struct Lengths {
  int query;
  int key;
};
inline constexpr std::array lengths = {
    Lengths{1, 0},     Lengths{33, 0},   Lengths{1, 1},     Lengths{31, 31},   Lengths{33, 33},   Lengths{63, 63},
    Lengths{64, 64},   Lengths{65, 65},  Lengths{127, 127}, Lengths{129, 129}, Lengths{255, 255}, Lengths{257, 257},
    Lengths{513, 513}, Lengths{1, 1024}, Lengths{1024, 1},  Lengths{31, 65},   Lengths{65, 31},   Lengths{33, 127},
    Lengths{63, 257},  Lengths{64, 129}, Lengths{129, 64},  Lengths{127, 513}, Lengths{255, 63},  Lengths{257, 33},
    Lengths{513, 255}, Lengths{1, 33},   Lengths{64, 1024}, Lengths{1, 63},    Lengths{65, 1},
};

struct Heads {
  int query;
  int kv;
};
inline constexpr std::array heads = {Heads{2, 2}, Heads{4, 1}, Heads{8, 1}, Heads{8, 2}};
inline constexpr std::array layouts = {Layout::bshd, Layout::bhsd, Layout::padded};

}  // namespace wavejit::tests
