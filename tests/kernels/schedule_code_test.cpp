// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The machine code of the pipelines against the tables that it was emitted from: every act of every row, in order, and
// nothing besides. A wait that no table has would mean that a table waits too late for its own wave, and then for
// others, too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "codegen/codegen_api.h"
#include "kernels/facts.h"
#include "support/part.h"
#include "targets/targets.h"
#include "templates/attention_forward/emit/dualwave_schedule.h"
#include "templates/attention_forward/emit/interleaved_schedule.h"
#include "templates/attention_forward/kernel/ladders.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::tests {
namespace {

namespace dualwave = attention_forward::dualwave;
namespace interleaved = attention_forward::interleaved;
namespace schedule = attention_forward::schedule;
using attention_forward::ForwardKernel;
using attention_forward::Modifier;
using attention_forward::Pipeline;
using Events = std::vector<std::string>;

std::string machine_code(const ForwardKernel& spec) {
  const struct wavejit_codegen_table* table = wavejit_codegen_table(WAVEJIT_CODEGEN_ABI);
  wavejit_codegen_options options{};
  options.size = sizeof options;
  std::array<char, 256> error{};
  wavejit_codegen_service* service = table->create(&options, error.data(), error.size());
  if (service == nullptr) return error.data();
  wavejit_codegen_result kernel{};
  kernel.size = sizeof kernel;
  kernel.facts.size = sizeof kernel.facts;
  table->compile(service, to_text(spec).c_str(), &kernel);
  wavejit_codegen_result listing{};
  listing.size = sizeof listing;
  listing.facts.size = sizeof listing.facts;
  table->disassemble(service, kernel.code_object, kernel.code_object_bytes, &listing);
  std::string text(reinterpret_cast<const char*>(listing.code_object), listing.code_object_bytes);
  table->release(&kernel);
  table->release(&listing);
  table->destroy(service);
  return text;
}

// What an instruction shows of an act; empty: nothing.
std::string event_of(const std::string& line, Pipeline pipeline) {
  static const std::regex counted(R"(vmcnt\((\d+)\))");
  std::istringstream words(line);
  std::string address;
  std::string name;
  words >> address >> name;
  std::smatch match;
  if (name == "s_waitcnt" && std::regex_search(line, match, counted)) {
    // Tables wait for LDS, too. Interleaved ones leave waits for loads to the compiler.
    if (pipeline == Pipeline::interleaved) return "";
    return line.contains("lgkmcnt(0)") ? "wait " + match[1].str() : "automatic wait";
  }
  if (name.starts_with("buffer_load")) {
    if (line.ends_with(" lds")) return "fetch";
    if (name == "buffer_load_dword") return "look up";
    return name == "buffer_load_dwordx2" ? "load 8 bytes" : "load 16 bytes";
  }
  if (name.starts_with("scratch_load")) return "private load";
  if (name.starts_with("ds_read")) return "read";
  if (name.starts_with("ds_write")) return "write";
  if (name.starts_with("v_mfma")) return "multiply";
  if (name == "s_barrier") return "barrier";
  if (name == "s_setprio") return "priority";
  if (name.starts_with("s_cbranch_scc")) return "scalar branch";
  if (name.starts_with("s_cbranch_vcc")) return "vector branch";
  return "";
}

struct Line {
  std::uint64_t address = 0;
  std::string name;
  std::string text;
};
std::vector<Line> lines_of(const std::string& code) {
  std::vector<Line> all;
  std::istringstream lines(code);
  for (std::string text; std::getline(lines, text);) {
    Line line{.address = 0, .name = {}, .text = text};
    std::istringstream words(text);
    if (words >> std::hex >> line.address >> line.name) all.push_back(line);
  }
  return all;
}

// Straight runs: no branch goes into the middle of one or out of it.
std::vector<std::vector<Line>> blocks_of(const std::string& code) {
  const std::vector<Line> lines = lines_of(code);
  std::set<std::uint64_t> starts;
  for (const Line& line : lines) {
    if (!line.name.starts_with("s_branch") && !line.name.starts_with("s_cbranch")) continue;
    // Words from the next instruction on, 16 bits with a sign.
    const int words = std::stoi(line.text.substr(line.text.find(line.name) + line.name.size()));
    starts.insert(line.address + 4 + (4 * static_cast<std::uint64_t>(std::int64_t{static_cast<std::int16_t>(words)})));
    starts.insert(line.address + 4);
  }
  std::vector<std::vector<Line>> blocks;
  for (const Line& line : lines) {
    if (blocks.empty() || starts.contains(line.address)) blocks.emplace_back();
    blocks.back().push_back(line);
  }
  return blocks;
}

// What a dualwave kernel does beside its rows: merged rows come from LDS and go there, by LDS instructions that no row
// has. It may stand anywhere in the code.
struct Beside {
  std::string code;  // without it
  int merges = 0;
};
Beside without_merges(const std::string& code) {
  Beside rest;
  for (const std::vector<Line>& block : blocks_of(code)) {
    const auto count = [&](std::string_view name, std::string_view end = "") {
      return std::ranges::count_if(
          block, [&](const Line& line) { return line.name.starts_with(name) && line.text.ends_with(end); });
    };
    const auto barriers = count("s_barrier");
    const bool of_a_row = barriers != 0 || count("v_mfma") != 0 || count("buffer_load", " lds") != 0;
    if (count("ds_write") != 0 || (count("ds_read") != 0 && !of_a_row)) {
      if (barriers == 2) ++rest.merges;
      EXPECT_TRUE(barriers == 0 || barriers == 2) << "a merge is two clusters; block at " << block.front().text;
      continue;
    }
    for (const Line& line : block) rest.code += line.text + "\n";
  }
  return rest;
}

bool is_transfer(std::string_view event) { return event == "fetch" || event.starts_with("load"); }

// Whether the last event was a barrier, and no act of the next row has come: there a priority is lowered, and O
// rescaled.
bool between_rows(const Events& events) {
  const auto act = std::find_if(events.rbegin(), events.rend(), [](const std::string& event) {
    return event != "priority" && event != "vector branch";
  });
  return act == events.rend() || *act == "barrier";
}

// Events that an act has many of are one, but for those that must not be too few. An Overlap is the run of its
// products, LDS reads and writes.
Events events_in(const std::string& code, Pipeline pipeline) {
  static const std::set<std::string, std::less<>> overlapped = {"read", "write", "multiply"};
  Events events;
  std::istringstream lines(code);
  bool merging = false;
  for (std::string line; std::getline(lines, line);) {
    const std::string event = event_of(line, pipeline);
    // A merge loads from private memory and waits for it. Its block may stand anywhere: it is rarely run.
    if (event == "private load") merging = true;
    if (is_transfer(event)) merging = false;
    if (event.empty() || event == "private load" || (merging && event == "automatic wait")) continue;
    const std::string last = events.empty() ? "barrier" : events.back();
    // A branch between rows chooses which comes next; within a row it is the mask's.
    if (event == "scalar branch" && between_rows(events)) continue;
    // So does that of a chunk's end, behind a row's last act.
    if (event == "scalar branch" && pipeline == Pipeline::interleaved && (last == "vector branch" || last == "write"))
      continue;
    if (event == last && !is_transfer(event) && event != "barrier" && event != "priority") continue;
    if (overlapped.contains(event) && overlapped.contains(last)) {
      if (event == "multiply" || (event == "write" && last == "read")) events.back() = event;
      continue;
    }
    events.push_back(event);
  }
  return events;
}

// The same of a table.
class Expected {
 public:
  explicit Expected(const ForwardKernel& spec) : spec_(spec) {}

