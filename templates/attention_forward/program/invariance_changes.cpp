// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/invariance_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <string>
#include <utility>

#include "templates/attention/call/hints.h"

namespace wavejit::attention_forward::program {
namespace {

RowsOf whole(const Batch& batch, std::size_t sequence) {
  return {.sequence = sequence, .begin = 0, .end = batch.sequences[sequence].rows};
}

// Which of `shares` parts a batch's sequence is dealt into; each batch deals otherwise.
std::size_t share_of(const Batch& batch, std::size_t sequence, std::size_t shares) {
  return (sequence + static_cast<std::size_t>(batch.number % shares)) % shares;
}

std::vector<RowsOf> whole_of_share(const Batch& batch, std::size_t share, std::size_t shares) {
  std::vector<RowsOf> pieces;
  for (std::size_t i = 0; i < batch.sequences.size(); ++i)
    if (share_of(batch, i, shares) == share) pieces.push_back(whole(batch, i));
  return pieces;
}

// Sequences that may stand in one dense tensor. Long ones by themselves: padding is memory.
std::vector<std::vector<RowsOf>> dense_calls(const Batch& batch, std::size_t shares) {
  constexpr std::int64_t most_together = 300;
  std::vector<std::vector<RowsOf>> calls;
  for (std::size_t share = 0; share < shares; ++share) {
    std::vector<RowsOf> together;
    for (const RowsOf& piece : whole_of_share(batch, share, shares)) {
      if (batch.sequences[piece.sequence].keys > most_together)
        calls.push_back({piece});
      else
        together.push_back(piece);
    }
    if (!together.empty()) calls.push_back(std::move(together));
  }
  return calls;
}

// From no padding to nine times the longest.
std::vector<Change> dense_with_padding(const Batch& batch, Draws& draws, std::vector<std::vector<RowsOf>> calls,
                                       bool left) {
  constexpr std::int64_t most_far = 5000;
  std::vector<Change> changes;
  for (std::vector<RowsOf>& pieces : calls) {
    std::int64_t longest = 0;
    for (const RowsOf& piece : pieces) longest = std::max(longest, batch.sequences[piece.sequence].keys);
    const std::int64_t tenths = draws.below(longest > most_far ? 3 : 10);
    const std::int64_t rows = longest * tenths / (10 - tenths) + draws.below(70);
    changes.push_back(
        {.text = fmt::format("dense, {} rows of NaN {} the longest", rows, left ? "in front of" : "behind"),
         .pieces = std::move(pieces),
         .way = {.keys = {.rows_behind = rows, .left_padding = left}}});
  }
  return changes;
}

std::vector<Change> padded(const Batch& batch, Draws& draws) {
  return dense_with_padding(batch, draws, dense_calls(batch, 10), false);
}

// By turns in dense rows and in pages.
std::vector<Change> padded_left(const Batch& batch, Draws& draws) {
  static constexpr std::array<Paging, 3> pages = {
      {{.size = 1}, {.size = 16, .heads_first = true}, {.size = 64, .in_turn = true}}};
  const std::size_t turn = static_cast<std::size_t>(batch.number) % (pages.size() + 1);
  if (turn == 0) return dense_with_padding(batch, draws, dense_calls(batch, 10), true);
  const Paging& paging = pages[turn - 1];
  return {{.text = paging.text() + ", padding in front", .way = {.keys = {.pages = paging, .left_padding = true}}}};
}

std::vector<Change> split(const Batch& /*batch*/, Draws& draws) {
  return Asked::in_runs(draws.below(4) == 0 ? 0 : drawn_runs(draws));
}

// In pieces of a few rows, as only those are merged so.
std::vector<Change> merged(const Batch& batch, Draws& draws) {
  constexpr std::int64_t most_rows_in_pieces = 12;
  const std::int64_t most_rows = 1 + draws.below(4);
  std::vector<Change> changes = Asked::merged(batch, draws);
  std::vector<RowsOf>& pieces = changes.front().pieces;
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    const std::int64_t rows = batch.sequences[i].rows;
    for (std::int64_t at = 0; rows <= most_rows_in_pieces && at < rows; at += most_rows)
      pieces.push_back({.sequence = i, .begin = at, .end = std::min(rows, at + most_rows)});
  }
  if (pieces.empty()) return {};
  return changes;
}

// Waves that share each chunk of keys, in one run of chunks and in several. Calls that they are not there for drop out.
std::vector<Change> by_chunk_waves(const Batch& batch, Draws& draws) {
  const std::string pipeline = batch.dim > 128 ? "generic chunk_waves=2" : "generic chunk_waves=4";
  const int splits = 1 + static_cast<int>(draws.below(4));
  return {{.text = fmt::format("{}, splits={}", pipeline, splits), .way = {.splits = splits}, .pipeline = pipeline}};
}

// Pages of 16 n keys in rows in every second batch on the pipelines of long queries, whatever `auto` takes for so few
// rows. What the target does not have drops out.
std::span<const char* const> pipelines_for(const Batch& batch, const Paging& paging) {
  constexpr std::int64_t keys_of_granule = 16;
  static constexpr std::array<const char*, 1> automatic = {""};
  static constexpr std::array<const char*, 2> overlapped = {"interleaved", "dualwave"};
  const bool granules = paging.size % keys_of_granule == 0 && paging.layout == WAVEJIT_PAGES_OF_ROWS;
  if (!granules || batch.number % 2 != 0) return automatic;
  return overlapped;
}

std::vector<Change> with_pages(const Batch& batch, std::span<const Paging> all) {
  std::vector<Change> changes;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::vector<RowsOf> pieces = whole_of_share(batch, i, all.size());
    if (pieces.empty()) continue;
    for (const std::string& pipeline : pipelines_for(batch, all[i])) {
      changes.push_back({.text = all[i].text() + (pipeline.empty() ? "" : ", " + pipeline),
                         .pieces = pieces,
                         .way = {.keys = {.pages = all[i]}},
                         .pipeline = pipeline});
    }
  }
  return changes;
}

