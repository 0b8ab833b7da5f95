// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether this process was forked since: what threads hold, and devices, stay behind in the parent.
//
//   watch_for_forks();                       // before anything that a fork breaks
//   const std::uint32_t made = forks_seen();
//   …
//   if (forks_seen() != made) …              // in a child; one relaxed load, no system call
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace wavejit::system {

namespace detail {
inline std::atomic<std::uint32_t> forks{0};
}

// Forks in the line of processes that ends here, from the first one that watched.
inline std::uint32_t forks_seen() noexcept { return detail::forks.load(std::memory_order_relaxed); }

inline void watch_for_forks() noexcept {
  static const int watches = ::pthread_atfork(nullptr, nullptr, [] { detail::forks.fetch_add(1); });
  static_cast<void>(watches);
}

}  // namespace wavejit::system
