// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/program/list_invariance.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "templates/attention_latent/program/invariance.h"
#include "tools/invariance/draws.h"
#include "tools/invariance/joined.h"

namespace wavejit::attention_latent::program {

using attention::program::ListDimension;
using attention::program::ListedQueries;
using tools::Draws;
using tools::InvarianceRequest;

ListedQueries listed_queries(const LatentArrays& arrays) {
  const attention::program::Experiment& of = arrays.experiment;
  ListedQueries batch = {.words = of.text,
                         .sequences = of.batch,
                         .queries = of.query_length,
                         .query_heads = of.query_heads,
                         .dim = of.head_dim_qk,
                         .dim_v = of.head_dim_v,
                         .keys = of.key_length,
                         .top_k = arrays.lists.top_k,
                         .type = of.type,
                         .causal = (of.mask.bits & WAVEJIT_MASK_CAUSAL) != 0,
                         .scale = of.scale,
                         .q = arrays.q,
                         .k = arrays.k,
                         .v = {},
                         .indices = arrays.lists.indices,
                         .counts = arrays.lists.counts,
                         .key_lengths = arrays.key_lengths,
                         .sink = arrays.sinks};
  clear_last_column(batch);
  return batch;
}

namespace {

ListedQueries draw_lists(const InvarianceRequest& request) {
  Draws draws(request.seed, request.batch);
  constexpr std::array<std::int64_t, 8> heads = {1, 8, 12, 16, 20, 33, 48, 96};
  // Few queries a batch, over no more keys than lists have places several times over: what is drawn and copied costs
  // more than what lists read, and batches are of various kernels.
  constexpr std::int64_t most_queries = 16;
  constexpr std::int64_t most_keys = 1500;
  const std::int64_t queries = 1 + draws.below(3);
  const std::int64_t sequences = std::max<std::int64_t>(std::min(request.sequences, most_queries) / queries, 1);
  const std::int64_t keys = queries + draws.below(std::min(request.longest, most_keys));
  const std::int64_t top_k = 1 + draws.below(std::min<std::int64_t>(keys * 2, 900));
  std::string words = fmt::format(
      "attention_latent {} b{} q{} k{} h{} d{} lse top_k={}:mixed seed={}", draws.one_in(2) ? "bf16" : "fp16",
      sequences, queries, keys, heads[static_cast<std::size_t>(draws.below(8))],
      draws.one_in(3) ? "320/256" : "576/512", top_k, (request.seed * 1000) + request.batch);
  if (draws.one_in(2)) words += " causal";
  if (!draws.one_in(3) && !words.contains("causal")) {
    words += " k_lengths=";
    for (std::int64_t sequence = 0; sequence < sequences; ++sequence)
      words += fmt::format("{}{}", sequence == 0 ? "" : ",", draws.below(keys + 1));
  }
  ListedQueries batch = listed_queries(*make_latent_arrays(words, false));
  batch.words = words;
  return batch;
}

struct LatentListLaboratory : attention::program::ListLaboratory<wavejit_attention_latent_arguments,
                                                                 WAVEJIT_ATTENTION_LATENT, wavejit_attention_latent> {
  static const std::vector<ListDimension>& dimensions() {
    static const auto all = attention::program::list_dimensions("latent-list-", "", 20);
    return all;
  }
  static constexpr auto& draw = draw_lists;
};

}  // namespace

const tools::Invariance& invariance_with_lists() {
  static const tools::JoinedInvariance both = {&latent_invariance(),
                                               &tools::only<tools::InvarianceOf<LatentListLaboratory>>()};
  return both;
}

}  // namespace wavejit::attention_latent::program
