// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Times of a compile's steps, for its result.
#pragma once

#include <chrono>
#include <cstdint>

namespace wavejit::codegen {

// Adds what its scope took.
class Stopwatch {
 public:
  explicit Stopwatch(std::uint64_t& nanoseconds) : nanoseconds_(nanoseconds) {}
  ~Stopwatch() {
    const auto elapsed = std::chrono::steady_clock::now() - start_;
    nanoseconds_ += static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count());
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  std::uint64_t& nanoseconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace wavejit::codegen
