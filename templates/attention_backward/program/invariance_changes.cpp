// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/program/invariance_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace wavejit::attention_backward::program {
namespace {

std::vector<Change> alone(const Batch& batch, Draws&) {
  Change change = {.text = "alone", .calls = {}};
  for (const RowsOf& piece : all_whole(batch)) change.calls.push_back({piece});
  return {std::move(change)};
}

std::vector<Change> permuted(const Batch& batch, Draws& draws) {
  return {{.text = "permuted", .calls = {attention::program::shuffled(all_whole(batch), draws)}}};
}

// The sequences in order, in calls of one to `most`.
std::vector<Change> micro_batches(const Batch& batch, Draws& draws) {
  constexpr std::int64_t most = 16;
  Change change = {.text = {}, .calls = {}};
  const std::vector<RowsOf> pieces = all_whole(batch);
  for (std::size_t at = 0; at < pieces.size();) {
    const std::size_t end = std::min(pieces.size(), at + 1 + static_cast<std::size_t>(draws.below(most)));
    change.calls.emplace_back(pieces.begin() + static_cast<std::ptrdiff_t>(at),
                              pieces.begin() + static_cast<std::ptrdiff_t>(end));
    at = end;
  }
  change.text = fmt::format("{} calls", change.calls.size());
  return {std::move(change)};
}

// A dense tensor for each number of rows; heads inside or outside by turns.
std::vector<Change> padded(const Batch& batch, Draws& draws) {
  std::map<std::int64_t, std::vector<RowsOf>> by_rows;
  for (const RowsOf& piece : all_whole(batch)) by_rows[piece.rows()].push_back(piece);
  const bool heads_outside = batch.number % 2 == 1;
  const std::int64_t rows = draws.below(150);
  Change change = {
      .text = fmt::format("dense, {} keys of NaN behind the longest{}", rows, heads_outside ? ", heads outside" : ""),
      .calls = {},
      .placing = {
          .layout = heads_outside ? attention::program::ArrayLayout::bhsd : attention::program::ArrayLayout::bshd,
          .rows_behind = rows}};
  for (auto& [count, pieces] : by_rows) change.calls.push_back(std::move(pieces));
  return {std::move(change)};
}

// Two waves a block of 32 keys, one, or two blocks of rows or keys a wave, whatever the call has for a device.
constexpr std::array<const char*, 3> pipelines = {"auto tile_queries=64", "auto tile_queries=128",
                                                  "auto tile_queries=256"};
std::vector<Change> by_pipeline(const Batch& batch, Draws&) {
  const char* name = pipelines[static_cast<std::size_t>(batch.number % pipelines.size())];
  return {{.text = name, .calls = {all_whole(batch)}, .pipeline = name}};
}

// One a batch, by turns.
std::vector<Change> repeated(const Batch& batch, Draws&) {
  const auto& [text, schedule] = attention::program::schedule_in_turn(batch.number);
  return {{.text = text, .calls = {all_whole(batch)}, .schedule = schedule}};
}

std::vector<Change> rechunked(const Batch& batch, Draws& draws) {
  return {{.text = "in pieces", .calls = {attention::program::in_pieces(all_whole(batch), draws)}}};
}

// Keys that go round a ring of devices. A window and slopes count from the diagonal, and pieces move away from it.
std::vector<Change> in_ring(const Batch& batch, Draws& draws) {
  constexpr std::int64_t step = 16;
  if ((batch.arrays.experiment.mask.bits & WAVEJIT_MASK_WINDOW) != 0 || !batch.arrays.slopes.empty()) return {};
  Change change = {.text = "keys in pieces, sums of dQ continued", .calls = {}};
  for (const RowsOf& all : all_whole(batch)) {
    const std::int64_t keys = batch.sequences[all.sequence].keys;
    const std::int64_t steps = (keys - 1) / step;  // places to cut at
    if (steps == 0) continue;
    std::vector<std::int64_t> ends = {step * (1 + draws.below(steps)), keys};
    if (const std::int64_t second = step * (1 + draws.below(steps)); second != ends.front()) ends.push_back(second);
    std::ranges::sort(ends);
    change.calls.push_back({all});
    change.key_ends.push_back(std::move(ends));
  }
  if (change.calls.empty()) return {};
  return {std::move(change)};
}

// Rows in calls that end at multiples of a run: the places to cut at, each as likely as not, and one at least.
std::vector<Change> in_runs(const Batch& batch, Draws& draws) {
  const std::int64_t run = batch.run_rows();
  Change change = {.text = {},
                   .calls = {},
                   .pipeline = pipelines[batch.number % pipelines.size()],
                   .schedule = attention::program::schedule_in_turn(batch.number).schedule};
  for (const RowsOf& all : all_whole(batch)) {
    std::vector<std::int64_t> ends;
    for (std::int64_t end = run; end < all.end; end += run)
      if (ends.empty() || draws.one_in(2)) ends.push_back(end);
    ends.push_back(all.end);
    change.calls.push_back({all});
    change.row_ends.push_back(std::move(ends));
  }
  change.text = fmt::format("rows in pieces of runs of {}, sums of dK and dV continued, {}", run, change.pipeline);
  return {std::move(change)};
}

// Sequences of a row or two, or of one key, may come to the same bits by chance.
std::vector<Change> added_pieces(const Batch& batch, Draws&) {
  constexpr std::int64_t least = 8;
  Change change = {.text = "two pieces, added by the caller", .calls = {{}}};
  for (const RowsOf& all : all_whole(batch)) {
    if (all.rows() < least || batch.sequences[all.sequence].keys < least) continue;
    const std::int64_t middle = all.rows() / 2;
    change.calls[0].push_back({.sequence = all.sequence, .begin = 0, .end = middle});
    change.calls[0].push_back({.sequence = all.sequence, .begin = middle, .end = all.end});
  }
  if (change.calls[0].empty()) return {};
  return {std::move(change)};
}

}  // namespace

