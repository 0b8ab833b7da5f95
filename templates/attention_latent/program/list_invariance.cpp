// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/program/list_invariance.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "templates/attention/program/list_queries.h"
#include "templates/attention_latent/program/dense_walk.h"
#include "templates/attention_latent/program/device_call.h"
#include "templates/attention_latent/program/invariance.h"
#include "tools/call_memory.h"
#include "tools/invariance/draws.h"
#include "tools/invariance/joined.h"

namespace wavejit::attention_latent::program {
namespace {

using attention::program::ListChange;
using attention::program::ListDimension;
using attention::program::QueryPart;
using tools::checked;
using tools::Draws;
using tools::InvarianceRequest;
using tools::Result;

using Call = wavejit_attention_latent_arguments;
using Answers = std::optional<std::vector<attention::program::RowAnswer>>;

attention::program::ListedQueries listed_of(const LatentArrays& arrays) {
  const attention::program::Experiment& of = arrays.experiment;
  return {.sequences = of.batch,
          .queries = of.query_length,
          .query_heads = of.query_heads,
          .kv_heads = 1,
          .dim = arrays.latent(),
          .keys = of.key_length,
          .top_k = arrays.lists.top_k,
          .type = of.type};
}

// A batch as words without layout and splits, and its arrays. Lists are mixed ones.
struct ListBatch {
  std::string words;
  LatentArrays arrays;

