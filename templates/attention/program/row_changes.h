// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What `invariance` changes about calls over rows of sequences, of any attention: dimensions as rows of a table, and the
// changes that families share.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "templates/attention/program/invariance_rows.h"
#include "templates/attention/program/placed_keys.h"

namespace wavejit::attention::program {

enum class DimensionKind : std::uint8_t { usual, of_some_targets, control };

// `Way`: how a call holds its pieces; it has splits, flags and keys. `Base`: what changed runs are held against.
template <typename Batch, typename Way, typename Base>
struct RowChanges {
  using Change = ChangeOfRows<Way>;
  // None: the batch has nothing to change.
  using Changes = std::function<std::vector<Change>(const Batch& batch, tools::Draws& draws)>;

  struct Dimension {
    tools::InvarianceDimension told;
    Changes changes;
    Base base = {};
  };
  struct Row {
    const char* name;
    const char* says;
    Changes changes;
    DimensionKind kind = DimensionKind::usual;
    std::uint64_t one_in = 1;
  };
  // What rows have in common: what stands in front of names and of what is said, what runs are held against, and how
  // many pairs are run, one of which takes a while.
  struct Group {
    const char* names = "";
    const char* says = "";
    Base base = {};
    std::uint64_t one_in = 1;
  };
  static void add(std::vector<Dimension>& to, std::span<const Row> rows, const Group& group) {
    for (const Row& row : rows) {
      const bool control = row.kind == DimensionKind::control;
      to.push_back({.told = {.name = std::string(group.names) + row.name,
                             .changes = (control ? "" : group.says) + std::string(row.says),
                             .control = control,
                             .one_in = control ? 1 : group.one_in * row.one_in,
                             .of_some_targets = row.kind == DimensionKind::of_some_targets},
                    .changes = row.changes,
                    .base = group.base});
    }
  }

  static std::vector<Change> alone(const Batch& batch, tools::Draws& /*draws*/) {
    std::vector<Change> changes;
    for (const RowsOf& piece : all_whole(batch)) changes.push_back({.text = "alone", .pieces = {piece}});
    return changes;
  }
  static std::vector<Change> permuted(const Batch& batch, tools::Draws& draws) {
    return {{.text = "permuted", .pieces = shuffled(all_whole(batch), draws)}};
  }
  static std::vector<Change> rechunked(const Batch& batch, tools::Draws& draws) {
    return {{.text = "in pieces", .pieces = in_pieces(all_whole(batch), draws)}};
  }
  // A row at a time, where sequences have at most so many.
  static Changes token_by_token(std::int64_t most_rows) {
    return [most_rows](const Batch& batch, tools::Draws& /*draws*/) -> std::vector<Change> {
      std::vector<RowsOf> pieces = row_by_row(all_whole(batch), most_rows);
      if (pieces.empty()) return {};
      return {{.text = "a token at a time", .pieces = std::move(pieces)}};
    };
  }
  static std::vector<Change> in_runs(int splits) { return {{.text = text_of_runs(splits), .way = {.splits = splits}}}; }
  static void put_in_pages(Change& change, std::int64_t size) {
    change.way.keys.pages = {.size = size};
    change.text += ", " + change.way.keys.pages->text();
  }
  // By the last workgroup to arrive, whoever that is: under an order of waves by turns, and in pages every second time.
  static std::vector<Change> merged(const Batch& batch, tools::Draws& draws) {
    const int splits = drawn_runs(draws);
    Change change = {.text = fmt::format("splits={}, one launch", splits),
                     .way = {.splits = splits, .flags = WAVEJIT_ONE_LAUNCH},
                     .schedule = schedule_in_turn(batch.number).schedule};
    if (batch.number % 2 == 1) put_in_pages(change, 64);
    return {std::move(change)};
  }
  // What no row may see, all around: packed neighbours, rows beyond lengths, and keys in front of a window.
  static std::vector<Change> hidden(const Batch& batch, tools::Draws& draws) {
    const Garbage garbage = garbage_in_turn(batch.number);
    const std::int64_t rows = 1 + draws.below(70);
    Change change = {.text = fmt::format("{} rows of {} between sequences", rows, to_text(garbage)),
                     .way = {.keys = {.rows_between = rows, .garbage = garbage}}};
    if constexpr (requires { batch.window_left; })
      if (batch.window_left) change.text += ", and the keys that their windows hide";
    return {std::move(change)};
  }
  // One order of waves a batch, by turns.
  static std::vector<Change> by_schedule(const Batch& batch, tools::Draws& /*draws*/) {
    const auto& [text, schedule] = schedule_in_turn(batch.number);
    return {{.text = text, .schedule = schedule}};
  }
};

}  // namespace wavejit::attention::program
