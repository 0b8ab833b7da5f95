// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// attention_backward as the runtime and its tools know it.
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "families/call/family_of.h"
#include "families/call/words.h"
#include "templates/attention/call/described_slices.h"
#include "templates/attention/call/modifiers.h"
#include "templates/attention/call/obstacles.h"
#include "templates/attention/kernel/coverage.h"
#include "templates/attention_backward/call/descriptor.h"
#include "templates/attention_backward/kernel/tiles.h"
#include "templates/attention_backward/kernel/words.h"

namespace wavejit::attention_backward {
namespace {

using families::Explanation;
using families::Route;
using families::Shape;
using families::Toggles;
using targets::Target;

// The limit of 4 GiB that a call of these sizes meets, in its words.
Result<void> check_slices(const ProblemDescriptor& descriptor) {
  const AskedWords& asked = descriptor.asked;
  const DataType gradients = asked.gradients_fp32 ? DataType::fp32 : asked.dtype;
  const auto tensor = [&](const char* name, DataType type, bool of_keys, int dims) -> attention::DescribedTensor {
    return {.name = name,
            .type = type,
            .rows = of_keys ? descriptor.key_length : descriptor.query_length,
            .heads = of_keys ? descriptor.kv_heads : descriptor.query_heads,
            .dims = dims,
            .packed = descriptor.layout == Layout::packed,
            .heads_outside = descriptor.layout == Layout::bhsd,
            .by_head = true};
  };
  if (auto slices = attention::check_described_slices(
          {tensor("q", asked.dtype, false, asked.head_dim_qk), tensor("k", asked.dtype, true, asked.head_dim_qk),
           tensor("v", asked.dtype, true, asked.head_dim_v), tensor("d_o", asked.dtype, false, asked.head_dim_v),
           tensor("o", asked.output_fp32 ? DataType::fp32 : asked.dtype, false, asked.head_dim_v),
           tensor("dq", gradients, false, asked.head_dim_qk), tensor("dk", gradients, true, asked.head_dim_qk),
           tensor("dv", gradients, true, asked.head_dim_v)});
      !slices)
    return slices;
  if (!descriptor.of(Modifier::bias).there) return {};
  std::int64_t rows = descriptor.query_length;
  if (descriptor.layout == Layout::packed) {
    rows *= descriptor.batch;
    if (!descriptor.query_lengths.empty())
      rows = std::accumulate(descriptor.query_lengths.begin(), descriptor.query_lengths.end(), std::int64_t{0});
  }
  const bool fp32 = asked.bias_fp32 || descriptor.d_bias_fp32;
  return attention::check_bias_slice(rows, attention::padded_bias_row(descriptor.key_length),
                                     static_cast<std::uint64_t>(bytes_of(fp32 ? DataType::fp32 : asked.dtype)));
}

struct Described final : families::DescribedBy<ProblemDescriptor> {
  using DescribedBy::DescribedBy;

