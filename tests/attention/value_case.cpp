// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The case that a row says: what its descriptor is parsed to, with inputs of the tests.
#include <array>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "attention/alone.h"
#include "attention/modified.h"
#include "attention/value_biases.h"
#include "attention/value_masks.h"
#include "attention/value_rows.h"
#include "attention/value_scales.h"
#include "attention/value_scores.h"
#include "attention/value_words.h"
#include "support/attention_run.h"
#include "wavejit/wavejit.h"

namespace wavejit::tests {
namespace {

using Numbers = std::vector<std::int32_t>;

using attention::Extent;

int own(Extent extent, Extent of_one, int all) {
  return extent == of_one || extent == Extent::batch_and_head ? all : 1;
}

// Rows of Q and K by the lengths of sequences.
AttentionCase with_lengths(const ValueRow& row, const ValueWords& words, std::uint64_t seed) {
  const bool paged = words.layout == RowLayout::paged;
  const bool packed = words.layout == RowLayout::packed;
  const bool packed_queries = (packed && !row.says("dense_queries")) || !words.query_lengths.empty();
  const bool packed_keys = packed && !row.says("dense_keys");
  const auto batch = static_cast<int>(words.batch);
  const auto lengths = [&](const Numbers& given, std::int64_t all) {
    return given.empty() ? Numbers(static_cast<std::size_t>(batch), static_cast<std::int32_t>(all)) : given;
  };
  const auto queries = static_cast<int>(words.query_length);
  const auto keys = static_cast<int>(words.key_length);
  const Numbers query_starts = starts_of(lengths(words.query_lengths, queries));
  const Numbers key_starts = starts_of(lengths(words.key_lengths, keys));
  AttentionCase which =
      make_case(words.bf16 ? Storage::bf16 : Storage::fp16, 1, packed_queries ? query_starts.back() : batch * queries,
                packed_keys ? key_starts.back() : batch * keys, static_cast<int>(words.query_heads),
                static_cast<int>(words.kv_heads), words.head_dim_qk, (words.mask.bits & WAVEJIT_MASK_CAUSAL) != 0, seed,
                row.number("spread", 1), words.head_dim_v);
  AttentionInputs& in = which.inputs;
  in.batch = batch;
  in.query_length = queries;
  in.key_length = keys;
  if (packed_queries) in.query_starts = query_starts;
  if (packed_keys)
    in.key_starts = key_starts;
  else if (paged || !words.key_lengths.empty())
    in.key_lengths = lengths(words.key_lengths, keys);
  if (row.says("counted")) in.key_lengths = numbers_of(row.word("counted"));
  return which;
}

void add_mask(AttentionCase& which, const ValueRow& row, const ValueWords& words) {
  AttentionInputs& in = which.inputs;
  const wavejit_masking& mask = words.mask;
  in.window = (mask.bits & WAVEJIT_MASK_WINDOW) != 0;
  in.window_left = mask.window_left;
  in.window_right = mask.window_right;
  in.local_chunk = mask.local_chunk;
  if ((mask.bits & WAVEJIT_MASK_PREFIX) != 0) in.prefix = static_cast<int>(mask.causal_prefix);
  if (row.says("prefix")) in.prefix = static_cast<int>(row.number("prefix", 0));
  if (words.causal_flags)
    for (int b = 0; b < in.batch; ++b) in.causal_flags.push_back(static_cast<std::uint8_t>(b % 2 == 0 ? 255 >> b : 0));
}

void add_modifiers(AttentionCase& which, const ValueRow& row, const ValueWords& words, std::uint64_t seed) {
  AttentionInputs& in = which.inputs;
  in.scale = words.scale;
  in.softcap = words.softcap;
  if (words.alibi != Extent::none) add_alibi(which, own(words.alibi, Extent::batch, in.batch));
  if (words.sink) add_sink(which, row.number("sink", 0.5));
  if (words.bias == Extent::none) return;
  add_bias(which, own(words.bias, Extent::batch, in.batch), own(words.bias, Extent::head, in.query_heads),
           row.number("bias_spread", 1), seed + 1);
  which.bias_fp32 = words.bias_fp32;
  which.bias_by_tile = words.bias_by_tile;
  if (row.says("bias")) change_bias(which, row.word("bias"), seed);
}

// A bool mask, and lists of key blocks.
void add_walks(AttentionCase& which, const ValueRow& row, const ValueWords& words, std::uint64_t seed) {
  AttentionInputs& in = which.inputs;
  if (words.bool_mask != Extent::none)
    set_mask(which, own(words.bool_mask, Extent::batch, in.batch), own(words.bool_mask, Extent::head, in.query_heads),
             mask_called(which, row.word("mask", "blocks"), seed));
  if (words.list_rows == 0) return;
  const std::string whose = row.word("lists_of", "1");
  in.lists = random_lists(words.list_rows, words.list_keys, whose.contains('b') ? in.batch : 1,
                          whose.contains('h') ? in.query_heads : 1, in.query_length, in.key_length,
                          words.list_percent == 100 ? 2 : words.list_percent / 100.0, row.number("whole", 0), seed);
  for (const std::string& form : parts_of(row.word("form"))) {
    if (form == "noise") which.list_form.noise = true;
    if (form == "ragged") which.list_form.ragged = true;
    if (form == "no_counts") which.list_form.counts = false;
  }
}

// Rows side by side where the descriptor says so, odd distances where the row does.
ScatteredTensors scattered_of(const ValueRow& row, const ValueWords& words) {
  ScatteredTensors tensors;
  const std::string odd = ',' + row.word("odd") + ',';
  const auto choose = [&](Scattered& of, const char* name, bool inside) {
    if (odd.contains(name)) of = Scattered::odd_rows;
    if (inside) of = Scattered::rows_inside;
  };
  choose(tensors.q, ",q,", words.trans_q);
  choose(tensors.k, ",k,", words.trans_k);
  choose(tensors.v, ",v,", words.trans_v);
  choose(tensors.o, ",o,", words.trans_o);
  return tensors;
}

AttentionCase in_eight_bits(AttentionCase which, const ValueRow& row, const ValueWords& words) {
  const AttentionInputs& in = which.inputs;
  const bool tokens = words.cache_scales == Extent::token_and_head;
  if (words.text.contains(" cache="))
    return stored_in_bytes(
        which, bytes_of(in, static_cast<wavejit_dtype>(words.cache_dtype), words.cache_scales, row.word("numbers")));
  if (words.text.contains(" qk=i8 "))
    return stored_in_integers(which, {.q = row_scales(row.word("q_scales"), in.query_batches(), in.query_rows(),
                                                      in.query_heads, row.word("numbers") == "either_sign"),
                                      .k = row_scales(tokens ? "tokens" : row.word("k_scales"), in.key_batches(),
                                                      in.key_rows(), in.kv_heads)});
  for (const char* const word : {"numbers", "q_scales", "k_scales"})
    if (row.says(word)) throw std::runtime_error(std::string(word) + ": the row has no scales");
  return which;
}

// Numbers of f32 on both sides of what they are rounded to, ties among them.
std::vector<float> unrounded(Storage storage, const std::vector<float>& rounded) {
  const int kept_bits = storage == Storage::bf16 ? 8 : 11;
  constexpr std::array parts = {0.49F, -0.24F, 0.5F, 0.001F, -0.2F};
  std::vector<float> wide(rounded.size());
  for (std::size_t i = 0; i < rounded.size(); ++i) {
    const float value = rounded[i];
    const float step = value == 0 ? 0 : std::ldexp(1.0F, std::ilogb(value) + 1 - kept_bits);
    const float moved = value + (step * parts[i % parts.size()]);
    wide[i] = to_storage(storage, moved) == to_storage(storage, value) ? moved : value;
  }
  return wide;
}

}  // namespace

AttentionCase case_of(const ValueRow& row) {
  const ValueWords words = value_words(row.descriptor);
  // A word that is passed over in silence would make a test that says more than it does.
  for (const char* const word :
       {" queries=", " scores=", " lists_alike", " top_k=", " inputs=", " q_rows=", " k_total="})
    if (words.text.contains(word)) throw std::runtime_error("rows do not have the word" + std::string(word));
  const std::uint64_t seed = words.seed.empty() ? seed_of(row.descriptor) : std::stoull(words.seed);
  AttentionCase which = with_lengths(row, words, seed);
  which.layout = row.says("padded") ? Layout::padded : words.layout == RowLayout::bhsd ? Layout::bhsd : Layout::bshd;
  add_mask(which, row, words);
  add_modifiers(which, row, words, seed);
  add_walks(which, row, words, seed);
  if (row.says("scores")) change_scores(which, row.word("scores"));
  which = in_eight_bits(std::move(which), row, words);
  which.scattered = scattered_of(row, words);
  which.lse = words.lse;
  which.output_fp32 = words.output_fp32;
  which.output_bytes = words.output_bytes;
  if (words.text.contains(" q=fp32 ")) which.wide_q = unrounded(which.storage, which.inputs.q);
  which.splits = words.splits;
  which.own_workspace = row.says("own_workspace");
  if (words.text.contains(" launches=1 ")) which.flags |= WAVEJIT_ONE_LAUNCH;
  if (words.text.contains(" launches=2 ")) which.flags |= WAVEJIT_TWO_LAUNCHES;
  which.first_keys = row.says("first_keys") ? numbers_of(row.word("first_keys")) : words.first_keys;
  if (words.layout == RowLayout::paged)
    which.pages = Pages{.size = static_cast<int>(words.page_size),
                        .heads_first = words.page_heads_first,
                        .in_turn = row.says("in_turn"),
                        .list = row.says("list"),
                        .seed = seed,
                        .total = static_cast<std::int64_t>(row.number("total", 0)),
                        .at_border = row.says("at_border"),
                        .tight = row.says("tight"),
                        .layout = words.page_layout};
  return which;
}

}  // namespace wavejit::tests
