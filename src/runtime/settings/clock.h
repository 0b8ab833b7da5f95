// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Phase times for reports: monotonic nanoseconds.
#pragma once

#include <chrono>
#include <cstdint>

namespace wavejit::runtime {

class Stopwatch {
 public:
  // Since construction or the last lap.
  std::uint64_t lap() {
    const auto now = std::chrono::steady_clock::now();
    const auto passed = std::chrono::duration_cast<std::chrono::nanoseconds>(now - last_).count();
    last_ = now;
    return static_cast<std::uint64_t>(passed);
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// What the phases of one call took; those that did not happen stay 0.
struct Phases {
  std::uint64_t route_ns = 0;
  std::uint64_t lookup_ns = 0;
  std::uint64_t emit_ns = 0;
  std::uint64_t lower_ns = 0;
  std::uint64_t link_ns = 0;
  std::uint64_t inspect_ns = 0;
  std::uint64_t publish_ns = 0;
  std::uint64_t load_ns = 0;
  std::uint64_t launch_ns = 0;

  std::uint64_t compile_ns() const { return emit_ns + lower_ns + link_ns + inspect_ns; }
  std::uint64_t total_ns() const { return route_ns + lookup_ns + compile_ns() + publish_ns + load_ns + launch_ns; }
  Phases& operator+=(const Phases& other) {
    route_ns += other.route_ns;
    lookup_ns += other.lookup_ns;
    emit_ns += other.emit_ns;
    lower_ns += other.lower_ns;
    link_ns += other.link_ns;
    inspect_ns += other.inspect_ns;
    publish_ns += other.publish_ns;
    load_ns += other.load_ns;
    launch_ns += other.launch_ns;
    return *this;
  }
};

}  // namespace wavejit::runtime
