// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// attention_forward as the runtime and its tools know it: descriptors, routes, what is supported.
#include <algorithm>
#include <memory>
#include <utility>

#include "families/call/family_of.h"
#include "families/call/refusal.h"
#include "templates/attention/call/data_type.h"
#include "templates/attention/kernel/coverage.h"
#include "templates/attention_forward/call/call.h"
#include "templates/attention_forward/call/descriptor.h"
#include "templates/attention_forward/call/merging.h"
#include "templates/attention_forward/call/mix.h"
#include "templates/attention_forward/call/obstacles.h"
#include "templates/attention_forward/call/pairs.h"
#include "templates/attention_forward/call/route.h"
#include "templates/attention_forward/call/shared_chunks.h"
#include "templates/attention_forward/call/splits.h"
#include "templates/attention_forward/call/walks/lists.h"
#include "templates/attention_forward/kernel/combine/spec.h"
#include "templates/attention_forward/kernel/lds_plan.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_forward/kernel/walks/block_lists/spec.h"
#include "templates/attention_forward/kernel/walks/mask_lists/spec.h"
#include "templates/attention_forward/kernel/words.h"

namespace wavejit::attention_forward {
namespace {

families::Shape shape_of(const AttentionShape& shape) { return {.family = &family(), .code = shape.code()}; }

class Described final : public families::DescribedBy<ProblemDescriptor> {
 public:
  // `of_range`: it stands for shorter ones, too.
  explicit Described(ProblemDescriptor descriptor, bool of_range = false)
      : DescribedBy(std::move(descriptor)), problem_(problem_of(descriptor_)), of_range_(of_range) {}

  Result<families::Shape> shape(const boards::Board& board, const Toggles& toggles) const override {
    if (!of_range_)
      if (auto slices = check_slices(descriptor_); !slices) return std::unexpected(std::move(slices.error()));
    return shape_of(kernel_shape(problem_, plan_splits(problem_, board, toggles), board, toggles));
  }

  std::vector<families::Note> notes(const boards::Board& board, const Toggles& toggles) const override {
    const SplitPlan plan = plan_splits(problem_, board, toggles);
    const AttentionShape shape = kernel_shape(problem_, plan, board, toggles);
    std::vector<families::Note> notes = {{.label = "splits", .text = describe(plan, problem_, shape, board)}};
    if (shape.block_lists) notes.push_back({.label = "lists", .text = describe_lists(problem_)});
    if (shape.masks_few_rows()) notes.push_back({.label = "lists", .text = describe_mask_of_few_rows(problem_)});
    const bool chooses = !toggles.pins_kernels() || pins_of(toggles).shares_chunks;
    const AttentionProblem walked = plan.few_rows != 0 ? of_few_rows(problem_, plan.few_rows) : problem_;
    if (chooses)
      if (const std::string waves = describe_sharing(walked, plan.runs, board); !waves.empty())
        notes.push_back({.label = "waves", .text = (plan.few_rows != 0 ? "of few rows " : "") + waves});
    if (plan.few_rows != 0) notes.insert(notes.begin(), {.label = "walks", .text = describe_walks(plan)});
    return notes;
  }

  std::vector<std::unique_ptr<families::DescribedProblem>> of_single_lengths() const override {
    std::vector<std::unique_ptr<families::DescribedProblem>> problems;
    std::vector<ProblemDescriptor> each = without_ranges(descriptor_);
    if (each.size() == 1) return problems;
    for (ProblemDescriptor& one : each) problems.push_back(std::make_unique<Described>(std::move(one), has_range()));
    return problems;
  }

  bool has_range() const override { return descriptor_.has_range(); }

