// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "list_problems.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>

#include "forward_problems.h"
#include "support/block_lists.h"
#include "support/device_values.h"
#include "templates/attention/kernel/canon.h"

namespace wavejit::tests {
namespace {

// This many entries a query: keys in no order, some of them named twice, with holes and entries outside; the first list
// counts in full.
AttentionCase listed(AttentionCase which, std::int64_t top_k, std::uint64_t seed, std::int64_t lists = 1) {
  const AttentionInputs& in = which.inputs;
  std::mt19937_64 random(seed);
  GivenKeyLists given = {.top_k = top_k, .heads = lists, .slots = false, .indices = {}, .counts = {}, .row_stride = 0};
  const auto queries =
      static_cast<std::size_t>((in.query_starts.empty() ? in.batch * in.query_length : in.query_rows()) * lists);
  for (std::size_t list = 0; list < queries; ++list) {
    for (std::int64_t at = 0; at < top_k; ++at) {
      const auto key = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(in.key_length));
      constexpr std::int32_t outside[] = {-1, -7, 1 << 20, most, std::numeric_limits<std::int32_t>::min()};
      given.indices.push_back(random() % 8 == 0 ? outside[random() % std::size(outside)] : key);
    }
    given.counts.push_back(list == 0 ? static_cast<std::int32_t>(top_k)
                                     : static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(top_k + 1)));
  }
  which.key_lists = given;
  return which;
}
AttentionCase with_counts(AttentionCase which, const std::vector<std::int32_t>& counts) {
  which.key_lists->counts = counts;
  return which;
}

}  // namespace

std::vector<CallProblem> lists_of_keys(const std::vector<Pages>& pages, bool slots) {
  std::vector<CallProblem> all;
  const auto add = [&](AttentionCase which) {
    if (!pages.empty()) {
      which.pages = pages[all.size() % pages.size()];
      if (which.inputs.key_lengths.empty())
        which.inputs.key_lengths.assign(static_cast<std::size_t>(which.inputs.batch), which.inputs.key_length);
    }
    which.key_lists->slots = slots;
    all.push_back(forward(which, true));
  };
  const auto make = [](int batch, int queries, int keys, int heads, int kv_heads, std::uint64_t seed) {
    AttentionCase which = make_case(Storage::bf16, batch, queries, keys, heads, kv_heads, 64, false, seed);
    grow(which);
    return which;
  };
  add(listed(make(2, 2, 208, 8, 2, 1), 130, 11));
  add(listed(make(1, 2, 96, 40, 1, 2), 33, 12));
  add(listed(with_sink(make(1, 2, 96, 6, 2, 3)), 70, 13, 2));
  add(listed(without_scale(make(1, 1, 64, 4, 2, 4)), 64, 14));
  AttentionCase causal = listed(make(2, 3, 96, 2, 2, 10), 80, 20);
  causal.inputs.causal = true;
  add(causal);
  // Chunks without a key before one that has some, and one without any.
  AttentionCase holes = listed(make(1, 2, 96, 4, 2, 11), 900, 21);
  std::fill_n(holes.key_lists->indices.begin(), 600, -1);
  std::fill(holes.key_lists->indices.begin() + 900, holes.key_lists->indices.end(), -1);
  holes.splits = 1;
  add(with_counts(holes, {900, 900}));
  add(with_counts(listed(make(1, 2, 96, 4, 2, 12), 80, 22), {}));
  // Each number of entries of three tiles.
  std::vector<std::int32_t> counts;
  for (std::int32_t count = 0; count <= 195; ++count) counts.push_back(count);
  add(with_counts(listed(make(1, 196, 80, 2, 1, 5), 195, 15), counts));
  add(with_counts(listed(make(1, 5, 80, 4, 2, 6), 70, 16), {-3, most, 71, 0, 1}));
  AttentionCase lengths = listed(make(3, 1, 80, 4, 2, 7), 70, 17);
  lengths.inputs.key_lengths = {-3, most, 20};
  lengths.told_key_lengths = lengths.inputs.key_lengths;
  lengths.inputs.key_lengths = {0, 80, 20};
  if (!slots) add(lengths);
  if (!slots) {
    AttentionCase packed = sequences({2, 0, 3, 1}, {70, 10, 33, 64}, 9);
    packed.inputs.batch = 4;
    if (pages.empty()) {
      constexpr std::size_t rows = 177;
      packed.inputs.key_starts = {0, 70, 80, 113, rows};
      packed.inputs.k.resize(rows * 2 * 64);
      packed.inputs.v.resize(rows * 2 * 64);
      packed.inputs.key_lengths.clear();
    }
    packed = listed(packed, 50, 19);
    add(packed);
    packed.query_starts = {-5, 3, most, 2, 2};
    if (pages.empty()) packed.key_starts = {-5, 100, most, 20, 90};
    add(packed);
  }
  AttentionCase long_lists = listed(make(1, 2, 704, 8, 2, 8), 600, 18);
  for (const int splits : {1, 2}) {
    long_lists.splits = splits;
    add(long_lists);
  }
  return all;
}

