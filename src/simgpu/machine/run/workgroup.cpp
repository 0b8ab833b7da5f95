// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Starting the waves of a workgroup as the hardware does, and running them in the order that the schedule asks for.
// Initial register state: LLVM's AMDGPU usage document, "Initial Kernel Execution State", for targets with architected
// flat scratch and packed work-item ids (gfx942, gfx950).
#include "simgpu/machine/run/workgroup.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <format>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <string_view>

#include "boards/board.h"
#include "boards/lds_allocation.h"
#include "isa/instruction_set.h"
#include "simgpu/machine/compile/slice.h"
#include "simgpu/machine/decode/function.h"
#include "simgpu/machine/numerics/noise.h"
#include "simgpu/process/process.h"
#include "simgpu/process/symbol_names.h"

namespace wavejit::simgpu {
namespace {

// A slice of the in-order schedules: a wave that spins on another wave's progress gives way after this many
// instructions.
constexpr std::int64_t long_slice = 1'000'000;

// In a row: then another workgroup of the launch may be what these waves wait for.
constexpr unsigned most_sleeps = 10'000;

enum NoiseStream : std::uint8_t { noise_vector, noise_scalar, noise_lds, noise_scratch, noise_schedule, noise_arrival };

std::uint64_t noise_seed(const Launch& launch, std::uint64_t workgroup, unsigned wave, NoiseStream stream) {
  return mix(launch.settings.seed ^ mix(workgroup + 1)) + (std::uint64_t{wave} << 8) + stream;
}

void run_slice(Wave& wave, std::int64_t instructions) {
  wave.budget = instructions;
  wave.executed += static_cast<std::uint64_t>(instructions);
  while (wave.budget > 0) {
    --wave.budget;
    const Instruction& instruction = *wave.next;
    wave.next = &instruction + 1;
    instruction.execute(wave, instruction);
  }
}

// The same under somebody's eyes; apart, so that nobody else pays for it.
void run_observed_slice(Wave& wave, std::int64_t instructions, Observer& observer) {
  wave.budget = instructions;
  wave.executed += static_cast<std::uint64_t>(instructions);
  while (wave.budget > 0) {
    --wave.budget;
    const Instruction& instruction = *wave.next;
    observer.before(wave, instruction);
    wave.next = &instruction + 1;
    instruction.execute(wave, instruction);
  }
}

std::string where(const Wave& wave) {
  const Instruction& instruction = *wave.next;
  return std::format("wave {} at {}+{:#x} ({}{})", wave.index, short_name(instruction.function->name),
                     instruction.offset_in_function, instruction.function->text(instruction),
                     wave.state == WaveState::at_barrier ? ", waiting at the barrier before it" : "");
}

}  // namespace

std::uint32_t Wave::scalar_special(unsigned source) const {
  switch (source) {
    case source_vccz:
      return vcc() == 0 ? 1 : 0;
    case source_execz:
      return exec() == 0 ? 1 : 0;
    case source_scc:
      return scc;
    // A 32-bit read of an aperture gives its low half (LLVM, SITargetLowering::getSegmentAperture): zero.
    default:
      return 0;
  }
}

std::uint64_t Wave::scalar_special64(unsigned source) const {
  switch (source) {
    case source_shared_base:
      return shared_aperture;
    case source_shared_limit:
      return shared_aperture + aperture_bytes - 1;
    case source_private_base:
      return private_aperture;
    case source_private_limit:
      return private_aperture + aperture_bytes - 1;
    default:
      return scalar_special(source);
  }
}

WorkgroupRunner::WorkgroupRunner() = default;
WorkgroupRunner::~WorkgroupRunner() = default;

void WorkgroupRunner::begin(Launch& launch, std::uint64_t linear_id) {
  launch_ = &launch;
  // The compiled engine does not know these: they go by the interpreter.
  is_rdna4_ = isa::instruction_set(*launch.target) == isa::InstructionSet::rdna4;
  workgroup_.launch = &launch;
  workgroup_.linear_id = linear_id;
  std::uint64_t rest = linear_id;
  for (unsigned i = 0; i < 3; ++i) {
    workgroup_.id[i] = static_cast<std::uint32_t>(rest % launch.workgroups[i]);
    rest /= launch.workgroups[i];
    const std::uint32_t before = workgroup_.id[i] * launch.workgroup_size[i];
    workgroup_.size[i] = std::min(launch.workgroup_size[i], launch.work_items[i] - before);
  }
  prepare(launch, workgroup_);
  random_ = Random(noise_seed(launch, linear_id, 0, noise_schedule));
  observer_ = launch.observer != nullptr && launch.observer->wants(linear_id) ? launch.observer : nullptr;
  checking_ = nullptr;
  if (wants_checker(launch.settings)) {
    if (checker_ == nullptr) checker_ = seat_checker();
    checking_ = checker_.get();
    checking_->prepare(launch, workgroup_, noise_seed(launch, linear_id, 0, noise_arrival), observer_);
  }
  began_ = std::chrono::steady_clock::now();
  ran_ = 0;
  ended_ = turn_ = 0;
  slice_ = 0;
  sleeps_ = 0;
  stopped_ = false;
  ready_.assign(workgroup_.waves.begin(), workgroup_.waves.end());
  if (launch.settings.schedule == Schedule::reverse) std::ranges::reverse(ready_);
}

void WorkgroupRunner::finish() const {
  std::uint64_t executed = 0;
  std::uint64_t matrix = 0;
  std::uint64_t matrix_nanoseconds = 0;
  for (const Wave* wave : workgroup_.waves) {
    executed += wave->executed;
    matrix += wave->matrix_instructions;
    matrix_nanoseconds += wave->matrix_nanoseconds;
  }
  Counters& counters = Process::instance().counters();
  counters.workgroups.fetch_add(1, std::memory_order_relaxed);
  counters.wave_instructions.fetch_add(executed, std::memory_order_relaxed);
  counters.matrix_instructions.fetch_add(matrix, std::memory_order_relaxed);
  counters.matrix_nanoseconds.fetch_add(matrix_nanoseconds, std::memory_order_relaxed);
}

void WorkgroupRunner::prepare(const Launch& launch, Workgroup& workgroup) {
  const std::uint32_t threads = workgroup.size[0] * workgroup.size[1] * workgroup.size[2];
  const unsigned lanes = is_rdna4_ ? launch.descriptor->lanes() : static_cast<unsigned>(launch.target->wave_size);
  const unsigned count = (threads + lanes - 1) / lanes;
  if (waves_.size() < count) {
    WaveBlock more = make_waves(count);
    waves_.resize(count);
    for (unsigned i = 0; i < count; ++i) waves_[i] = &more[i];
    storage_ = std::move(more);
  }
  workgroup.waves = std::span(waves_).first(count);
  workgroup.barrier_was_completed = false;

  const std::uint32_t lds_bytes = boards::lds_allocation(*launch.target, launch.lds_bytes);
  const std::size_t lds_words = lds_bytes / 8;
  // The widest access beyond the last byte stays inside the buffer even before it is checked.
  if (lds_.size() < lds_words + 8) lds_.resize(lds_words + 8);
  fill_noise(reinterpret_cast<std::uint32_t*>(lds_.data()), lds_words * 2,
             noise_seed(launch, workgroup.linear_id, 0, noise_lds));
  const std::size_t scratch_words = std::size_t{launch.scratch_bytes_per_lane} * lanes * count / 8;
  if (scratch_.size() < scratch_words) scratch_.resize(scratch_words);
  fill_noise(reinterpret_cast<std::uint32_t*>(scratch_.data()), scratch_words * 2,
             noise_seed(launch, workgroup.linear_id, 0, noise_scratch));
  for (unsigned i = 0; i < count; ++i) {
    Wave& wave = *waves_[i];
    wave.workgroup = &workgroup;
    wave.set_lane_count(lanes);
    wave.lds = reinterpret_cast<std::uint8_t*>(lds_.data());
    wave.lds_bytes = lds_bytes;
    wave.scratch =
        reinterpret_cast<std::uint8_t*>(scratch_.data()) + (std::size_t{launch.scratch_bytes_per_lane} * lanes * i);
    wave.scratch_bytes_per_lane = launch.scratch_bytes_per_lane;
    prepare_wave(launch, workgroup, wave, i);
  }
}

void WorkgroupRunner::prepare_wave(const Launch& launch, const Workgroup& workgroup, Wave& wave, unsigned index) {
  const KernelDescriptor& descriptor = *launch.descriptor;
  // Allocated registers only: the others are never touched by correct code.
  const unsigned total = descriptor.vgprs();
  const unsigned architectural =
      is_rdna4_ ? std::min(total, 256u) : std::min({descriptor.accumulation_offset(), total, 256u});
  const unsigned accumulation = is_rdna4_ ? 0 : std::min(total - architectural, 256u);
  const std::uint64_t vector_seed = noise_seed(launch, workgroup.linear_id, index, noise_vector);
  fill_noise(wave.vgpr[0], std::size_t{architectural} * lane_places, vector_seed);
  fill_noise(wave.vgpr[accumulation_base], std::size_t{accumulation} * lane_places, ~vector_seed);
  fill_noise(wave.sgpr, sgpr_count, noise_seed(launch, workgroup.linear_id, index, noise_scalar));

  wave.index = static_cast<std::uint16_t>(index);
  wave.state = WaveState::ready;
  wave.scc = static_cast<std::uint32_t>(vector_seed & 1);
  // RDNA4 clamps NaN to 0, and its minima and maxima know no IEEE mode.
  wave.mode = is_rdna4_ ? descriptor.float_mode() | mode_dx10_clamp : descriptor.initial_mode();
  wave.priority = 0;
  wave.has_signalled = wave.may_pass = false;
  wave.executed = wave.slept = 0;
  wave.matrix_instructions = 0;
  wave.matrix_nanoseconds = 0;
  wave.times_matrix = launch.settings.time_matrix;
  wave.summation = launch.summation ? &*launch.summation : nullptr;
  wave.transcendentals_key = launch.transcendentals_key;
  std::ranges::fill(wave.recent_allocation, nullptr);
  wave.next = launch.entry;

  const auto& size = workgroup.size;
  const std::uint32_t threads = size[0] * size[1] * size[2];
  const std::uint32_t first = index * wave.lane_count;
  const std::uint32_t active = std::min(threads - first, wave.lane_count);
  wave.set_exec(active == wave.lane_count ? wave.all_lanes : (std::uint64_t{1} << active) - 1);
  const unsigned dimensions = descriptor.workitem_id();
  for (std::uint32_t lane = 0; lane < active; ++lane) {
    const std::uint32_t thread = first + lane;
    std::uint32_t id = thread % size[0];
    if (dimensions >= 1) id |= (thread / size[0] % size[1]) << 10;
    if (dimensions >= 2) id |= (thread / size[0] / size[1]) << 20;
    wave.vgpr[0][lane] = id;
  }

  unsigned next = 0;
  const auto give = [&](std::uint32_t value) {
    if (next < sgpr_flat_scratch) wave.sgpr[next++] = value;
  };
  const auto give_pointer = [&](std::uint64_t value) {
    give(static_cast<std::uint32_t>(value));
    give(static_cast<std::uint32_t>(value >> 32));
  };
  if (descriptor.property(property_private_segment_buffer)) {
    give_pointer(0);
    give_pointer(0);
  }
  if (descriptor.property(property_dispatch_ptr)) give_pointer(launch.own_memory[1].base);
  if (descriptor.property(property_queue_ptr)) give_pointer(launch.own_memory[2].base);
  if (descriptor.property(property_kernarg_ptr)) give_pointer(launch.own_memory[0].base);
  if (descriptor.property(property_dispatch_id)) give_pointer(0);
  if (descriptor.property(property_flat_scratch_init)) give_pointer(0);
  if (descriptor.property(property_private_segment_size)) give(launch.scratch_bytes_per_lane);
  const auto* arguments = host_pointer<const std::uint32_t>(launch.own_memory[0].base);
  const std::size_t argument_words = launch.own_memory[0].bytes / 4;
  for (unsigned i = 0; i < descriptor.preload_dwords(); ++i) {
    const std::size_t word = descriptor.preload_offset() + i;
    give(word < argument_words ? arguments[word] : 0);
  }
  next = std::max(next, descriptor.user_sgprs());
  if (is_rdna4_) {
    // LLVM's AMDGPU usage document, "Architected Trap Temporaries": the workgroup's place, the wave's in it.
    constexpr unsigned place_yz = sgpr_ttmp0 + 7;
    constexpr unsigned wave_in_group = sgpr_ttmp0 + 8;
    constexpr unsigned place_x = sgpr_ttmp0 + 9;
    wave.sgpr[place_yz] = (workgroup.id[1] & 0xffff) | (workgroup.id[2] << 16);
    wave.sgpr[wave_in_group] = index << 25;
    wave.sgpr[place_x] = workgroup.id[0];
    return;
  }
  for (unsigned i = 0; i < 3; ++i) {
    if (descriptor.workgroup_id(i)) give(workgroup.id[i]);
  }
  if (descriptor.workgroup_info()) give(0);
}

// Everybody who still runs is at the barrier; waves that ended are not waited for.
void WorkgroupRunner::pass_barrier() {
  if (checking_ != nullptr) checking_->barrier();
  for (Wave* wave : workgroup_.waves) {
    if (wave->state != WaveState::at_barrier) continue;
    wave->state = WaveState::ready;
    wave->has_signalled = wave->may_pass = false;
    ready_.push_back(wave);
  }
  if (launch_->settings.schedule == Schedule::reverse) std::ranges::reverse(ready_);
  turn_ = 0;
}

// A barrier in two parts that all have signalled: who stands at it goes on, who has not come so far yet will not stop.
void WorkgroupRunner::pass_completed_barrier() {
  workgroup_.barrier_was_completed = false;
  if (checking_ != nullptr) checking_->barrier();
  for (Wave* wave : workgroup_.waves) {
    // One that has gone on may stand at the next barrier already.
    if (wave->state != WaveState::at_barrier || !wave->may_pass) continue;
    wave->state = WaveState::ready;
    wave->may_pass = false;
    ready_.push_back(wave);
  }
}

// Chooses the wave whose turn it is, and returns for how many instructions.
std::int64_t WorkgroupRunner::choose_wave() {
  if (launch_->settings.schedule == Schedule::timed) {
    choice_ = checking_->next_by_time(ready_);
    return 1;
  }
  choice_ = turn_ % ready_.size();
  if (launch_->settings.schedule != Schedule::random) return long_slice;
  choice_ = random_.below(static_cast<std::uint32_t>(ready_.size()));
  // Mostly short turns, sometimes a long lead of one wave over the others.
  return random_.below(16) == 0 ? 1 + random_.below(4096) : 1 + random_.below(64);
}

void WorkgroupRunner::run_slice_of(Wave& wave, std::int64_t instructions) {
  wave.state = WaveState::ready;
  if (checking_ != nullptr) {
    checking_->run_slice(wave, instructions);
  } else if (observer_ != nullptr) {
    run_observed_slice(wave, instructions, *observer_);
  } else if (launch_->settings.engine == Engine::compile) {
    compile::run_slice(wave, instructions, launch_->settings.translate_after);
  } else {
    run_slice(wave, instructions);
  }
}

void WorkgroupRunner::give_up_endless_loop(const Wave& wave) {
  const std::uint64_t limit = launch_->settings.instruction_limit;
  if (wave.state != WaveState::ready || wave.executed < limit) return;
  std::string text = std::format(
      "kernel {}: workgroup ({}, {}, {}): no end after {} instructions of a wave (an endless "
      "loop or waves that wait for each other):",
      demangled(launch_->kernel->name), workgroup_.id[0], workgroup_.id[1], workgroup_.id[2], limit);
  for (const Wave* other : workgroup_.waves) {
    if (other->state != WaveState::ended) text += " " + where(*other) + ";";
  }
  launch_->fail(workgroup_.linear_id, hip_error_launch_failure, std::move(text));
  stopped_ = true;
}

// Once a kernel: a program that hangs because a kernel does not end looks like one that is slow.
void WorkgroupRunner::say_when_long(const Wave& wave) {
  const std::chrono::milliseconds patience = Process::instance().config().patience;
  if (patience.count() == 0 || std::chrono::steady_clock::now() - began_ < patience) return;
  static std::mutex mutex;
  // Never destroyed: a program may end while its kernel does not.
  static auto* const said = new std::set<std::string>();
  constexpr std::size_t most_kernels = 1000;
  const std::string& kernel = launch_->kernel->name;
  {
    const std::scoped_lock lock(mutex);
    if (said->size() >= most_kernels || !said->insert(kernel).second) return;
  }
  const std::string_view of_hip =
      kernel.starts_with("__amd_rocclr_") ? " (HIP's own: in it hipStreamWaitValue waits for a value in memory)" : "";
  const std::string line = std::format(
      "wavejit simulated GPU: kernel {}{}: workgroup ({}, {}, {}) has run for {:g} s and goes on: {} after {} "
      "instructions. Where it never ends: Ctrl-C ends the program, WAVEJIT_SIM_INSTRUCTION_LIMIT=<instructions of a "
      "wave> such a kernel\n",
      demangled(kernel), of_hip, workgroup_.id[0], workgroup_.id[1], workgroup_.id[2],
      std::chrono::duration<double>(patience).count(), where(wave), wave.executed);
  static_cast<void>(std::fputs(line.c_str(), stderr));
}

bool WorkgroupRunner::advance(std::int64_t instructions) {
  const std::uint64_t limit = launch_->settings.instruction_limit;
  while (instructions > 0 && ended_ < workgroup_.waves.size() && !stopped_) {
    if (ready_.empty()) pass_barrier();
    if (slice_ <= 0) slice_ = choose_wave();
    Wave& wave = *ready_[choice_];
    const std::int64_t slice = std::min({slice_, instructions, static_cast<std::int64_t>(limit - wave.executed)});
    const std::uint64_t before = wave.executed;
    run_slice_of(wave, slice);
    const auto ran = static_cast<std::int64_t>(wave.executed - before);
    instructions -= std::max<std::int64_t>(ran, 1);
    slice_ -= slice;
    give_up_endless_loop(wave);
    ran_ += std::max<std::int64_t>(ran, 1);
    constexpr std::int64_t between_looks = 1 << 18;  // some milliseconds
    if (ran_ >= between_looks && wave.state != WaveState::ended && wave.state != WaveState::faulted) {
      ran_ = 0;
      say_when_long(wave);
    }
    stopped_ = stopped_ || launch_->is_stopped();
    switch (wave.state) {
      case WaveState::ended:
        ++ended_;
        break;
      case WaveState::at_barrier:
        break;
      case WaveState::faulted:
        stopped_ = true;
        break;
      case WaveState::ready:
        if (workgroup_.barrier_was_completed) pass_completed_barrier();
        if (slice_ <= 0) ++turn_;
        continue;
      case WaveState::sleeping:
        slice_ = 0;
        ++turn_;
        // Nobody here has anything to do but to look again, once others have run.
        if (++sleeps_ < (launch_->cooperative ? ready_.size() : most_sleeps)) continue;
        sleeps_ = 0;
        return false;
    }
    slice_ = 0;
    sleeps_ = 0;
    ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(choice_));
    if (workgroup_.barrier_was_completed) pass_completed_barrier();
  }
  return stopped_ || ended_ == workgroup_.waves.size();
}

}  // namespace wavejit::simgpu
