// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/program/invariance_batch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "templates/attention_backward/kernel/canon.h"

namespace wavejit::attention_backward::program {
namespace {

using attention::program::Placement;

constexpr std::uint16_t no_number = 0x7FFF;  // NaN in both types
// What a descriptor of their lengths has room for.
constexpr std::int64_t most_sequences = 256;

struct Lengths {
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> keys;
};

// Few different numbers of rows: those that have as many may stand in one dense tensor.
Lengths drawn_lengths(const tools::InvarianceRequest& request, Draws& draws) {
  constexpr std::int64_t kinds_of_rows = 5;
  // A tile is 64 rows: in one batch of four sequences have more than one.
  const std::int64_t most_rows = std::min<std::int64_t>(draws.one_in(4) ? 150 : 40, request.longest);
  std::array<std::int64_t, kinds_of_rows> kinds{};
  for (std::int64_t& rows : kinds) rows = 1 + draws.below(most_rows);
  const std::int64_t most_keys = std::min<std::int64_t>(draws.one_in(3) ? 300 : 130, request.longest);
  Lengths lengths;
  for (std::int64_t i = 0; i < std::min(request.sequences, most_sequences); ++i) {
    const bool is_long = draws.one_in(60);
    lengths.rows.push_back(kinds[static_cast<std::size_t>(draws.below(kinds_of_rows))]);
    lengths.keys.push_back(1 + draws.below(is_long ? request.longest : most_keys));
  }
  return lengths;
}

// One of three or four batches has 128, one of eight wide heads, by turns: their kernels take longer.
std::string drawn_dims(const tools::InvarianceRequest& request, Draws& draws, int one_in) {
  const bool is_128 = draws.one_in(one_in);
  constexpr std::uint64_t turns = 16;
  if (request.batch % turns == 7) return "192/128";
  if (request.batch % turns == 15) return "256";
  return is_128 ? "128" : "64";
}

// What is drawn of every batch, behind its heads and with the lengths that `lengths` draws.
template <typename DrawLengths>
std::string drawn_words(Draws& draws, const std::string& type, std::int64_t kv_heads, std::int64_t group,
                        const std::string& dims, const DrawLengths& draw_lengths) {
  std::string text = "attention_backward " + type;
  const bool causal = !draws.one_in(3);
  std::string words;
  if (causal) words += " causal";
  // A window and slopes count from the diagonal: where rows move apart from their keys they must move with it.
  if (causal && draws.one_in(4)) words += fmt::format(" window={},-1", draws.below(60));
  words += " layout=packed";
  const Lengths lengths = draw_lengths(causal);
  if (causal && draws.one_in(5)) words += " alibi=h";
  if (draws.one_in(6)) words += " softcap=20";
  if (draws.one_in(4)) words += " d_lse";
  if (draws.one_in(3)) words += " d_sink";
  if (draws.one_in(3)) words += " gradients=fp32";
  text += fmt::format(" b{} q{} k{} h{}/{} d{}{}", lengths.rows.size(), std::ranges::max(lengths.rows),
                      std::ranges::max(lengths.keys), kv_heads * group, kv_heads, dims, words);
  return text + fmt::format(" q_lengths={} k_lengths={} seed={}", fmt::join(lengths.rows, ","),
                            fmt::join(lengths.keys, ","), draws.below(1 << 30));
}

std::string drawn_descriptor(const tools::InvarianceRequest& request, Draws& draws) {
  const std::string type = draws.one_in(2) ? "fp16" : "bf16";
  const std::string dims = drawn_dims(request, draws, 3);
  const std::int64_t kv_heads = draws.one_in(4) ? 2 : 1;
  const std::int64_t group = 1 + draws.below(draws.one_in(6) ? 8 : 2);
  return drawn_words(draws, type, kv_heads, group, dims, [&](bool) { return drawn_lengths(request, draws); });
}

// One kv head of many query heads, rows of two runs to three, and few keys.
std::string descriptor_of_runs(const tools::InvarianceRequest& request, Draws& draws) {
  constexpr std::array<std::int64_t, 4> groups = {512, 300, 256, 150};
  constexpr std::int64_t most_of_runs = 2;  // sequences
  const std::string type = draws.one_in(2) ? "fp16" : "bf16";
  const std::string dims = drawn_dims(request, draws, 4);
  const std::int64_t group = groups[static_cast<std::size_t>(draws.below(std::ssize(groups)))];
  const std::int64_t run = run_tiles_of(static_cast<std::uint32_t>(group)) * tile_rows;
  return drawn_words(draws, type, 1, group, dims, [&](bool causal) {
    Lengths lengths;
    for (std::int64_t i = 0; i < std::min(request.sequences, most_of_runs); ++i) {
      const std::int64_t rows = run + 1 + draws.below(run + (run / 2));
      lengths.rows.push_back(rows);
      lengths.keys.push_back(causal ? rows + draws.below(20) : 1 + draws.below(60));
    }
    return lengths;
  });
}

tools::Result<Batch> batch_of(const std::string& descriptor, std::uint64_t number, MadeOutputs outputs) {
  auto arrays = make_arrays(descriptor, false, outputs);
  if (!arrays) return std::unexpected(arrays.error());
  Batch batch{.number = number, .arrays = *std::move(arrays), .sequences = {}};
  batch.sequences = attention::program::sequences_of(batch.arrays.experiment);
  return batch;
}

// Rows of all heads, from one tensor into another that may lie otherwise.
template <typename Element>
void copy_rows(const std::vector<Element>& from, const Placement& from_place, std::int64_t from_token,
               std::vector<Element>& to, const Placement& to_place, std::int64_t to_token, std::int64_t rows) {
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t head = 0; head < from_place.heads; ++head)
      std::copy_n(from.begin() + from_place.offset(from_token + row, head), from_place.head_dim,
                  to.begin() + to_place.offset(to_token + row, head));
}

// LSE and its gradient lie as [batch][head][row].
void copy_numbers(const std::vector<float>& from, const Placement& from_place, std::int64_t from_token,
                  std::vector<float>& to, const Placement& to_place, std::int64_t to_token, std::int64_t rows) {
  for (std::int64_t head = 0; head < from_place.heads; ++head)
    for (std::int64_t row = 0; row < rows; ++row)
      to[number_at(to_place, to_token + row, head)] = from[number_at(from_place, from_token + row, head)];
}

}  // namespace

