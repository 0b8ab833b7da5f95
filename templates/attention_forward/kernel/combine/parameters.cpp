// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/kernel/combine/parameters.h"

#include "targets/targets.h"

namespace wavejit::attention_combine {
namespace {

constexpr int most_dims_of_lane = 4;
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

int threads_of(const CombineKernel& spec) {
  const targets::Target* target = targets::find_target(spec.target);
  return target == nullptr ? 0 : target->wave_size;
}

// Four of 8 bits are a dword.
int dims_per_lane(const CombineKernel& spec) {
  return spec.head_dim > 2 * threads_of(spec) || is_narrow(spec.dtype) ? most_dims_of_lane : 2;
}

std::size_t argument_bytes(const CombineKernel& spec) {
  if (is_narrow(spec.dtype)) return sizeof(OutputScaleArguments);
  if (spec.causal_flags) return sizeof(Arguments);
  if (spec.scaled) return causal_flags_at;
  return spec.listed || spec.trans_o ? offsetof(Arguments, scales) : offsetof(Arguments, lists);
}

std::optional<std::string> refusal_of(const CombineKernel& spec) {
  const targets::Target* target = targets::find_target(spec.target);
  if (target == nullptr)
    return "target=" + spec.target + " is not in the target table; accepted: " + targets::known_targets();
  const int largest_head_dim = most_dims_of_lane * target->wave_size;
  if (spec.head_dim % head_dim_step != 0 || spec.head_dim > largest_head_dim)
    return "head dim " + std::to_string(spec.head_dim) + " has no kernel; accepted: multiples of " +
           std::to_string(head_dim_step) + " up to " + std::to_string(largest_head_dim);
  if (auto refusal = attention::refusal_of_output(spec.dtype, *target, {})) return refusal;
  if (is_narrow(spec.dtype) && spec.trans_o)
    return "O in " + std::string(to_text(spec.dtype)) + " is stored four dims at once; accepted: no trans_o";
  return std::nullopt;
}

attention_forward::LaunchGeometry launch_geometry(const CombineKernel& spec, std::uint32_t batch,
                                                  std::uint32_t query_heads, std::uint32_t query_length) {
  return {.grid_x = query_length,
          .grid_y = query_heads,
          .grid_z = batch,
          .threads = static_cast<std::uint32_t>(threads_of(spec))};
}

}  // namespace wavejit::attention_combine
