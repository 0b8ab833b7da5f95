// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "mask_problems.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>

#include "forward_problems.h"
#include "list_problems.h"
#include "support/attention_run.h"
#include "support/device_values.h"

namespace wavejit::tests {
namespace {

// A third of the blocks of rows and tiles of keys is hidden, a third open; 0: all is mixed.
AttentionCase with_bool_mask(AttentionCase which, std::uint64_t kinds, std::uint64_t seed, int heads = 1) {
  AttentionInputs& in = which.inputs;
  in.shown_batches = 1;
  in.shown_heads = heads;
  std::mt19937_64 random(seed);
  for (int head = 0; head < heads; ++head)
    for (int row = 0; row < in.query_rows(); ++row)
      for (int key = 0; key < in.key_length; ++key) {
        const std::uint64_t kind =
            kinds == 0 ? 2 : ((row / 64 * 7) + (key / 64 * 5) + static_cast<std::uint64_t>(head) + seed) % kinds;
        in.shown.push_back(kind == 1 || (kind == 2 && random() % 3 != 0) ? 1 : 0);
      }
  return which;
}

}  // namespace

std::vector<CallProblem> walks_of_masks(int head_dim, int rows, MaskKind kind) {
  std::vector<CallProblem> all;
  const auto make = [&](int batch, int keys, int heads, std::uint64_t seed, int kv_heads = 1) {
    AttentionCase which =
        make_case(Storage::bf16, batch, rows, keys, heads, kv_heads, head_dim, kind == MaskKind::bool_causal, seed);
    grow(which);
    return which;
  };
  const auto masked = [&](const AttentionCase& which, std::uint64_t kinds, std::uint64_t seed, int heads = 1) {
    return kind == MaskKind::bias ? with_mask_of_numbers(which, heads, seed)
                                  : with_bool_mask(which, kinds, seed, heads);
  };
  const auto add = [&](const AttentionCase& which, std::uint64_t seed, bool lies = false) {
    all.push_back(forward(masked(which, 3, seed), lies));
  };
  add(make(1, 333, 1, 1), 1);
  add(make(1, 1100, 2, 2), 2);
  AttentionCase packed = make(1, 250, 1, 3);
  AttentionInputs& in = packed.inputs;
  in.batch = 2;
  in.query_starts = {0, rows, rows + 100};
  in.key_starts = {0, 250, 320};
  in.q.resize(static_cast<std::size_t>(rows + 100) * static_cast<std::size_t>(head_dim));
  for (std::vector<float>* keys : {&in.k, &in.v}) keys->resize(std::size_t{320} * static_cast<std::size_t>(head_dim));
  add(packed, 3);
  // Chunks that begin in either buffer: nobody sees a tile of the first chunk.
  all.push_back(forward(masked(make(1, 1290, 1, 12), 0, 12), false));
  // Sequences end in each kind of tile: of a pair the first or the second, behind a chunk's border, behind many.
  AttentionCase lengths = make(5, 1290, 1, 4);
  lengths.inputs.key_lengths = {1290, 1100, 1030, 200, 5};
  lengths = masked(lengths, 0, 4);
  for (std::size_t at = 0; at < lengths.inputs.shown.size(); ++at)
    if (at % 1290 / 64 == 2) lengths.inputs.shown[at] = 0;
  all.push_back(forward(lengths, false));
  all.push_back(forward(masked(with_sink(make(1, 200, 2, 5, 2)), 3, 5, 2), false));
  add(without_scale(make(1, 130, 1, 11)), 11);
  AttentionCase lying = packed;
  lying.query_starts = {-5, 40, most};
  lying.key_starts = {-5, 20, most};
  add(lying, 2, true);
  lying.query_starts = {rows + 20, most, 20};
  lying.key_starts = {280, most, 20};
  add(lying, 7, true);
  AttentionCase beyond = make(2, 300, 1, 8);
  beyond.told_key_lengths = {-300, most};
  beyond.inputs.key_lengths = {300, 130};
  add(beyond, 8, true);
  if (kind == MaskKind::bool_causal) return all;
  // Open tiles at every place of a walk end a sequence, at each key that a lane has; the other 32 are its neighbour's.
  const auto ends = [&](int keys, int before, const std::function<bool(int)>& shows) {
    AttentionCase which = make(32, keys, 1, 13);
    for (int key = 0; key < 64; ++key)
      if (key / 4 % 2 == 0) which.inputs.key_lengths.push_back(before + key + 1);
    AttentionInputs& shown = which.inputs;
    which.bias_by_tile = kind == MaskKind::bias;
    shown.bias_batches = shown.bias_heads = shown.shown_batches = shown.shown_heads = 1;
    for (int row = 0; row < rows; ++row)
      for (int key = 0; key < keys; ++key)
        if (which.bias_by_tile) {
          shown.bias.push_back(shows(key) ? 0.0F : -std::numeric_limits<float>::infinity());
        } else {
          shown.shown.push_back(shows(key) ? 1 : 0);
        }
    all.push_back(forward(which, false));
  };
  const auto all_keys = [](int /*key*/) { return true; };
  ends(130, 0, all_keys);
  ends(130, 64, all_keys);
  if (kind == MaskKind::bias) return all;
  ends(260, 128, all_keys);
  ends(260, 192, all_keys);
  // Three tiles of the first chunk are seen: the second begins in the other buffer.
  for (const int tiles : {0, 1, 2}) ends(1220, 1024 + (64 * tiles), [](int key) { return key < 192 || key >= 1024; });
  return all;
}

std::vector<CallProblem> masks_of_few_rows(int head_dim, int rows) {
  std::vector<CallProblem> all;
  const auto make = [&](int batch, int keys, int heads, int kv_heads, std::uint64_t seed) {
    AttentionCase which = make_case(Storage::bf16, batch, rows, keys, heads, kv_heads, head_dim, false, seed);
    grow(which);
    which.splits = 2;
    return which;
  };
  // Tiles of each kind in each order, and none.
  all.push_back(forward(with_bool_mask(make(1, 1300, 8, 2, 1), 3, 1), false));
  all.push_back(forward(with_bool_mask(make(1, 2100, 4, 1, 2), 4, 2), false));
  all.push_back(forward(with_bool_mask(make(1, 1090, 4, 1, 3), 0, 3), false));
  AttentionCase hidden = with_bool_mask(make(1, 3100, 4, 1, 4), 2, 4);
  for (std::size_t at = 0; at < hidden.inputs.shown.size(); ++at)
    if (at % 3100 / 1024 == 1) hidden.inputs.shown[at] = 0;
  all.push_back(forward(hidden, false));
  // What nobody sees may be anything.
  AttentionCase noise = hidden;
  const std::size_t row = static_cast<std::size_t>(head_dim);
  for (std::size_t key = 1024; key < 2048; ++key)
    for (std::size_t dim = 0; dim < row; ++dim)
      noise.inputs.k[(key * row) + dim] = noise.inputs.v[(key * row) + dim] = std::numeric_limits<float>::quiet_NaN();
  all.push_back(forward(noise, false));
  AttentionCase lengths = make(4, 1290, 4, 1, 5);
  lengths.inputs.key_lengths = {1290, 1030, 200, 5};
  all.push_back(forward(with_bool_mask(lengths, 3, 5), false));
  AttentionCase packed = make_case(Storage::bf16, 1, rows + 3, 1320, 4, 1, head_dim, false, 6);
  packed.splits = 2;
  AttentionInputs& in = packed.inputs;
  in.batch = 2;
  in.query_length = rows;
  in.key_length = 1250;
  in.query_starts = {0, rows, rows + 3};
  in.key_starts = {0, 1250, 1320};
  all.push_back(forward(with_bool_mask(packed, 3, 6), false));
  AttentionCase lying = packed;
  lying.query_starts = {-5, 4, most};
  lying.key_starts = {-5, 20, most};
  all.push_back(forward(with_bool_mask(lying, 3, 7), true));
  lying.query_starts = {rows + 1, most, 2};
  lying.key_starts = {1280, most, 20};
  all.push_back(forward(with_bool_mask(lying, 3, 9), true));
  // Sequences of more rows and keys than the call says that there may be.
  lying.query_starts = {-5, rows + 2, most};
  lying.key_starts = {0, 1310, most};
  all.push_back(forward(with_bool_mask(lying, 3, 10), true));
  AttentionCase beyond = make(2, 1300, 4, 1, 10);
  beyond.told_key_lengths = {-300, most};
  beyond.inputs.key_lengths = {1300, 1130};
  all.push_back(forward(with_bool_mask(beyond, 3, 10), true));
  all.push_back(forward(with_bool_mask(without_scale(make(1, 1130, 4, 1, 8)), 3, 8), false));
  // The first, the second and the third of the open tiles ends a sequence, at each of its keys.
  for (const int tiles : {0, 1, 2}) {
    AttentionCase ends = make(64, 1090, 4, 1, 9);
    for (int key = 1; key <= 64; ++key) ends.inputs.key_lengths.push_back((64 * tiles) + key);
    ends.inputs.shown_batches = ends.inputs.shown_heads = 1;
    ends.inputs.shown.assign(static_cast<std::size_t>(rows) * 1090, 1);
    all.push_back(forward(ends, false));
  }
  return all;
}

}  // namespace wavejit::tests
