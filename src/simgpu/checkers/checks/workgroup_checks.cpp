// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/checks/workgroup_checks.h"

#include <algorithm>
#include <bit>
#include <format>
#include <utility>

#include "isa/instruction_set.h"
#include "simgpu/checkers/facts/addresses.h"
#include "simgpu/machine/allocations/defined_memory.h"
#include "simgpu/machine/launch/finding.h"
#include "simgpu/machine/launch/launch.h"
#include "simgpu/machine/memory/scalar_address.h"
#include "simgpu/machine/numerics/noise.h"

namespace wavejit::simgpu::checks {
namespace {

constexpr std::uint64_t a_little = 4096;  // in front of an allocation; none ends there, as neighbours lie far apart

AccessKind kind_of(const Effects& effects) {
  if (effects.lds_dma) return AccessKind::dma;
  if (effects.atomic) return AccessKind::atomic;
  return effects.stores ? AccessKind::write : AccessKind::read;
}

bool is_scalar_memory(const Effects& effects) {
  return effects.space == Space::scalar || effects.space == Space::scalar_buffer;
}

// Whether the waves of a workgroup share a compute unit, whose vector memory is in order: LLVM then leaves out the
// waits in front of its barriers (SIMemoryLegalizer, workgroup scope). In tgsplit mode they do not share one. On RDNA4
// LLVM waits in both of its modes.
bool has_one_path(const Launch& launch) {
  return isa::instruction_set(*launch.target) != isa::InstructionSet::rdna4 &&
         !launch.descriptor->splits_workgroups() && launch.settings.rules == Rules::compiler;
}

}  // namespace

std::uint32_t WorkgroupChecks::shadow_checks() const {
  constexpr std::uint32_t of_order =
      static_cast<std::uint32_t>(Check::races) | static_cast<std::uint32_t>(Check::waits);
  return checks_ | (launch_->watches_order ? of_order : 0);
}

WorkgroupChecks::WorkgroupChecks() = default;
WorkgroupChecks::~WorkgroupChecks() = default;

void WorkgroupChecks::prepare(Launch& launch, Workgroup& workgroup, std::uint64_t seed, Observer* observer) {
  launch_ = &launch;
  observer_ = observer;
  workgroup_ = &workgroup;
  checks_ = launch.settings.checks;
  is_rdna4_ = isa::instruction_set(*launch.target) == isa::InstructionSet::rdna4;
  const auto count = static_cast<unsigned>(workgroup.waves.size());
  while (waves_.size() < count) waves_.push_back(std::make_unique<WaveChecks>());
  keeps_time_ = launch.settings.arrival == Arrival::timed;
  if (keeps_time_) pace_.prepare(*launch.target, workgroup.waves);
  loops_ = nullptr;
  if (auto* shared = static_cast<MemoryShadow*>(launch.shared_by_checkers.get())) loops_ = &shared->loops();
  lds_.prepare(workgroup.waves.front()->lds_bytes, count, shadow_checks(), loops_);
  shares_path_ = has_one_path(launch);
  memory_.prepare(launch, workgroup.linear_id, count, shares_path_);
  for (unsigned i = 0; i < count; ++i) {
    WaveChecks& wave = *waves_[i];
    wave.arrivals.prepare(checks_, launch.settings.arrival, mix(seed + i), lds_, memory_.order());
    wave.function = nullptr;
    wave.last_allocation = nullptr;
    wave.data_allocation = nullptr;
    wave.ended_at = nullptr;
    wave.waits_at = nullptr;
    wave.written_lanes.fill(0);
    wave.written_lanes[0] = workgroup.waves[i]->exec();  // the work-item ids
    if (on(Check::uninitialised)) {
      const KernelDescriptor& descriptor = *launch.descriptor;
      unsigned given = descriptor.user_sgprs();
      // RDNA4 has the workgroup's place in trap temporaries.
      if (!is_rdna4_) given += descriptor.workgroup_info() ? 1 : 0;
      for (unsigned dimension = 0; dimension < 3 && !is_rdna4_; ++dimension) {
        given += descriptor.workgroup_id(dimension) ? 1 : 0;
      }
      wave.definedness.prepare(*workgroup.waves[i], given);
    }
    if (on(Check::hazards) && is_rdna4_) wave.rdna4_hazards.prepare(launch.settings.rules);
    if (on(Check::hazards) && !is_rdna4_) wave.hazards.prepare(*launch.target, launch.settings.rules);
  }
}

void WorkgroupChecks::barrier() {
  oldest_local_.clear();
  oldest_dma_.clear();
  oldest_memory_.clear();
  const Wave* ended = nullptr;
  Wave* waiting = nullptr;
  for (Wave* wave : workgroup_->waves) {
    WaveChecks& state = *waves_[wave->index];
    state.arrivals.pass_barrier();
    oldest_local_.push_back(state.arrivals.oldest_local());
    oldest_dma_.push_back(state.arrivals.oldest_dma());
    oldest_memory_.push_back(state.arrivals.oldest_memory());
    if (wave->state == WaveState::ended && ended == nullptr) ended = wave;
    if (wave->state == WaveState::at_barrier && waiting == nullptr) waiting = wave;
  }
  if (keeps_time_) pace_.barrier(workgroup_->waves);
  lds_.barrier(oldest_local_, oldest_dma_);
  memory_.barrier(oldest_memory_);
  if (ended == nullptr || waiting == nullptr || !on(Check::barriers)) return;
  const Instruction& place = *(waiting->next - 1);
  const Instruction* end = waves_[ended->index]->ended_at;
  if (!worth_reporting(*waiting, place, Check::barriers, end)) return;
  report(*waiting, place, Check::barriers, -1,
         std::format("wave {} ended without reaching this barrier{}", ended->index,
                     end == nullptr ? std::string() : ", by " + name_instruction(*end)),
         {.instruction = end, .wave = ended->index});
}

std::size_t WorkgroupChecks::next_by_time(std::span<Wave* const> ready) {
  const std::size_t place = pace_.next(ready);
  const std::uint64_t now = pace_.time_of(*ready[place]);
  for (Wave* wave : workgroup_->waves) {
    if (wave->state != WaveState::ended) waves_[wave->index]->arrivals.pass(*wave, now);
  }
  return place;
}

void WorkgroupChecks::check_bounds(Wave& wave, WaveChecks& checks, const Instruction& instruction,
                                   const Effects& effects, const Runs& runs) {
  std::uint64_t base = 0;
  if (effects.space == Space::buffer) {
    const Operand& descriptor = instruction.source[effects.address_operand + 1];
    base = wave.sgpr[descriptor.index] | (std::uint64_t{wave.sgpr[descriptor.index + 1] & 0xffff} << 32);
  } else if (effects.space == Space::global) {
    const Operand& scalar = instruction.source[effects.loads && !effects.atomic ? 1 : 2];
    if (!scalar.is_present()) return;  // nothing says which allocation was meant
    base = wave.scalar64(scalar);
  } else {
    return;
  }
  const Allocation* allocation = checks.last_allocation;
  if (allocation == nullptr || base - allocation->base >= allocation->bytes) {
    allocation = launch_->find(base);
    checks.last_allocation = allocation;
  }
  const auto inside = [&](const Run& run) { return allocation != nullptr && allocation->holds(run.first, run.bytes); };
  // Where the access of a lane begins decides.
  const auto look = [&](const Run& lane) {
    if (allocation != nullptr && lane.first - allocation->base < allocation->bytes) return;
    const Allocation* holder = launch_->find(lane.first);
    if (holder == nullptr) return;  // the instruction itself reports it
    // A base a little in front of an allocation means that one: AMD's matrix products move theirs, and add it again.
    if (allocation == nullptr && holder->base - base < a_little) return;
    if (!worth_reporting(wave, instruction, Check::bounds)) return;
    report(
        wave, instruction, Check::bounds, lane.lane,
        std::format(
            "{} {} bytes at {:#x}, in the allocation [{:#x}, {:#x}), from the base {:#x}, which lies {}",
            effects.stores ? "writes" : "reads", effects.bytes, lane.first, holder->base, holder->end(), base,
            allocation == nullptr ? "in none" : std::format("in [{:#x}, {:#x})", allocation->base, allocation->end())));
  };
  for (const Run& run : runs) {
    if (!inside(run)) run.each_lane(look);
  }
}

// Finds accesses beyond the LDS that the workgroup asked for. The rest of its last granule exists; beyond it the
// hardware reads 0 and drops writes.
void WorkgroupChecks::check_local_bounds(Wave& wave, const Instruction& instruction, const Effects& effects,
                                         const LocalAddresses& local) const {
  const std::uint32_t asked = launch_->lds_bytes;
  const std::uint32_t bytes = effects.lds_dma ? std::max<std::uint32_t>(effects.bytes, 4) : effects.bytes;
  for (std::uint64_t rest = local.lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    for (unsigned element = 0; element < effects.elements; ++element) {
      const std::uint32_t first = element == 0 ? local.first[lane] : local.second[lane];
      if (std::uint64_t{first} + bytes <= asked) continue;
      if (!worth_reporting(wave, instruction, Check::bounds)) return;
      const bool writes = effects.stores || effects.lds_dma;
      const bool exists = std::uint64_t{first} + bytes <= wave.lds_bytes;
      const char* hardware = writes ? ": hardware drops it" : ": hardware reads 0 there";
      return report(wave, instruction, Check::bounds, static_cast<int>(lane),
                    std::format("{} {} bytes at LDS address {:#x}; the workgroup has {} bytes of LDS{}",
                                writes ? "writes" : "reads", bytes, first, asked,
                                exists ? ", and what is left of the last granule" : hardware));
    }
  }
}

void WorkgroupChecks::check_memory_definedness(WaveChecks& checks, const Effects& effects, const Runs& runs,
                                               UndefinedLanes& loaded) {
  if (effects.space == Space::scratch) return;
  const Allocation*& allocation = checks.data_allocation;
  const auto enter = [&](const Run& run) {
    if (allocation != nullptr && allocation->lets_read(run.first, run.bytes)) return true;
    const Allocation* found = launch_->find_readable(run.first);
    if (found == nullptr || !found->lets_read(run.first, run.bytes)) return false;  // not followed, or a fault
    allocation = found;
    return true;
  };
  const auto load_lane = [&](const Run& lane) {
    const std::uint32_t undefined = undefined_bytes(allocation->defined, lane.first - allocation->base, lane.bytes);
    if (undefined == 0) return;
    loaded.any = true;
    loaded.bytes[lane.lane] = static_cast<std::uint16_t>(undefined);
  };
  const auto touch = [&](const Run& run) {
    if (allocation->defined == nullptr) return;
    const std::uint64_t offset = run.first - allocation->base;
    if (effects.loads && !all_bytes_defined(allocation->defined, offset, run.bytes)) run.each_lane(load_lane);
    if (effects.stores && allocation->holds(run.first, run.bytes)) {
      define_bytes(allocation->defined, offset, run.bytes);
    }
  };
  for (const Run& run : runs) {
    if (enter(run)) {
      touch(run);
      continue;
    }
    run.each_lane([&](const Run& lane) {
      if (enter(lane)) touch(lane);
    });
  }
}

// By whole dwords: of one that holds something a program may want just that, and scalar instructions that take dwords
// apart are not followed by bits.
std::uint32_t WorkgroupChecks::undefined_scalars(const Wave& wave, const Instruction& instruction,
                                                 const Effects& effects) const {
  const std::uint64_t address = scalar_address(wave, instruction);
  const Allocation* allocation = launch_->find_readable(address);
  if (allocation == nullptr || allocation->defined == nullptr) return 0;
  std::uint32_t undefined = 0;
  for (unsigned i = 0; 4 * i < effects.bytes && allocation->lets_read(address + (4 * i), 4); ++i) {
    constexpr std::uint32_t all_four = 15;
    const std::uint64_t offset = address - allocation->base + (4 * i);
    undefined |= std::uint32_t{undefined_bytes(allocation->defined, offset, 4) == all_four} << i;
  }
  return undefined;
}

DeviceSpan WorkgroupChecks::take_place(const Wave& wave, const Effects& effects, const LaneAddresses& device) {
  const bool matters = shares_path_ && launch_->settings.arrival != Arrival::early && workgroup_->waves.size() > 1;
  if (!matters || device.lanes == 0 || effects.space == Space::scratch) return {};
  DeviceSpan span{.first = ~std::uint64_t{0}, .end = 0};
  for_active_lanes(device.lanes, [&](unsigned lane) {
    if (device.available[lane] == 0) return;
    span.first = std::min(span.first, device.first[lane]);
    span.end = std::max(span.end, device.first[lane] + device.available[lane]);
  });
  if (span.first >= span.end) return {};
  for (Wave* other : workgroup_->waves) {
    if (other != &wave) waves_[other->index]->arrivals.deliver_in_front_of(*other, span, effects.stores);
  }
  return span;
}

void WorkgroupChecks::memory(Wave& wave, WaveChecks& checks, const Instruction& instruction, const Effects& effects) {
  UndefinedLanes data;
  UndefinedLanes loaded;
  const bool definedness = on(Check::uninitialised);
  const bool shadows_lds = (shadow_checks() & shadowing) != 0;
  const bool is_local = effects.space == Space::lds;
  const bool is_vector_memory = !is_local && effects.space != Space::none && !is_scalar_memory(effects);
  LaneAddresses device;
  LocalAddresses local;
  std::uint64_t not_device = 0;
  if (is_vector_memory) {
    device_addresses(wave, instruction, effects, device);
    if (effects.space == Space::flat) not_device = split_flat(device, local);
  }
  if (definedness) checks.definedness.before_memory(wave, instruction, effects, not_device, data);
  AccessId lds_access = no_access;
  AccessId memory_access = no_access;
  if (is_vector_memory && device.lanes != 0) {
    const Runs runs(device, effects.bytes);
    if (on(Check::bounds)) check_bounds(wave, checks, instruction, effects, runs);
    if (definedness) check_memory_definedness(checks, effects, runs, loaded);
    if (on(Check::races) && (effects.loads || effects.stores)) {
      memory_access = memory_.access(wave, instruction, effects, runs, device);
    }
  }
  if (is_local || effects.lds_dma) local_addresses(wave, instruction, effects, local);
  if (on(Check::bounds)) check_local_bounds(wave, instruction, effects, local);
  const bool flat_into_lds = not_device != 0 && local.lanes != 0;
  if (shadows_lds && (is_local || effects.lds_dma || flat_into_lds)) {
    lds_access =
        lds_.access(wave, instruction, effects, local, kind_of(effects), effects.lds_dma ? loaded : data, loaded);
  }
  std::uint32_t undefined = 0;
  if (definedness && effects.space == Space::scalar && effects.loads) {
    undefined = undefined_scalars(wave, instruction, effects);
  }
  if (definedness) checks.definedness.after_memory(wave, instruction, effects, loaded);
  if (undefined != 0) checks.definedness.after_scalar_load(instruction, effects, undefined);
  const std::uint64_t arrives = keeps_time_ ? pace_.issue(wave, instruction) : 0;
  if (effects.action == Action::write_back && instruction.sc1) {
    for (Wave* other : workgroup_->waves) waves_[other->index]->arrivals.deliver_from_before_barrier(*other);
  }
  OrderTicket* const ticket = memory_.order().begin(
      wave.index, instruction, effects, is_vector_memory ? &device : nullptr, memory_access,
      [&] { return memory_.state(checks.arrivals.oldest_memory()); }, checks.ticket);
  checks.arrivals.issue(wave, instruction, effects,
                        {.lds_access = lds_access,
                         .memory_access = memory_access,
                         .arrives = arrives,
                         .ticket = ticket,
                         .device = is_vector_memory ? take_place(wave, effects, device) : DeviceSpan{}});
}

bool WorkgroupChecks::waits_for_time(Wave& wave, WaveChecks& checks, const Instruction& instruction, Counts counts) {
  if (!keeps_time_) return false;
  const std::uint64_t there = checks.arrivals.there_by(counts);
  if (there <= pace_.time_of(wave)) return false;
  pace_.wait_until(wave, there);
  wave.next = &instruction;
  checks.waits_at = &instruction;
  return true;
}

void WorkgroupChecks::step(Wave& wave, WaveChecks& checks, const Instruction& instruction, const Effects& effects) {
  checks.arrivals.check_registers(wave, instruction, effects);
  if (on(Check::hazards)) {
    if (is_rdna4_) {
      checks.rdna4_hazards.step(wave, instruction, effects);
    } else {
      checks.hazards.step(wave, instruction, effects);
    }
  }
  if (on(Check::uniform)) {
    const std::uint64_t lanes = effects.all_lanes ? wave.all_lanes : wave.exec();
    for (unsigned i = 0; i < effects.write_count; ++i) {
      const Registers& range = effects.writes[i];
      if (range.scalar) continue;
      std::fill_n(checks.written_lanes.begin() + range.first, range.count, lanes);
    }
  }
  if (effects.counts_vector || effects.counts_local) return memory(wave, checks, instruction, effects);
  if (keeps_time_) pace_.issue(wave, instruction);
  switch (effects.action) {
    case Action::wait:
      if (waits_for_time(wave, checks, instruction, effects.wait)) return;
      checks.arrivals.wait(wave, effects.wait);
      return;
    case Action::end:
      if (waits_for_time(wave, checks, instruction, {.vector = 0, .local = 0})) return;
      checks.ended_at = &instruction;
      checks.arrivals.finish(wave);
      if (wave.state == WaveState::faulted) return;
      break;
    case Action::signal_barrier:
      lds_.signal(wave.index, checks.arrivals.oldest_local(), checks.arrivals.oldest_dma());
      memory_.signal(wave.index, checks.arrivals.oldest_memory());
      break;
    case Action::invalidate:
      if (instruction.sc1) memory_.order().invalidate(wave.index);
      break;
    case Action::read_first_lane:
      if (on(Check::uniform)) check_uniform(wave, checks, instruction);
      break;
    case Action::matrix:
    case Action::lane_swap:
      if (wave.exec() != wave.all_lanes && on(Check::exec) && worth_reporting(wave, instruction, Check::exec)) {
        report(wave, instruction, Check::exec, std::countr_one(wave.exec()),
               std::format("works on all lanes, and EXEC is {:#x}: what the others hold takes part", wave.exec()));
      }
      break;
    default:
      break;
  }
  if (on(Check::uninitialised)) checks.definedness.step(wave, instruction, effects);
  instruction.execute(wave, instruction);
}

void WorkgroupChecks::run_slice(Wave& wave, std::int64_t instructions) {
  WaveChecks& checks = *waves_[wave.index];
  wave.budget = instructions;
  wave.executed += static_cast<std::uint64_t>(instructions);
  checks.arrivals.age(wave);
  while (wave.budget > 0) {
    --wave.budget;
    const Instruction& instruction = *wave.next;
    if (instruction.function != checks.function) {
      checks.function = instruction.function;
      checks.effects = &effects_of(*instruction.function);
      memory_.order().enter(*checks.effects);
      if (loops_ != nullptr && checks.effects->swaps()) loops_->follow();
      checks.first_instruction = instruction.function->instructions.data();
    }
    const bool again = std::exchange(checks.waits_at, nullptr) == &instruction;
    if (observer_ != nullptr && !again) observer_->before(wave, instruction);
    wave.next = &instruction + 1;
    step(wave, checks, instruction,
         (*checks.effects)[static_cast<std::size_t>(&instruction - checks.first_instruction)]);
  }
}

}  // namespace wavejit::simgpu::checks
