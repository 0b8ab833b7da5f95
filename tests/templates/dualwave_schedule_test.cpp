// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The model of the dual-wave schedule, asked about more than it is when it is compiled: what stands where, and whether
// it sees a table that is wrong.
#include "templates/attention_forward/emit/dualwave_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "templates/attention_forward/emit/dualwave_model.h"

namespace wavejit::attention_forward::dualwave {
namespace {

constexpr std::array orders = {Order::usual, Order::fetch_last, Order::modify_first, Order::modify_first_fetch_last};

// What a row has not, nobody can write into it.
template <typename Row, typename Act>
concept Holds = requires(Row row, Act act) { row.acts.add(act); };
static_assert(Holds<Memory, Fetch> && Holds<Memory, Read> && Holds<Memory, Modify> && Holds<Memory, Wait>);
static_assert(!Holds<Compute, Fetch> && !Holds<Compute, Read> && !Holds<Compute, Wait>);
static_assert(Holds<Compute, Overlap> && Holds<Compute, LoadModifiers> && Holds<Compute, Rescale>);
static_assert(!Holds<Memory, Overlap> && !Holds<Memory, LoadModifiers> && !Holds<Memory, Rescale>);

std::string text_of(const schedule::Fault& fault) {
  if (!fault) return "";
  return std::string(fault.row) + " of tile " + std::to_string(fault.tile) + ": " + std::string(fault.what);
}

TEST(DualWaveSchedule, ReadsWholeTilesAndOverwritesNoneThatIsRead) {
  for (const Order order : orders) EXPECT_EQ(text_of(fault_of(schedule_in(order), 12)), "") << static_cast<int>(order);
}

// Chunks that begin at a walk's first tile or behind some that are left out.
TEST(DualWaveSchedule, IsRightOverChunks) {
  for (const Order order : orders)
    for (const int tiles : {2, 3})
      for (int left_out = 0; left_out < tiles; ++left_out)
        EXPECT_EQ(text_of(fault_of(schedule_in(order), 7, {.tiles = tiles, .left_out = left_out})), "")
            << static_cast<int>(order) << " over " << tiles << " but for " << left_out;
}

TEST(DualWaveSchedule, KernelsHaveTheOrderOfTheirLadderAndTheirRegisters) {
  ForwardKernel spec{{.head_dim_qk = 128, .head_dim_v = 128}, {.pipeline = Pipeline::dualwave, .target = "gfx950"}};
  EXPECT_EQ(order_of(spec), Order::usual);
  spec.modifiers.set(attention_forward::Modifier::bias, true);
  EXPECT_EQ(order_of(spec), Order::modify_first);
  spec.ladder = "fetch_last";
  EXPECT_EQ(order_of(spec), Order::modify_first_fetch_last);
  spec.modifiers.set(attention_forward::Modifier::bias, false);
  EXPECT_EQ(order_of(spec), Order::fetch_last);
  spec = {{.head_dim_qk = 64, .head_dim_v = 64, .modifiers = {attention_forward::Modifier::bias}},
          {.pipeline = Pipeline::dualwave, .target = "gfx950"}};
  EXPECT_EQ(order_of(spec), Order::usual);
}

// "values K0+ K1~ V0+ V1~ | 2": buffers of keys, then of values, each with its tile; + ready for all waves, * awaited
// by this one, ~ in flight; fetches in flight.
std::vector<std::string> states_of(Order order, int tiles) {
  Model model(tiles, true);
  EXPECT_EQ(text_of(model.run(schedule_in(order))), "");
  const auto text = [](const char* name, const BufferState& buffer) {
    constexpr std::array marks = {"", "~", "*", "+"};
    const std::string tile = buffer.tile == no_tile ? "-" : std::to_string(buffer.tile);
    return std::string(" ") + name + tile + marks[static_cast<std::size_t>(buffer.arrival)];
  };
  std::vector<std::string> states;
  for (const RowState& row : model.rows())
    states.push_back(std::string(row.row) + text("K", row.keys[0]) + text("K", row.keys[1]) + text("V", row.values[0]) +
                     text("V", row.values[1]) + " | " + std::to_string(row.fetches_in_flight));
  return states;
}

TEST(DualWaveSchedule, SaysWhatIsWhereAfterEachRow) {
  const std::vector<std::string> wanted = {
      "fill K0+ K1~ V0~ V- | 2",   "keys K0+ K1~ V0~ V- | 2",   "scores K0+ K1~ V0~ V- | 2",
      "values K2~ K1* V0* V- | 1", "output K2~ K1+ V0+ V- | 1",
  };
  for (const Order order : orders) {
    std::vector<std::string> states = states_of(order, 3);
    states.resize(wanted.size());
    EXPECT_EQ(states, wanted) << static_cast<int>(order);
  }
}

const char* name_of_act(const MemoryAct& act) {
  constexpr std::array names = {"Merge", "LookUp", "Fetch", "Read", "Modify", "Wait", "ReadWalk"};
  return names[act.index()];
}

// Faults of walks within one chunk, and over chunks of two tiles that begin at a chunk's first tile and at its last.
schedule::Fault fault_in_chunks(const Schedule& schedule) {
  for (const schedule::Chunks& chunks : {schedule::Chunks{}, {.tiles = 2}, {.tiles = 2, .left_out = 1}, {.tiles = 3}})
    if (const schedule::Fault fault = fault_of(schedule, 5, chunks)) return fault;
  return {};
}

// Swaps two neighbours of each memory row; names those pairs whose order is free.
std::set<std::string> free_pairs(Order order) {
  std::set<std::string> found;
  const auto try_rows = [&](auto rows_of, const std::string& where) {
    const Schedule& right = schedule_in(order);
    for (std::size_t row = 0; row < (right.*rows_of).size(); ++row) {
      const auto* memory = std::get_if<Memory>((right.*rows_of).begin() + row);
      if (memory == nullptr) continue;
      for (std::size_t at = 0; at + 1 < memory->acts.size(); ++at) {
        Schedule wrong = right;
        MemoryAct* pair = std::get<Memory>((wrong.*rows_of).begin()[row]).acts.begin() + at;
        std::swap(pair[0], pair[1]);
        if (!fault_in_chunks(wrong))
          found.insert(where + " " + std::string(memory->name) + ": " + name_of_act(pair[1]) + " " +
                       name_of_act(pair[0]));
      }
    }
  };
  try_rows(&Schedule::start, "start");
  try_rows(&Schedule::prologue, "prologue");
  try_rows(&Schedule::steady, "steady");
  try_rows(&Schedule::drain, "drain");
  return found;
}

// Nothing may stand behind a wait, nothing before a merge that ends clusters. Of a walk nothing must be read ahead. In
// `fill` the keys of tile 0 must be first: its wait leaves the other two.
TEST(DualWaveSchedule, TheModelSeesTheOrderWithinARow) {
  EXPECT_EQ(
      free_pairs(Order::usual),
      (std::set<std::string>{"start fill: ReadWalk LookUp", "prologue keys: ReadWalk Read",
                             "steady keys: ReadWalk Fetch", "start fill: LookUp Fetch", "prologue values: LookUp Fetch",
                             "steady values: LookUp Fetch", "start fill: Fetch Fetch", "prologue values: Fetch Modify",
                             "steady keys: Fetch Read", "steady values: Fetch Read", "steady values: Read Modify"}));
}

// A table without one of its merges, or without putting a maximum aside, is wrong wherever it is left out.
TEST(DualWaveSchedule, AMissingBorderOfAChunkIsSeen) {
  for (const Order order : orders) {
    int left_out = 0;
    const auto try_rows = [&](auto rows_of) {
      const Schedule& right = schedule_in(order);
      for (std::size_t row = 0; row < (right.*rows_of).size(); ++row) {
        const auto leave_out = [&](auto acts_of, std::size_t at) {
          Schedule wrong = right;
          auto& acts = acts_of((wrong.*rows_of).begin()[row]);
          std::remove_reference_t<decltype(acts)> rest;
          for (std::size_t each = 0; each < acts.size(); ++each)
            if (each != at) rest.add(acts.begin()[each]);
          acts = rest;
          EXPECT_TRUE(fault_in_chunks(wrong)) << name_of((right.*rows_of).begin()[row]) << " act " << at;
          ++left_out;
        };
        const Cluster& cluster = (right.*rows_of).begin()[row];
        if (const auto* memory = std::get_if<Memory>(&cluster)) {
          for (std::size_t at = 0; at < memory->acts.size(); ++at)
            if (std::holds_alternative<Merge>(memory->acts.begin()[at]))
              leave_out([](Cluster& of) -> auto& { return std::get<Memory>(of).acts; }, at);
        } else {
          const auto& compute = std::get<Compute>(cluster);
          for (std::size_t at = 0; at < compute.acts.size(); ++at)
            if (std::holds_alternative<EndPart>(compute.acts.begin()[at]))
              leave_out([](Cluster& of) -> auto& { return std::get<Compute>(of).acts; }, at);
          for (std::size_t at = 0; at < compute.behind.size(); ++at)
            if (std::holds_alternative<EndPart>(compute.behind.begin()[at]))
              leave_out([](Cluster& of) -> auto& { return std::get<Compute>(of).behind; }, at);
        }
      }
    };
    try_rows(&Schedule::prologue);
    try_rows(&Schedule::steady);
    try_rows(&Schedule::drain);
    EXPECT_EQ(left_out, 2 + 2) << "a merge in each of two tables, EndPart in two";
  }
}

// Every tile is looked up before it is fetched, and not where it is fetched.
TEST(DualWaveSchedule, AMissingOrLateLookUpIsSeen) {
  for (const Order order : orders) {
    const auto is_look_up = [](const MemoryAct& act) { return std::holds_alternative<LookUp>(act); };
    const auto without = [&](auto rows_of, std::size_t row) {
      Schedule wrong = schedule_in(order);
      auto& acts = std::get<Memory>((wrong.*rows_of).begin()[row]).acts;
      std::remove_reference_t<decltype(acts)> rest;
      for (const MemoryAct& act : acts)
        if (!is_look_up(act)) rest.add(act);
      acts = rest;
      return text_of(fault_of(wrong, 5));
    };
    EXPECT_EQ(without(&Schedule::start, 0), "fill of tile 0: fetches a tile that was not looked up");
    EXPECT_EQ(without(&Schedule::prologue, 2), "values of tile 0: looks tiles up out of order");
    EXPECT_EQ(without(&Schedule::steady, 2), "values of tile 1: fetches a tile that was not looked up");
    // One tile less ahead throughout.
    Schedule late = schedule_in(order);
    auto& start = std::get<Memory>(late.start.begin()[0]).acts;
    std::remove_reference_t<decltype(start)> two;
    for (const MemoryAct& act : start)
      if (!is_look_up(act) || std::get<LookUp>(act).ahead < 2) two.add(act);
    start = two;
    for (auto* rows : {late.prologue.begin() + 2, late.steady.begin() + 2})
      for (MemoryAct& act : std::get<Memory>(*rows).acts)
        if (is_look_up(act)) --std::get<LookUp>(act).ahead;
    EXPECT_EQ(text_of(fault_of(late, 5)), "values of tile -1: waits for a table's entry");
  }
}

// The model must see what it is there for: each wait and each distance of the table is needed.
TEST(DualWaveSchedule, ASofterWaitIsSeen) {
  int waits = 0;
  const auto soften = [&](auto rows_of) {
    const Schedule& right = schedule_in(Order::usual);
    for (std::size_t row = 0; row < (right.*rows_of).size(); ++row) {
      Schedule softer = right;
      auto* memory = std::get_if<Memory>((softer.*rows_of).begin() + row);
      if (memory == nullptr) continue;
      for (MemoryAct& act : memory->acts) {
        auto* wait = std::get_if<Wait>(&act);
        if (wait == nullptr || wait->fetches_left == Wait::all) continue;
        ++wait->fetches_left;
        EXPECT_TRUE(fault_of(softer, 7)) << memory->name;
        ++waits;
      }
    }
  };
  soften(&Schedule::start);
  soften(&Schedule::prologue);
  soften(&Schedule::steady);
  soften(&Schedule::drain);
  EXPECT_EQ(waits, 1 + 1 + 2 + 2);
}

TEST(DualWaveSchedule, AnEarlierFetchIsSeen) {
  // V(t + 1) two clusters earlier would meet the reads of V(t − 1).
  Schedule early = schedule_in(Order::usual);
  std::get<Memory>(early.steady.begin()[0]).acts = {Read{schedule::keys(1)}, Wait{2}};
  std::get<Memory>(early.steady.begin()[2]).acts = {Fetch{schedule::keys(3), true}, Fetch{schedule::values(2), true},
                                                    Read{schedule::values(0)}, Modify{1}, Wait{2}};
  EXPECT_TRUE(fault_of(early, 7));
}

TEST(DualWaveSchedule, AClusterWithoutItsWaitIsSeen) {
  Schedule hasty = schedule_in(Order::usual);
  std::get<Memory>(hasty.prologue.begin()[0]).acts = {Read{schedule::keys(1)}};
  EXPECT_EQ(text_of(fault_of(hasty, 1)), "keys of tile -1: does not wait for its LDS reads");
}

}  // namespace
}  // namespace wavejit::attention_forward::dualwave