  // Whatever a row's acts are.
  template <typename Rows>
  void add_rows(const Rows& rows) {
    for (const auto* row = rows.begin(); row != rows.end(); ++row) {
      add_row(*row);
      if (row + 1 != rows.end() && raises(row[1])) add("priority");
      events_.emplace_back("barrier");
      add_behind(*row);
    }
  }
  void add(const std::string& event, int count = 1) {
    for (int index = 0; index < count; ++index) events_.push_back(event);
  }
  const Events& events() const { return events_; }

 private:
  void add_row(const dualwave::Cluster& cluster) {
    if (const auto* memory = std::get_if<dualwave::Memory>(&cluster)) {
      for (const dualwave::MemoryAct& act : memory->acts) std::visit([&](const auto& each) { add_act(each); }, act);
      return;
    }
    for (const dualwave::ComputeAct& act : std::get<dualwave::Compute>(cluster).acts)
      std::visit([&](const auto& each) { add_act(each); }, act);
  }
  // The priority is raised before the barrier that opens a cluster and lowered behind the one that closes it.
  static bool raises(const dualwave::Cluster& cluster) {
    const auto* compute = std::get_if<dualwave::Compute>(&cluster);
    return compute != nullptr && compute->raised_priority;
  }
  static bool raises(const interleaved::Step&) { return false; }
  void add_behind(const dualwave::Cluster& cluster) {
    if (raises(cluster)) add("priority");
    if (const auto* compute = std::get_if<dualwave::Compute>(&cluster))
      for (const dualwave::ComputeAct& act : compute->behind) std::visit([&](const auto& each) { add_act(each); }, act);
  }
  void add_behind(const interleaved::Step&) {}
  void add_row(const interleaved::Step& step) {
    for (const interleaved::Act& act : step.acts) std::visit([&](const auto& each) { add_act(each); }, act);
  }

