// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/call/call.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "templates/attention/call/cache_scales.h"
#include "templates/attention/call/flags.h"
#include "templates/attention_forward/call/call_descriptor.h"
#include "templates/attention_forward/call/checks.h"
#include "templates/attention_forward/call/kernel_arguments.h"
#include "templates/attention_forward/call/key_lists.h"
#include "templates/attention_forward/call/walks/lists.h"
#include "templates/attention_forward/kernel/argument_tail.h"
#include "templates/attention_forward/kernel/combine/parameters.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_forward/kernel/walks/block_lists/spec.h"
#include "templates/attention_forward/kernel/walks/mask_lists/spec.h"

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

// As many query tiles as there may be: sequences of more than few_rows rows, of which each begins one more than its
// rows fill. y as for the longest of them, so that y and z stay within limits.
LaunchGeometry geometry_of_many_rows(const ForwardKernel& spec, const boards::Board& target,
                                     const AttentionProblem& problem, std::uint32_t few_rows) {
  LaunchGeometry geometry = launch_geometry(spec, target, 1, problem.query_heads, problem.query_length);
  const std::uint64_t sequences = std::min<std::uint64_t>(problem.batch, problem.query_rows / (few_rows + 1));
  const std::uint64_t tiles = std::min(problem.query_rows / static_cast<std::uint64_t>(spec.tile_queries) + sequences,
                                       std::uint64_t{problem.batch} * geometry.grid_y);
  geometry.grid_z =
      static_cast<std::uint32_t>(std::max<std::uint64_t>(1, (tiles + geometry.grid_y - 1) / geometry.grid_y));
  return geometry;
}

}  // namespace

void AttentionCall::fill(WalkArguments& arguments) const {
  Arguments& all = arguments.all.paged.all;
  fill_arguments(all, problem_, call_, target_, toggles_);
  if (problem_.shape.paged) arguments.all.paged.pages = page_arguments(call_.k, call_.pages);
  if (problem_.shape.vectorised) [[unlikely]]
    set_units(all, call_);
  if (problem_.shape.causal_flags) [[unlikely]]
    arguments.causal_flags = causal_flags();
}

void AttentionCall::set_runs(const ForwardKernel& spec, std::uint32_t runs, const void* memory, Arguments& all) const {
  all.splits = runs;
  all.query_head_multiplier = division_multiplier(spec.packed_heads ? problem_.kv_heads : problem_.query_heads);
  all.split_multiplier = division_multiplier(runs);
  all.workspace = reinterpret_cast<std::uintptr_t>(memory);
}

families::Launch AttentionCall::with_scales(const ForwardKernel& spec, const families::Launch& launch,
                                            std::size_t known, std::optional<KeptArguments>& kept) const {
  if (launch.argument_bytes <= known) [[likely]]
    return launch;
  KeptArguments& arguments = kept.emplace();
  CacheArguments& cached = arguments.cached;
  std::memcpy(cached.others.data(), launch.arguments, std::min(known, cached.others.size()));
  const auto put_behind = [&](const auto& what) { std::memcpy(arguments.behind.data(), &what, sizeof what); };
  const std::uint32_t first = first_sequence();
  switch (tail_of(spec)) {
    case Tail::plain:
    case Tail::pages:
    case Tail::arrivals:
    case Tail::row_limits:
    case Tail::block_lists:
    case Tail::key_lists:
      break;  // known
    case Tail::cache_scales:
      cached.scales = cache_scales(call_, first);
      break;
    case Tail::token_strides:
      cached.scales = token_scales(call_, spec.paged, first);
      put_behind(token_strides(call_));
      break;
    case Tail::query_scale:
      cached.scales = cache_scales(call_, first);
      put_behind(attention::cache_scale_argument(call_.scales.q_scale, first));
      break;
    case Tail::dim_strides:
      put_behind(dim_strides(call_));
      break;
    case Tail::integer_scales:
      put_behind(BehindOfIntegers{.dims = dim_strides(call_), .scales = integer_scales(call_, problem_, first)});
      break;
  }
  if (spec.scales_output()) arguments.output = output_scale(call_);
  families::Launch with = launch;
  with.arguments = &arguments;
  return with;
}

