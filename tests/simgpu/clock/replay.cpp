// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "replay.h"

#include <algorithm>
#include <format>
#include <fstream>
#include <memory>
#include <numeric>
#include <set>
#include <sstream>

#include "assembler.h"
#include "boards/board.h"
#include "simgpu/checkers/clock/compute_unit.h"
#include "simgpu/checkers/clock/step.h"
#include "simgpu/machine/decode/disassembler.h"
#include "simgpu/machine/decode/function.h"
#include "simgpu/machine/decode/registry.h"
#include "simgpu/machine/device/rooms.h"
#include "timing/timing.h"

namespace wavejit::simgpu::testing {
namespace {

constexpr const char* target = "gfx1201";

struct Row {
  std::size_t instruction = 0;
  std::uint64_t cycle = 0;
};
struct Recorded {
  std::vector<std::uint32_t> offsets;
  std::string code;
  std::vector<std::vector<Row>> waves;
};

// Up to the line that begins the next one.
void read_wave(std::istream& file, std::uint64_t start, std::vector<Row>& rows, std::string& next) {
  std::uint64_t cycle = start;
  std::size_t instruction = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("wave ")) {
      next = line;
      return;
    }
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      const std::size_t colon = word.find(':');
      instruction = colon == std::string::npos ? instruction + 1 : std::stoul(word.substr(0, colon));
      cycle += std::stoul(colon == std::string::npos ? word : word.substr(colon + 1));
      rows.push_back({.instruction = instruction, .cycle = cycle});
    }
  }
  next.clear();
}

Recorded read(const std::string& path) {
  Recorded recorded;
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line) && line != "code") {
  }
  while (std::getline(file, line) && line != "end") {
    const std::size_t space = line.find(' ');
    recorded.offsets.push_back(static_cast<std::uint32_t>(std::stoul(line.substr(0, space))));
    recorded.code += line.substr(space + 1) + "\n";
  }
  std::getline(file, line);
  while (line.starts_with("wave ")) {
    const std::uint64_t start = std::stoull(line.substr(line.find(' ') + 1));
    read_wave(file, start, recorded.waves.emplace_back(), line);
  }
  return recorded;
}

bool leaves_no_row(const Instruction& instruction) {
  const Action action = instruction.record->action;
  return action == Action::wait_alu || action == Action::delay_alu;
}
bool is_wait(const Instruction& instruction) {
  const Action action = instruction.record->action;
  return action == Action::wait || action == Action::end;
}

std::uint32_t line_of(const Instruction& instruction) {
  constexpr std::uint32_t bytes = 64;
  return (instruction.offset_in_function + instruction.bytes - 1) / bytes;
}

// The wave's instructions for the clock, and which of them the trace says the time of.
class WaveOf {
 public:
  WaveOf(const Function& function, const std::vector<Row>& rows, const timing::Timing& timing, LeftOut compared_too)
      : timing_(&timing) {
    bool is_behind_memory = false;
    std::set<std::uint32_t> lines;
    // Its beginning: code and arguments are on their way, for all waves of the launch at once.
    const auto first_wait = std::ranges::find_if(
        rows, [&](const Row& row) { return function.instructions[row.instruction].record->action == Action::wait; });
    const bool begins_apart = compared_too != LeftOut::beginning && first_wait != rows.end();
    const std::size_t beginning = begins_apart ? static_cast<std::size_t>(first_wait - rows.begin()) : 1;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      bool is_pinned = i < beginning;
      // What leaves no row stands between this instruction and the one before.
      if (i > 0 && rows[i].instruction > rows[i - 1].instruction + 1) {
        const auto between =
            std::span(function.instructions)
                .subspan(rows[i - 1].instruction + 1, rows[i].instruction - rows[i - 1].instruction - 1);
        for (const Instruction& each : between) {
          if (leaves_no_row(each)) add(each, free);
          if (each.record->action == Action::wait_barrier) is_pinned = true;
        }
      }
      const Instruction& instruction = function.instructions[rows[i].instruction];
      const bool is_called = i > 0 && function.instructions[rows[i - 1].instruction].record->action == Action::call;
      const bool awaits_code =
          (lines.insert(line_of(instruction)).second || is_called) && (compared_too != LeftOut::code || i == 0);
      // Registers of a vector memory instruction are read when memory's queue takes it, and other SIMDs stand there
      // too.
      const bool to_memory = instruction.record->counts_vector;
      const bool is_vector = instruction.instruction_class == InstructionClass::vector;
      is_pinned = is_pinned || is_wait(instruction) || (to_memory && compared_too != LeftOut::memory) ||
                  (is_vector && is_behind_memory && compared_too != LeftOut::behind_memory);
      const bool to_lds = instruction.instruction_class == InstructionClass::lds;
      if (to_memory || to_lds || is_vector) is_behind_memory = to_memory || to_lds;
      const std::uint64_t gap = i == 0 ? 0 : rows[i].cycle - rows[i - 1].cycle;
      if (awaits_code) code += gap;
      if (is_pinned && !awaits_code) waits += gap;
      add(instruction, is_pinned || awaits_code ? static_cast<double>(rows[i].cycle) : free);
      rows_.push_back(trace.waves.front().records.size() - 1);
    }
  }

  clock::WorkgroupTrace trace{.workgroup = 0, .waves = std::vector<clock::WaveTrace>(1)};
  std::vector<double> pinned;
  std::uint64_t waits = 0;
  std::uint64_t code = 0;
  static constexpr double free = -1;
  // By row: its place in the trace.
  const std::vector<std::size_t>& rows() const { return rows_; }

 private:
  void add(const Instruction& instruction, double pin) {
    clock::Record record{.instruction = &instruction};
    const clock::Step step = clock::describe_step(instruction, *timing_, *targets::find_target(target));
    if (step.access != nullptr) record.count = static_cast<std::uint16_t>(step.access->phases.size());
    trace.waves.front().records.push_back(record);
    pinned.push_back(pin);
  }

  const timing::Timing* timing_;
  std::vector<std::size_t> rows_;
};