std::vector<Change> by_page_size(const Batch& batch, Draws&) {
  std::vector<Paging> all;
  for (const std::int64_t size : {1, 16, 32, 48, 64, 128, 256, 528, 1024, 1040}) all.push_back({.size = size});
  return with_pages(batch, all);
}

std::vector<Change> by_page_layout(const Batch& batch, Draws&) {
  static constexpr std::array<Paging, 11> all = {{{.size = 16, .list = true},
                                                  {.size = 16, .layout = WAVEJIT_PAGES_VECTORISED},
                                                  {.size = 64, .layout = WAVEJIT_PAGES_VECTORISED_KEYS},
                                                  {.size = 48, .in_turn = true, .layout = WAVEJIT_PAGES_VECTORISED},
                                                  {.size = 528, .list = true, .layout = WAVEJIT_PAGES_VECTORISED_KEYS},
                                                  {.size = 16, .heads_first = true},
                                                  {.size = 16, .in_turn = true},
                                                  {.size = 16, .heads_first = true, .in_turn = true},
                                                  {.size = 528, .in_turn = true, .list = true},
                                                  {.size = 64, .heads_first = true, .list = true},
                                                  {.size = 128, .heads_first = true, .in_turn = true, .list = true}}};
  return with_pages(batch, all);
}

// What masks show, told otherwise. By turns as it lies, in pieces, as `own` has it, and on a
// pipeline of long queries.
std::vector<Change> told_otherwise(const Batch& batch, Draws& draws, Change change,
                                   void (*own)(const Batch& batch, Change& change)) {
  static constexpr std::array<const char*, 3> pipelines = {"interleaved", "dualwave", "generic tile_queries=64"};
  switch (batch.number % 4) {
    case 1:
      change.pieces = in_pieces(all_whole(batch), draws);
      change.text += ", in pieces";
      break;
    case 2:
      own(batch, change);
      break;
    case 3:
      change.pipeline = pipelines[static_cast<std::size_t>(batch.number / 4 % pipelines.size())];
      change.text += ", " + change.pipeline;
      break;
    default:
      break;
  }
  return {std::move(change)};
}

std::vector<Change> by_bool_mask(const Batch& batch, Draws& draws) {
  return told_otherwise(
      batch, draws, {.text = "a bool mask", .way = {.bool_mask = true}},
      [](const Batch& of, Change& change) { Asked::put_in_pages(change, of.number % 8 == 2 ? 16 : 64); });
}

// Where scores are modified anyway: beside others a bias makes numbers of them that are rounded another time.
std::vector<Change> by_bias(const Batch& batch, Draws& draws) {
  if (batch.softcap == 0 && batch.alibi.empty()) return {};
  return told_otherwise(batch, draws, {.text = "a bias by tile", .way = {.bias_by_tile = true}},
                        [](const Batch&, Change& change) {
                          change.way.wide_bias = true;
                          change.text += " in f32";
                        });
}

