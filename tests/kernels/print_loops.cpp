// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writes the hot loops' machine code: `kernel_loops tests/kernels/loops`.
#include <cstdio>
#include <fstream>
#include <string>

#include "kernels/hot_loops.h"

int main(int count, char** arguments) {
  if (count != 2) return std::fprintf(stderr, "kernel_loops <folder>\n"), 2;
  for (const wavejit::tests::HotLoop& loop : wavejit::tests::hot_loops()) {
    const auto text = wavejit::tests::text_of(loop);
    if (!text) return std::fprintf(stderr, "%s: %s\n", loop.name.data(), text.error().c_str()), 1;
    std::ofstream(std::string(arguments[1]) + "/" + std::string(loop.name) + ".txt") << *text;
  }
}
