// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/program/dense_walk.h"

#include <fmt/format.h>

#include <algorithm>

#include "templates/attention/program/list_queries.h"

namespace wavejit::attention_latent::program {
namespace {

constexpr std::uint16_t two = 0x4000;  // in bf16 and in fp16

std::ptrdiff_t columns_of(const LatentArrays& arrays) { return arrays.latent() + arrays.rope(); }

}  // namespace

void clear_last_column(LatentArrays& arrays) {
  const auto columns = static_cast<std::size_t>(columns_of(arrays));
  for (std::size_t last = columns - 1; last < arrays.q.size(); last += columns) arrays.q[last] = two;
  for (std::size_t last = columns - 1; last < arrays.k.size(); last += columns) arrays.k[last] = 0;
}

LatentArrays dense_walk_of(const LatentArrays& listed, std::int64_t token) {
  const attention::program::Experiment& of = listed.experiment;
  const auto sequences = attention::program::sequences_of(of);
  const auto sequence = std::ranges::find_if(
      sequences, [&](const auto& one) { return token >= one.first_query && token < one.first_query + one.queries; });
  const attention::program::ScoreRules rules = attention::program::rules_of(of, *sequence);
  const std::int64_t sees = attention::program::visible_keys(rules, token - sequence->first_query, sequence->keys).end;
  const std::int64_t top_k = listed.lists.top_k;
  const std::int64_t count = listed.lists.counts.empty() ? top_k : listed.lists.counts[static_cast<std::size_t>(token)];
  const std::int64_t keys = attention::program::keys_of_dense_walk(top_k);
  const std::string_view type = of.type == tools::HalfType::bf16 ? "bf16" : "fp16";
  LatentArrays dense = *make_latent_arrays(fmt::format("attention_latent {} b1 q1 k{} h{} d{}/{} scale={} lse", type,
                                                       keys, of.query_heads, of.head_dim_qk, of.head_dim_v, of.scale),
                                           false);
  const std::ptrdiff_t columns = columns_of(listed);
  const std::ptrdiff_t of_query = of.query_heads * columns;
  dense.q.assign(listed.q.begin() + (token * of_query), listed.q.begin() + ((token + 1) * of_query));
  std::ranges::fill(dense.k, std::uint16_t{0});
  const std::uint16_t minus_infinity = of.type == tools::HalfType::bf16 ? 0xFF80 : 0xFC00;
  for (std::int64_t key = 0; key < keys; ++key) {
    const auto to = dense.k.begin() + (key * columns);
    const std::int64_t place = attention::program::place_in_list(key);
    const bool is_place = place >= 0 && place < count;
    const std::int64_t entry = is_place ? listed.lists.indices[static_cast<std::size_t>((token * top_k) + place)] : -1;
    if (entry < 0 || entry >= sees) {
      *(to + columns - 1) = minus_infinity;
      continue;
    }
    std::copy_n(listed.k.begin() + ((sequence->first_key + entry) * columns), columns, to);
  }
  return dense;
}

}  // namespace wavejit::attention_latent::program