  Result<Shape> shape(const boards::Board& /*board*/, const Toggles& /*toggles*/) const override {
    if (auto slices = check_slices(descriptor_); !slices) return std::unexpected(std::move(slices.error()));
    return descriptor_.shape().shape();
  }
};

KernelWords words_of(const BackwardShape& shape, const Target& target, const Toggles& toggles) {
  KernelWords words;
  static_cast<AskedWords&>(words) = shape;
  words.target = target.id;
  words.lowering = toggles.lowering;
  return words;
}

// As the problem would have it, or as a developer pins it: tile_queries=64, 128 or 256 behind the pipeline's name.
constexpr std::string_view tile_pin = "tile_queries";
int wanted_tile(Grid grid, const Target& target, const Toggles& toggles) {
  for (const int tile : tile_sizes)
    if (families::value_in(toggles.pins, tile_pin) == std::to_string(tile)) return tile;
  return default_tile(target, grid);
}
QueryKernel query_kernel_of(const BackwardShape& shape, const Target& target, const Toggles& toggles) {
  QueryKernel kernel = {words_of(shape, target, toggles)};
  const int tile = wanted_tile(shape.many_queries ? Grid::many : Grid::some, target, toggles);
  kernel.blocks = tile > rows_of_workgroup ? default_query_blocks(kernel, target) : 1;
  return kernel;
}
KeyKernel key_kernel_of(const BackwardShape& shape, const Target& target, const Toggles& toggles) {
  KeyKernel kernel = {words_of(shape, target, toggles)};
  kernel.output_fp32 = false;  // it reads no o
  const int tile = wanted_tile(shape.keys_grid(), target, toggles);
  kernel.blocks = tile > rows_of_workgroup ? default_key_blocks(kernel, target) : 1;
  kernel.runs = shape.runs;
  kernel.shared = tile < rows_of_workgroup && !sharing_refusal(kernel);
  return kernel;
}

BiasKernel bias_kernel_of(const BackwardShape& shape, const Target& target, const Toggles& toggles) {
  BiasKernel kernel = {words_of(shape, target, toggles)};
  kernel.gradients_fp32 = shape.d_bias_fp32;
  kernel.output_fp32 = false;
  return kernel;
}

class AttentionBackward final : public families::FamilyOf<QueryKernel, BackwardShape, Described, parse_descriptor> {
 public:
  Result<Route> kernels_of(const BackwardShape& of, const Target& target, const Toggles& toggles) const override {
    const QueryKernel queries = query_kernel_of(of, target, toggles);
    const KeyKernel keys = key_kernel_of(of, target, toggles);
    if (const auto refusal = refusal_of(queries)) return fail(WAVEJIT_UNSUPPORTED, *refusal);
    if (const auto refusal = refusal_of(keys)) return fail(WAVEJIT_UNSUPPORTED, *refusal);
    Route route = {.kernels = {{.label = "spec", .spec = queries}, {.label = "dk, dv", .spec = keys}}};
    if (of.d_sink)
      route.kernels.push_back(
          {.label = "d_sink", .spec = SinkKernel{.target = std::string(target.id), .lowering = toggles.lowering}});
    if (of.d_bias) {
      const BiasKernel bias = bias_kernel_of(of, target, toggles);
      if (const auto refusal = refusal_of(bias)) return fail(WAVEJIT_UNSUPPORTED, *refusal);
      route.kernels.push_back({.label = "d_bias", .spec = bias});
    }
    return route;
  }

  void add_words(families::ProblemWords<BackwardShape>& words) const override {
    const BackwardShape& shape = words.shape;
    const auto nothing_else = [](BackwardShape&) {};
    const std::span<const HeadDims> dims = all_head_dims();
    attention::add_head_dims(words, dims.front(), {dims.begin(), dims.end()}, [](const HeadDims&) { return false; });
    attention::add_mask(words, masks, nothing_else);
    attention::add_modifiers(words, [](BackwardShape& other, Modifier modifier) {
      if (modifier == Modifier::bias) other.bias_fp32 = other.d_bias = other.d_bias_fp32 = false;
    });
    words.add_other(shape.bias_fp32, "a bias in fp32", "a bias in", "16 bits",
                    [](BackwardShape& other) { other.bias_fp32 = false; });
    words.add_other(shape.gradients_fp32, "gradients in fp32", "gradients in", "16 bits",
                    [](BackwardShape& other) { other.gradients_fp32 = false; });
    words.add_other(shape.output_fp32, "o in fp32", "o in", "16 bits",
                    [](BackwardShape& other) { other.output_fp32 = false; });
  }

