// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "byte_problems.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <utility>

#include "forward_problems.h"

namespace wavejit::tests {
namespace {

using Numbers = std::vector<std::int32_t>;

// Neither powers of two nor alike. Integers reach as far as K grows.
AttentionCase stored(AttentionCase which, wavejit_dtype type, ByteScales scales) {
  const AttentionInputs& in = which.inputs;
  StoredBytes bytes{.type = type};
  const bool integers = type == WAVEJIT_INT8;
  const float of_keys = integers ? 0.5F : 1.0F;
  const float of_values = integers ? 1.0F / 32 : 1.0F;
  const auto k_scale = [&](int number) { return of_keys * (0.5F + (0.0625F * static_cast<float>(number % 16))); };
  const auto v_scale = [&](int number) { return of_values * (1.5F - (0.0625F * static_cast<float>(number % 15))); };
  bytes.tokens = scales == ByteScales::tokens;
  if (bytes.tokens) {
    bytes.k_scale.assign(std::size_t(in.key_batches()) * in.key_rows() * in.kv_heads,
                         std::numeric_limits<float>::quiet_NaN());
    bytes.v_scale = bytes.k_scale;
    for (int b = 0; b < in.batch; ++b)
      for (int j = 0; j < in.keys(b); ++j)
        for (int h = 0; h < in.kv_heads; ++h) {
          const int number = (5 * j) + (3 * h) + b;
          const std::size_t at = (std::size_t(in.first_key(b) + j) * in.kv_heads) + h;
          bytes.k_scale[at] = k_scale(number);
          bytes.v_scale[at] = v_scale(number);
        }
  } else {
    bytes.batches = in.batch;
    bytes.heads = in.kv_heads;
    for (int number = 0; number < in.batch * in.kv_heads; ++number) {
      bytes.k_scale.push_back(k_scale(3 * number));
      bytes.v_scale.push_back(v_scale(4 * number));
    }
  }
  return stored_in_bytes(std::move(which), std::move(bytes));
}

AttentionCase dense_rows(int head_dim, int heads, int queries, const Numbers& keys, std::uint64_t seed) {
  AttentionCase which = make_case(Storage::bf16, static_cast<int>(keys.size()), queries, std::ranges::max(keys), heads,
                                  std::max(heads / 2, 1), head_dim, true, seed);
  grow(which);
  which.splits = 1;
  which.layout = seed % 2 == 0 ? Layout::padded : Layout::bshd;
  if (keys.size() > 1) which.inputs.key_lengths = keys;
  return which;
}

AttentionCase packed_rows(int head_dim, int heads, const Numbers& query_starts, const Numbers& key_starts,
                          std::uint64_t seed) {
  AttentionCase which = dense_rows(head_dim, heads, query_starts.back(), {key_starts.back()}, seed);
  AttentionInputs& in = which.inputs;
  in.batch = static_cast<int>(query_starts.size()) - 1;
  in.query_starts = query_starts;
  in.key_starts = key_starts;
  in.query_length = in.key_length = 0;
  for (std::size_t i = 1; i < query_starts.size(); ++i) {
    in.query_length = std::max(in.query_length, query_starts[i] - query_starts[i - 1]);
    in.key_length = std::max(in.key_length, key_starts[i] - key_starts[i - 1]);
  }
  return which;
}

// Rows of one tile and of several, keys of one tile and of several, each number of keys of a tile, none, more than two
// chunks, more rows than keys, a sink, no scale, lengths and starts that lie.
std::vector<ForwardProblem> dense_keys(int head_dim) {
  const auto dense = [&](int queries, const Numbers& keys, std::uint64_t seed) {
    return dense_rows(head_dim, 4, queries, keys, seed);
  };
  const auto packed = [&](const Numbers& query_starts, const Numbers& key_starts, std::uint64_t seed) {
    return packed_rows(head_dim, 4, query_starts, key_starts, seed);
  };
  AttentionCase lengths_lie = dense(40, {200, 70}, 9);
  lengths_lie.told_key_lengths = {-5, most};
  AttentionCase starts_lie = packed({0, 40, 40, 75}, {0, 150, 190, 250}, 10);
  starts_lie.query_starts = {-5, 64, most, 30};
  starts_lie.key_starts = {-5, 200, most, 20};
  Numbers each_length(64);
  std::ranges::generate(each_length, [length = 0]() mutable { return ++length; });
  return {
      {dense(40, {300, 70, 0}, 1)},
      {packed({0, 40, 40, 180}, {0, 70, 90, 390}, 2)},
      {with_sink(dense(35, {33, 0}, 3))},
      {without_scale(dense(33, {33}, 4))},
      {dense(126, {126}, 5)},
      {dense(300, {40}, 7)},
      {dense(33, each_length, 8)},
      {lengths_lie, true},
      {starts_lie, true},
      {dense(36, {2150}, 6)},
  };
}

// The largest score is in any of three chunks. The last tile is the first of a chunk (33 tiles), the second or a later;
// with many rows some see no key of the third.
AttentionCase level_rows(int head_dim, int queries, int keys, std::uint64_t seed) {
  AttentionCase which = make_case(Storage::bf16, 1, queries, keys, 1, 1, head_dim, true, seed);
  which.splits = 1;
  return which;
}

AttentionCase with_sinks(AttentionCase which, std::vector<float> sinks) {
  which.inputs.sink = std::move(sinks);
  return which;
}

// The same paths by few workgroups: a diagonal has each number of keys of a tile. For kernels of which a workgroup has
// many waves, and for those whose siblings have all of it.
std::vector<ForwardProblem> few_dense_keys(int head_dim) {
  AttentionCase lengths_lie = dense_rows(head_dim, 2, 40, {200, 70}, 9);
  lengths_lie.told_key_lengths = {-5, most};
  AttentionCase starts_lie = packed_rows(head_dim, 1, {0, 40, 40, 75}, {0, 150, 190, 250}, 10);
  starts_lie.query_starts = {-5, 64, most, 30};
  starts_lie.key_starts = {-5, 200, most, 20};
  return {
      {dense_rows(head_dim, 1, 126, {126}, 5)},
      {with_sinks(dense_rows(head_dim, 4, 35, {33, 0}, 3), {0.3F, -1.7F, 0.9F, 0.1F})},
      {with_sinks(dense_rows(head_dim, 1, 35, {33, 0}, 3), {-std::numeric_limits<float>::infinity()})},  // none
      {dense_rows(head_dim, 4, 40, {300, 70, 0}, 1)},
      {packed_rows(head_dim, 1, {0, 40, 40, 180}, {0, 70, 90, 390}, 2)},
      {packed_rows(head_dim, 4, {0, 40, 40, 51}, {0, 70, 90, 95}, 16)},
      {without_scale(dense_rows(head_dim, 1, 33, {33}, 4))},
      {dense_rows(head_dim, 1, 300, {40}, 7)},
      {lengths_lie, true},
      {starts_lie, true},
      {dense_rows(head_dim, 1, 36, {2150}, 6)},
      {dense_rows(head_dim, 1, 36, {256}, 14)},  // at the last tile some rows outgrow their sums, and some do not
      {dense_rows(head_dim, 1, 1, {256}, 15)},   // the last tile of all needs no mask
      {level_rows(head_dim, 36, 2100, 11)},
      {level_rows(head_dim, 36, 2150, 12)},
      {level_rows(head_dim, 250, 2260, 13)},
  };
}

std::vector<CallProblem> forward_of(const std::vector<ForwardProblem>& problems, wavejit_dtype type, ByteScales scales,
                                    Storage storage = Storage::bf16) {
  std::vector<CallProblem> all;
  for (const ForwardProblem& problem : problems)
    all.push_back(forward(stored(in_storage(problem.which, storage), type, scales), problem.lies));
  return all;
}

// Noise of weights in 8 bits, as a share of O.
std::string too_noisy(const AttentionCase& which, const AttentionOutput& output) {
  const AttentionAnswer exact = attention_reference(which.inputs);
  double signal = 0;
  double noise = 0;
  for (std::size_t i = 0; i < exact.o.size(); ++i) {
    const double error = static_cast<double>(from_storage(which.storage, output.o[i])) - exact.o[i];
    signal += exact.o[i] * exact.o[i];
    noise += error * error;
  }
  constexpr double least = 28;  // dB: of few rows
  const double decibels = 10 * std::log10(signal / noise);
  return noise == 0 || decibels >= least ? "" : "O has " + std::to_string(decibels) + " dB";
}

CallProblem of_byte_queries(const AttentionCase& given, bool lies) {
  const AttentionInputs& in = given.inputs;
  StoredBytes bytes{.type = WAVEJIT_E4M3, .batches = in.batch, .heads = in.kv_heads};
  bytes.queries = true;
  bytes.q_scale = 1.125F;
  for (int number = 0; number < in.batch * in.kv_heads; ++number) {
    bytes.k_scale.push_back(0.8125F + (0.0625F * static_cast<float>(number % 5)));
    bytes.v_scale.push_back(1.375F - (0.0625F * static_cast<float>(number % 11)));
  }
  const AttentionCase which = stored_in_bytes(given, std::move(bytes));
  return {[which, lies](wavejit_engine* engine, bool judges) {
    const AttentionOutput output = run_attention(engine, which);
    CallResult result = result_of(output);
    result.bits.assign(output.o.begin(), output.o.end());
    append(result.bits, bits_of(output.lse));
    if (judges && !lies && output.status == WAVEJIT_OK) result.wrong = too_noisy(which, output);
    return result;
  }};
}

// Scores that grow by 70 powers of two a tile: O leaves its units with each, beside rows that stay.
AttentionCase of_steep_rows() {
  AttentionCase which = make_case(Storage::bf16, 1, 64, 330, 2, 1, 128, true, 63, 0.5);
  AttentionInputs& in = which.inputs;
  const auto dim = static_cast<std::size_t>(in.head_dim);
  for (std::size_t row = 0; row * dim < in.q.size(); ++row) in.q[row * dim] = row / 2 % 2 == 0 ? 1 : 0;
  for (std::size_t key = 0; key * dim < in.k.size(); ++key) in.k[key * dim] = static_cast<float>(key / 64);
  in.scale = 70 / std::numbers::log2e;
  return which;
}

AttentionCase of_many_tiles(int keys) { return make_case(Storage::bf16, 1, 40, keys, 2, 1, 128, false, 31); }

}  // namespace

std::vector<CallProblem> byte_caches(wavejit_dtype type, ByteScales scales, int head_dim) {
  return forward_of(dense_keys(head_dim), type, scales);
}

std::vector<CallProblem> few_byte_caches(wavejit_dtype type, ByteScales scales, Storage storage) {
  return forward_of(few_dense_keys(64), type, scales, storage);
}

std::vector<CallProblem> byte_caches_in_pages(wavejit_dtype type, ByteScales scales, Storage storage,
                                              const std::vector<ForwardProblem>& more) {
  std::vector<ForwardProblem> all = keys_in_pages({.size = 16}, {.size = 48, .list = true});
  all.insert(all.end(), more.begin(), more.end());
  return forward_of(all, type, scales, storage);
}

std::vector<CallProblem> integer_queries() {
  std::vector<CallProblem> all;
  for (const ForwardProblem& problem : dense_keys(64)) {
    const AttentionInputs& in = problem.which.inputs;
    const auto scales = [](int batches, int tokens, int heads, float around) {
      RowScales made = {.batches = batches, .tokens = tokens, .heads = heads};
      for (int i = 0; i < batches * tokens * heads; ++i)
        made.numbers.push_back(around * (1 + (0.125F * static_cast<float>(i % 7))));
      return made;
    };
    StoredIntegers integers = {.q = scales(in.query_batches(), in.query_rows(), in.query_heads, 1.0F / 32),
                               .k = scales(in.key_batches(), in.key_rows(), in.kv_heads, 0.5F)};
    all.push_back(forward(stored_in_integers(problem.which, std::move(integers)), problem.lies));
  }
  return all;
}

std::vector<CallProblem> byte_queries() {
  std::vector<CallProblem> all;
  for (const auto& [which, lies] : dense_keys(128)) all.push_back(of_byte_queries(which, lies));
  all.push_back(of_byte_queries(of_steep_rows(), false));
  return all;
}

std::vector<CallProblem> few_byte_queries() {
  std::vector<CallProblem> all;
  for (const auto& [which, lies] : few_dense_keys(64)) all.push_back(of_byte_queries(which, lies));
  return all;
}

std::vector<CallProblem> byte_queries_of_many_tiles() {
  return {of_byte_queries(of_many_tiles(700), false), of_byte_queries(of_many_tiles(760), false)};
}

}  // namespace wavejit::tests
