// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Many pieces of work on a few threads: what prepare and prebuild do with their kernels.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/settings/failure.h"
#include "system/blocked_signals.h"

namespace wavejit::runtime {

inline constexpr int max_jobs = 1024;

inline Result<void> check_jobs(int jobs) {
  if (jobs >= 0 && jobs <= max_jobs) return {};
  return fail(WAVEJIT_INVALID_ARGUMENT,
              "jobs = " + std::to_string(jobs) + "; accepted: 0 (all cores) to " + std::to_string(max_jobs));
}

// For callers that must not throw: the failure without its words when there is no memory for them.
inline Failure copy_of(const Failure& failure) noexcept {
  try {
    return failure;
  } catch (const std::bad_alloc&) {
    return {failure.status, {}};
  }
}

// The number of threads for `jobs`, which check_jobs allows; 0: one a core.
inline std::size_t threads_of(int jobs) {
  return jobs == 0 ? std::max(1U, std::thread::hardware_concurrency()) : static_cast<std::size_t>(jobs);
}

// Calls `work(i)`, which must not throw, for every i below `count`, `jobs` at a time (0: all cores). The calling thread
// is one of them; the system's limit of threads only makes it slower.
template <typename Work>
void work_off(std::size_t count, int jobs, const Work& work) {
  std::atomic<std::size_t> next{0};
  const auto run = [&] {
    for (std::size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) work(i);
  };
  const std::size_t workers = std::min(threads_of(jobs), count);
  std::vector<std::jthread> pool;
  const auto hire = [&] {
    const system::BlockedSignals blocked;
    try {
      for (std::size_t i = 1; i < workers; ++i) pool.emplace_back(run);
    } catch (const std::system_error&) {
      return;  // those that there are do it
    }
  };
  hire();
  run();
}

}  // namespace wavejit::runtime
