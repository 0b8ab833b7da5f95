// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What benchmarks measure with: clocks, processor time, percentiles.
#pragma once

#include <time.h>

#include <algorithm>
#include <vector>

namespace wavejit::bench {

inline unsigned long long now_ns(clockid_t clock = CLOCK_MONOTONIC) {
  timespec now{};
  clock_gettime(clock, &now);
  return 1'000'000'000ULL * static_cast<unsigned long long>(now.tv_sec) + static_cast<unsigned long long>(now.tv_nsec);
}

// Processor time of all threads of the process.
inline double processor_seconds() { return 1e-9 * static_cast<double>(now_ns(CLOCK_PROCESS_CPUTIME_ID)); }

struct Percentiles {
  double p50 = 0;
  double p99 = 0;
};
// At least one value.
inline Percentiles percentiles(std::vector<double> values) {
  std::ranges::sort(values);
  return {.p50 = values[values.size() / 2], .p99 = values[values.size() * 99 / 100]};
}

}  // namespace wavejit::bench