std::vector<CallProblem> lists_of_keys_in_runs() {
  std::vector<CallProblem> all;
  const auto make = [](int batch, int queries, int keys, int heads, int kv_heads, std::uint64_t seed) {
    AttentionCase which = make_case(Storage::bf16, batch, queries, keys, heads, kv_heads, 64, false, seed);
    grow(which);
    which.splits = 2;
    return which;
  };
  const auto add = [&](const AttentionCase& which) { all.push_back(forward(which, true)); };
  add(listed(make(2, 2, 704, 8, 2, 1), 600, 1));
  add(listed(with_sink(make(1, 2, 704, 6, 2, 2)), 600, 2, 2));
  add(listed(without_scale(make(1, 1, 300, 4, 2, 3)), 300, 3));
  add(with_counts(listed(make(1, 5, 300, 4, 2, 4), 600, 4), {-300, most, 601, 0, 257}));
  add(with_counts(listed(make(1, 2, 300, 4, 2, 5), 520, 5), {}));
  AttentionCase holes = listed(make(1, 2, 96, 4, 2, 6), 900, 6);
  std::fill_n(holes.key_lists->indices.begin(), 600, -1);
  std::fill(holes.key_lists->indices.begin() + 900, holes.key_lists->indices.end(), -1);
  add(with_counts(holes, {900, 900}));
  // Every score is below 0, and the parts are a whole group.
  AttentionCase below_zero = listed(make(1, 2, 300, 4, 2, 14), 1020, 14);
  for (std::size_t i = 0; i < below_zero.inputs.q.size(); ++i) below_zero.inputs.q[i] = i % 64 == 0 ? -2.0F : 0.0F;
  for (std::size_t i = 0; i < below_zero.inputs.k.size(); i += 64) below_zero.inputs.k[i] = 1.0F;
  add(with_counts(below_zero, {1020, 1020}));
  AttentionCase without_lse = listed(make(1, 2, 300, 4, 2, 15), 520, 15);
  without_lse.lse = false;
  add(without_lse);
  // Parts of a group, of a turn and of several turns, one more and one fewer.
  const auto parts = [](std::initializer_list<int> numbers) {
    std::vector<std::int32_t> counts;
    for (const int number : numbers) counts.push_back((number * attention::list_chunk_keys) - 5);
    return counts;
  };
  add(with_counts(listed(make(1, 12, 704, 2, 1, 7), 37 * attention::list_chunk_keys, 7),
                  parts({3, 4, 5, 15, 16, 17, 24, 27, 29, 31, 32, 37})));
  // More than 64 parts, of which the last counts for most, the first, or any.
  for (const int order : {1, -1, 0}) {
    constexpr int keys = 66 * attention::list_chunk_keys;
    AttentionCase ordered = listed(make(1, 1, keys, 2, 1, 8), keys, 8);
    for (std::int32_t at = 0; order != 0 && at < keys; ++at)
      ordered.key_lists->indices[static_cast<std::size_t>(at)] = order > 0 ? at : keys - 1 - at;
    add(with_counts(ordered, {}));
  }
  // Second lists over the same cache, with counts of their own.
  const auto add_second = [&](AttentionCase first, std::int64_t top_k, const std::vector<std::int32_t>& counts) {
    first.key_lists->slots = true;
    const GivenKeyLists second = *listed(first, top_k, 77).key_lists;
    all.push_back({[first, second, counts](wavejit_engine* engine, bool /*judges*/) {
      const DeviceValues indices(engine, second.indices);
      const DeviceValues of_each(engine, counts);
      const AttentionOutput output = run_attention(engine, first, [&](wavejit_attention_forward_arguments& call) {
        call.second_k = call.k;
        call.second_v = call.v;
        call.second_list.indices = static_cast<const std::int32_t*>(indices.data());
        if (!counts.empty()) call.second_list.counts = static_cast<const std::int32_t*>(of_each.data());
        call.second_list.top_k = second.top_k;
      });
      CallResult result = result_of(output);
      result.bits.assign(output.o.begin(), output.o.end());
      append(result.bits, bits_of(output.lse));
      return result;
    }});
  };
  add_second(listed(make(1, 4, 704, 4, 2, 9), 520, 9), 300, {300, 1, 0, 257});
  add_second(with_counts(listed(make(1, 4, 704, 4, 2, 10), 300, 10), {-300, most, 0, 257}), 600, {most, -300, 0, 600});
  add_second(with_counts(listed(make(1, 1, 704, 2, 1, 11), 9 * attention::list_chunk_keys, 11), {}),
             14 * attention::list_chunk_keys, {});
  // The second list begins at each place of a turn.
  add_second(with_counts(listed(make(1, 19, 704, 2, 1, 13), 19 * attention::list_chunk_keys, 13),
                         parts({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19})),
             3 * attention::list_chunk_keys, {});
  AttentionCase packed = sequences({2, 0, 3, 1}, {700, 10, 330, 640}, 12);
  packed.inputs.key_starts = {0, 700, 710, 1040, 1680};
  packed.inputs.batch = 4;
  for (std::vector<float>* rows : {&packed.inputs.k, &packed.inputs.v}) rows->resize(std::size_t{1680} * 2 * 64);
  packed.inputs.key_lengths.clear();
  packed.splits = 2;
  packed = listed(packed, 560, 12);
  add(packed);
  packed.query_starts = {-5, 3, most, 2, 2};
  packed.key_starts = {-5, 1000, most, 20, 90};
  add(packed);
  return all;
}

