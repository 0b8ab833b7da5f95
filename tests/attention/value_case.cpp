// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The case that a row says: what its descriptor is parsed to, with inputs of the tests.
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "attention/alone.h"
#include "attention/modified.h"
#include "attention/value_biases.h"
#include "attention/value_rows.h"
#include "attention/value_scales.h"
#include "support/attention_run.h"
#include "wavejit/wavejit.h"

namespace wavejit::tests {
namespace {

using Numbers = std::vector<std::int32_t>;

// A parsed descriptor with arrays of its own: those of wavejit_problem end with the parser's callback.
struct Described {
  wavejit_problem told{};
  std::string text;
  Numbers query_lengths;
  Numbers key_lengths;
  Numbers first_keys;
};

Described described(const std::string& descriptor) {
  Described kept;
  const auto keep = [](void* to, const wavejit_problem* told) {
    Described& one = *static_cast<Described*>(to);
    const auto numbers = [told](const std::int64_t* from) {
      return from == nullptr ? Numbers() : Numbers(from, from + told->batch);
    };
    one = {.told = *told,
           .text = std::string(told->text) + ' ',
           .query_lengths = numbers(told->query_lengths),
           .key_lengths = numbers(told->key_lengths),
           .first_keys = numbers(told->first_keys)};
  };
  if (wavejit_problem_parse(("attention_forward " + descriptor).c_str(), keep, &kept) != WAVEJIT_OK)
    throw std::runtime_error(wavejit_last_detail());
  return kept;
}

double number(const ValueRow& row, const std::string& word, double otherwise) {
  const std::string text = row.word(word);
  double value = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Numbers numbers_of(std::string text) {
  Numbers numbers;
  while (!text.empty()) {
    std::size_t end = 0;
    numbers.push_back(std::stoi(text, &end));
    text.erase(0, end + 1);
  }
  return numbers;
}

// A seed for each row, the same in every run.
std::uint64_t seed_of(const std::string& text) {
  std::uint64_t seed = 0;
  for (const char letter : text) seed = (seed * 131) + static_cast<unsigned char>(letter);
  return seed % 1'000'000;
}

int own(std::int32_t extent, std::int32_t of_one, int all) {
  return extent == of_one || extent == WAVEJIT_EXTENT_BATCH_AND_HEAD ? all : 1;
}

// Rows of Q and K by the lengths of sequences.
AttentionCase with_lengths(const ValueRow& row, const Described& words, std::uint64_t seed) {
  const wavejit_problem& told = words.told;
  const bool paged = told.layout == WAVEJIT_LAYOUT_PAGED;
  const bool packed = told.layout == WAVEJIT_LAYOUT_PACKED;
  const bool packed_queries = (packed && !row.says("dense_queries")) || !words.query_lengths.empty();
  const bool packed_keys = packed && !row.says("dense_keys");
  const auto batch = static_cast<int>(told.batch);
  const auto lengths = [&](const Numbers& given, std::int64_t all) {
    return given.empty() ? Numbers(static_cast<std::size_t>(batch), static_cast<std::int32_t>(all)) : given;
  };
  const auto queries = static_cast<int>(told.query_length);
  const auto keys = static_cast<int>(told.key_length);
  const Numbers query_starts = starts_of(lengths(words.query_lengths, queries));
  const Numbers key_starts = starts_of(lengths(words.key_lengths, keys));
  AttentionCase which = make_case(
      told.dtype == WAVEJIT_BF16 ? Storage::bf16 : Storage::fp16, 1,
      packed_queries ? query_starts.back() : batch * queries, packed_keys ? key_starts.back() : batch * keys,
      static_cast<int>(told.query_heads), static_cast<int>(told.kv_heads), static_cast<int>(told.head_dim_qk),
      (told.mask & WAVEJIT_MASK_CAUSAL) != 0, seed, number(row, "spread", 1), static_cast<int>(told.head_dim_v));
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

void add_mask(AttentionCase& which, const ValueRow& row, const wavejit_problem& told) {
  AttentionInputs& in = which.inputs;
  in.window = (told.mask & WAVEJIT_MASK_WINDOW) != 0;
  in.window_left = told.window_left;
  in.window_right = told.window_right;
  in.local_chunk = static_cast<int>(told.local_chunk);
  if ((told.mask & WAVEJIT_MASK_PREFIX) != 0) in.prefix = static_cast<int>(told.causal_prefix);
  if (row.says("prefix")) in.prefix = static_cast<int>(number(row, "prefix", 0));
  if (told.causal_flags != 0)
    for (int b = 0; b < in.batch; ++b) in.causal_flags.push_back(static_cast<std::uint8_t>(b % 2 == 0 ? 255 >> b : 0));
}

void add_modifiers(AttentionCase& which, const ValueRow& row, const wavejit_problem& told, std::uint64_t seed) {
  AttentionInputs& in = which.inputs;
  in.scale = told.scale;
  in.softcap = told.softcap;
  if (told.alibi != WAVEJIT_EXTENT_NONE) add_alibi(which, own(told.alibi, WAVEJIT_EXTENT_BATCH, in.batch));
  if (told.sink != 0) add_sink(which, number(row, "sink", 0.5));
  if (told.bias == WAVEJIT_EXTENT_NONE) return;
  add_bias(which, own(told.bias, WAVEJIT_EXTENT_BATCH, in.batch), own(told.bias, WAVEJIT_EXTENT_HEAD, in.query_heads),
           number(row, "bias_spread", 1), seed + 1);
  which.bias_fp32 = told.bias_dtype == WAVEJIT_FP32;
  if (row.says("bias")) change_bias(in, row.word("bias"));
}

// Rows side by side where the descriptor says so, odd distances where the row does.
ScatteredTensors scattered_of(const ValueRow& row, std::int32_t transposed) {
  ScatteredTensors tensors;
  const std::string odd = ',' + row.word("odd") + ',';
  const auto choose = [&](Scattered& of, const char* name, std::int32_t bit) {
    if (odd.contains(name)) of = Scattered::odd_rows;
    if ((transposed & bit) != 0) of = Scattered::rows_inside;
  };
  choose(tensors.q, ",q,", WAVEJIT_TRANSPOSED_Q);
  choose(tensors.k, ",k,", WAVEJIT_TRANSPOSED_K);
  choose(tensors.v, ",v,", WAVEJIT_TRANSPOSED_V);
  choose(tensors.o, ",o,", WAVEJIT_TRANSPOSED_O);
  return tensors;
}

AttentionCase in_eight_bits(AttentionCase which, const ValueRow& row, const Described& words) {
  const AttentionInputs& in = which.inputs;
  const bool tokens = words.told.cache_scales == WAVEJIT_EXTENT_TOKEN_AND_HEAD;
  if (words.text.contains(" cache="))
    return stored_in_bytes(which, bytes_of(in, static_cast<wavejit_dtype>(words.told.cache_dtype),
                                           words.told.cache_scales, row.word("numbers")));
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
  const Described words = described(row.descriptor);
  const wavejit_problem& told = words.told;
  // A word that is passed over in silence would make a test that says more than it does.
  for (const char* const word : {" queries=", " scores=", " lists=", " top_k=", " bool_mask=", " bias_by_tile",
                                 " inputs=", " q_rows=", " k_total="})
    if (words.text.contains(word)) throw std::runtime_error("rows do not have the word" + std::string(word));
  const std::uint64_t seed = told.seed >= 0 ? static_cast<std::uint64_t>(told.seed) : seed_of(row.descriptor);
  AttentionCase which = with_lengths(row, words, seed);
  which.layout = row.says("padded") ? Layout::padded : told.layout == WAVEJIT_LAYOUT_BHSD ? Layout::bhsd : Layout::bshd;
  add_mask(which, row, told);
  add_modifiers(which, row, told, seed);
  which = in_eight_bits(std::move(which), row, words);
  which.scattered = scattered_of(row, told.transposed);
  which.lse = told.lse != 0;
  which.output_fp32 = told.output_dtype == WAVEJIT_FP32;
  if (words.text.contains(" q=fp32 ")) which.wide_q = unrounded(which.storage, which.inputs.q);
  which.splits = told.splits;
  if (words.text.contains(" launches=1 ")) which.flags |= WAVEJIT_ONE_LAUNCH;
  if (words.text.contains(" launches=2 ")) which.flags |= WAVEJIT_TWO_LAUNCHES;
  which.first_keys = row.says("first_keys") ? numbers_of(row.word("first_keys")) : words.first_keys;
  if (told.layout == WAVEJIT_LAYOUT_PAGED)
    which.pages = Pages{.size = static_cast<int>(told.page_size),
                        .heads_first = told.page_heads_first != 0,
                        .in_turn = row.says("in_turn"),
                        .list = row.says("list"),
                        .seed = seed,
                        .total = static_cast<std::int64_t>(number(row, "total", 0)),
                        .tight = row.says("tight"),
                        .layout = told.page_layout};
  return which;
}

}  // namespace wavejit::tests