const std::vector<Dimension>& all_dimensions() {
  static const std::vector<Dimension> dimensions = {
      {.told = {.name = "dq-dk-dv-alone", .changes = "each sequence's gradients from a call of its own"},
       .changes = alone},
      {.told = {.name = "dq-dk-dv-permuted", .changes = "the sequences in another order"}, .changes = permuted},
      {.told = {.name = "dq-dk-dv-padded", .changes = "dense, with NaN behind the keys; heads inside or outside"},
       .changes = padded},
      {.told = {.name = "dq-dk-dv-pipeline", .changes = "two waves a block of keys, one, or two blocks a wave"},
       .changes = by_pipeline},
      {.told = {.name = "dq-dk-dv-repeated", .changes = "once more, under each wave schedule of the simulated GPU"},
       .changes = repeated},
      {.told = {.name = "dk-dv-sums",
                .changes = "in several calls; dK, dV and d_sink that the caller adds up, in order"},
       .changes = micro_batches,
       .compared = Compared::sums},
      {.told = {.name = "dq-rechunked", .changes = "queries in pieces, each with the keys up to its end: dQ"},
       .changes = rechunked,
       .compared = Compared::queries},
      {.told = {.name = "dq-dk-dv-ring",
                .changes = "keys in pieces from multiples of 16, in calls that continue the sums of dQ"},
       .changes = in_ring},
      {.told = {.name = "dq-dk-dv-runs",
                .changes = "rows in pieces of whole runs, in calls that continue the sums of dK and dV",
                .one_in = 250},
       .changes = in_runs,
       .compared = Compared::rows_and_keys,
       .of_runs = true},
      {.told = {.name = "dk-dv-pieces",
                .changes = "control: dK and dV of two pieces of the rows, added by the caller; bits differ",
                .control = true},
       .changes = added_pieces,
       .compared = Compared::added_pieces},
  };
  return dimensions;
}

}  // namespace wavejit::attention_backward::program
