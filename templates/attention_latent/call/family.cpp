// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// attention_latent as the runtime and its tools know it.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "families/call/family_of.h"
#include "families/call/refusal.h"
#include "templates/attention/call/data_type.h"
#include "templates/attention/call/described_slices.h"
#include "templates/attention/call/obstacles.h"
#include "templates/attention/kernel/canon.h"
#include "templates/attention/kernel/coverage.h"
#include "templates/attention_latent/call/descriptor.h"
#include "templates/attention_latent/call/scaled_rows.h"
#include "templates/attention_latent/call/splits.h"
#include "templates/attention_latent/kernel/rows.h"
#include "templates/attention_latent/kernel/words.h"

namespace wavejit::attention_latent {
namespace {

using families::Explanation;
using families::Route;
using families::Shape;
using families::Toggles;
using targets::Target;

// The limit of 4 GiB that a call of these sizes meets, in its words.
Result<void> check_slices(const ProblemDescriptor& descriptor) {
  const std::int64_t rope = descriptor.apart ? descriptor.head_dim_qk - descriptor.head_dim_v : 0;
  const std::int64_t dims = descriptor.head_dim_qk - rope;
  const bool scaled = descriptor.row_scales != RowScales::none;
  const DataType key_type = attention::type_in(descriptor.cache, descriptor.dtype);
  const std::int64_t key_dims = !scaled                                     ? dims
                                : descriptor.row_scales == RowScales::of_64 ? exponents_row_bytes
                                                                            : scaled_row_bytes;
  // The descriptor does not say how many keys a page of slots has.
  const std::int64_t key_rows = descriptor.page_size != 0 ? descriptor.page_size
                                : descriptor.slots        ? 0
                                                          : descriptor.key_length;
  const auto of_queries = [&](const char* name, std::int64_t columns) -> attention::DescribedTensor {
    return {.name = name,
            .type = descriptor.dtype,
            .rows = columns == 0 ? 0 : descriptor.query_length,
            .heads = descriptor.heads,
            .dims = columns,
            .packed = descriptor.packed};
  };
  const auto of_keys = [&](const char* name, std::int64_t columns) -> attention::DescribedTensor {
    return {.name = name,
            .type = key_type,
            .rows = columns == 0 ? 0 : key_rows,
            .heads = 1,
            .dims = columns,
            .packed = descriptor.packed && descriptor.page_size == 0};
  };
  return attention::check_described_slices({of_queries("q", dims), of_queries("q_rope", rope),
                                            of_queries("o", descriptor.head_dim_v), of_keys("k", key_dims),
                                            of_keys("k_rope", rope)});
}

// Keys whole; in runs that a second launch merges; in runs that are merged in the same one.
struct WayOfRuns {
  bool parts;
  bool merged;
};
constexpr WayOfRuns ways_of_runs[] = {
    {.parts = false, .merged = false}, {.parts = true, .merged = false}, {.parts = true, .merged = true}};

class Described final : public families::DescribedBy<ProblemDescriptor> {
 public:
  using DescribedBy::DescribedBy;
  Result<Shape> shape(const boards::Board& board, const Toggles& toggles) const override {
    if (auto slices = check_slices(descriptor_); !slices) return std::unexpected(std::move(slices.error()));
    const LatentProblem problem = problem_on(board, toggles);
    return shape_of(problem, plan_splits(problem, board)).shape();
  }
  std::vector<families::Note> notes(const boards::Board& board, const Toggles& toggles) const override {
    const LatentProblem problem = problem_on(board, toggles);
    return {{.label = "splits", .text = describe(plan_splits(problem, board), problem, board)}};
  }
  // The first calls of a sequence have few keys and split none; a captured call without a workspace never splits. A call
  // of few sequences has fewer rows a workgroup than one of many (splits.h).
  std::vector<std::unique_ptr<DescribedProblem>> of_single_lengths() const override {
    std::vector<std::unique_ptr<DescribedProblem>> all;
    const LatentProblem problem = descriptor_.problem();
    if (descriptor_.splits != 0 || problem.walked_keys() <= problem.chunk_keys()) return all;
    const auto add = [&](ProblemDescriptor one) {
      for (const std::uint32_t splits : {1, 2}) {
        one.splits = splits;
        if (splits == 1 || one.launches != 0) {
          all.push_back(std::make_unique<Described>(one));
          continue;
        }
        // Other lengths may be merged the other way.
        for (const std::uint32_t launches : {1, 2}) {
          ProblemDescriptor merged = one;
          merged.launches = launches;
          all.push_back(std::make_unique<Described>(std::move(merged)));
        }
      }
    };
    add(descriptor_);
    if (problem.shape.rows != Rows::r128) return all;
    constexpr std::int64_t few = 1;
    constexpr std::int64_t many = 1024;  // more than compute units of any board
    for (const std::int64_t batch : {few, many}) {
      ProblemDescriptor other = descriptor_;
      other.batch = batch;
      for (auto* lengths : {&other.query_lengths, &other.key_lengths})
        if (!lengths->empty()) lengths->resize(static_cast<std::size_t>(batch), lengths->front());
      add(std::move(other));
    }
    return all;
  }
  bool has_range() const override { return false; }

