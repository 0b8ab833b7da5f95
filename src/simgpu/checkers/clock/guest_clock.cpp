// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/clock/guest_clock.h"

#include <algorithm>
#include <utility>

#include "simgpu/checkers/clock/grid.h"
#include "simgpu/machine/decode/function.h"
#include "simgpu/machine/launch/launch.h"

namespace wavejit::simgpu::clock {
namespace {

constexpr std::size_t most_records = std::size_t{1} << 22;  // of a workgroup: 64 MiB

bool reads_clock(const Instruction& instruction) {
  constexpr unsigned shader_cycles_low = 29;  // hwreg(HW_REG_SHADER_CYCLES_LO)
  constexpr unsigned shader_cycles_high = 30;
  const unsigned place = instruction.immediate & 0x3f;
  return instruction.record->reads_time || (instruction.record->action == Action::get_register &&
                                            (place == shader_cycles_low || place == shader_cycles_high));
}

}  // namespace

bool reads_clock(const Launch& launch) {
  return launch.entry != nullptr &&
         std::ranges::any_of(launch.entry->function->instructions,
                             [](const Instruction& instruction) { return reads_clock(instruction); });
}

GuestClock::GuestClock(Observer& recorder, const Launch& launch, const LaunchBegin& begin, LaunchMemory memory)
    : recorder_(&recorder),
      launch_(&launch),
      timing_(timing::find_timing(*launch.target)),
      begin_(begin),
      before_(cold_cycles(*timing_) +
              (begin.waits ? static_cast<std::uint64_t>(timing_->launch.dependent.cycles()) : 0)) {
  const auto& grid = launch.workgroups;
  const std::uint64_t workgroups = std::uint64_t{grid[0]} * grid[1] * grid[2];
  neighbours_ = neighbours_of(*launch.target, workgroups, 1);
  neighbours_.warm = memory.warm;
  neighbours_.in_last_level = std::move(memory.in_last_level);
  constexpr double few = 16;
  share_ = std::clamp(few / static_cast<double>(workgroups), 1 / few, 1.0);
}

GuestClock::Guest& GuestClock::guest_of(const Wave& wave) {
  const std::scoped_lock lock(mutex_);
  std::unique_ptr<Guest>& guest = guests_[wave.workgroup->linear_id];
  if (guest == nullptr) {
    guest = std::make_unique<Guest>(Program(*timing_, *launch_->target));
    guest->trace.waves.resize(wave.workgroup->waves.size());
    guest->waves.resize(wave.workgroup->waves.size());
  }
  return *guest;
}

void GuestClock::before(const Wave& wave, const Instruction& instruction) {
  const std::uint64_t workgroup = wave.workgroup->linear_id;
  if (recorder_->wants(workgroup)) recorder_->before(wave, instruction);
  Guest& guest = guest_of(wave);
  if (guest.records < most_records) take_down(*timing_, wave, instruction, guest.trace.waves[wave.index]);
  ++guest.records;
  if (instruction.record->action != Action::end || ++guest.ended < guest.waves.size()) return;
  const std::scoped_lock lock(mutex_);
  guests_.erase(workgroup);
}

std::optional<double> GuestClock::replay(Guest& guest, std::size_t wave, double now) const {
  constexpr double free_cycles = 1'000'000;
  constexpr double of_what_ran = 2;
  constexpr double preparation = 10'000;
  const double allowed = share_ * (free_cycles + (of_what_ran * now));
  if (guest.records > most_records || guest.replayed > allowed) return std::nullopt;
  const auto unit = run_compute_unit(
      guest.program, {.workgroups = {&guest.trace}, .until = wave, .neighbours = neighbours_, .pinned = {}});
  if (!unit) return std::nullopt;
  guest.replayed += static_cast<double>(unit->cycles) + preparation;
  return static_cast<double>(unit->waves[wave].end);
}

std::optional<GuestTime> GuestClock::time(const Wave& wave) {
  Guest& guest = guest_of(wave);
  WaveTime& known = guest.waves[wave.index];
  const std::uint64_t executed = wave.executed - static_cast<std::uint64_t>(wave.budget);
  const auto since = static_cast<double>(executed - known.executed);
  const double look = timing_->wave.look.value;
  double now = known.then + (since * std::max(known.pace, look));
  if (const auto then = replay(guest, wave.index, now)) {
    now = *then;
    known.pace = since == 0 ? known.pace : (now - known.then) / since;
    known.executed = executed;
    known.then = now;
  }
  known.shown = std::max(static_cast<std::uint64_t>(now), known.shown + 1);
  const std::uint64_t cycles = before_ + known.shown;
  const int khz = launch_->target->clock_khz;
  return GuestTime{
      .cycles = cycles_of(begin_.picoseconds, khz) + cycles,
      .ticks = begin_.origin + ((begin_.picoseconds + picoseconds_of(cycles, khz)) / picoseconds_per_tick)};
}

}  // namespace wavejit::simgpu::clock
