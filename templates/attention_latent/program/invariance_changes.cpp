// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/program/invariance_changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "templates/attention_latent/program/invariance_bytes.h"

namespace wavejit::attention_latent::program {
namespace {

constexpr std::int64_t all_rows = std::numeric_limits<std::int64_t>::max();

// Sequences of as many rows, up to `most` of them, in one dense call. Long ones together: padding is memory.
std::vector<std::vector<RowsOf>> dense_calls(const Batch& batch, std::size_t most) {
  constexpr std::int64_t long_keys = 300;
  std::map<std::pair<std::int64_t, bool>, std::vector<RowsOf>> by_rows;
  std::vector<std::vector<RowsOf>> calls;
  for (const RowsOf& piece : all_whole(batch)) {
    std::vector<RowsOf>& together = by_rows[{piece.rows(), batch.sequences[piece.sequence].keys > long_keys}];
    together.push_back(piece);
    if (together.size() == most) calls.push_back(std::exchange(together, {}));
  }
  for (auto& [rows, together] : by_rows)
    if (!together.empty()) calls.push_back(std::move(together));
  return calls;
}

std::vector<Change> padded(const Batch& batch, Draws& draws) {
  constexpr std::size_t most = 20;
  std::vector<Change> changes;
  for (std::vector<RowsOf>& pieces : dense_calls(batch, most)) {
    const std::int64_t rows = draws.below(150);
    changes.push_back({.text = fmt::format("dense, {} rows of NaN behind the longest", rows),
                       .pieces = std::move(pieces),
                       .way = {.keys = {.rows_behind = rows}, .dense_queries = true}});
  }
  return changes;
}

std::vector<Change> in_pages(const Batch& batch, Draws&) {
  static constexpr std::array<Paging, 8> all = {{{.size = 64},
                                                 {.size = 1},
                                                 {.size = 16},
                                                 {.size = 64, .list = true},
                                                 {.size = 48},
                                                 {.size = 1, .list = true},
                                                 {.size = 128},
                                                 {.size = 16, .list = true}}};
  // Two a batch, by turns; every second one has ropes apart.
  std::vector<Change> changes;
  const std::vector<RowsOf> pieces = all_whole(batch);
  const auto middle = pieces.begin() + (std::ssize(pieces) / 2);
  const bool apart = batch.number % 2 == 1 && batch.dims != batch.dims_v;
  for (const bool second : {false, true}) {
    const Paging& paging = all[static_cast<std::size_t>((2 * batch.number + (second ? 1 : 0)) % all.size())];
    std::vector<RowsOf> half = second ? std::vector(middle, pieces.end()) : std::vector(pieces.begin(), middle);
    if (half.empty()) continue;
    changes.push_back({.text = paging.text() + (apart ? ", ropes apart" : ""),
                       .pieces = std::move(half),
                       .way = {.keys = {.pages = paging, .apart = apart}}});
  }
  return changes;
}

// Runs over pages, which have kernels of their own for whole tiles.
std::vector<Change> pages_and_splits(const Batch& batch, Draws& draws) {
  static constexpr std::array<std::int64_t, 4> sizes = {64, 16, 1, 192};
  const Paging paging = {.size = sizes[static_cast<std::size_t>(batch.number % sizes.size())]};
  const int splits = attention::program::drawn_runs(draws);
  return {{.text = fmt::format("{}, splits={}", paging.text(), splits),
           .way = {.splits = splits, .keys = {.pages = paging}}}};
}

std::vector<Change> apart(const Batch& batch, Draws&) {
  if (batch.dims == batch.dims_v) return {};
  const std::uint64_t turn = batch.number % 3;
  const bool queries = turn != 1;
  const bool keys = turn != 0;
  return {{.text = queries && keys ? "ropes of queries and keys"
                   : queries       ? "ropes of queries"
                                   : "ropes of keys",
           .way = {.keys = {.apart = keys}, .queries_apart = queries}}};
}

std::vector<Change> split(const Batch& batch, Draws& draws) {
  return Asked::in_runs(batch.number % 4 == 0 ? 0 : attention::program::drawn_runs(draws));
}

// A sequence of several chunks and short ones, of a row each: a dense tensor has as many keys for all, which is memory.
std::vector<Change> in_rounds(const Batch& batch, Draws& draws) {
  constexpr std::int64_t chunk = 1024;
  constexpr std::ptrdiff_t most = 24;
  std::vector<RowsOf> pieces = all_whole(batch);
  std::erase_if(pieces, [](const RowsOf& piece) { return piece.rows() != 1; });
  const auto is_long = [&](const RowsOf& piece) { return batch.sequences[piece.sequence].keys > chunk; };
  const auto first = std::ranges::find_if(pieces, is_long);
  if (first == pieces.end() || pieces.size() < 2) return {};
  std::swap(*first, pieces.front());
  pieces.resize(static_cast<std::size_t>(std::min(std::ssize(pieces), most)));
  const auto rounds = static_cast<std::uint64_t>(2 + draws.below(std::ssize(pieces) - 1));
  return {{.text = fmt::format("dense, a workspace of one part in {}", rounds),
           .pieces = std::move(pieces),
           .way = {.splits = 0, .keys = {.rows_behind = draws.below(20)}, .dense_queries = true, .rounds = rounds}}};
}

std::vector<Change> by_heads(const Batch& batch, Draws& draws) {
  if (batch.heads == 1) return {};
  std::vector<std::int64_t> ends = {1 + draws.below(batch.heads - 1)};
  if (const std::int64_t second = 1 + draws.below(batch.heads - 1); second != ends.front()) ends.push_back(second);
  ends.push_back(batch.heads);
  std::ranges::sort(ends);
  return {
      {.text = fmt::format("calls of heads up to {}", fmt::join(ends, ", ")), .way = {.head_ends = std::move(ends)}}};
}

// With runs in every second round of turns.
std::vector<Change> repeated(const Batch& batch, Draws& draws) {
  constexpr std::uint64_t turns = 3;
  std::vector<Change> changes = Asked::by_schedule(batch, draws);
  changes.front().way.splits = batch.number / turns % 2 == 0 ? 1 : 3;
  return changes;
}

// Mathematically the same where every row sees all keys; sums in another order. Fewer keys may come to the same bits by
// chance.
std::vector<Change> reversed(const Batch& batch, Draws&) {
  constexpr std::int64_t least = 16;
  Change change = {.text = "keys in the opposite order", .way = {.keys = {.reversed = true}}};
  for (const RowsOf& piece : all_whole(batch))
    if (batch.sequences[piece.sequence].keys >= least && (!batch.causal || piece.rows() == 1))
      change.pieces.push_back(piece);
  if (change.pieces.empty()) return {};
  return {std::move(change)};
}

// Scales of a token's own are doubled or all are: keys and values count for twice as much.
std::vector<Change> doubled_scales(const Batch&, Draws&) {
  return {{.text = "twice the scales", .way = {.doubled_scales = true}}};
}

}  // namespace

const std::vector<Dimension>& all_dimensions() {
  static const std::vector<Dimension> dimensions = [] {
    const Asked::Row rows[] = {
        {"alone", "each sequence in a call of its own", Asked::alone},
        {"permuted", "the sequences in another order", Asked::permuted},
        {"padded", "dense, up to 149 rows of NaN behind the longest", padded},
        {"hidden", "NaN or infinity between the sequences", Asked::hidden},
        {"pages", "keys in shuffled pages of 1 to 128, by a table or a list", in_pages},
        {"paged-runs", "the same, cut into 2 to 16 runs", pages_and_splits},
        {"apart", "the rope in a tensor of its own: of queries, of keys, of both", apart},
        {"splits", "keys cut into 2 to 16 runs, or as auto does", split},
        {"merged", "2 to 16 runs, merged in the launch that leaves their parts", Asked::merged},
        {"rounds", "a workspace with room for some sequences", in_rounds, DimensionKind::usual, 4},
        {"heads", "heads in two or three calls", by_heads},
        {"rechunked", "queries in pieces, each with the keys up to its end", Asked::rechunked},
        {"decode", "each query by itself", Asked::token_by_token(all_rows)},
        {"repeated", "once more, under each wave schedule of the simulated GPU", repeated},
    };
    const Asked::Row control[] = {{"reversed",
                                   "control: keys in the opposite order, the same sums otherwise; bits differ",
                                   reversed, DimensionKind::control}};
    const Asked::Row control_of_bytes[] = {
        {"other", "control: 8 bits with twice the scales; bits differ", doubled_scales, DimensionKind::control}};
    // The dimensions over 16 bits have the many pairs.
    const Asked::Group of_bytes = {
        .names = "latent-cache-", .says = "8 bits against 16: ", .base = Base::cached, .one_in = 8};
    std::vector<Dimension> all;
    Asked::add(all, rows, {.names = "latent-"});
    Asked::add(all, control, {.names = "latent-"});
    Asked::add(all, rows, of_bytes);
    Asked::add(all, control_of_bytes, of_bytes);
    return all;
  }();
  return dimensions;
}

void over_bytes(Base base, const Batch& batch, std::vector<Change>& changes) {
  if (base != Base::cached) return;
  // Rows of their own scales have the rope in them; behind one row of 584 bytes no address is a multiple of 16.
  const bool has_rope = batch.byte_rows != ByteRows::one_scale;
  std::erase_if(changes, [&](const Change& change) {
    const KeyPlaces& keys = change.way.keys;
    return (has_rope && (change.way.queries_apart || (keys.apart && !keys.pages))) ||
           (batch.byte_rows == ByteRows::raised && keys.pages && keys.pages->size % 2 == 1);
  });
  for (Change& change : changes) {
    if (has_rope) change.way.keys.apart = false;
    change.way.eight_bits = true;
    change.text += " (" + cache_text(batch) + ")";
  }
}

}  // namespace wavejit::attention_latent::program