// The value of a sequence's last key, which all rows but the last are hidden from.
std::vector<Change> hidden_values(const Batch& batch, Draws&) {
  const Garbage garbage = garbage_in_turn(batch.number);
  std::vector<Change> changes;
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    const DrawnSequence& one = batch.sequences[i];
    if (!batch.causal || one.rows < 2 || one.keys < one.rows) continue;
    changes.push_back({.text = fmt::format("value {} is {}, which rows before {} do not see", one.keys - 1,
                                           to_text(garbage), one.rows - 1),
                       .pieces = {whole(batch, i)},
                       .way = {.keys = {.last_value = true, .garbage = garbage}},
                       .rows_left_out = 1});
  }
  return changes;
}

// Chunks that begin at another key than the sequence's first. One row a call, whose window ends at its first key.
std::vector<Change> shifted(const Batch& batch, Draws& draws) {
  std::vector<Change> changes;
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    const DrawnSequence& one = batch.sequences[i];
    if (one.rows != 1 || batch.window_left || batch.kind != nullptr || !batch.alibi.empty() || one.keys <= 1024)
      continue;
    const std::int64_t front = 64 * (1 + draws.below(15));
    changes.push_back({.text = fmt::format("{} hidden keys in front", front),
                       .pieces = {whole(batch, i)},
                       .way = {.keys = {.keys_in_front = front}}});
  }
  return changes;
}

std::vector<Dimension> of_plain_calls() {
  const Asked::Row rows[] = {
      {"alone", "each sequence in a call of its own", Asked::alone},
      {"permuted", "the sequences in another order", Asked::permuted},
      {"padded", "dense keys, up to 90 % NaN behind the sequence", padded},
      {"left-padding", "up to 90 % NaN in front of the sequence, dense and in pages", padded_left},
      {"rechunked", "queries in pieces, each with the keys up to its end", Asked::rechunked},
      {"token-by-token", "each query by itself", Asked::token_by_token(12)},
      {"splits", "keys cut into 2 to 16 runs, or as auto does", split},
      {"pipeline", "each pipeline of the target", on_pipelines({"interleaved", "generic", "dualwave"})},
      {"query-tile", "each number of query rows of a workgroup",
       on_pipelines({"generic tile_queries=32", "generic tile_queries=64", "generic tile_queries=128",
                     "dualwave tile_queries=256", "interleaved tile_queries=128"})},
      {"chunk-waves", "waves that share each chunk of keys", by_chunk_waves, DimensionKind::of_some_targets},
      {"merged", "parts of 2 to 16 runs merged by the last workgroup to arrive", merged},
      {"page-size", "keys in shuffled pages of 1 to 1,040", by_page_size},
      {"page-layout", "heads first, K and V in turn, one list of pages, vectorised", by_page_layout},
      {"bool-mask", "the diagonal, a window and local chunks told by a byte for each row and key", by_bool_mask,
       DimensionKind::of_some_targets},
      {"bias-by-tile", "the same told by a bias of 0 and −∞, where scores are modified", by_bias,
       DimensionKind::of_some_targets},
      {"hidden", "what no row may see is NaN or infinite: neighbours, keys in front of a window", Asked::hidden},
      {"hidden-values", "control: the last value is NaN or infinite; rows that do not see it differ", hidden_values,
       DimensionKind::control},
      {"shifted-chunks", "control: chunks from another key than the sequence's first; bits differ", shifted,
       DimensionKind::control},
  };
  std::vector<Dimension> dimensions;
  Asked::add(dimensions, rows, {});
  return dimensions;
}

}  // namespace

Changes on_pipelines(std::vector<const char*> names) {
  return [names = std::move(names)](const Batch& batch, Draws&) -> std::vector<Change> {
    const char* name = names[static_cast<std::size_t>(batch.number % names.size())];
    return {{.text = name, .pipeline = name}};
  };
}

Changes hinted(bool beside_lists) {
  return [beside_lists](const Batch&, Draws&) {
    std::vector<Change> changes;
    for (const attention::Hint& hint : attention::hints)
      if (beside_lists || hint.beside == attention::Hint::Beside::any)
        changes.push_back({.text = std::string(hint.word), .way = {.flags = hint.bit}});
    return changes;
  };
}

const std::vector<Dimension>& all_dimensions() {
  static const std::vector<Dimension> dimensions = [] {
    std::vector<Dimension> all = of_plain_calls();
    std::vector<Dimension> of_bytes = byte_dimensions(all);
    const Asked::Row hints[] = {{"hints", "each hint of the call", hinted(false)}};
    if (attention::hints_of(false) != 0) Asked::add(all, hints, {});
    std::ranges::move(list_dimensions(), std::back_inserter(all));
    std::ranges::move(of_bytes, std::back_inserter(all));
    return all;
  }();
  return dimensions;
}

}  // namespace wavejit::attention_forward::program
