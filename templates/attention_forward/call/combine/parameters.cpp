// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/call/combine/parameters.h"

#include <bit>

#include "targets/targets.h"

namespace wavejit::attention_combine {
namespace {

constexpr int largest_head_dim = 256;  // a row then is a wave of 64 lanes
constexpr int head_dim_step = 8;

bool multiply(std::uint64_t& product, std::uint64_t factor) {
  return !__builtin_mul_overflow(product, factor, &product);
}

}  // namespace

std::optional<std::uint64_t> workspace_bytes(std::uint64_t rows, std::uint64_t query_heads, std::uint64_t splits,
                                             int head_dim) {
  auto bytes = static_cast<std::uint64_t>(record_bytes(head_dim));
  if (!multiply(bytes, rows) || !multiply(bytes, query_heads) || !multiply(bytes, splits)) return std::nullopt;
  return bytes;
}

int lanes_per_row(const KernelSpec& spec) {
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(spec.head_dim / dims_per_lane)));
}

int rows_per_workgroup(const KernelSpec& spec) { return threads / lanes_per_row(spec); }

std::size_t argument_bytes(const KernelSpec&) { return sizeof(Arguments); }

std::optional<std::string> refusal_of(const KernelSpec& spec) {
  const targets::Target* target = targets::find_target(spec.target);
  if (target == nullptr)
    return "target=" + spec.target + " is not in the target table; accepted: " + targets::known_targets();
  if (spec.head_dim % head_dim_step != 0 || spec.head_dim > largest_head_dim)
    return "head dim " + std::to_string(spec.head_dim) + " has no kernel; accepted: multiples of " +
           std::to_string(head_dim_step) + " up to " + std::to_string(largest_head_dim);
  return std::nullopt;
}

attention_forward::LaunchGeometry launch_geometry(const KernelSpec& spec, std::uint32_t batch,
                                                  std::uint32_t query_heads, std::uint32_t query_length) {
  const auto rows = static_cast<std::uint32_t>(rows_per_workgroup(spec));
  return {.grid_x = query_length / rows + (query_length % rows != 0 ? 1 : 0),
          .grid_y = query_heads,
          .grid_z = batch,
          .threads = threads};
}

}  // namespace wavejit::attention_combine
