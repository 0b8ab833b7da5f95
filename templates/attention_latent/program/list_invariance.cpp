// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/program/list_invariance.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "templates/attention/kernel/canon.h"
#include "templates/attention_latent/program/dense_walk.h"
#include "templates/attention_latent/program/device_call.h"
#include "templates/attention_latent/program/invariance.h"
#include "tools/call_memory.h"
#include "tools/invariance/draws.h"
#include "tools/invariance/joined.h"
#include "tools/invariance/runner.h"

namespace wavejit::attention_latent::program {
namespace {

using tools::checked;
using tools::Draws;
using tools::FirstDifference;
using tools::InvarianceDimension;
using tools::InvarianceRequest;
using tools::Result;

using Call = wavejit_attention_latent_arguments;

// The rows of one query: O [head][dim], LSE [head].
struct Query {
  std::vector<std::uint16_t> o;
  std::vector<std::uint32_t> lse;
};

// A batch as words without layout and splits, and its arrays. Lists are mixed ones.
struct Batch {
  std::string words;
  LatentArrays arrays;
};

// Which queries, from one on, and heads a call has, of the arrays' own.
struct Part {
  std::int64_t query = 0;
  std::int64_t queries = 0;  // 0: all, and all heads
  std::int64_t head = 0;
  std::int64_t heads = 0;
};

struct Change {
  std::string text = {};
  std::function<LatentArrays(const Batch&)> arrays = [](const Batch& batch) { return batch.arrays; };
  std::vector<Part> parts = {Part{}};
  std::int32_t splits = 0;
  bool dense_walks = false;
  std::int64_t first_entries = 0;  // of slots: what stands behind them is a second list over a second cache
  std::optional<wavejit_simgpu_schedule> schedule = std::nullopt;
};

std::int64_t tokens_of(const LatentArrays& arrays) {
  const attention::program::Placement queries = attention::program::queries_of(arrays.experiment);
  return queries.batch * queries.length;
}

// The call of some queries of one sequence, and some of their heads.
void cut(const LatentArrays& arrays, const Part& part, Call& call) {
  if (part.queries == 0) return;
  const std::int64_t of_sequence = arrays.experiment.query_length;
  const std::int64_t sequence = part.query / of_sequence;
  const std::int64_t row = part.query % of_sequence;
  const auto moved = [](wavejit_tensor& tensor, std::int64_t elements) {
    tensor.data = static_cast<std::uint16_t*>(tensor.data) + elements;
  };
  for (wavejit_tensor* tensor : {&call.q, &call.o}) {
    moved(*tensor, (part.query * tensor->strides[1]) + (part.head * tensor->strides[2]));
    tensor->sizes[0] = 1;
    tensor->sizes[1] = part.queries;
    tensor->sizes[2] = part.heads;
  }
  moved(call.k, sequence * call.k.strides[0]);
  call.k.sizes[0] = 1;
  call.lse.data =
      static_cast<float*>(call.lse.data) + (sequence * call.lse.strides[0]) + (part.head * call.lse.strides[1]) + row;
  call.lse.sizes[0] = 1;
  call.lse.sizes[1] = part.heads;
  call.lse.sizes[2] = part.queries;
  if (call.sequences.key_lengths != nullptr) call.sequences.key_lengths += sequence;
  call.key_list.indices += part.query * call.key_list.top_k;
  if (call.key_list.counts != nullptr) call.key_list.counts += part.query;
  call.sequences.max_total_keys = 0;
  // The diagonal of the last row is the sequence's end: a row before it stands as far before it.
  call.k.sizes[1] -= (call.mask.bits & WAVEJIT_MASK_CAUSAL) != 0 ? of_sequence - (row + part.queries) : 0;
}

// A list of slots, cut in two after `first_entries` entries. The second cache has the first one's slots in reverse
// order.
class SecondList {
 public:
  SecondList(tools::CallMemory& memory, const LatentArrays& arrays, std::int64_t first_entries)
      : entries_(first_entries) {
    const std::int64_t top_k = arrays.lists.top_k;
    const auto columns = static_cast<std::ptrdiff_t>(arrays.latent() + arrays.rope());
    const std::ptrdiff_t slots = std::ssize(arrays.k) / columns;
    std::vector<std::uint16_t> turned;
    for (std::ptrdiff_t slot = slots; slot-- > 0;)
      turned.insert(turned.end(), arrays.k.begin() + (slot * columns), arrays.k.begin() + ((slot + 1) * columns));
    std::vector<std::int32_t> first;
    std::vector<std::int32_t> second;
    std::vector<std::int32_t> first_counts;
    std::vector<std::int32_t> second_counts;
    for (std::size_t list = 0; list < arrays.lists.counts.size(); ++list) {
      const auto at = arrays.lists.indices.begin() + (static_cast<std::ptrdiff_t>(list) * top_k);
      first.insert(first.end(), at, at + first_entries);
      std::transform(at + first_entries, at + top_k, std::back_inserter(second),
                     [&](std::int32_t slot) { return slot < 0 ? -1 : static_cast<std::int32_t>(slots - 1 - slot); });
      const std::int32_t count = arrays.lists.counts[list];
      first_counts.push_back(std::min(count, static_cast<std::int32_t>(first_entries)));
      second_counts.push_back(std::max(count - static_cast<std::int32_t>(first_entries), 0));
    }
    cache_ = memory.in(turned);
    first_ = memory.in(first);
    first_counts_ = memory.in(first_counts);
    second_ = memory.in(second);
    second_counts_ = memory.in(second_counts);
  }
  void describe(Call& call) const {
    call.second_k = call.k;
    call.second_k.data = cache_;
    call.second_list.indices = second_;
    call.second_list.counts = second_counts_;
    call.second_list.top_k = call.key_list.top_k - entries_;
    call.key_list.indices = first_;
    call.key_list.counts = first_counts_;
    call.key_list.top_k = entries_;
  }