 private:
  LatentProblem problem_on(const Target& target, const Toggles& toggles) const {
    LatentProblem problem = descriptor_.problem();
    take_rows(problem, target, toggles);
    return problem;
  }
};

WalkKernel kernel_of(const LatentShape& shape, const Target& target, const Toggles& toggles) {
  WalkKernel kernel;
  static_cast<AskedWords&>(kernel) = shape;
  kernel.target = target.id;
  kernel.lowering = toggles.lowering;
  return kernel;
}

// Why a workgroup has no other number of rows. Whether parts are merged in one launch is told beside the runs (splits.h).
std::vector<families::Refusal> why_not_other_rows(const LatentShape& of, const Target& target, const Toggles& toggles) {
  const std::string_view pinned = families::value_in(toggles.pins, tile_pin);
  const std::string of_one = of.listed ? " rows of a query, whose list they share" : " rows of a sequence";
  std::vector<families::Refusal> refused;
  for (const auto& [rows, name] : rows_names) {
    if (rows == of.rows) continue;
    LatentShape other = of;
    other.rows = rows;
    std::string reason;
    if (const auto impossible = refusal_of(kernel_of(other, target, toggles)))
      reason = *impossible;
    else if (!pinned.empty())
      reason = std::string(tile_pin) + "=" + std::string(pinned) + " was asked for";
    else if (rows < of.rows)
      reason = std::to_string(count_of(of.rows)) + " are preferred where there are more" + of_one +
               ": fewer workgroups read each key";
    else if (rows == Rows::r64)
      reason = "it is for more than 32" + of_one + "; fewer would leave waves idle";
    else
      reason = "it is for more than 64" + of_one + ", where half as many workgroups still fill the device";
    refused.push_back({.kernel = "tiles of " + std::string(name) + " rows", .reason = std::move(reason)});
  }
  return refused;
}

class AttentionLatent final : public families::FamilyOf<WalkKernel, LatentShape, Described, parse_descriptor> {
 public:
  Result<Route> kernels_of(const LatentShape& of, const Target& target, const Toggles& toggles) const override {
    const WalkKernel walk = kernel_of(of, target, toggles);
    if (const auto refusal = refusal_of(walk)) return fail(WAVEJIT_UNSUPPORTED, *refusal);
    Route route = {.kernels = {{.label = "spec", .spec = walk}}};
    if (of.parts && !of.merged)
      route.kernels.push_back({.label = "combine",
                               .spec = CombineKernel{.dtype = of.dtype,
                                                     .head_dim = of.dims_v(),
                                                     .few = of.rows == Rows::r32,
                                                     .listed = of.listed,
                                                     .scaled = of.widens(),
                                                     .target = std::string(target.id),
                                                     .lowering = toggles.lowering}});
    return route;
  }

  void add_words(families::ProblemWords<LatentShape>& words) const override {
    const LatentShape& shape = words.shape;
    const std::string dtype(attention::to_text(shape.dtype));
    words.add_other(shape.dtype != DataType::bf16, dtype, "", "bf16",
                    [](LatentShape& other) { other.dtype = DataType::bf16; });
    attention::add_cache(words, [](LatentShape&) {}, !shape.has_row_scales());
    attention::add_mask(words, masks, [](LatentShape&) {});
    attention::add_modifiers(words, [](LatentShape&, Modifier) {});
    words.add(shape.listed, "a list of keys", "the list of keys",
              [](LatentShape& other) { other.listed = other.slots = false; });
    words.add_other(shape.pages == Pages::keys, "pages of one key", "pages of", "16 keys",
                    [](LatentShape& other) { other.pages = Pages::granules; });
  }

  // Rows of a workgroup follow from the other words.
  LatentShape settled(const LatentShape& shape, const Target& target) const override {
    LatentShape of = shape;
    of.rows = std::min(of.rows, most_rows(of, target));
    return of;
  }

  bool counts_arrivals(const Shape& shape) const override { return LatentShape::of(shape.code).merged; }

  Explanation explain_shape(const LatentShape& of, const Target& target, const Toggles& toggles) const override {
    const int sharing = waves_of_rows(of);
    return {.description = "tiles of " + std::to_string(count_of(of.rows)) +
                           " rows and 64 keys, a row being a head of a query; " + std::to_string(waves) + " waves, " +
                           std::to_string(sharing) +
                           " to 32 rows with a share of V's columns each; keys and values one tile in LDS" +
                           (of.has_row_scales() ? ", multiplied by their rows' scales on the way there" : "") +
                           (of.listed ? ", of one query, whose list names the keys" : "") +
                           (of.merged  ? ", the parts of chunks merged by the last workgroup to arrive"
                            : of.parts ? ", then the parts of chunks merged"
                                       : ""),
            .cost = std::to_string(key_ring_plan(of, target).total_bytes()) +
                    " bytes of LDS, up to 512 VGPRs, 1 workgroup per CU",
            .refused = why_not_other_rows(of, target, toggles)};
  }