struct Difference {
  std::uint64_t count = 0;
  std::int64_t cycles = 0;
};

}  // namespace

Replayed replay(const std::string& path, LeftOut compared_too) {
  const Recorded recorded = read(path);
  Replayed result;
  if (recorded.waves.empty()) return {.error = path + " holds no trace", .worst = {}};
  std::string error;
  const std::vector<std::uint8_t> code = test::assemble(target, recorded.code, error, "+real-true16");
  if (code.empty()) return {.error = error, .worst = {}};
  const boards::Board& board = *boards::find_product(target);
  Registry registry(board);
  register_rooms(registry);
  const auto function = decode_function("trace", code, 0, *Disassembler::for_processor(target), registry);
  for (std::size_t i = 0; i < recorded.offsets.size(); ++i) {
    if (function->instructions[i].offset_in_function != recorded.offsets[i])
      return {.error = std::format("instruction {} is not where it was", i), .worst = {}};
  }
  const timing::Timing& timing = *timing::find_timing(board);
  std::vector<std::unique_ptr<WaveOf>> waves;
  clock::ComputeUnitRequest request;
  for (const std::vector<Row>& rows : recorded.waves) {
    waves.push_back(std::make_unique<WaveOf>(*function, rows, timing, compared_too));
    request.workgroups.push_back(&waves.back()->trace);
    request.pinned.push_back(waves.back()->pinned);
    result.waits += waves.back()->waits;
    result.code += waves.back()->code;
  }
  request.resident = static_cast<unsigned>(waves.size());
  request.timeline_last = ~std::uint64_t{0};
  clock::Program program(timing, board);
  const auto unit = clock::run_compute_unit(program, request);
  if (!unit) return {.error = unit.error(), .worst = {}};

  std::vector<std::vector<std::uint64_t>> issued(waves.size());
  for (const clock::TimelineEvent& event : unit->timeline)
    if (event.waited_for == clock::Cause::count) issued[event.wave].push_back(event.start);
  std::vector<Difference> differences(recorded.offsets.size());
  for (std::size_t w = 0; w < waves.size(); ++w) {
    const std::vector<Row>& rows = recorded.waves[w];
    if (issued[w].size() != rows.size())
      return {.error = std::format("wave {}: {} of {} instructions", w, issued[w].size(), rows.size()), .worst = {}};
    for (std::size_t i = 1; i < rows.size(); ++i) {
      if (waves[w]->pinned[waves[w]->rows()[i]] != WaveOf::free) continue;
      const auto there = static_cast<std::int64_t>(rows[i].cycle - rows[i - 1].cycle);
      const auto here = static_cast<std::int64_t>(issued[w][i] - issued[w][i - 1]);
      ++result.compared;
      result.hardware += static_cast<std::uint64_t>(there);
      result.clock += static_cast<std::uint64_t>(here);
      result.apart += static_cast<std::uint64_t>(std::abs(here - there));
      Difference& difference = differences[rows[i].instruction];
      ++difference.count;
      difference.cycles += here - there;
    }
  }
  std::vector<std::size_t> order(differences.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, std::greater<>(), [&](std::size_t i) { return std::abs(differences[i].cycles); });
  constexpr std::size_t most = 12;
  for (const std::size_t i : std::span(order).first(std::min(most, order.size()))) {
    if (differences[i].cycles == 0) break;
    result.worst.push_back(std::format("{:+} cycles in {} times: {}", differences[i].cycles, differences[i].count,
                                       function->text(function->instructions[i])));
  }
  return result;
}

std::vector<Trace> traces() {
  return {{.name = "handwritten", .what = "one kind of instruction after the other, two waves", .gave_figures = true},
          {.name = "every_instruction",
           .what = "every instruction once, one wave",
           .gave_figures = true,
           // Sparse products, interpolation and registers of the machine's state are no instructions of this GPU here.
           .within = 16},
          {.name = "wmma", .what = "a loop of ten independent WMMA, one wave"},
          {.name = "gemm", .what = "a product of 32 x 32 x 32 in float32, 16 waves"},
          {.name = "sync", .what = "LDS and a barrier, two waves"},
          {.name = "matmul", .what = "gfx1200: a product of 1024 in float32, 16 waves of a SIMD at a time"},
          {.name = "matmul_256",
           .what = "gfx1200: one of 256, whose 16 waves leave the SIMD no free cycle",
           .gave_figures = true,
           // Missed. Loads stand where hardware had them, so that a queue which is never empty there is often empty
           // here: a few percent of the vector instructions' time are most of what waves wait.
           .within = 60}};
}

std::string path_of(const Trace& trace) { return std::format("{}/{}.txt", WAVEJIT_TRACES, trace.name); }

}  // namespace wavejit::simgpu::testing
