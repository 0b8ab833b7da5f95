// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/all_cores.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace wavejit::tools {

void on_all_cores(std::size_t count, const std::function<void(std::size_t)>& task) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) task(i);
  };
  std::vector<std::jthread> others;
  const std::size_t threads = std::min<std::size_t>(std::max(1U, std::thread::hardware_concurrency()), count);
  for (std::size_t i = 1; i < threads; ++i) others.emplace_back(work);
  work();
}

}  // namespace wavejit::tools
