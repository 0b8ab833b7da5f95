// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/clock/trace.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "simgpu/checkers/clock/step.h"
#include "simgpu/checkers/facts/addresses.h"
#include "simgpu/checkers/facts/effects.h"
#include "simgpu/machine/launch/launch.h"
#include "simgpu/machine/memory/scalar_address.h"
#include "timing/lds_banks.h"

namespace wavejit::simgpu::clock {
namespace {

void record_lds(const timing::Timing& timing, const Wave& wave, const Instruction& instruction,
                const checks::Effects& effects, Record& record) {
  const timing::LdsAccess* access = nearest_access(timing, instruction, effects);
  if (access == nullptr) return;
  checks::LocalAddresses lanes;
  checks::local_addresses(wave, instruction, effects, lanes);
  for (unsigned element = 0; element < effects.elements; ++element) {
    std::array<std::uint32_t, lane_places> addresses{};
    const std::uint32_t* from = element == 0 ? lanes.first : lanes.second;
    for_active_lanes(lanes.lanes, [&](unsigned lane) { addresses[lane] = from[lane]; });
    const timing::BankUse use = timing::bank_use(*access, addresses, lanes.lanes);
    record.first += static_cast<std::uint32_t>(use.extra);
    record.count += static_cast<std::uint32_t>(use.phases);
  }
}

// Distinct lines of a few lanes.
class LinesOfGroup {
 public:
  void add(std::uint64_t line) {
    if (std::find(lines_.begin(), lines_.begin() + count_, line) == lines_.begin() + count_) lines_[count_++] = line;
  }
  // How many, at least one; none afterwards.
  unsigned take() { return std::max(static_cast<unsigned>(std::exchange(count_, 0)), 1U); }

 private:
  std::array<std::uint64_t, std::size_t{2} * lane_places> lines_{};  // a lane's bytes lie in two lines at most
  std::ptrdiff_t count_ = 0;
};

// The lines of one access, behind those of others, and the halves of them that it touches.
class LinesOfAccess {
 public:
  LinesOfAccess(std::vector<std::uint64_t>& lines, const timing::Timing& timing, Record& record)
      : lines_(&lines), line_(static_cast<std::uint64_t>(timing.memory.line.cycles())), record_(&record) {
    record.first = static_cast<std::uint32_t>(lines.size());
  }
  // The line of an address.
  std::uint64_t add(std::uint64_t address) {
    const std::uint64_t line = address / line_;
    const auto begin = lines_->begin() + record_->first;
    // Lanes side by side mostly share a line: the last one is looked at first.
    const bool is_last = begin != lines_->end() && lines_->back() == line;
    const auto found = is_last ? lines_->end() - 1 : std::find(begin, lines_->end(), line);
    std::uint8_t& touched = touched_[static_cast<std::size_t>(found - begin)];
    if (found == lines_->end()) {
      lines_->push_back(line);
      touched = 0;
    }
    touched |= address % line_ < line_ / 2 ? 1U : 2U;
    return line;
  }
  void close() {
    record_->count = static_cast<std::uint32_t>(lines_->size()) - record_->first;
    for (const std::uint8_t touched : std::span(touched_).first(record_->count))
      record_->halves += static_cast<std::uint32_t>(std::popcount(touched));
  }

 private:
  std::vector<std::uint64_t>* lines_;
  std::uint64_t line_;
  Record* record_;
  std::array<std::uint8_t, std::size_t{4} * lane_places> touched_;  // the first of each line, the second, or both
};

void record_memory(const timing::Timing& timing, const Wave& wave, const Instruction& instruction,
                   const checks::Effects& effects, WaveTrace& trace, Record& record) {
  checks::LaneAddresses lanes;
  checks::device_addresses(wave, instruction, effects, lanes);
  LinesOfAccess lines(trace.lines, timing, record);
  constexpr int narrow = 4;  // bytes a lane
  const timing::Figure& together = effects.bytes > narrow ? timing.memory.lanes_wide : timing.memory.lanes_narrow;
  const auto lanes_of_group = static_cast<unsigned>(together.cycles());
  LinesOfGroup group;
  unsigned group_number = 0;
  bool group_open = false;
  const auto close_group = [&] {
    if (group_open) record.turns += group.take();
    group_open = false;
  };
  for (std::uint64_t rest = lanes.lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    if (lane / lanes_of_group != group_number) close_group();
    group_number = lane / lanes_of_group;
    group_open = true;
    if (lanes.available[lane] == 0) continue;
    // No lane has more bytes than half a line.
    group.add(lines.add(lanes.first[lane]));
    group.add(lines.add(lanes.first[lane] + lanes.available[lane] - 1));
  }
  close_group();
  lines.close();
}

// Private memory is memory: a wave's bytes lie together, each dword of them as 64 neighbouring lanes. An access is so
// many of one dword a lane.
void record_private(const timing::Timing& timing, const Wave& wave, const Instruction& instruction,
                    const checks::Effects& effects, WaveTrace& trace, Record& record) {
  constexpr std::uint64_t above_all_device_addresses = std::uint64_t{1} << 47;
  constexpr std::uint64_t dword = 4;
  checks::LaneAddresses lanes;
  checks::device_addresses(wave, instruction, effects, lanes);
  const std::uint64_t waves = (wave.workgroup->linear_id * wave.workgroup->waves.size()) + wave.index;
  const std::uint64_t start = above_all_device_addresses + (waves * wave.scratch_bytes_per_lane * wave.lane_count);
  const auto lanes_of_group = static_cast<unsigned>(timing.memory.lanes_narrow.cycles());
  LinesOfAccess lines(trace.lines, timing, record);
  const std::uint64_t dwords = (effects.bytes + dword - 1) / dword;
  for (std::uint64_t each = 0; each < dwords; ++each) {
    LinesOfGroup group;
    unsigned group_number = 0;
    bool group_open = false;
    for (std::uint64_t rest = lanes.lanes; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(rest));
      if (group_open && lane / lanes_of_group != group_number) record.turns += group.take();
      group_number = lane / lanes_of_group;
      group_open = true;
      const std::uint64_t row = static_cast<std::uint32_t>(lanes.first[lane]) / dword + each;
      group.add(lines.add(start + (row * wave.lane_count + lane) * dword));
    }
    if (group_open) record.turns += group.take();
  }
  lines.close();
}

// What a scalar load reads. Arguments are the same for all workgroups, so that the scalar cache has them: the first
// load of a launch is counted with its begin (grid.cpp).
void record_scalar(const timing::Timing& timing, const Wave& wave, const Instruction& instruction,
                   const checks::Effects& effects, WaveTrace& trace, Record& record) {
  if (!effects.loads || timing.memory.scalar_bytes.value == 0) return;
  std::uint64_t address = scalar_address(wave, instruction);
  if (effects.space == Space::scalar_buffer) {
    constexpr std::uint64_t base_bits = (std::uint64_t{1} << 48) - 1;
    address = (wave.scalar64(instruction.source[0]) & base_bits) +
              (static_cast<std::uint64_t>(scalar_offset(wave, instruction)) & ~std::uint64_t{3});
  }
  const Allocation* const holder = wave.workgroup->launch->find(address);
  if (holder == nullptr || holder->kind == MemoryKind::kernarg) return;
  const auto line = static_cast<std::uint64_t>(timing.memory.line.cycles());
  record.first = static_cast<std::uint32_t>(trace.lines.size());
  for (std::uint64_t each = address / line; each <= (address + effects.bytes - 1) / line; ++each)
    trace.lines.push_back(each);
  record.count = static_cast<std::uint32_t>(trace.lines.size() - record.first);
}

}  // namespace

