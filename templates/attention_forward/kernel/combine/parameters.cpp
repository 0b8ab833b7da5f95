// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/kernel/combine/parameters.h"

#include "targets/targets.h"
#include "templates/attention/kernel/coverage.h"

namespace wavejit::attention_combine {
namespace {

constexpr int largest_head_dim = 256;  // four dims a lane
constexpr int head_dim_step = 8;

bool multiply(std::uint64_t& product, std::uint64_t factor) {
  return !__builtin_mul_overflow(product, factor, &product);
}

}  // namespace

std::optional<std::uint64_t> workspace_bytes(std::uint64_t rows, std::uint64_t query_heads, std::uint64_t slots,
                                             int head_dim) {
  auto bytes = static_cast<std::uint64_t>(record_bytes(head_dim));
  if (!multiply(bytes, rows) || !multiply(bytes, query_heads) || !multiply(bytes, slots)) return std::nullopt;
  return bytes;
}

int dims_per_lane(const CombineKernel& spec) { return spec.head_dim > 2 * threads ? 4 : 2; }

std::size_t argument_bytes(const CombineKernel& spec) {
  if (spec.scaled) return sizeof(Arguments);
  return spec.listed || spec.trans_o ? offsetof(Arguments, scales) : offsetof(Arguments, lists);
}

std::optional<std::string> refusal_of(const CombineKernel& spec) {
  const targets::Target* target = targets::find_target(spec.target);
  if (target == nullptr)
    return "target=" + spec.target + " is not in the target table; accepted: " + targets::known_targets();
  if (auto lacking = attention::lacks_kernels(*target, attention::Need::waves_of_64, CombineKernel::kernel))
    return lacking;
  if (spec.head_dim % head_dim_step != 0 || spec.head_dim > largest_head_dim)
    return "head dim " + std::to_string(spec.head_dim) + " has no kernel; accepted: multiples of " +
           std::to_string(head_dim_step) + " up to " + std::to_string(largest_head_dim);
  return std::nullopt;
}

attention_forward::LaunchGeometry launch_geometry(const CombineKernel&, std::uint32_t batch, std::uint32_t query_heads,
                                                  std::uint32_t query_length) {
  return {.grid_x = query_length, .grid_y = query_heads, .grid_z = batch, .threads = threads};
}

}  // namespace wavejit::attention_combine