 private:
  AttentionProblem problem_;
  bool of_range_;
};

// What a target's line of `supported` lists, asked row by row on top of a problem that has a kernel.
std::string list_supported(const targets::Target& target) {
  const auto routes = [&](const ForwardKernel& spec, const Toggles& toggles) {
    return choose_kernel(AttentionShape{spec}, target, toggles).has_value();
  };
  const ForwardKernel plain;
  std::string line = families::supported_words<ForwardKernel>(
      spec_words, plain, [&](const ForwardKernel& spec) { return routes(spec, {}); });
  for (const ModifierRow& row : modifier_rows)
    if (!row.in_code) line += "; " + std::string(row.word) + "s";
  line += "; dense or packed; pipelines";
  for (const auto& [pipeline, name] : pipelines)
    if (routes(plain, {.pins = "pipeline=" + std::string(name)})) line += " " + std::string(name);
  line += "; O store";
  for (const auto& [store, name] : output_stores)
    if (routes(plain, {.ways = "o_store=" + std::string(name)})) line += " " + std::string(name);
  return line;
}

// Adds the walks of whole keys, and of split keys with either way to merge.
void add_walks(std::vector<families::Shape>& shapes, const targets::Target& target, const AttentionShape& whole,
               bool split) {
  shapes.push_back(shape_of(whole));
  if (!split) return;
  AttentionShape one = whole.of_split_kernel();
  shapes.push_back(shape_of(one));
  one.merged = may_merge_by_itself(one) && can_merge(one, target, one.shared_chunks);
  if (one.merged) shapes.push_back(shape_of(one));
}

// What merges the parts of a split kernel, or why nothing writes such an O.
Result<void> add_combine(families::Route& route, const ForwardKernel& split, const AttentionShape& shape) {
  const attention_combine::CombineKernel combine = attention_combine::combine_of(split, shape.output, shape.trans_o);
  if (auto refused = refusal_of(combine)) return fail(WAVEJIT_UNSUPPORTED, *std::move(refused));
  route.kernels.push_back({.label = "combine", .spec = combine});
  return {};
}

// Both kernels that walk keys, the long sequences' first, and what merges the parts of the other one.
Result<families::Route> mixed_route(const AttentionShape& shape, const targets::Target& target,
                                    const Toggles& toggles) {
  auto tall = choose_kernel(shape.of_long_queries(), target, toggles);
  if (!tall) return std::unexpected(std::move(tall.error()));
  auto few = choose_kernel(shape.of_few_rows(), target, toggles);
  if (!few) return std::unexpected(std::move(few.error()));
  families::Route route = {
      .kernels = {{.label = "spec", .spec = tall->spec}, {.label = "few rows", .spec = few->spec}}};
  if (few->spec.split_keys != 0)
    if (auto added = add_combine(route, few->spec, shape); !added) return std::unexpected(std::move(added.error()));
  return route;
}

// One kernel that walks keys, and what makes its lists before it and merges its parts behind it.
Result<families::Route> single_route(const AttentionShape& shape, const targets::Target& target,
                                     const Toggles& toggles) {
  auto chosen = choose_kernel(shape, target, toggles);
  if (!chosen) return std::unexpected(std::move(chosen.error()));
  families::Route route = {.kernels = {{.label = "spec", .spec = chosen->spec}}};
  if (shape.block_lists)
    route.kernels.push_back({.label = "lists", .spec = attention_block_lists::lists_of(chosen->spec)});
  if (shape.bool_mask || shape.bias_by_tile)
    route.kernels.push_back({.label = "mask", .spec = attention_mask_lists::mask_of(chosen->spec)});
  // One for all split kernels of a data type and head dim, whatever their masks and pipelines.
  if (chosen->spec.split_keys != 0 && !chosen->spec.merged)
    if (auto added = add_combine(route, chosen->spec, shape); !added) return std::unexpected(std::move(added.error()));
  return route;
}

class AttentionForward final : public families::FamilyOf<ForwardKernel, AttentionShape, Described, parse_descriptor> {
 public:
  Result<families::Route> route(const families::Shape& asked, const targets::Target& target,
                                const Toggles& toggles) const override {
    if (auto lacking = lacks(target)) return fail(WAVEJIT_UNSUPPORTED, *std::move(lacking));
    const AttentionShape shape = AttentionShape::of_code(asked.code);
    auto route = kernels_of(shape, target, toggles);
    if (!route) return std::unexpected(tell_obstacles(shape, target, toggles, std::move(route.error())));
    return route;
  }

  Result<families::Route> kernels_of(const AttentionShape& shape, const targets::Target& target,
                                     const Toggles& toggles) const override {
    return shape.mixed ? mixed_route(shape, target, toggles) : single_route(shape, target, toggles);
  }

  bool counts_arrivals(const families::Shape& shape) const override {
    return AttentionShape::of_code(shape.code).merged;
  }

  families::Explanation explain_shape(const AttentionShape& shape, const targets::Target& target,
                                      const Toggles& toggles) const override {
    const AttentionShape first = shape.mixed ? shape.of_long_queries() : shape;
    const auto chosen = choose_kernel(first, target, toggles);
    if (!chosen) return {};
    families::Explanation why = {.description = describe(*chosen),
                                 .cost = cost_of(*chosen),
                                 .refused = why_not_others(first, target, toggles, *chosen)};
    if (!shape.mixed) return why;
    if (const auto few = choose_kernel(shape.of_few_rows(), target, toggles)) {
      why.description += "; of few rows: " + describe(*few);
      why.cost += "; of few rows: " + cost_of(*few);
    }
    return why;
  }