void take_down(const timing::Timing& timing, const Wave& wave, const Instruction& instruction, WaveTrace& trace) {
  Record record{.instruction = &instruction};
  if (instruction.instruction_class == InstructionClass::memory ||
      instruction.instruction_class == InstructionClass::lds) {
    const checks::Effects& effects = checks::effects_of(
        *instruction.function)[static_cast<std::size_t>(&instruction - instruction.function->instructions.data())];
    if (effects.space == Space::lds) {
      record_lds(timing, wave, instruction, effects, record);
    } else if (effects.counts_vector && effects.space == Space::scratch) {
      record_private(timing, wave, instruction, effects, trace, record);
    } else if (effects.counts_vector && effects.space != Space::none) {
      record_memory(timing, wave, instruction, effects, trace, record);
    } else if (effects.space == Space::scalar || effects.space == Space::scalar_buffer) {
      record_scalar(timing, wave, instruction, effects, trace, record);
    }
  }
  trace.records.push_back(record);
}

TraceRecorder::TraceRecorder(const timing::Timing& timing, std::span<const std::uint64_t> workgroups,
                             std::span<const std::uint64_t> counted)
    : timing_(&timing) {
  trace(workgroups, counted);
}

void TraceRecorder::trace(std::span<const std::uint64_t> workgroups, std::span<const std::uint64_t> counted) {
  count(counted);
  traces_.resize(workgroups.size());
  for (std::size_t i = 0; i < workgroups.size(); ++i) traces_[i].workgroup = workgroups[i];
}

void TraceRecorder::count(std::span<const std::uint64_t> workgroups) {
  traces_.clear();
  counts_.clear();
  for (const std::uint64_t workgroup : workgroups) counts_.push_back({.workgroup = workgroup});
}

std::vector<SampledWork> TraceRecorder::work() const {
  std::vector<SampledWork> work;
  for (const WorkgroupTrace& trace : traces_) {
    work.push_back({.workgroup = trace.workgroup});
    for (const WaveTrace& wave : trace.waves) work.back().instructions += wave.records.size();
  }
  return work;
}

WorkgroupTrace* TraceRecorder::trace_of(std::uint64_t workgroup) {
  const auto found = std::ranges::lower_bound(traces_, workgroup, {}, &WorkgroupTrace::workgroup);
  return found != traces_.end() && found->workgroup == workgroup ? &*found : nullptr;
}

bool TraceRecorder::wants(std::uint64_t workgroup) const {
  return std::ranges::binary_search(counts_, workgroup, {}, &SampledWork::workgroup) ||
         std::ranges::binary_search(traces_, workgroup, {}, &WorkgroupTrace::workgroup);
}

void TraceRecorder::before(const Wave& wave, const Instruction& instruction) {
  const std::uint64_t id = wave.workgroup->linear_id;
  if (!counts_.empty()) {
    const auto found = std::ranges::lower_bound(counts_, id, {}, &SampledWork::workgroup);
    if (found != counts_.end() && found->workgroup == id) {
      ++found->instructions;
      return;
    }
  }
  WorkgroupTrace* workgroup = trace_of(id);
  if (workgroup == nullptr) return;
  if (workgroup->waves.size() <= wave.index) workgroup->waves.resize(wave.workgroup->waves.size());
  take_down(*timing_, wave, instruction, workgroup->waves[wave.index]);
}

}  // namespace wavejit::simgpu::clock
