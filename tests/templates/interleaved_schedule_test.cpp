// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The model of the interleaved schedule, asked about more than it is when it is compiled: what stands where, and
// whether it sees a table that is wrong.
#include "templates/attention_forward/emit/interleaved_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "templates/attention_forward/emit/interleaved_model.h"

namespace wavejit::attention_forward::interleaved {
namespace {

constexpr std::array orders = {Order::usual, Order::fetch_last, Order::modify_before};

std::string text_of(const schedule::Fault& fault) {
  if (!fault) return "";
  return std::string(fault.row) + " of tile " + std::to_string(fault.tile) + ": " + std::string(fault.what);
}

constexpr std::string_view name_of(const Act& act) {
  constexpr std::array<std::string_view, 9> names = {"LookUp",        "Fetch",   "Read",    "Modify", "Overlap",
                                                     "LoadModifiers", "Rescale", "EndPart", "Merge"};
  return names[act.index()];
}

TEST(InterleavedSchedule, ReadsWholeTilesAndOverwritesNoneThatIsRead) {
  for (const Order order : orders) EXPECT_EQ(text_of(fault_of(schedule_in(order), 12)), "") << static_cast<int>(order);
}

// Chunks that begin at a walk's first tile or behind some that are left out.
TEST(InterleavedSchedule, IsRightOverChunks) {
  for (const Order order : orders)
    for (const LookUps look_ups : {LookUps::before_keys, LookUps::behind_products})
      for (const int tiles : {2, 3})
        for (int left_out = 0; left_out < tiles; ++left_out)
          EXPECT_EQ(text_of(fault_of(schedule_in(order, look_ups), 7, {.tiles = tiles, .left_out = left_out})), "")
              << static_cast<int>(order) << " over " << tiles << " but for " << left_out;
}

TEST(InterleavedSchedule, KernelsHaveTheOrderOfTheirLadderUnlessRegistersAreShort) {
  const ForwardKernel plain{{}, {.pipeline = Pipeline::interleaved, .target = "gfx942"}};
  EXPECT_EQ(order_of(plain), Order::usual);
  ForwardKernel spec = plain;
  spec.ladder = "fetch_last";
  EXPECT_EQ(order_of(spec), Order::fetch_last);
  spec.modifiers.set(attention_forward::Modifier::bias, true);
  spec.head_dim_qk = spec.head_dim_v = 64;
  EXPECT_EQ(order_of(spec), Order::fetch_last);
  spec.head_dim_qk = spec.head_dim_v = 128;
  EXPECT_EQ(order_of(spec), Order::modify_before);
}

// "K1 V0 | 2 -": LDS holds keys of tile 1 and values of tile 0; keys of tile 2 are in registers or on the way there.
std::vector<std::string> states_of(Order order, int tiles) {
  Model model(tiles);
  EXPECT_EQ(text_of(model.run(schedule_in(order))), "");
  const auto text = [](int tile) { return tile == no_tile ? "-" : std::to_string(tile); };
  std::vector<std::string> states;
  for (const RowState& row : model.rows()) {
    states.push_back(std::string(row.row) + " K" + text(row.keys.lds) + " V" + text(row.values.lds) + " | " +
                     text(row.keys.in_flight) + " " + text(row.values.in_flight));
  }
  return states;
}

TEST(InterleavedSchedule, SaysWhatIsWhereAfterEachRow) {
  const std::vector<std::string> usual = {
      "fill K0 V- | - -",                           //
      "scores K0 V- | 1 -",  "output K1 V- | - 0",  //
      "scores K1 V0 | 2 -",  "output K2 V0 | - 1",  //
      "weights K2 V1 | - -", "output K2 V1 | - -",
  };
  EXPECT_EQ(states_of(Order::usual, 2), usual);
  EXPECT_EQ(states_of(Order::fetch_last, 2), usual) << "a step's end is the same";
  // No tile of K waits in registers through the scores of the tile before.
  EXPECT_EQ(
      states_of(Order::modify_before, 2),
      (std::vector<std::string>{"fill K0 V- | - -", "scores K0 V- | - -", "output K1 V- | - 0", "scores K1 V0 | - -",
                                "output K2 V0 | - 1", "weights K2 V1 | - -", "output K2 V1 | - -"}));
}

// Faults of walks within one chunk, and over chunks of two tiles that begin at a chunk's first tile and at its last.
schedule::Fault fault_in_chunks(const Schedule& schedule) {
  for (const schedule::Chunks& chunks : {schedule::Chunks{}, {.tiles = 2}, {.tiles = 2, .left_out = 1}, {.tiles = 3}})
    if (const schedule::Fault fault = fault_of(schedule, 5, chunks)) return fault;
  return {};
}

// Swaps two neighbours of each row of prologue, steady and drain; names those pairs whose order is free.
std::set<std::string> free_pairs(Order order) {
  std::set<std::string> found;
  const auto try_row = [&](auto rows_of, std::size_t row, const std::string& where) {
    const Schedule& right = schedule_in(order);
    const std::size_t acts = (right.*rows_of).begin()[row].acts.size();
    for (std::size_t at = 0; at + 1 < acts; ++at) {
      Schedule wrong = right;
      Act* pair = (wrong.*rows_of).begin()[row].acts.begin() + at;
      std::swap(pair[0], pair[1]);
      if (!fault_in_chunks(wrong))
        found.insert(where + ": " + std::string(name_of(pair[1])) + " " + std::string(name_of(pair[0])));
    }
  };
  for (const std::size_t row : {0, 1}) {
    const std::string name = row == 0 ? "0" : "1";
    try_row(&Schedule::prologue, row, "prologue " + name);
    try_row(&Schedule::steady, row, "steady " + name);
    try_row(&Schedule::drain, row, "drain " + name);
  }
  return found;
}

// Everything else in a row has one place only. A pair that is free is a choice of registers and time, not of results.
TEST(InterleavedSchedule, TheModelSeesTheOrderWithinARow) {
  EXPECT_EQ(free_pairs(Order::usual),
            (std::set<std::string>{"prologue 0: LookUp Fetch", "steady 0: Merge LookUp", "steady 0: LookUp Fetch",
                                   "prologue 0: Fetch Read", "prologue 0: Overlap LoadModifiers",
                                   "prologue 1: Fetch Modify", "steady 0: Merge Merge", "steady 0: Fetch Read",
                                   "steady 0: Overlap LoadModifiers", "steady 1: Fetch Read", "steady 1: Read Modify",
                                   "steady 1: Rescale EndPart", "drain 0: Merge Merge", "drain 0: Merge Overlap"}));
}

// A table without one of its merges, or without putting a maximum aside, is wrong wherever it is left out.
TEST(InterleavedSchedule, AMissingBorderOfAChunkIsSeen) {
  for (const Order order : orders) {
    int left_out = 0;
    const auto try_rows = [&](auto rows_of) {
      const Schedule& right = schedule_in(order);
      for (std::size_t row = 0; row < (right.*rows_of).size(); ++row) {
        const auto& acts = (right.*rows_of).begin()[row].acts;
        for (std::size_t at = 0; at < acts.size(); ++at) {
          const Act& act = acts.begin()[at];
          if (!std::holds_alternative<Merge>(act) && !std::holds_alternative<EndPart>(act)) continue;
          Schedule wrong = right;
          Step& step = (wrong.*rows_of).begin()[row];
          step.acts = {};
          for (std::size_t each = 0; each < acts.size(); ++each)
            if (each != at) step.acts.add(acts.begin()[each]);
          EXPECT_TRUE(fault_in_chunks(wrong)) << row << " act " << at;
          ++left_out;
        }
      }
    };
    try_rows(&Schedule::prologue);
    try_rows(&Schedule::steady);
    try_rows(&Schedule::drain);
    EXPECT_EQ(left_out, 2 + 2 + 2) << "two merges in each of two tables, EndPart in two";
  }
}

// Every tile is looked up before it is fetched, wherever that is.
TEST(InterleavedSchedule, AMissingLookUpIsSeen) {
  for (const Order order : orders)
    for (const LookUps look_ups : {LookUps::before_keys, LookUps::behind_products}) {
      EXPECT_EQ(text_of(fault_of(schedule_in(order, look_ups), 12)), "") << static_cast<int>(order);
      int left_out = 0;
      const auto try_rows = [&](auto rows_of) {
        const Schedule& right = schedule_in(order, look_ups);
        for (std::size_t row = 0; row < (right.*rows_of).size(); ++row) {
          const auto& acts = (right.*rows_of).begin()[row].acts;
          for (std::size_t at = 0; at < acts.size(); ++at) {
            if (!std::holds_alternative<LookUp>(acts.begin()[at])) continue;
            Schedule wrong = right;
            Step& step = (wrong.*rows_of).begin()[row];
            step.acts = {};
            for (std::size_t each = 0; each < acts.size(); ++each)
              if (each != at) step.acts.add(acts.begin()[each]);
            EXPECT_TRUE(fault_of(wrong, 5)) << row << " act " << at;
            ++left_out;
          }
        }
      };
      try_rows(&Schedule::start);
      try_rows(&Schedule::prologue);
      try_rows(&Schedule::steady);
      EXPECT_EQ(left_out, 2 + 1 + 1);
    }
}

// The model must see what it is there for.
TEST(InterleavedSchedule, AnEarlierWriteOrFetchIsSeen) {
  const auto changed = [](auto change) {
    Schedule schedule = schedule_in(Order::usual);
    const auto change_rows = [&](auto& rows) {
      for (Step& step : rows)
        for (Act& act : step.acts) change(act);
    };
    change_rows(schedule.prologue);
    change_rows(schedule.steady);
    change_rows(schedule.drain);
    return text_of(fault_of(schedule, 5));
  };
  // K(t + 2) while K(t + 1) is read.
  EXPECT_EQ(changed([](Act& act) {
              if (auto* overlap = std::get_if<Overlap>(&act); overlap && overlap->product == Product::scores)
                overlap->write = schedule::keys(2);
            }),
            "scores of tile -1: writes what other waves still read");
  EXPECT_EQ(changed([](Act& act) {
              if (auto* fetch = std::get_if<Fetch>(&act)) fetch->may_be_past_the_end = false;
            }),
            "scores of tile -1: fetches a tile past the end");
  EXPECT_EQ(changed([](Act& act) {
              if (auto* fetch = std::get_if<Fetch>(&act); fetch && fetch->tile.stream == Stream::values)
                fetch->tile.ahead += 1;
            }),
            "output of tile -1: fetches a tile past the end");
  EXPECT_EQ(changed([](Act& act) {
              if (auto* read = std::get_if<Read>(&act)) read->tile.ahead += 1;
            }),
            "scores of tile -1: reads another tile than stands in LDS");
}

}  // namespace
}  // namespace wavejit::attention_forward::interleaved