std::string Batch::descriptor(const Sequence& of) const {
  const attention::program::Experiment& all = arrays.experiment;
  std::string text = fmt::format("attention_backward {} b1 q{} k{} h{}/{} d{}", to_text(all.type), of.queries, of.keys,
                                 all.query_heads, all.kv_heads, all.head_dim_qk);
  if (all.head_dim_v != all.head_dim_qk) text += fmt::format("/{}", all.head_dim_v);
  if (causal()) text += " causal";
  if ((all.mask.bits & WAVEJIT_MASK_WINDOW) != 0) text += fmt::format(" window={},-1", all.mask.window_left);
  if (!arrays.slopes.empty()) text += " alibi=h";
  if (all.has(attention::Modifier::softcap)) text += " softcap=20";
  if (arrays.with_d_lse) text += " d_lse";
  if (!arrays.sinks.empty()) text += " d_sink";
  return text + (all.output_fp32 ? " gradients=fp32" : "");
}

tools::Result<Batch> draw_batch(const tools::InvarianceRequest& request) {
  Draws draws(request.seed, request.batch);
  return batch_of(drawn_descriptor(request, draws), request.batch, MadeOutputs::exact);
}

tools::Result<Batch> draw_batch_of_runs(const tools::InvarianceRequest& request) {
  Draws draws(request.seed, request.batch);
  // With hundreds of heads an exact forward call takes longer than all that is compared.
  return batch_of(descriptor_of_runs(request, draws), request.batch, MadeOutputs::estimated);
}