[[gnu::cold, gnu::noinline]] families::Launch AttentionCall::with_counters(const families::Launch& launch) {
  merging_.emplace();
  merging_->all = {.all = arguments_.all.paged, .counters = reinterpret_cast<std::uintptr_t>(arrival_counters)};
  if (problem_.shape.causal_flags) merging_->causal_flags = causal_flags();
  families::Launch with = launch;
  with.arguments = &*merging_;
  return with;
}

void AttentionCall::plan_combine(Kernels kernels, const Arguments& split, std::uint32_t batch, std::uint32_t rows,
                                 families::LaunchPlan& plan) {
  combine_ = combine_arguments(split, problem_.shape);
  combine_.few_rows = rows;
  if (problem_.shape.causal_flags) [[unlikely]]
    combine_.causal_flags = causal_flags();
  if (problem_.shape.cache != CacheType::as_queries && !problem_.shape.token_scales) [[unlikely]] {
    combine_.scales = cache_scales(call_, first_sequence());
    // Modified scores are powers of two already, and have K's scale.
    if (problem_.shape.modified()) combine_.scales.k = {};
  }
  if (problem_.shape.trans_o) [[unlikely]]
    combine_.o_dim_stride = dim_strides(call_).o;
  const std::size_t number = kernels.size() - 1;  // a route that merges ends with it (family.cpp)
  const auto& combine = kernels[number]->get<attention_combine::CombineKernel>();
  const std::size_t bytes = attention_combine::argument_bytes(combine);
  void* arguments = &combine_;
  if (bytes > sizeof combine_) [[unlikely]]
    arguments = &scaled_combine_.emplace(combine_, output_scale(call_));
  plan.add(launch_of(attention_combine::launch_geometry(combine, batch, problem_.query_heads, rows), arguments, bytes),
           number);
}

// What reads the mask, and where the bits that it leaves stand.
void AttentionCall::plan_look(const MaskPlan& mask, std::size_t kernel, families::LaunchPlan& plan) {
  look_ = mask.look;
  ScoreArguments& scores = arguments_.all.paged.all.scores;
  if (const auto& bits = mask.bits) {
    scores.bias = bits->bias;
    scores.bias_batch_stride = bits->bias_batch_stride;
    scores.bias_head_stride = bits->bias_head_stride;
    scores.bias_row_stride = bits->bias_row_stride;
  }
  if (round != 0) return;  // the first one has left those of all sequences
  const BlockLists& lists = problem_.lists;
  plan.add(launch_of({.grid_x = look_->tiles,
                      .grid_y = lists.row_blocks,
                      .grid_z = lists.batches * lists.heads,
                      .threads = attention_mask_lists::threads},
                     &*look_, sizeof *look_),
           kernel);
}

[[gnu::cold, gnu::noinline]] void AttentionCall::plan_mask_of_few_rows(const void* memory, families::LaunchPlan& plan) {
  Arguments& all = arguments_.all.paged.all;
  all.workspace += mask_bytes(problem_.lists);  // parts stand behind
  plan_look(plan_mask(problem_, call_, all, memory), 1, plan);
}

// Before the kernel that walks them.
[[gnu::cold, gnu::noinline]] void AttentionCall::plan_lists(const ForwardKernel& spec, const void* memory,
                                                            families::LaunchPlan& plan) {
  const WalkPlan walks = plan_walks(problem_, call_, spec, arguments_.all.paged.all, memory);
  lists_ = walks.make;
  arguments_.lists = walks.walk;
  constexpr std::size_t kernel_of_mask = 2;
  if (walks.mask) plan_look(*walks.mask, kernel_of_mask, plan);
  plan.add(launch_of(attention_block_lists::launch_geometry(lists_.units, lists_.heads, problem_.batch), &lists_,
                     sizeof lists_),
           1);
}

// Units of block lists are walked in an order of their own, and the last one, which may lack tiles, anywhere in it: the
// grid has all tiles of every unit.
std::uint32_t AttentionCall::rows_of_grid(const ForwardKernel& spec) const {
  if (!spec.block_lists) [[likely]]
    return problem_.query_length;
  return (problem_.query_length + problem_.lists.rows - 1) / problem_.lists.rows * problem_.lists.rows;
}