std::vector<CallProblem> lists_of_blocks(int rows, int keys, bool causal, bool walks) {
  std::vector<CallProblem> all;
  const auto make = [&](int batch, int queries, int length, int heads, int kv_heads, std::uint64_t seed) {
    AttentionCase which = make_case(Storage::bf16, batch, queries, length, heads, kv_heads, 64, causal, seed);
    grow(which);
    which.own_workspace = true;
    return which;
  };
  const auto lists = [&](AttentionCase which, int batches, int heads, double density, double whole,
                         std::uint64_t seed) {
    which.inputs.lists = random_lists(rows, keys, batches, heads, which.inputs.query_length, which.inputs.key_length,
                                      density, whole, seed);
    return which;
  };
  // What a walk is made of is looked at where it stands, in the workspace.
  const auto add = [&](const AttentionCase& which, bool lies = false) {
    if (!walks) return all.push_back(forward(which, lies));
    all.push_back({[which](wavejit_engine* engine, bool /*judges*/) {
      const AttentionOutput output = run_attention(engine, which);
      CallResult result = result_of(output);
      result.bits.assign(output.workspace.begin(), output.workspace.end());
      result.bits.insert(result.bits.end(), output.o.begin(), output.o.end());
      return result;
    }});
  };
  AttentionCase noisy = lists(make(2, 150, 500, 4, 2, 1), 2, 4, 0.3, 0.4, 11);
  noisy.list_form.noise = true;
  add(noisy);
  noisy.list_form.alike = true;
  add(noisy);
  AttentionCase ragged = lists(make(1, 150, 400, 2, 1, 2), 1, 1, 0.5, 0.2, 12);
  ragged.list_form.ragged = true;
  ragged.inputs.lists->masked.front().clear();
  ragged.inputs.lists->whole.front().clear();
  add(ragged);
  AttentionCase ended = lists(make(1, 40, 300, 2, 2, 3), 1, 2, 0.5, 0.5, 13);
  ended.list_form.counts = false;
  add(ended);
  add(lists(with_sink(make(1, 70, 33, 2, 1, 4)), 1, 1, 0.4, 0.5, 14));
  if (rows > 64) add(lists(with_sink(make(1, 200, 300, 2, 1, 12)), 1, 1, 0.6, 0.5, 22));
  add(lists(make(1, 70, 2200, 2, 1, 5), 1, 1, 0.3, 0.5, 15));
  add(lists(without_scale(make(1, 64, 64, 2, 1, 6)), 1, 1, 2, 0, 16));
  AttentionCase packed = make(1, 200, 300, 2, 1, 7);
  packed.inputs.batch = 2;
  packed.inputs.query_starts = {0, 130, 200};
  packed.inputs.key_starts = {0, 100, 300};
  packed.inputs.query_length = 130;
  packed.inputs.key_length = 200;
  packed = lists(packed, 2, 1, 0.6, 0.2, 17);
  add(packed);
  packed.query_starts = {-5, 60, most};
  packed.key_starts = {-5, 126, most};
  add(packed, true);
  packed.query_starts = {-5, 150, most};
  packed.key_starts = {-5, most, 20};
  add(packed, true);
  AttentionCase lengths = lists(make(2, 100, 300, 2, 1, 8), 2, 1, 0.6, 0.2, 18);
  lengths.inputs.key_lengths = {300, 130};
  add(lengths);
  lengths.told_key_lengths = {-300, most};
  add(lengths, true);
  // Each number of keys of a walk's first tile and of its second.
  for (const std::int32_t before : {0, 64}) {
    AttentionCase each = lists(make(64, 33, before + 64, 2, 1, 10), 1, 1, 2, 0, 20);
    for (std::int32_t length = 1; length <= 64; ++length) each.inputs.key_lengths.push_back(before + length);
    add(each);
  }
  // Chunks of which a row sees some: the second, the third, none but the last.
  AttentionCase chunks = lists(make(1, 200, 4200, 2, 2, 11), 1, 2, 2, 0.5, 21);
  for (std::size_t list = 0; list < chunks.inputs.lists->masked.size(); ++list)
    for (auto* const blocks : {&chunks.inputs.lists->masked[list], &chunks.inputs.lists->whole[list]})
      std::erase_if(*blocks, [&](std::int32_t block) {
        const int chunk = block * keys / 1024;
        const bool first_two = block * keys % 1024 < 128;
        return list % 4 == 0   ? chunk != 4
               : list % 4 == 1 ? chunk == 0 || !first_two
               : list % 4 == 2 ? chunk < 2 || !first_two
                               : chunk == 2 || chunk == 3 || !first_two;
      });
  add(chunks);
  for (const bool is_ragged : {false, true}) {
    AttentionCase lying = lists(make(1, 400, 300, 2, 1, 9), 1, 2, 0.6, 0.2, 19);
    lying.list_form.ragged = is_ragged;
    lying.list_form.lies = true;
    add(lying, true);
  }
  return all;
}