std::int64_t Batch::run_rows() const {
  return run_tiles_of(static_cast<std::uint32_t>(arrays.experiment.group())) * tile_rows;
}

std::int64_t keys_of(const Batch& batch, const RowsOf& piece) {
  const Sequence& of = batch.sequences[piece.sequence];
  return attention::program::keys_up_to(piece.end, of.queries, of.keys, batch.causal());
}

Arrays arranged(const Batch& batch, std::span<const RowsOf> pieces, const Placing& placing) {
  const Arrays& all = batch.arrays;
  Arrays one;
  one.experiment = all.experiment;
  one.with_d_lse = all.with_d_lse;
  one.slopes = all.slopes;
  one.sinks = all.sinks;
  attention::program::Experiment& of = one.experiment;
  const bool dense = placing.layout != attention::program::ArrayLayout::packed;
  of.layout = placing.layout;
  of.batch = std::ssize(pieces);
  of.query_length = of.key_length = 0;
  of.query_lengths.clear();
  of.key_lengths.clear();
  for (const RowsOf& piece : pieces) {
    of.query_length = std::max(of.query_length, piece.rows());
    of.key_length = std::max(of.key_length, keys_of(batch, piece));
    if (!dense) of.query_lengths.push_back(piece.rows());
    of.key_lengths.push_back(keys_of(batch, piece));
  }
  of.key_length = std::max<std::int64_t>(of.key_length + placing.rows_behind, 1);
  const Placement from_queries = attention::program::queries_of(all.experiment);
  const Placement from_keys = attention::program::keys_of(all.experiment);
  const Placement from_values = attention::program::values_of(all.experiment);
  const Placement from_outputs = attention::program::outputs_of(all.experiment);
  const Placement queries = attention::program::queries_of(of);
  const Placement keys = attention::program::keys_of(of);
  const Placement values = attention::program::values_of(of);
  const Placement outputs = attention::program::outputs_of(of);
  one.q.resize(static_cast<std::size_t>(queries.elements()));
  for (auto* of_rows : {&one.o, &one.d_o}) of_rows->resize(static_cast<std::size_t>(outputs.elements()));
  one.k.resize(static_cast<std::size_t>(keys.elements()), no_number);
  one.v.resize(static_cast<std::size_t>(values.elements()), no_number);
  one.lse.resize(static_cast<std::size_t>(queries.rows()));
  if (one.with_d_lse) one.d_lse.resize(one.lse.size());
  if (!dense) one.query_starts = one.key_starts = {0};
  const std::vector<Sequence> places = attention::program::sequences_of(of);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Sequence& to = places[i];
    const Sequence& from = batch.sequences[pieces[i].sequence];
    const std::int64_t first = from.first_query + pieces[i].begin;
    copy_rows(all.q, from_queries, first, one.q, queries, to.first_query, to.queries);
    copy_rows(all.o, from_outputs, first, one.o, outputs, to.first_query, to.queries);
    copy_rows(all.d_o, from_outputs, first, one.d_o, outputs, to.first_query, to.queries);
    copy_rows(all.k, from_keys, from.first_key, one.k, keys, to.first_key, to.keys);
    copy_rows(all.v, from_values, from.first_key, one.v, values, to.first_key, to.keys);
    copy_numbers(all.lse, from_queries, first, one.lse, queries, to.first_query, to.queries);
    if (one.with_d_lse) copy_numbers(all.d_lse, from_queries, first, one.d_lse, queries, to.first_query, to.queries);
    if (dense) {
      one.key_lengths.push_back(static_cast<std::int32_t>(to.keys));
    } else {
      one.query_starts.push_back(one.query_starts.back() + static_cast<std::int32_t>(to.queries));
      one.key_starts.push_back(one.key_starts.back() + static_cast<std::int32_t>(to.keys));
    }
  }
  return one;
}

}  // namespace wavejit::attention_backward::program
