// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sparse_indexer as the runtime and its tools know it.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "families/call/family_of.h"
#include "templates/attention/call/data_type.h"
#include "templates/attention/call/described_slices.h"
#include "templates/attention/kernel/coverage.h"
#include "templates/sparse_indexer/call/descriptor.h"
#include "templates/sparse_indexer/kernel/rows.h"

namespace wavejit::sparse_indexer {
namespace {

using families::Explanation;
using families::Route;
using families::Shape;
using families::Toggles;
using targets::Target;

ScoresKernel scores_of(const IndexerShape& shape, const Target& target, const Toggles& toggles) {
  return {.type = shape.type,
          .blocks = shape.blocks,
          .cut = shape.cut,
          .paged = shape.paged,
          .shared = shape.shared,
          .target = std::string(target.id),
          .lowering = toggles.lowering};
}

// The limit of 4 GiB that a call of these sizes meets, in its words.
Result<void> check_slices(const ProblemDescriptor& descriptor) {
  if (descriptor.heads == 0) return {};  // scores are given
  return attention::check_described_slices(
      {{.name = "queries",
        .type = descriptor.type,
        .rows = descriptor.query_length,
        .heads = descriptor.heads,
        .dims = head_dim},
       {.name = "keys",
        .type = descriptor.type,
        .rows = descriptor.page_size != 0 ? descriptor.page_size : descriptor.key_length,
        .heads = 1,
        .dims = head_dim}});
}

struct Described final : families::DescribedBy<ProblemDescriptor> {
  using DescribedBy::DescribedBy;

  Result<Shape> shape(const boards::Board& board, const Toggles& toggles) const override {
    if (auto slices = check_slices(descriptor_); !slices) return std::unexpected(std::move(slices.error()));
    IndexerShape shape = descriptor_.shape();
    shape.shared = shape.scores && sharing_of(board, toggles, descriptor_.query_length);
    return shape.shape();
  }
};

class SparseIndexer final : public families::FamilyOf<ScoresKernel, IndexerShape, Described, parse_descriptor> {
 public:
  Result<Route> kernels_of(const IndexerShape& of, const Target& target, const Toggles& toggles) const override {
    Route route;
    if (of.scores) {
      const ScoresKernel scores = scores_of(of, target, toggles);
      if (const auto refusal = refusal_of(scores)) return fail(WAVEJIT_UNSUPPORTED, *refusal);
      route.kernels.push_back({.label = "spec", .spec = scores});
    }
    if (of.selects) {
      const SelectKernel select = {.target = std::string(target.id), .lowering = toggles.lowering};
      if (const auto refusal = refusal_of(select)) return fail(WAVEJIT_UNSUPPORTED, *refusal);
      route.kernels.push_back({.label = of.scores ? "select" : "spec", .spec = select});
    }
    return route;
  }

  void add_words(families::ProblemWords<IndexerShape>& words) const override {
    const DataType own = words.shape.type;
    if (words.shape.scores)
      words.add_choice("queries and keys in " + std::string(attention::to_text(own)), "queries and keys in",
                       [](IndexerShape& other) { other.type = DataType::bf16; });
    // Types of as many bits first.
    for (const bool narrow : {attention::is_narrow(own), !attention::is_narrow(own)})
      for (const auto& [type, name] : key_types)
        words.add_value(words.shape.scores && type != own && attention::is_narrow(type) == narrow, std::string(name),
                        [type](IndexerShape& other) { other.type = type; });
  }

  Explanation explain_shape(const IndexerShape& of, const Target& /*target*/,
                            const Toggles& /*toggles*/) const override {
    Explanation explanation;
    if (of.scores) {
      const std::string tiles = "tiles of " + std::to_string(tile_keys);
      explanation.description = of.shared ? "scores: a workgroup has " + std::to_string(scores_waves) +
                                                " rows and a run of keys, " + tiles + " in LDS, three ahead"
                                          : "scores: a wave has a row and a run of keys, " + tiles + ", two ahead";
      explanation.cost = std::to_string(scores_threads) + " threads, up to " +
                         std::to_string(512 / scores_waves_per_simd(of.blocks)) + " VGPRs";
    }
    if (of.selects) {
      const std::string before = of.scores ? "; " : "";
      explanation.description += before + "select: a workgroup has a row, digits of 11, 11 and 10 bits, a walk each";
      explanation.cost += before + std::to_string(select_threads) + " threads, up to 128 VGPRs";
    }
    return explanation;
  }

  std::vector<Shape> every_shape(const Target& target, const Toggles& /*toggles*/) const override {
    // Whole blocks of heads, as every published indexer has them; other numbers are a line of a list.
    std::vector<Shape> shapes;
    for (const auto& [type, name] : key_types) {
      if (attention::is_narrow(type) && attention::encoding_of(type) != target.fp8) continue;
      for (const auto& [blocks, heads] : head_names)
        for (const bool paged : {false, true})
          for (const bool shared : {false, true})
            shapes.push_back(IndexerShape{{.type = type, .blocks = blocks, .paged = paged, .shared = shared}}.shape());
    }
    return shapes;
  }

  std::optional<std::string> lacks(const Target& target) const override {
    return attention::lacks_kernels(target, attention::Need::square_of_32, family_name);
  }

  std::string supported(const Target& target) const override {
    const ScoresKernel plain = {.blocks = 1, .target = std::string(target.id)};
    const auto has = [](const ScoresKernel& spec) { return !refusal_of(spec); };
    return families::supported_words<ScoresKernel>(families::texts_of(scores_words), plain, has) + "; head dim " +
           std::to_string(head_dim) + "; key scales on request; masks none causal window; top-k up to " +
           std::to_string(max_top_k);
  }
};

}  // namespace

const families::Family& family() { return families::only<SparseIndexer>(); }

}  // namespace wavejit::sparse_indexer
