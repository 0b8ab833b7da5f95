// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lists of key blocks in other forms, other company and other order.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "templates/attention_forward/program/invariance_changes.h"

namespace wavejit::attention_forward::program {
namespace {

Way listed(const ListForm& form = {}) { return {.lists = form}; }

struct NamedForm {
  const char* text;
  ListForm form;
};
// The whole batch in one of the forms, by turns.
Changes in_forms(std::vector<NamedForm> forms) {
  return [forms = std::move(forms)](const Batch& batch, Draws&) -> std::vector<Change> {
    const auto& [text, form] = forms[static_cast<std::size_t>(batch.number % forms.size())];
    return {{.text = text, .way = listed(form)}};
  };
}
// The same, of batches for which it is another call.
Changes where(bool (*differs)(const Batch& batch), const Changes& changes) {
  return [differs, changes](const Batch& batch, Draws& draws) {
    return differs(batch) ? changes(batch, draws) : std::vector<Change>();
  };
}

// What plain calls are asked for, with lists.
Changes with_lists(Changes plain) {
  return [plain = std::move(plain)](const Batch& batch, Draws& draws) {
    std::vector<Change> changes = plain(batch, draws);
    for (Change& change : changes) change.way.lists.emplace();
    return changes;
  };
}

// In dense keys, and in pages.
std::vector<Change> placed(const Batch& batch, Draws& draws) {
  static constexpr std::array<Paging, 3> pages = {
      {{.size = 64}, {.size = 16, .heads_first = true}, {.size = 128, .in_turn = true, .list = true}}};
  const std::size_t turn = static_cast<std::size_t>(batch.number) % (pages.size() + 1);
  Change change = {.way = listed()};
  if (turn < pages.size()) {
    change.way.keys.pages = pages[turn];
    change.text = pages[turn].text();
  } else {
    change.way.keys.rows_behind = draws.below(200);
    change.text = fmt::format("dense, {} rows of NaN behind the longest", *change.way.keys.rows_behind);
  }
  return {std::move(change)};
}

bool has_fewer_heads(const Batch& batch) { return batch.list_heads != batch.query_heads; }
bool has_coarser_blocks(const Batch& batch) { return batch.list_rows != 64 || batch.list_keys != 64; }

}  // namespace

std::vector<Dimension> list_dimensions() {
  // A sequence of several blocks of rows takes as long as many of a few rows.
  constexpr std::uint64_t one_in = 8;
  const Asked::Row rows[] = {
      {"alone", "each sequence in a call of its own", with_lists(Asked::alone)},
      {"permuted", "the sequences in another order", with_lists(Asked::permuted)},
      {"keys", "keys dense beside NaN, and in pages", placed},
      {"noise", "out of order, twice, absent blocks, room behind",
       in_forms({{"out of order, twice, outside the keys, room behind counts", {.noise = true}},
                 {"out of order, twice, outside the keys, -1 behind the last", {.counted = false, .noise = true}}})},
      {"ragged", "starts, or -1, in place of counts",
       in_forms({{"starts", {.ragged = true}}, {"-1 behind the last", {.counted = false}}})},
      {"whole", "whole blocks in lists of their own",
       in_forms({{"lists of whole blocks", {.whole = true}},
                 {"lists of whole blocks, starts", {.ragged = true, .whole = true}}})},
      {"heads", "a list for each query head in place of a shared one",
       where(has_fewer_heads, in_forms({{"a list for each query head", {.each_head = true}}}))},
      {"finer", "the same keys in blocks of 64 by 64",
       where(has_coarser_blocks, in_forms({{"blocks of 64 by 64", {.finer = true}}}))},
      {"hints", "each hint of the call", with_lists(hinted(true))},
      {"pipeline", "each pipeline of the target",
       with_lists(on_pipelines({"generic tile_queries=64", "dualwave", "interleaved", "generic tile_queries=128"}))},
      {"schedule", "waves in other orders", with_lists(Asked::by_schedule)},
  };
  const Asked::Row against_none[] = {{"full", "lists of all blocks, against a call without lists",
                                      in_forms({{"lists of all blocks", {.all = true}},
                                                {"lists of all blocks, whole ones", {.whole = true, .all = true}}})}};
  const Asked::Row control[] = {{"other", "control: another block in a list; bits differ",
                                 in_forms({{"another block in the first list of each head", {.other = true}}}),
                                 DimensionKind::control}};
  std::vector<Dimension> dimensions;
  const Asked::Group group = {
      .names = "blocks-", .says = "lists of key blocks: ", .base = Base::listed, .one_in = one_in};
  Asked::add(dimensions, rows, group);
  Asked::add(dimensions, against_none, {.names = "blocks-", .base = Base::unlisted, .one_in = one_in});
  Asked::add(dimensions, control, group);
  return dimensions;
}

}  // namespace wavejit::attention_forward::program