  int head_dim(const schedule::Tile& tile) const {
    return tile.stream == schedule::Stream::keys ? spec_.head_dim_qk : spec_.head_dim_v;
  }
  void add_act(const schedule::Fetch& fetch) {
    if (spec_.pipeline == Pipeline::dualwave) {
      add("fetch", head_dim(fetch.tile) / 64);
    } else if (fetch.tile.stream == schedule::Stream::keys) {
      add("load 16 bytes", head_dim(fetch.tile) / 32);
    } else {
      add(head_dim(fetch.tile) == 64 ? "load 8 bytes" : "load 16 bytes", 4);
    }
  }
  // Scalar loads the compiler moves: the models say when.
  void add_act(const schedule::LookUp& look) {
    if (spec_.paged && look.way == schedule::LookUp::Way::vector) add("look up");
  }
  void add_act(const schedule::ReadWalk&) {}
  void add_act(const schedule::LoadModifiers&) {
    if (spec_.modifiers.has(Modifier::bias)) add("load 8 bytes", 8);
  }
  void add_act(const schedule::Modify&) {
    if (spec_.modifiers.has(Modifier::bias) && spec_.pipeline == Pipeline::dualwave) add("automatic wait");
    add("scalar branch");
  }
  void add_act(const dualwave::Rest&) {}
  void add_act(const schedule::Rescale&) { add("vector branch"); }
  // At a row's end and at its beginning: branches that are not told from the walk's own, see events_in. The models and
  // the bits say that they are there.
  void add_act(const schedule::EndPart&) {}
  void add_act(const schedule::Merge&) {}
  void add_act(const dualwave::Read&) { add("read"); }
  void add_act(const interleaved::Read&) { add("read"); }
  void add_act(const dualwave::Wait& wait) {
    if (wait.fetches_left != dualwave::Wait::all)
      add("wait " + std::to_string(wait.fetches_left * spec_.head_dim_qk / 64));
  }
  void add_act(const dualwave::Overlap& overlap) {
    if (overlap.product != schedule::Product::none) add("multiply");
  }
  void add_act(const interleaved::Overlap& overlap) {
    const bool multiplies = overlap.product != schedule::Product::none;
    if (!events_.empty() && events_.back() == "read") events_.pop_back();  // one run
    if (multiplies || overlap.write) add(multiplies ? "multiply" : "write");
  }