  Failure name_field(const Shape& shape, const Target& target, Failure failure) const override {
    const LatentShape of = LatentShape::of(shape.code);
    if (failure.status == WAVEJIT_UNSUPPORTED && of.widens() && !attention::reads(target, of.key_type()))
      failure.detail =
          "k.dtype = " + families::refusal::dtype_text(attention::told_type(of.key_type())) + ": " + failure.detail;
    else if (failure.status == WAVEJIT_UNSUPPORTED)
      failure.detail = "q.sizes[3] = " + std::to_string(of.dims_k()) + ", o.sizes[3] = " + std::to_string(of.dims_v()) +
                       ": " + failure.detail;
    return failure;
  }

  std::vector<Shape> every_shape(const Target& target, const Toggles& toggles) const override {
    // Without a soft cap; other words are a line of a list.
    std::vector<Shape> shapes;
    for (const auto& [type, type_name] : attention::operand_types)
      for (const Mask mask : {Mask::none, Mask::causal})
        for (const auto& [rows, rows_name] : rows_names)
          for (const Pages pages : {Pages::dense, Pages::tiles})
            for (const auto& [parts, merged] : ways_of_runs) {
              const LatentShape shape = of_runs(
                  {{.dtype = type, .mask = mask, .modifiers = {}, .rows = rows, .pages = pages}}, parts, merged);
              if (!refusal_of(kernel_of(shape, target, toggles))) shapes.push_back(shape.shape());
            }
    // Caches of 8 bits that the target reads.
    for (const auto& [type, type_name] : attention::operand_types)
      for (const auto& [cache, cache_name] : attention::cache_types)
        for (const auto& [rows, rows_name] : rows_names)
          for (const auto& [parts, merged] : ways_of_runs) {
            const LatentShape shape = of_runs(
                {{.dtype = type, .cache = cache, .modifiers = {}, .rows = rows, .pages = Pages::tiles}}, parts, merged);
            if (!refusal_of(kernel_of(shape, target, toggles))) shapes.push_back(shape.shape());
          }
    // Rows with scales, in pages and by the slots of lists.
    for (const auto& [scales, scales_name] : row_scales_names)
      for (const CacheType cache : {CacheType::e4m3, CacheType::e4m3_fnuz})
        for (const bool listed : {false, true})
          for (const auto& [parts, merged] : ways_of_runs) {
            LatentShape shape = {{.cache = cache,
                                  .row_scales = scales,
                                  .dims = dims_of(scales),
                                  .modifiers = {},
                                  .pages = listed ? Pages::granules : Pages::tiles,
                                  .listed = listed,
                                  .slots = listed}};
            shape = of_runs(shape, parts, merged);
            if (!refusal_of(kernel_of(shape, target, toggles))) shapes.push_back(shape.shape());
          }
    // Lists have no word for the mask.
    for (const auto& [type, type_name] : attention::operand_types)
      for (const auto& [rows, rows_name] : rows_names)
        for (const bool slots : {false, true})
          for (const auto& [parts, merged] : ways_of_runs) {
            LatentShape shape = {{.dtype = type, .modifiers = {}, .rows = rows, .listed = true, .slots = slots}};
            shape.pages = slots ? Pages::dense : Pages::granules;
            shape.parts = parts;
            shape.merged = merged;
            if (!refusal_of(kernel_of(shape, target, toggles))) shapes.push_back(shape.shape());
          }
    return shapes;
  }

  std::optional<std::string> lacks(const Target& target) const override {
    return attention::lacks_kernels(target, attention::Need::square_of_32, WalkKernel::kernel);
  }

  std::string supported(const Target& target) const override {
    WalkKernel plain;
    plain.target = target.id;
    const auto has = [](const WalkKernel& spec) { return !refusal_of(spec); };
    return families::supported_words<WalkKernel>(walk_words, plain, has) +
           " sink; LSE on request; 1 to 128 heads; latent and rope as one tensor or apart; queries dense or packed; "
           "keys dense, packed or in pages of 1 and of 16 n keys; lists of keys for each query, by number or by slot; "
           "caches of 8 bits with a scale for all keys or for each sequence, "
           "and of rows with scales of their own and a rope in bf16: of 656 bytes with four in fp32, and of 584 with "
           "exponents behind all rows of a page";
  }
};

}  // namespace

const families::Family& family() { return families::only<AttentionLatent>(); }

}  // namespace wavejit::attention_latent