  Failure name_field(const families::Shape& asked, const targets::Target& target, Failure failure) const override {
    const AttentionShape shape = AttentionShape::of_code(asked.code);
    // Without anything forced, only the head dim can stand in the way, or the type of K and V.
    if (shape.narrow_queries) {
      failure.detail = "q.dtype = " + families::refusal::dtype_text(WAVEJIT_E4M3) + ": " + failure.detail;
      return failure;
    }
    if (shape.cache != CacheType::as_queries && !reads(target, shape.key_type())) {
      failure.detail =
          "k.dtype = " + families::refusal::dtype_text(attention::told_type(shape.key_type())) + ": " + failure.detail;
      return failure;
    }
    if (shape.cache != CacheType::as_queries && shape.vectorised) {
      failure.detail = "page_layout beside k of 8 bits: " + failure.detail;
      return failure;
    }
    if (shape.integers && (shape.paged || shape.listed || shape.block_lists)) {
      failure.detail = "q.dtype = " + families::refusal::dtype_text(WAVEJIT_INT8) + ": " + failure.detail;
      return failure;
    }
    if (shape.bool_mask) {
      failure.detail = "bool_mask: " + failure.detail;
      return failure;
    }
    if (shape.bias_by_tile) {
      failure.detail = "flags = WAVEJIT_BIAS_BY_TILE: " + failure.detail;
      return failure;
    }
    if (shape.half_scores && (shape.has(Modifier::softcap) || shape.has(Modifier::alibi))) {
      failure.detail = "score_rounding = 1: " + failure.detail;
      return failure;
    }
    const bool names_other_words = !failure.detail.starts_with("head dim") && !failure.detail.starts_with("no kernel");
    if (!names_other_words && !choose_kernel(shape, target, {}))
      failure.detail = "q.sizes[3] (head dim) = " + std::to_string(shape.head_dim_qk) + ": " + failure.detail;
    return failure;
  }

  // What calls without modifiers, pages and mixes of lengths can reach: short queries and long ones, and split keys
  // where the engine's own number of splits says so.
  std::vector<families::Shape> every_shape(const targets::Target& target, const Toggles& toggles) const override {
    const bool shares = !toggles.pins_kernels();
    std::vector<families::Shape> shapes;
    for (AttentionShape shape : supported_shapes(target, toggles)) {
      // What queries of every length lead to.
      for (const auto rows : all_query_rows) {
        for (const bool packed : {false, true}) {
          shape.set_rows({.rows = rows, .packed_heads = packed});
          if (may_pair(shape)) shapes.push_back(shape_of(shape.of_paired_kernel()));
          // Few rows are split by themselves.
          const bool few = packed || rows == QueryRows::up_to_32;
          const bool split = few ? toggles.kv_splits != 1 : toggles.kv_splits.value_or(1) > 1;
          add_walks(shapes, target, shape, split);
          if (shares && can_share(shape, target, split)) add_walks(shapes, target, shape.of_shared_chunks(), split);
        }
      }
    }
    return shapes;
  }

  bool takes_pin(std::string_view word) const override { return is_pin(word); }
  std::string_view accepted_pins() const override { return attention_forward::accepted_pins; }

  std::optional<std::string> lacks(const targets::Target& target) const override {
    return attention::lacks_kernels(target, attention::Need::row_of_two, ForwardKernel::kernel);
  }

  std::string supported(const targets::Target& target) const override { return list_supported(target); }

  std::vector<std::string> supported_everywhere() const override {
    return {
        "lengths: queries 1 or more, keys 0 or more, equal or not, dense or packed, "
        "key lengths and first keys (left padding) in device memory; keys in pages of 1 or 16 n keys up to 8192, by a "
        "block table or a list (CSR), caches beyond 4 GiB; heads MHA, GQA, MQA; "
        "strides positive multiples of 8 (BSHD, BHSD and between; 0, too, of what is only read), "
        "or any positive ones of which that of length or of head dim is 1; sequences whose rows span less than 4 GiB"};
  }
};

}  // namespace

const families::Family& family() { return families::only<AttentionForward>(); }

}  // namespace wavejit::attention_forward