  const ForwardKernel& spec_;
  Events events_;
};

// Rows as they stand in the code: the steady state twice in the loop and once behind it.
Events expected_of_dualwave(const ForwardKernel& spec) {
  const dualwave::Schedule& table = dualwave::schedule_in(dualwave::order_of(spec));
  Expected expected(spec);
  expected.add_rows(table.start);
  if (spec.stagger) expected.add("barrier");  // opens the stagger
  expected.add_rows(table.prologue);
  for (int copy = 0; copy < 3; ++copy) expected.add_rows(table.steady);
  expected.add_rows(table.drain);
  if (spec.stagger) expected.add("barrier");
  Events events = expected.events();
  // The drain reads a buffer that is known at run time only; before that the compiler waits for every transfer.
  const auto last_read = std::find(events.rbegin(), events.rend(), "read").base() - 1;
  events.insert(last_read, "automatic wait");
  return events;
}

Events expected_of_interleaved(const ForwardKernel& spec) {
  const interleaved::Schedule& table =
      interleaved::schedule_in(interleaved::order_of(spec), interleaved::look_ups_of(spec));
  Expected expected(spec);
  expected.add_rows(table.start);
  expected.add_rows(table.prologue);
  expected.add_rows(table.steady);
  expected.add_rows(table.drain);
  return expected.events();
}

// Every head dim, plain, with a bias and with everything; every ladder, those that fetch last with a bias, too; keys in
// pages. Data type and O store stand beside the rows.
std::vector<ForwardKernel> specs_of(Pipeline pipeline) {
  std::vector<ForwardKernel> specs;
  const ForwardKernel* with_bias = nullptr;
  const std::vector<ForwardKernel> all = all_kernel_specs();
  for (const ForwardKernel& spec : all) {
    const targets::Target& target = *targets::find_target(spec.target);
    if (spec.pipeline != pipeline || spec.dtype != attention_forward::DataType::bf16) continue;
    if (spec.output_store != attention_forward::default_output_store(target)) continue;
    const bool plain = spec.lse && spec.mask == attention_forward::Mask::causal && !spec.modified();
    if (!plain && !spec.modifiers.has(Modifier::bias)) continue;
    specs.push_back(spec);
    if (spec.modifiers.has(Modifier::bias) && spec.head_dim_v == 128) with_bias = &spec;
  }
  if (with_bias == nullptr) return {};
  for (const attention_forward::Ladder& ladder : attention_forward::ladders(pipeline)) {
    if (ladder.name == attention_forward::standard_ladder) continue;
    ForwardKernel spec = *with_bias;
    spec.ladder = ladder.name;
    if (ladder.fetch_last) specs.push_back(spec);
    spec.modifiers = {};
    specs.push_back(spec);
  }
  // Pages are looked up, and else it is the same table.
  for (const int head_dim : {64, 128})
    for (const bool whole_tiles : {false, true}) {
      ForwardKernel spec = *with_bias;
      spec.head_dim_qk = spec.head_dim_v = head_dim;
      spec.modifiers = {};
      spec.paged = true;
      spec.whole_tiles = whole_tiles;
      specs.push_back(spec);
    }
  return specs;
}

// What the code does before its first row, it does for the query: loads of 16 bytes.
Events without_query(Events events, int query_loads) {
  const auto from = std::ranges::find_if(events, is_transfer);
  events.erase(events.begin(), from);
  if (std::ssize(events) < query_loads) return events;
  events.erase(events.begin(), events.begin() + query_loads);
  return events;
}

void expect_code_of_table(const ForwardKernel& spec, const Events& expected) {
  SCOPED_TRACE(to_text(spec));
  std::string code = machine_code(spec);
  if (spec.pipeline == Pipeline::dualwave) {
    const Beside rest = without_merges(code);
    // In the copies of the steady rows for even tiles, and in the drain; a window may begin at any tile.
    EXPECT_EQ(rest.merges, (spec.mask == attention_forward::Mask::window ? 3 : 2) + 1);
    code = rest.code;
  }
  // A lane's row and half of a block of 16 dims.
  const Events seen = without_query(events_in(code, spec.pipeline), spec.head_dim_qk / 16);
  // After the last row come the stores, the blocks that they branch over, and the blocks that run rarely.
  ASSERT_GE(seen.size(), expected.size());
  EXPECT_EQ(Events(seen.begin(), seen.begin() + std::ssize(expected)), expected);
  for (std::size_t at = expected.size(); at < seen.size(); ++at)
    EXPECT_THAT(seen[at], testing::EndsWith("branch")) << "event " << at;
}

TEST(ScheduleCode, DualWaveDoesWhatItsTableSaysInItsOrder) {
  const std::vector<ForwardKernel> specs = specs_of(Pipeline::dualwave);
  std::set<dualwave::Order> orders;
  int index = 0;
  for (const ForwardKernel& spec : specs) {
    if (in_part(index++, 3)) expect_code_of_table(spec, expected_of_dualwave(spec));
    orders.insert(dualwave::order_of(spec));
  }
  EXPECT_EQ(orders.size(), 4U);
}

TEST(ScheduleCode, InterleavedDoesWhatItsTableSaysInItsOrder) {
  const std::vector<ForwardKernel> specs = specs_of(Pipeline::interleaved);
  std::set<interleaved::Order> orders;
  int index = 0;
  for (const ForwardKernel& spec : specs) {
    if (in_part(index++, 3)) expect_code_of_table(spec, expected_of_interleaved(spec));
    orders.insert(interleaved::order_of(spec));
  }
  EXPECT_EQ(orders.size(), 3U);
}

// The comparison must see what it is there for: each order's code is another table's fault.
TEST(ScheduleCode, NoOrderPassesForAnother) {
  ForwardKernel usual{{.head_dim_qk = 128, .head_dim_v = 128}, {.pipeline = Pipeline::interleaved, .target = "gfx942"}};
  ForwardKernel last = usual;
  last.ladder = "fetch_last";
  EXPECT_NE(expected_of_interleaved(usual), expected_of_interleaved(last));
  usual = {{}, {.pipeline = Pipeline::dualwave, .tile_queries = 256, .target = "gfx950"}};
  last = usual;
  last.ladder = "fetch_last";
  ForwardKernel first = usual;
  first.modifiers = {Modifier::bias};
  const Events of_last = expected_of_dualwave(last);
  EXPECT_NE(expected_of_dualwave(usual), of_last);
  const auto without = [](Events events, const std::string& event) {
    std::erase(events, event);
    return events;
  };
  EXPECT_NE(without(expected_of_dualwave(first), "load 8 bytes"), without(expected_of_dualwave(usual), "load 8 bytes"));
}

// A descriptor that the compiler takes for one of lanes makes each fetch with it a loop over lanes. 64 of them had
// stood in decode on gfx942, because a clamped count was a vector instruction.
TEST(LookupCode, NoFetchIsALoopOverLanes) {
  for (const targets::Target& target : targets::complete_targets())
    for (const bool first_keys : {false, true})
      for (const bool packed : {false, true}) {
        const ForwardKernel spec{
            {.head_dim_qk = 64,
             .head_dim_v = 64,
             .mask = attention_forward::Mask::causal,
             .paged = true,
             .first_keys = first_keys},
            {.packed_heads = packed, .tile_queries = packed ? 32 : 128, .target = std::string(target.id)}};
        if (!attention_forward::resources_of(spec)) continue;
        const std::string code = machine_code(spec);
        EXPECT_TRUE(code.contains("buffer_load") || code.contains("global_load")) << to_text(spec);
        EXPECT_FALSE(code.contains("s_and_saveexec")) << to_text(spec);
      }
}

}  // namespace
}  // namespace wavejit::tests
