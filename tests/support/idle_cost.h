// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
// What waiting costs, measured so that a busy machine does not fail a test.

#include <algorithm>
#include <chrono>
#include <ctime>
#include <thread>

namespace wavejit::tests {

// What this process costs while its test sleeps, as a part of one core: 0.02 is 2 %. The least of up to five windows
// of 0.4 s, or the first below `enough`. A busy machine and a sanitizer's own threads only ever add to a window, and
// not to all five; a thread that spins shows in each.
inline double idle_cost(double enough) {
  constexpr std::chrono::milliseconds window{400};
  double least = 1e9;
  for (int tries = 0; tries < 5 && least >= enough; ++tries) {
    const std::clock_t before = std::clock();
    std::this_thread::sleep_for(window);
    const double spent = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
    least = std::min(least, spent / std::chrono::duration<double>(window).count());
  }
  return least;
}

}  // namespace wavejit::tests
