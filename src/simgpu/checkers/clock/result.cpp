// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/clock/result.h"

#include <algorithm>

namespace wavejit::simgpu::clock {

std::string_view to_text(Cause cause) {
  constexpr std::array<std::string_view, cause_count> names = {
      "own interval", "matrix result", "operand", "matrix pipe",   "vector port",
      "other wave",   "vector memory", "LDS",     "scalar memory", "full counter",
      "full queue",   "barrier",       "branch",  "pause",         "fetch"};
  return cause == Cause::count ? "nothing" : names[static_cast<std::size_t>(cause)];
}

void ComputeUnitResult::add_matrix_busy(std::uint64_t from, int cycles) {
  const std::uint64_t end = from + static_cast<std::uint64_t>(cycles);
  for (std::uint64_t at = from; at < end;) {
    const std::uint64_t bucket = at / bucket_cycles;
    if (matrix_buckets.size() <= bucket) matrix_buckets.resize(bucket + 1);
    const std::uint64_t next = std::min(end, (bucket + 1) * bucket_cycles);
    matrix_buckets[bucket] += next - at;
    at = next;
  }
}

double ComputeUnitResult::matrix_busy() const {
  std::uint64_t busy = 0;
  for (const SimdResult& simd : simds) busy += simd.matrix_busy;
  return cycles == 0 ? 0 : static_cast<double>(busy) / static_cast<double>(cycles * simds.size());
}

double ComputeUnitResult::steady_matrix_busy() const {
  const std::uint64_t first = cycles / 4 / bucket_cycles;
  const std::uint64_t last = std::min<std::uint64_t>(cycles * 3 / 4 / bucket_cycles, matrix_buckets.size());
  if (last <= first) return matrix_busy();
  std::uint64_t busy = 0;
  for (std::uint64_t bucket = first; bucket < last; ++bucket) busy += matrix_buckets[bucket];
  return static_cast<double>(busy) / static_cast<double>((last - first) * bucket_cycles * simds.size());
}

}  // namespace wavejit::simgpu::clock
