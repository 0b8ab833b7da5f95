// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The machine code of ten hot loops, as text in the tree (tests/kernels/loops): a change of an emitter shows there what
// it does to the code that a kernel spends its time in. `./dev bench hot-loops` writes the files.
#pragma once

#include <expected>
#include <span>
#include <string>
#include <string_view>

namespace wavejit::tests {

struct HotLoop {
  std::string_view name;  // of its file
  std::string_view spec;
  std::string_view why;  // what to look for
};
std::span<const HotLoop> hot_loops();

// The file's text: the spec, the reason, the counts, and one turn of the loop, an instruction a line.
std::expected<std::string, std::string> text_of(const HotLoop& loop);

}  // namespace wavejit::tests