  Explanation explain_shape(const BackwardShape& of, const Target& target, const Toggles& toggles) const override {
    const QueryKernel queries = query_kernel_of(of, target, toggles);
    const KeyKernel keys = key_kernel_of(of, target, toggles);
    const std::string rows = std::to_string(rows_of_step(keys, target));
    const bool two_walks = walks_of(keys, target).size() > 1;
    Explanation explanation = {
        .description = "dQ by tiles of " + std::to_string(tile_queries_of(queries)) + " rows and " +
                       std::to_string(keys_at_once(queries, target)) + " keys, then " +
                       (two_walks ? "dV and dK, in a walk each," : "dK and dV") + " by tiles of " +
                       std::to_string(tile_keys_of(keys)) + " keys and " + rows + " rows" +
                       (keys.shared ? ", two waves a block of keys" : "") +
                       (of.d_sink ? ", then the sinks' by 256 chains of rows a head" : "") +
                       (of.d_bias ? ", then the bias's by tiles of 128 rows and 64 keys" : "") + "; no atomics",
        .cost = std::to_string(threads) + " threads, up to " +
                std::to_string(registers_of(target, waves_per_simd(queries, target))) + " and " +
                std::to_string(registers_of(target, waves_per_simd(keys, target))) + " VGPRs",
        .refused = {}};
    if (two_walks && !has_registers_of_accumulation(target))
      explanation.refused.push_back({.kernel = "dK and dV in one walk",
                                     .reason = "operands and both sums of d" + to_text(of.head_dims()) + " take " +
                                               std::to_string(held_registers(keys)) + " registers of a wave, of " +
                                               std::to_string(target.vgprs_per_wave)});
    else if (two_walks)
      explanation.refused.push_back(
          {.kernel = "dK and dV in one walk",
           .reason = "q and dO of " + rows + " rows, two images each, and their numbers take " +
                     std::to_string(row_stream_bytes(keys, target, rows_at_once(keys, target))) + " bytes of LDS, of " +
                     std::to_string(target.lds_bytes_per_workgroup)});
    QueryKernel more_queries = queries;
    KeyKernel more_keys = keys;
    more_queries.blocks = more_keys.blocks = most_blocks;
    more_keys.shared = false;
    if (const auto refusal = refusal_of(more_queries))
      explanation.refused.push_back({.kernel = "dQ", .reason = *refusal});
    if (const auto refusal = refusal_of(more_keys))
      explanation.refused.push_back({.kernel = "dK and dV", .reason = *refusal});
    if (of.few_keys && !keys.shared)
      if (const auto refusal = sharing_refusal(keys))
        explanation.refused.push_back({.kernel = "dK and dV", .reason = *refusal});
    return explanation;
  }

  Failure name_field(const Shape& shape, const Target& /*target*/, Failure failure) const override {
    const BackwardShape of = BackwardShape::of(shape.code);
    if (failure.status == WAVEJIT_UNSUPPORTED)
      failure.detail = "q.sizes[3] = " + std::to_string(of.head_dim_qk) +
                       ", v.sizes[3] = " + std::to_string(of.head_dim_v) + ": " + failure.detail;
    return failure;
  }

  std::vector<Shape> every_shape(const Target& target, const Toggles& /*toggles*/) const override {
    // Gradients of the tensors' type, one run; other words are a line of a list. Few workgroups and many.
    std::vector<Shape> shapes;
    for (const auto& [type, type_name] : attention::operand_types)
      for (const HeadDims& dims : all_head_dims())
        for (const auto& [mask, mask_name] : masks)
          for (const bool many : {false, true}) {
            BackwardShape shape = {{{.dtype = type, .head_dim_qk = dims.qk, .head_dim_v = dims.v, .mask = mask}}};
            if (!has_kernels(shape, target)) continue;
            shape.many_queries = shape.many_keys = many;
            if (many && query_kernel_of(shape, target, {}).blocks == 1) continue;
            shapes.push_back(shape.shape());
            shape.few_keys = !many && may_share(shape) && has_tile(target, rows_of_workgroup / sharing_waves);
            if (shape.few_keys) shapes.push_back(shape.shape());
          }
    // Sinks have one kernel.
    BackwardShape sinks = {{{.head_dim_qk = 64, .head_dim_v = 64, .mask = Mask::causal}}};
    sinks.d_sink = true;
    shapes.push_back(sinks.shape());
    return shapes;
  }

  bool takes_pin(std::string_view word) const override {
    const auto [name, value] = families::name_and_value(word);
    return name == tile_pin && families::whole_number(value).value_or(0) > 0;
  }
  std::string_view accepted_pins() const override { return "tile_queries=<rows>"; }

  std::optional<std::string> lacks(const Target& target) const override {
    return attention::lacks_kernels(target, attention::Need::row_of_two, family_name);
  }

  std::string supported(const Target& target) const override {
    std::string line =
        families::supported_words<QueryKernel>(spec_words<QueryKernel>, {}, [&](const QueryKernel& spec) {
          BackwardShape shape;
          static_cast<AskedWords&>(shape) = spec;
          return has_kernels(shape, target);
        });
    line += "; sinks in the LSE, with their gradient; sums that later calls continue; delta in the place of o; layouts";
    for (const auto& [layout, name] : layouts) line += " " + std::string(name);
    return line;
  }

 private:
  bool has_kernels(const BackwardShape& shape, const Target& target) const {
    return kernels_of(shape, target, {}).has_value();
  }
};

}  // namespace

const families::Family& family() { return families::only<AttentionBackward>(); }

}  // namespace wavejit::attention_backward