Result<void> AttentionCall::plan(Kernels kernels, const void* memory, families::LaunchPlan& plan) {
  if (splits_.few_rows != 0) [[unlikely]]
    return plan_mixed(kernels, memory, plan);
  const auto& spec = kernels[0]->get<ForwardKernel>();
  if (spec.listed) [[unlikely]]
    return plan_key_lists(kernels, memory, plan);
  const std::uint32_t first = first_sequence();
  const std::uint32_t batch = sequences();
  const LaunchGeometry geometry =
      launch_geometry(spec, target_, batch, problem_.query_heads, rows_of_grid(spec), splits_.runs, problem_.group());
  if (geometry.grid_y > max_grid_yz || geometry.grid_z > max_grid_yz) [[unlikely]]
    return too_many_tiles(problem_.query_length, geometry.grid_y);
  fill(arguments_);
  set_runs(spec, splits_.runs, memory, arguments_.all.paged.all);
  if (spec.block_lists) [[unlikely]]
    plan_lists(spec, memory, plan);
  if (spec.bool_mask && !spec.block_lists) [[unlikely]]
    plan_mask_of_few_rows(memory, plan);
  if (first != 0) [[unlikely]]
    begin_at_sequence(arguments_.all.paged, problem_.shape, first);
  if (spec.shares_call()) [[unlikely]]
    arguments_.all.rows.few_rows = problem_.query_length;
  const families::Launch launch = launch_of(geometry, &arguments_, argument_bytes(spec));
  if (spec.merged) [[unlikely]] {
    plan.add(with_scales(spec, with_counters(launch), sizeof *merging_, cached_), 0);
    return {};
  }
  plan.add(with_scales(spec, launch, sizeof arguments_, cached_), 0);
  if (splits_.runs != 1) [[unlikely]]
    plan_combine(kernels, arguments_.all.paged.all, batch, problem_.query_length, plan);
  return {};
}

// Workgroups have heads of one query each.
[[gnu::cold, gnu::noinline]] Result<void> AttentionCall::plan_key_lists(Kernels kernels, const void* memory,
                                                                        families::LaunchPlan& plan) {
  const auto& spec = kernels[0]->get<ForwardKernel>();
  const std::uint32_t first = first_sequence();
  const std::uint32_t batch = sequences();
  fill(arguments_);
  set_runs(spec, splits_.runs, memory, arguments_.all.paged.all);
  listed_ = {.all = arguments_.all.paged,
             .lists = attention::list_arguments(key_lists_of(call_), problem_.slots, problem_.causal,
                                                std::uint64_t{first} * problem_.query_length)};
  if (first != 0) begin_at_sequence(listed_->all, problem_.shape, first);
  const LaunchGeometry geometry = launch_geometry(spec, target_, batch, problem_.query_heads, problem_.query_length,
                                                  splits_.runs, problem_.group());
  // First of all: both walks count the chunks of both lists, and a launch over 8 bits has a copy of its arguments.
  if (splits_.second_runs != 0) fill_second(std::uint64_t{first} * problem_.query_length);
  plan.add(with_scales(spec, launch_of(geometry, &*listed_, argument_bytes(spec)), sizeof *listed_, cached_));
  if (!splits_.parts()) return {};
  if (splits_.second_runs != 0) {
    const LaunchGeometry of_second = launch_geometry(spec, target_, batch, problem_.query_heads, problem_.query_length,
                                                     splits_.second_runs, problem_.group());
    plan.add(with_scales(spec, launch_of(of_second, &*second_, argument_bytes(spec)), sizeof *second_, other_cached_),
             0);
  }
  plan_combine(kernels, listed_->all.all, batch, problem_.query_length, plan);
  combine_.lists = listed_->lists;
  if (splits_.second_runs == 0) return {};
  combine_.lists.second_counts = second_->lists.counts;
  combine_.lists.second_length = second_->lists.length;
  combine_.lists.second_first_part = second_->lists.first_part;
  return {};
}