std::vector<CallProblem> bool_masks(int head_dim, bool lists) {
  std::vector<CallProblem> all;
  const auto make = [&](int batch, int queries, int keys, int heads, int kv_heads, std::uint64_t seed) {
    AttentionCase which = make_case(Storage::bf16, batch, queries, keys, heads, kv_heads, head_dim, false, seed);
    grow(which);
    which.own_workspace = true;
    return which;
  };
  // A third of the blocks of rows and tiles of keys is hidden, a third open; 0: all is mixed.
  const auto masked = [](AttentionCase which, int batches, int heads, std::uint64_t kinds, std::uint64_t seed) {
    AttentionInputs& in = which.inputs;
    in.shown_batches = batches;
    in.shown_heads = heads;
    std::mt19937_64 random(seed);
    for (int plane = 0; plane < batches * heads; ++plane)
      for (int row = 0; row < in.query_rows(); ++row)
        for (int key = 0; key < in.key_length; ++key) {
          const std::uint64_t kind =
              kinds == 0 ? 2 : ((row / 64 * 7) + (key / 64 * 5) + static_cast<std::uint64_t>(plane) + seed) % kinds;
          const bool sees = kind == 1 || (kind == 2 && random() % 3 != 0);
          // Any byte but 0, in turn.
          in.shown.push_back(sees ? static_cast<std::uint8_t>(1 + (random() % 255)) : std::uint8_t{0});
        }
    return which;
  };
  const auto add = [&](const AttentionCase& which, bool lies = false) {
    if (!lists) return all.push_back(forward(which, lies));
    all.push_back({[which](wavejit_engine* engine, bool /*judges*/) {
      const AttentionOutput output = run_attention(engine, which);
      CallResult result = result_of(output);
      result.bits.assign(output.workspace.begin(), output.workspace.end());
      result.bits.insert(result.bits.end(), output.o.begin(), output.o.end());
      return result;
    }});
  };
  add(masked(make(2, 150, 333, 4, 2, 1), 2, 4, 3, 1));
  add(masked(make(1, 300, 200, 2, 1, 2), 1, 1, 3, 2));
  add(masked(with_sink(make(1, 65, 129, 2, 1, 3)), 1, 2, 0, 3));
  add(masked(make(1, 40, 2200, 2, 1, 4), 1, 1, 4, 4));
  add(masked(without_scale(make(1, 64, 64, 2, 1, 5)), 1, 1, 0, 5));
  add(masked(make(1, 70, 7, 1, 1, 12), 1, 1, 0, 12));
  // One row lacks one key of a block that is open elsewhere: a row of each load.
  for (const int row : {3, 20, 40, 60}) {
    AttentionCase open = make(1, 64, 64, 1, 1, 13);
    open.inputs.shown.assign(std::size_t{64} * 64, 1);
    open.inputs.shown[(static_cast<std::size_t>(row) * 64) + static_cast<std::size_t>(row)] = 0;
    add(open);
  }
  // Fewer keys than a lane reads, and each number of them behind a tile.
  for (int keys = 1; keys <= 16; ++keys) add(masked(make(1, 33, keys, 1, 1, 10), 1, 1, 0, 10));
  for (int keys = 65; keys <= 128; keys += 9) add(masked(make(1, 70, keys, 1, 1, 11), 1, 1, 0, 11));
  AttentionCase packed = make(1, 130, 200, 2, 1, 7);
  packed.inputs.batch = 3;
  packed.inputs.q.resize(std::size_t{200} * 2 * static_cast<std::size_t>(head_dim));
  for (std::vector<float>* rows : {&packed.inputs.k, &packed.inputs.v})
    rows->resize(std::size_t{300} * static_cast<std::size_t>(head_dim));
  packed.inputs.query_starts = {0, 130, 130, 200};
  packed.inputs.key_starts = {0, 200, 250, 300};
  packed = masked(packed, 1, 2, 3, 7);
  add(packed);
  packed.query_starts = {-5, 60, most, 20};
  packed.key_starts = {-5, 126, most, 20};
  add(packed, true);
  packed.query_starts = {-5, 150, most, 20};
  add(packed, true);
  AttentionCase lengths = masked(make(2, 100, 300, 2, 1, 8), 2, 1, 3, 8);
  lengths.inputs.key_lengths = {300, 130};
  add(lengths);
  lengths.told_key_lengths = {-300, most};
  add(lengths, true);
  return all;
}