 private:
  std::int64_t entries_;
  std::uint16_t* cache_;
  std::int32_t* first_;
  std::int32_t* first_counts_;
  std::int32_t* second_;
  std::int32_t* second_counts_;
};

// What all queries get of the calls of these parts.
Result<std::vector<Query>> run_parts(wavejit_engine* engine, const LatentArrays& arrays, const Change& change) {
  tools::CallMemory memory(engine);
  const std::int64_t tokens = tokens_of(arrays);
  const std::int64_t heads = arrays.experiment.query_heads;
  std::vector<std::uint16_t> o(static_cast<std::size_t>(tokens * heads * arrays.latent()), 0x7FFF);
  std::vector<std::uint32_t> lse(static_cast<std::size_t>(tokens * heads), 0x7FFFFFFF);
  const DevicePointers pointers = {.q = memory.in(arrays.q),
                                   .q_rope = memory.in(arrays.q_rope),
                                   .k = memory.in(arrays.k),
                                   .k_rope = memory.in(arrays.k_rope),
                                   .o = memory.in(o),
                                   .lse = memory.in(lse),
                                   .sinks = memory.in(arrays.sinks),
                                   .query_starts = nullptr,
                                   .key_starts = nullptr,
                                   .key_lengths = memory.in(arrays.key_lengths),
                                   .table = memory.in(arrays.table),
                                   .key_indices = memory.in(arrays.lists.indices),
                                   .key_counts = memory.in(arrays.lists.counts)};
  std::optional<SecondList> second;
  if (change.first_entries != 0) second.emplace(memory, arrays, change.first_entries);
  if (!memory.good()) return std::unexpected(memory.good().error());
  for (const Part& part : change.parts) {
    Call call = call_of(arrays, pointers);
    if (second) second->describe(call);
    if (change.splits != 0) call.split.splits = change.splits;
    cut(arrays, part, call);
    memory.keep(checked(wavejit_attention_latent(engine, &call, nullptr)));
  }
  memory.keep(checked(wavejit_device_synchronize(engine)));
  o = memory.back<std::uint16_t>(pointers.o, o.size());
  lse = memory.back<std::uint32_t>(pointers.lse, lse.size());
  if (!memory.good()) return std::unexpected(memory.good().error());
  const std::int64_t of_sequence = arrays.experiment.query_length;
  std::vector<Query> queries(static_cast<std::size_t>(tokens));
  for (std::int64_t token = 0; token < tokens; ++token) {
    Query& query = queries[static_cast<std::size_t>(token)];
    const auto first = o.begin() + (token * heads * arrays.latent());
    query.o.assign(first, first + (heads * arrays.latent()));
    for (std::int64_t head = 0; head < heads; ++head) {
      const std::int64_t at = (((token / of_sequence * heads) + head) * of_sequence) + (token % of_sequence);
      query.lse.push_back(lse[static_cast<std::size_t>(at)]);
    }
  }
  return queries;
}

Result<std::vector<Query>> ran(wavejit_engine* engine, const Batch& batch, const Change& change) {
  const tools::Scheduled scheduled(change.schedule);
  if (!change.dense_walks) return run_parts(engine, change.arrays(batch), change);
  std::vector<Query> queries;
  for (std::int64_t token = 0; token < tokens_of(batch.arrays); ++token) {
    auto one = run_parts(engine, dense_walk_of(batch.arrays, token), change);
    if (!one) return one;
    queries.push_back(std::move(one->front()));
  }
  return queries;
}

LatentArrays arrays_of(const std::string& words) {
  LatentArrays arrays = *make_latent_arrays(words, false);
  clear_last_column(arrays);
  return arrays;
}

// The same lists by slots. What a row does not see has none.
LatentArrays with_slots(const Batch& batch) {
  LatentArrays arrays = batch.arrays;
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

LatentArrays with_lists_reversed(const Batch& batch) {
  LatentArrays arrays = batch.arrays;
  const std::int64_t top_k = arrays.lists.top_k;
  for (auto first = arrays.lists.indices.begin(); first != arrays.lists.indices.end(); first += top_k)
    std::reverse(first, first + top_k);
  arrays.lists.counts.clear();
  return arrays;
}

Batch draw_batch(const InvarianceRequest& request) {
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

struct Dimension {
  InvarianceDimension told;
  std::vector<Change> (*changes)(const Batch& batch, Draws& draws);
};

std::vector<Part> each_query(const LatentArrays& arrays) {
  std::vector<Part> parts;
  parts.reserve(static_cast<std::size_t>(tokens_of(arrays)));
  for (std::int64_t token = 0; token < tokens_of(arrays); ++token)
    parts.push_back({.query = token, .queries = 1, .head = 0, .heads = arrays.experiment.query_heads});
  return parts;
}

const std::vector<Dimension>& all_dimensions() {
  static const std::vector<Dimension> all = {
      {{.name = "latent-list-walk",
        .changes = "a dense walk over the list's keys with chunks of 256, in place of it",
        .one_in = 20},
       [](const Batch&, Draws&) { return std::vector{Change{.dense_walks = true}}; }},
      {{.name = "latent-list-splits", .changes = "how many runs a list is cut into", .one_in = 20},
       [](const Batch& batch, Draws& draws) {
         const auto count = static_cast<std::int32_t>(1 + draws.below(4));
         return batch.arrays.lists.top_k <= attention::list_chunk_keys
                    ? std::vector<Change>{}
                    : std::vector{Change{.text = fmt::format("splits={}", count), .splits = count}};
       }},
      {{.name = "latent-list-alone", .changes = "each query in a call of its own", .one_in = 20},
       [](const Batch& batch, Draws&) { return std::vector{Change{.parts = each_query(batch.arrays)}}; }},
      {{.name = "latent-list-heads", .changes = "the heads of each query in two calls", .one_in = 20},
       [](const Batch& batch, Draws& draws) {
         const std::int64_t heads = batch.arrays.experiment.query_heads;
         if (heads == 1) return std::vector<Change>{};
         const std::int64_t first = 1 + draws.below(heads - 1);
         Change change = {.text = fmt::format("heads={}+{}", first, heads - first), .parts = {}};
         for (Part part : each_query(batch.arrays)) {
           part.heads = first;
           change.parts.push_back(part);
           part.head = first;
           part.heads = heads - first;
           change.parts.push_back(part);
         }
         return std::vector{change};
       }},
      {{.name = "latent-list-pages", .changes = "keys in pages, which lie anywhere", .one_in = 20},
       [](const Batch&, Draws& draws) {
         constexpr std::array<std::int64_t, 4> sizes = {1, 16, 48, 64};
         const std::string layout = fmt::format(" layout=paged:{}", sizes[static_cast<std::size_t>(draws.below(4))]);
         return std::vector{Change{.text = layout.substr(1),
                                   .arrays = [layout](const Batch& batch) { return arrays_of(batch.words + layout); }}};
       }},
      {{.name = "latent-list-slots",
        .changes = "lists of slots in place of keys' numbers, without mask and lengths",
        .one_in = 20},
       [](const Batch&, Draws&) { return std::vector{Change{.arrays = with_slots}}; }},
      {{.name = "latent-list-second",
        .changes = "lists of slots, cut behind a chunk into two lists over two caches",
        .one_in = 20},
       [](const Batch& batch, Draws& draws) {
         constexpr std::int64_t chunk = attention::list_chunk_keys;
         const std::int64_t top_k = batch.arrays.lists.top_k;
         if (top_k <= chunk) return std::vector<Change>{};
         const std::int64_t first = chunk * (1 + draws.below((top_k - 1) / chunk));
         const auto splits = static_cast<std::int32_t>(draws.below(3));
         return std::vector{Change{.text = fmt::format("{} entries, and a second list, splits={}", first, splits),
                                   .arrays = with_slots,
                                   .splits = splits,
                                   .first_entries = first}};
       }},
      {{.name = "latent-list-schedule", .changes = "the order in which waves run (simulated GPUs)", .one_in = 20},
       [](const Batch&, Draws&) { return std::vector{Change{.text = "reverse", .schedule = WAVEJIT_SIMGPU_REVERSE}}; }},
      {{.name = "latent-list-order", .changes = "lists from their end, without counts: shows", .control = true},
       [](const Batch&, Draws&) { return std::vector{Change{.arrays = with_lists_reversed}}; }},
  };
  return all;
}

std::optional<FirstDifference> first_difference(const LatentArrays& arrays, const Query& before, const Query& after) {
  const auto [o, other_o] = std::ranges::mismatch(before.o, after.o);
  if (o != before.o.end()) {
    const std::int64_t at = o - before.o.begin();
    const auto number = [&](std::uint16_t bits) {
      return static_cast<double>(tools::decode(arrays.experiment.type, bits));
    };
    return FirstDifference{.tensor = "o",
                           .head = at / arrays.latent(),
                           .dim = at % arrays.latent(),
                           .before = number(*o),
                           .after = number(*other_o)};
  }
  const auto [lse, other_lse] = std::ranges::mismatch(before.lse, after.lse);
  if (lse == before.lse.end()) return std::nullopt;
  return FirstDifference{.tensor = "lse",
                         .head = lse - before.lse.begin(),
                         .before = static_cast<double>(std::bit_cast<float>(*lse)),
                         .after = static_cast<double>(std::bit_cast<float>(*other_lse))};
}

struct ListLaboratory {
  static const std::vector<Dimension>& dimensions() { return all_dimensions(); }
  static std::vector<Change> changes(const Dimension& dimension, const Batch& batch, Draws& draws) {
    return dimension.changes(batch, draws);
  }
  static Batch draw(const InvarianceRequest& request, const Dimension& /*dimension*/, wavejit_engine* /*engine*/) {
    return draw_batch(request);
  }
  using Answers = std::vector<Query>;
  static Result<Answers> plain(wavejit_engine* engine, const Batch& batch, const Dimension& /*dimension*/) {
    return ran(engine, batch, {});
  }
  static Result<Answers> changed(wavejit_engine* engine, const Batch& batch, const Change& change) {
    return ran(engine, batch, change);
  }
  static void compare(const Batch& batch, const Dimension& /*dimension*/, const Change& /*change*/,
                      const Answers& before, const Answers& after, const auto& tell) {
    for (std::size_t token = 0; token < before.size(); ++token) {
      auto difference = first_difference(batch.arrays, before[token], after[token]);
      if (difference) difference->token = static_cast<std::int64_t>(token);
      tell(static_cast<std::int64_t>(token), batch.words, std::move(difference));
    }
  }
};

}  // namespace

const tools::Invariance& invariance_with_lists() {
  static const tools::InvarianceOf<ListLaboratory> lists;
  static const tools::JoinedInvariance both = {&latent_invariance(), &lists};
  return both;
}

}  // namespace wavejit::attention_latent::program