// As the first list's walk but for the cache, the list and the number of runs. Its chunks count behind the first one's.
[[gnu::cold, gnu::noinline]] void AttentionCall::fill_second(std::uint64_t first_query) {
  second_ = listed_;
  Arguments& all = second_->all.all;
  set_keys(all, call_.second_k, call_.second_v);
  all.splits = splits_.second_runs;
  all.split_multiplier = division_multiplier(splits_.second_runs);
  if (problem_.shape.paged) second_->all.pages.pages = static_cast<std::uint32_t>(call_.second_k.sizes[0]);
  second_->lists = attention::list_arguments(second_list_of(call_), problem_.second_slots, false, first_query);
  second_->lists.first_part = listed_->lists.parts;
  listed_->lists.parts = second_->lists.parts += listed_->lists.parts;
}

Result<void> AttentionCall::plan_mixed(Kernels kernels, const void* memory, families::LaunchPlan& plan) {
  const auto& tall = kernels[0]->get<ForwardKernel>();
  const auto& few = kernels[1]->get<ForwardKernel>();
  const std::uint32_t few_rows = splits_.few_rows;
  const LaunchGeometry geometry = geometry_of_many_rows(tall, target_, problem_, few_rows);
  if (geometry.grid_y > max_grid_yz || geometry.grid_z > max_grid_yz) [[unlikely]]
    return too_many_tiles(problem_.query_length, geometry.grid_y);
  fill(arguments_);
  few_ = arguments_;  // but for what follows
  set_runs(tall, 1, nullptr, arguments_.all.paged.all);
  arguments_.all.rows = {.few_rows = few_rows, .sequences = problem_.batch, .tiles_of_z = geometry.grid_y};
  plan.add(with_scales(tall, launch_of(geometry, &arguments_, argument_bytes(tall)), sizeof arguments_, cached_));
  set_runs(few, splits_.runs, memory, few_->all.paged.all);
  few_->all.rows.few_rows = few_rows;
  const LaunchGeometry of_few =
      launch_geometry(few, target_, problem_.batch, problem_.query_heads, few_rows, splits_.runs, problem_.group());
  plan.add(with_scales(few, launch_of(of_few, &*few_, argument_bytes(few)), sizeof *few_, other_cached_));
  if (splits_.runs != 1) plan_combine(kernels, few_->all.paged.all, problem_.batch, few_rows, plan);
  return {};
}

std::string AttentionCall::descriptor(Line line) const {
  ProblemDescriptor descriptor = describe_call(problem_, call_);
  if (splits_.few_rows != 0) {
    // What says that it is a mix; and why nothing is split may not show in the words.
    descriptor.query_rows = static_cast<std::int64_t>(problem_.query_rows);
    if (splits_.runs == 1) descriptor.splits = 1;
  } else if (problem_.packed_queries && splits_.runs != 1) {
    // The place of the parts depends on the number of rows; without that number every sequence counts as the longest.
    AttentionProblem even = problem_;
    even.query_rows = std::uint64_t{problem_.batch} * problem_.query_length;
    if (has_parts_by_sequence(even) != has_parts_by_sequence(problem_))
      descriptor.query_rows = static_cast<std::int64_t>(problem_.query_rows);
  }
  if (line == Line::of_kernels) descriptor.scale.clear();  // no part of a kernel
  return to_text(descriptor);
}

families::WorkspaceWords AttentionCall::workspace_words() const {
  if (problem_.shape.bool_mask)
    return {.reason = "bool_mask",
            .captured = "walks are made of a bool mask",
            .instead = "a bias of 0 and −inf in place of the mask"};
  if (problem_.shape.bias_by_tile)
    return {.reason = "bias_by_tile",
            .captured = "walks are made of a bias",
            .instead = "the bias without WAVEJIT_BIAS_BY_TILE"};
  if (problem_.shape.block_lists)
    return {.reason = "lists of key blocks",
            .captured = "walks are made of lists of key blocks",
            .instead = "lists with less room (list_capacity)"};
  return attention::words_of_parts(splits_);
}

}  // namespace wavejit::attention_forward