// A third of the blocks of rows and tiles of keys is hidden, a third is 0, a third has both, and numbers.
AttentionCase with_mask_of_numbers(AttentionCase which, int heads, std::uint64_t seed) {
  AttentionInputs& in = which.inputs;
  which.bias_by_tile = true;
  in.bias_batches = 1;
  in.bias_heads = heads;
  std::mt19937_64 random(seed);
  for (int head = 0; head < heads; ++head)
    for (int row = 0; row < in.query_rows(); ++row)
      for (int key = 0; key < in.key_length; ++key) {
        const std::uint64_t kind = ((row / 64 * 7) + (key / 64 * 5) + static_cast<std::uint64_t>(head) + seed) % 3;
        const bool hides = kind == 0 || (kind == 2 && random() % 3 == 0);
        in.bias.push_back(hides       ? -std::numeric_limits<float>::infinity()
                          : kind == 1 ? 0.0F
                                      : 0.25F * static_cast<float>(random() % 16));
      }
  return which;
}

std::vector<CallProblem> biases_by_tile() {
  std::vector<CallProblem> all;
  const auto add = [&](AttentionCase which) {
    which.own_workspace = true;
    all.push_back({[which](wavejit_engine* engine, bool /*judges*/) {
      const AttentionOutput output = run_attention(engine, which);
      CallResult result = result_of(output);
      result.bits.assign(output.workspace.begin(), output.workspace.end());
      result.bits.insert(result.bits.end(), output.o.begin(), output.o.end());
      return result;
    }});
  };
  add(with_mask_of_numbers(make_case(Storage::bf16, 1, 150, 333, 2, 1, 64, false, 21), 2, 4));
  // One number of a block lacks, in each row of a load and in each element of a lane.
  for (int place = 0; place < 64; place += 7) {
    for (const float of_all : {0.0F, -std::numeric_limits<float>::infinity()}) {
      AttentionCase one = make_case(Storage::bf16, 1, 64, 64, 1, 1, 64, false, 22);
      one.bias_by_tile = true;
      one.inputs.bias_batches = one.inputs.bias_heads = 1;
      one.inputs.bias.assign(std::size_t{64} * 64, of_all);
      one.inputs.bias[(static_cast<std::size_t>(place) * 64) + static_cast<std::size_t>((place * 9) % 64)] = 1;
      add(one);
    }
  }
  for (int keys = 1; keys <= 9; ++keys)
    add(with_mask_of_numbers(make_case(Storage::bf16, 1, 33, keys, 1, 1, 64, false, 23), 1, 5));
  AttentionCase packed = make_case(Storage::bf16, 1, 130, 200, 2, 1, 64, false, 24);
  packed.inputs.batch = 2;
  packed.inputs.query_starts = {0, 130, 200};
  packed.inputs.key_starts = {0, 200, 300};
  packed.inputs.q.resize(std::size_t{200} * 2 * 64);
  for (std::vector<float>* rows : {&packed.inputs.k, &packed.inputs.v}) rows->resize(std::size_t{300} * 64);
  packed = with_mask_of_numbers(packed, 2, 6);
  add(packed);
  for (const std::int32_t start : {60, 250}) {
    packed.query_starts = {-5, start, most};
    add(packed);
  }
  // The bias's elements after the last key of a row do not hide keys.
  for (const int keys : {1, 3, 5, 7}) {
    AttentionCase hidden = make_case(Storage::bf16, 1, 33, keys, 1, 1, 64, false, 25);
    hidden.bias_by_tile = true;
    hidden.inputs.bias_batches = hidden.inputs.bias_heads = 1;
    hidden.inputs.bias.assign(std::size_t{33} * static_cast<std::size_t>(keys),
                              -std::numeric_limits<float>::infinity());
    add(hidden);
  }
  return all;
}

}  // namespace wavejit::tests
