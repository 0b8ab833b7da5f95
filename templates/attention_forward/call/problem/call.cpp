// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/call/problem/call.h"

#include <string>

#include "templates/attention_forward/call/combine/parameters.h"
#include "templates/attention_forward/call/parameters.h"
#include "templates/attention_forward/call/problem/call_descriptor.h"
#include "templates/attention_forward/call/problem/device_lengths.h"
#include "templates/attention_forward/call/problem/kernel_arguments.h"

namespace wavejit::attention_forward {
namespace {

// HIP's limit for y and z of a grid.
constexpr std::uint32_t max_grid_yz = 0xFFFF;

families::Launch launch_of(const LaunchGeometry& geometry, void* arguments, std::size_t bytes) {
  return {.grid_x = geometry.grid_x,
          .grid_y = geometry.grid_y,
          .grid_z = geometry.grid_z,
          .threads = geometry.threads,
          .dynamic_lds_bytes = geometry.dynamic_lds_bytes,
          .arguments = arguments,
          .argument_bytes = bytes};
}

[[gnu::cold, gnu::noinline]] std::unexpected<Failure> too_many_tiles(std::uint32_t query_length, std::uint32_t tiles) {
  return fail(WAVEJIT_INVALID_ARGUMENT, "q.sizes[1] (length) = " + std::to_string(query_length) + " needs " +
                                            std::to_string(tiles) + " query tiles; accepted: up to " +
                                            std::to_string(max_grid_yz));
}

}  // namespace

AttentionCall::AttentionCall(const wavejit_attention_forward_arguments& call, const AttentionProblem& problem,
                             const SplitPlan& splits, const targets::Target& target, const families::Toggles& toggles)
    : Call({.family = &family(), .code = kernel_shape(problem, splits).code()}),
      call_(call),
      problem_(problem),
      splits_(splits),
      target_(target),
      toggles_(toggles) {
  workspace_bytes = splits.workspace_bytes;
  workspace = call.workspace;
  report = call.report;
  judges_device_memory = (call.flags & WAVEJIT_CHECK_LENGTHS) != 0;
}

Result<void> AttentionCall::plan(std::span<const families::KernelSpec* const> kernels, const void* memory,
                                 families::LaunchPlan& plan) {
  const auto& spec = kernels[0]->get<KernelSpec>();
  const LaunchGeometry geometry = launch_geometry(spec, problem_.batch, problem_.query_heads, problem_.query_length,
                                                  splits_.splits, problem_.group());
  if (geometry.grid_y > max_grid_yz || geometry.grid_z > max_grid_yz) [[unlikely]]
    return too_many_tiles(problem_.query_length, geometry.grid_y);
  Arguments& arguments = arguments_.all;
  fill_arguments(arguments, problem_, call_, target_, toggles_);
  arguments.splits = splits_.splits;
  arguments.query_head_multiplier = division_multiplier(spec.packed_heads ? problem_.kv_heads : problem_.query_heads);
  arguments.split_multiplier = division_multiplier(splits_.splits);
  arguments.workspace = reinterpret_cast<std::uintptr_t>(memory);
  if (problem_.shape.paged) arguments_.pages = page_arguments(call_);
  if (problem_.shape.vectorised) [[unlikely]]
    set_units(arguments, call_);
  plan.add(launch_of(geometry, &arguments_, problem_.shape.paged ? sizeof arguments_ : sizeof arguments));
  if (splits_.splits == 1) [[likely]]
    return {};
  combine_ = combine_arguments(arguments, problem_.shape);
  const auto& combine = kernels[1]->get<attention_combine::KernelSpec>();
  plan.add(launch_of(
      attention_combine::launch_geometry(combine, problem_.batch, problem_.query_heads, problem_.query_length),
      &combine_, sizeof combine_));
  return {};
}

AttentionCall::WhenMissing AttentionCall::when_missing() const {
  if ((call_.flags & WAVEJIT_NO_COMPILE) == 0) return WhenMissing::make_them;
  return (call_.flags & WAVEJIT_COMPILE_BEHIND) == 0 ? WhenMissing::refuse : WhenMissing::refuse_and_make_them_behind;
}

std::string AttentionCall::descriptor(Line line) const {
  ProblemDescriptor descriptor = describe_call(problem_, call_);
  if (line == Line::of_kernels) descriptor.scale.clear();  // no part of a kernel
  return to_text(descriptor);
}

Result<void> AttentionCall::judge(families::DeviceMemory& memory) const {
  return check_device_lengths(memory, problem_, call_);
}

families::WorkspaceWords AttentionCall::workspace_words() const {
  const std::string count = std::to_string(splits_.splits);
  return {
      .reason = "splits = " + count, .captured = "keys are split (" + count + " splits)", .instead = "fewer splits"};
}

}  // namespace wavejit::attention_forward