  const std::string& descriptor() const { return words; }
  attention::program::ListedQueries listed() const { return listed_of(arrays); }
};

// The call of a query, and some of its heads.
void cut(const LatentArrays& arrays, const QueryPart& part, Call& call) {
  if (part.heads == 0) return;
  attention::program::cut_queries(part, call);
  const std::int64_t of_sequence = arrays.experiment.query_length;
  const std::int64_t sequence = part.token / of_sequence;
  attention::program::cut(call.k, 0, {.first = sequence});
  if (call.sequences.key_lengths != nullptr) call.sequences.key_lengths += sequence;
  call.key_list.indices += part.token * call.key_list.top_k;
  if (call.key_list.counts != nullptr) call.key_list.counts += part.token;
  call.sequences.max_total_keys = 0;
  // The diagonal of the last row is the sequence's end: a row before it stands as far before it.
  call.k.sizes[1] -= (call.mask.bits & WAVEJIT_MASK_CAUSAL) != 0 ? of_sequence - (part.token % of_sequence + 1) : 0;
}

// The second cache has the slots of the first in reverse order.
void give_second(Call& call, tools::CallMemory& memory, const LatentArrays& arrays, std::int64_t first_entries) {
  const auto columns = static_cast<std::ptrdiff_t>(arrays.latent() + arrays.rope());
  const std::ptrdiff_t slots = std::ssize(arrays.k) / columns;
  std::vector<std::uint16_t> turned;
  for (std::ptrdiff_t slot = slots; slot-- > 0;)
    turned.insert(turned.end(), arrays.k.begin() + (slot * columns), arrays.k.begin() + ((slot + 1) * columns));
  call.second_k = call.k;
  call.second_k.data = memory.in(turned);
  attention::program::give_lists(call, memory,
                                 attention::program::cut_lists(arrays.lists.indices, arrays.lists.counts,
                                                               arrays.lists.top_k, first_entries, slots));
}

// What all queries get of the calls of these parts.
Result<Answers> run_parts(wavejit_engine* engine, const LatentArrays& arrays, const ListChange& change) {
  tools::CallMemory memory(engine);
  const attention::program::ListedQueries listed = listed_of(arrays);
  const attention::program::RowOutputs outputs(memory, listed.answer_shape(), listed.tokens());
  const DevicePointers pointers = {.q = memory.in(arrays.q),
                                   .q_rope = memory.in(arrays.q_rope),
                                   .k = memory.in(arrays.k),
                                   .k_rope = memory.in(arrays.k_rope),
                                   .sinks = memory.in(arrays.sinks),
                                   .query_starts = nullptr,
                                   .key_starts = nullptr,
                                   .key_lengths = memory.in(arrays.key_lengths),
                                   .table = memory.in(arrays.table),
                                   .key_indices = memory.in(arrays.lists.indices),
                                   .key_counts = memory.in(arrays.lists.counts)};
  Call call = call_of(arrays, pointers);
  outputs.describe(call, listed.sequences, listed.queries);
  if (change.first_entries != 0) give_second(call, memory, arrays, change.first_entries);
  if (change.splits != 0) call.split.splits = change.splits;
  if (!memory.good()) return std::unexpected(memory.good().error());
  for (const QueryPart& part : change.parts) {
    Call one = call;
    cut(arrays, part, one);
    memory.keep(checked(wavejit_attention_latent(engine, &one, nullptr)));
  }
  return outputs.read(engine, memory);
}

LatentArrays arrays_of(const std::string& words) {
  LatentArrays arrays = *make_latent_arrays(words, false);
  clear_last_column(arrays);
  return arrays;
}

// The same lists by slots. What a row does not see has none.
LatentArrays with_slots(LatentArrays arrays) {
  const auto sequences = attention::program::sequences_of(arrays.experiment);
  for (const auto& sequence : sequences) {
    const auto rules = attention::program::rules_of(arrays.experiment, sequence);
    for (std::int64_t row = 0; row < sequence.queries; ++row) {
      const std::int64_t sees = attention::program::visible_keys(rules, row, sequence.keys).end;
      const auto first = arrays.lists.indices.begin() + ((sequence.first_query + row) * arrays.lists.top_k);
      std::transform(first, first + arrays.lists.top_k, first, [&](std::int32_t entry) {
        return entry >= 0 && entry < sees ? static_cast<std::int32_t>(sequence.first_key + entry) : -1;
      });
    }
  }
  arrays.lists.slots = true;
  arrays.key_lengths.clear();
  arrays.experiment.mask.bits = WAVEJIT_MASK_NONE;
  return arrays;
}

LatentArrays with_lists_reversed(LatentArrays arrays) {
  const std::int64_t top_k = arrays.lists.top_k;
  for (auto first = arrays.lists.indices.begin(); first != arrays.lists.indices.end(); first += top_k)
    std::reverse(first, first + top_k);
  arrays.lists.counts.clear();
  return arrays;
}

Result<Answers> ran(wavejit_engine* engine, const ListBatch& batch, const ListChange& change) {
  if (change.slots) return run_parts(engine, with_slots(batch.arrays), change);
  if (change.reversed) return run_parts(engine, with_lists_reversed(batch.arrays), change);
  if (change.page_size != 0)
    return run_parts(engine, arrays_of(batch.words + fmt::format(" layout=paged:{}", change.page_size)), change);
  if (!change.dense_walks) return run_parts(engine, batch.arrays, change);
  std::vector<attention::program::RowAnswer> queries;
  for (std::int64_t token = 0; token < batch.listed().tokens(); ++token) {
    auto one = run_parts(engine, dense_walk_of(batch.arrays, token), change);
    if (!one) return one;
    queries.push_back(std::move((*one)->front()));
  }
  return queries;
}

ListBatch draw_lists(const InvarianceRequest& request) {
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
  return {.words = words, .arrays = arrays_of(words)};
}

struct LatentListLaboratory : attention::program::ListLaboratory<ListBatch> {
  static const std::vector<ListDimension>& dimensions() {
    static const auto all = attention::program::list_dimensions("latent-list-", "", 20);
    return all;
  }
  static ListBatch draw(const InvarianceRequest& request, const ListDimension&, wavejit_engine* /*engine*/) {
    return draw_lists(request);
  }
  static Result<Answers> changed(wavejit_engine* engine, const ListBatch& batch, const ListChange& change) {
    return ran(engine, batch, change);
  }
};

}  // namespace

const tools::Invariance& invariance_with_lists() {
  static const tools::JoinedInvariance both = {&latent_invariance(),
                                               &tools::only<tools::InvarianceOf<LatentListLaboratory>>()};
  return both;
}

}  // namespace wavejit::attention_latent::program
