// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lists of key blocks in other forms, other company and other order.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "templates/attention/call/hints.h"
#include "templates/attention_forward/program/invariance_changes.h"
#include "wavejit/simgpu.h"

namespace wavejit::attention_forward::program {
namespace {

Way listed(const ListForm& form = {}) { return {.lists = form}; }

std::vector<Change> in_form(const Batch& batch, const char* text, const ListForm& form) {
  return {{.text = text, .pieces = all_whole(batch), .way = listed(form)}};
}

std::vector<Change> blocks_alone(const Batch& batch, Draws&) {
  std::vector<Change> changes;
  for (const RowsOf& piece : all_whole(batch)) changes.push_back({.text = "alone", .pieces = {piece}, .way = listed()});
  return changes;
}

std::vector<Change> blocks_permuted(const Batch& batch, Draws& draws) {
  return {{.text = "permuted", .pieces = attention::program::shuffled(all_whole(batch), draws), .way = listed()}};
}

// In dense keys, and in pages.
std::vector<Change> placed(const Batch& batch, Draws& draws) {
  static constexpr std::array<Paging, 3> pages = {
      {{.size = 64}, {.size = 16, .heads_first = true}, {.size = 128, .in_turn = true, .list = true}}};
  const std::size_t turn = static_cast<std::size_t>(batch.number) % (pages.size() + 1);
  Change change = {.text = "", .pieces = all_whole(batch), .way = listed()};
  if (turn < pages.size()) {
    change.way.keys.pages = pages[turn];
    change.text = pages[turn].text();
  } else {
    change.way.keys.rows_behind = draws.below(200);
    change.text = fmt::format("dense, {} rows of NaN behind the longest", *change.way.keys.rows_behind);
  }
  return {std::move(change)};
}

std::vector<Change> disturbed(const Batch& batch, Draws&) {
  return batch.number % 2 == 0
             ? in_form(batch, "out of order, twice, outside the keys, room behind counts", {.noise = true})
             : in_form(batch, "out of order, twice, outside the keys, -1 behind the last",
                       {.counted = false, .noise = true});
}

std::vector<Change> ragged(const Batch& batch, Draws&) {
  return batch.number % 2 == 0 ? in_form(batch, "starts", {.ragged = true})
                               : in_form(batch, "-1 behind the last", {.counted = false});
}

std::vector<Change> whole_blocks(const Batch& batch, Draws&) {
  return batch.number % 2 == 0 ? in_form(batch, "lists of whole blocks", {.whole = true})
                               : in_form(batch, "lists of whole blocks, starts", {.ragged = true, .whole = true});
}

std::vector<Change> blocks_by_head(const Batch& batch, Draws&) {
  if (batch.list_heads == batch.query_heads) return {};
  return in_form(batch, "a list for each query head", {.each_head = true});
}

std::vector<Change> finer_blocks(const Batch& batch, Draws&) {
  if (batch.list_rows == 64 && batch.list_keys == 64) return {};
  return in_form(batch, "blocks of 64 by 64", {.finer = true});
}

std::vector<Change> blocks_by_pipeline(const Batch& batch, Draws&) {
  static constexpr std::array<const char*, 4> names = {"generic tile_queries=64", "dualwave", "interleaved",
                                                       "generic tile_queries=128"};
  const char* name = names[static_cast<std::size_t>(batch.number % names.size())];
  return {{.text = name, .pieces = all_whole(batch), .way = listed(), .pipeline = name}};
}

std::vector<Change> hinted_lists(const Batch& batch, Draws&) {
  std::vector<Change> changes;
  for (const attention::Hint& hint : attention::hints)
    changes.push_back(
        {.text = std::string(hint.word), .pieces = all_whole(batch), .way = {.hints = hint.bit, .lists = ListForm{}}});
  return changes;
}

std::vector<Change> by_schedule(const Batch& batch, Draws&) {
  const auto& [text, schedule] = attention::program::schedule_in_turn(batch.number);
  return {{.text = text, .pieces = all_whole(batch), .way = listed(), .schedule = schedule}};
}

std::vector<Change> every_block(const Batch& batch, Draws&) {
  return batch.number % 2 == 0 ? in_form(batch, "lists of all blocks", {.all = true})
                               : in_form(batch, "lists of all blocks, whole ones", {.whole = true, .all = true});
}

std::vector<Change> another_block(const Batch& batch, Draws&) {
  return in_form(batch, "another block in the first list of each head", {.other = true});
}

}  // namespace

std::vector<Dimension> list_dimensions() {
  // A sequence of several blocks of rows takes as long as many of a few rows.
  constexpr std::uint64_t one_in = 8;
  const auto told = [](const char* name, const char* changes) {
    return tools::InvarianceDimension{.name = name, .changes = changes, .one_in = one_in};
  };
  return {
      {.told = told("blocks-alone", "lists of key blocks: each sequence in a call of its own"),
       .changes = blocks_alone,
       .base = Base::listed},
      {.told = told("blocks-permuted", "lists of key blocks: the sequences in another order"),
       .changes = blocks_permuted,
       .base = Base::listed},
      {.told = told("blocks-keys", "lists of key blocks: keys dense beside NaN, and in pages"),
       .changes = placed,
       .base = Base::listed},
      {.told = told("blocks-noise", "lists of key blocks: out of order, twice, absent blocks, room behind"),
       .changes = disturbed,
       .base = Base::listed},
      {.told = told("blocks-ragged", "lists of key blocks: starts, or -1, in place of counts"),
       .changes = ragged,
       .base = Base::listed},
      {.told = told("blocks-whole", "lists of key blocks: whole blocks in lists of their own"),
       .changes = whole_blocks,
       .base = Base::listed},
      {.told = told("blocks-heads", "lists of key blocks: a list for each query head in place of a shared one"),
       .changes = blocks_by_head,
       .base = Base::listed},
      {.told = told("blocks-finer", "lists of key blocks: the same keys in blocks of 64 by 64"),
       .changes = finer_blocks,
       .base = Base::listed},
      {.told = told("blocks-hints", "lists of key blocks: each hint of the call"),
       .changes = hinted_lists,
       .base = Base::listed},
      {.told = told("blocks-pipeline", "lists of key blocks: each pipeline of the target"),
       .changes = blocks_by_pipeline,
       .base = Base::listed},
      {.told = told("blocks-schedule", "lists of key blocks: waves in other orders"),
       .changes = by_schedule,
       .base = Base::listed},
      {.told = told("blocks-full", "lists of all blocks, against a call without lists"),
       .changes = every_block,
       .base = Base::unlisted},
      {.told = {.name = "blocks-other", .changes = "control: another block in a list; bits differ", .control = true},
       .changes = another_block,
       .base = Base::listed},
  };
}

}  // namespace wavejit::attention_forward::program
