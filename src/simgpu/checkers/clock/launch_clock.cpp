// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/clock/launch_clock.h"

#include <algorithm>
#include <format>
#include <iterator>
#include <utility>

#include "boards/board.h"
#include "simgpu/checkers/clock/grid.h"
#include "simgpu/checkers/clock/guest_clock.h"
#include "simgpu/checkers/clock/report.h"
#include "simgpu/checkers/clock/timeline.h"
#include "simgpu/checkers/facts/effects.h"
#include "simgpu/checkers/facts/kind.h"
#include "simgpu/machine/launch/launch.h"
#include "simgpu/process/clock_config.h"
#include "simgpu/process/process.h"

namespace wavejit::simgpu::clock {

ClockLog& ClockLog::instance() {
  static auto* const log = new ClockLog();  // launches may outlive static destructors
  return *log;
}

ClockLog::ClockLog() : sample_(Process::instance().config().clock_sample), warm_(read_clock_config().warm) {}

void ClockLog::set_sample(std::uint32_t workgroups) {
  const std::scoped_lock lock(mutex_);
  keeps_ = workgroups != 0;
  sample_ = keeps_ ? workgroups : Process::instance().config().clock_sample;
}

std::uint32_t ClockLog::sample() const {
  const std::scoped_lock lock(mutex_);
  return sample_;
}

void ClockLog::set_timeline(std::uint64_t cycles) {
  const std::scoped_lock lock(mutex_);
  timeline_ = cycles;
}

void ClockLog::set_warm(bool warm) {
  const std::scoped_lock lock(mutex_);
  warm_ = warm;
}

bool ClockLog::is_warm() const {
  const std::scoped_lock lock(mutex_);
  return warm_;
}

WriteLog ClockLog::writes(std::uint64_t queue) const {
  const std::scoped_lock lock(mutex_);
  const auto found = writes_.find(queue);
  return found == writes_.end() ? WriteLog() : found->second;
}

void ClockLog::add_writes(std::uint64_t queue, Writes written) {
  constexpr std::size_t most_queues = 64;  // a program that makes queues again and again begins anew
  const std::scoped_lock lock(mutex_);
  if (writes_.size() >= most_queues && !writes_.contains(queue)) writes_.clear();
  writes_[queue].add(std::move(written));
}

LaunchBegin ClockLog::launch_begin() const {
  const std::scoped_lock lock(mutex_);
  return {.origin = origin_, .picoseconds = latest_, .waits = latest_ != 0};
}

void ClockLog::launch_ended(std::uint64_t picoseconds) {
  const std::scoped_lock lock(mutex_);
  latest_ = std::max(latest_, picoseconds);
}

std::uint64_t ClockLog::timeline() const {
  const std::scoped_lock lock(mutex_);
  return timeline_;
}

void ClockLog::offer_trace(std::uint64_t cycles, const std::function<std::string()>& make) {
  const std::scoped_lock lock(mutex_);
  if (cycles < trace_cycles_) return;
  trace_cycles_ = cycles;
  trace_ = make();
}

std::string ClockLog::take_trace(std::size_t capacity) {
  const std::scoped_lock lock(mutex_);
  std::string text = trace_;
  if (text.size() < capacity) {
    trace_.clear();
    trace_cycles_ = 0;
  }
  return text;
}

bool ClockLog::keeps_results() const {
  const std::scoped_lock lock(mutex_);
  return keeps_;
}

void ClockLog::add(std::string json) {
  constexpr std::size_t most = 1000;
  const std::scoped_lock lock(mutex_);
  if (results_.size() < most) results_.push_back(std::move(json));
}

std::string ClockLog::take(std::size_t capacity) {
  const std::scoped_lock lock(mutex_);
  std::string text;
  for (const std::string& result : results_) text += result + "\n";
  if (text.size() < capacity) results_.clear();
  return text;
}

namespace {

// `launch` outlives what is returned.
LaunchMemory memory_of(const Launch& launch) {
  LaunchMemory memory;
  memory.find = [&](std::uint64_t address) { return launch.find(address); };
  memory.warm = ClockLog::instance().is_warm();
  if (!memory.warm) {
    memory.in_last_level =
        ClockLog::instance()
            .writes(launch.queue_address)
            .left_in_last_level(launch.device, timing::find_timing(*launch.target)->memory, memory.find);
  }
  return memory;
}

}  // namespace

std::unique_ptr<LaunchClock> LaunchClock::begin(Launch& launch, std::uint64_t first, std::uint64_t step,
                                                std::uint64_t count) {
  std::uint32_t sample = ClockLog::instance().sample();
  if (sample == 0) return nullptr;
  std::unique_ptr<LaunchClock> clock(new LaunchClock(launch, ClockLog::instance().keeps_results()));
  const timing::Timing* timing = timing::find_timing(*launch.target);
  // The schedule `timed` checks nothing: its waves execute what they would.
  const bool is_abreast = launch.settings.checks == 0 && launch.settings.arrival == Arrival::timed;
  if (timing == nullptr) {
    clock->refusal_ = "nothing is known about the timing of " + std::string(launch.target->id);
  } else if (launch.target->wave_size < static_cast<int>(lane_places) && launch.entry != nullptr &&
             !launch.entry->function->has_narrow_masks) {
    clock->refusal_ = "waves of 64 lanes are not timed on a target whose waves have 32";
  } else if (wants_checker(launch.settings) && !is_abreast) {
    clock->refusal_ = "checks and late arrivals are on: a launch is checked or timed";
  } else if (launch.observer != nullptr) {
    clock->refusal_ = "the launch has an observer of its own";
  } else {
    // Which of them merge what others left shows in none of the grid's dimensions.
    constexpr std::uint32_t most_that_differ = 256;
    clock->orders_workgroups_ =
        launch.entry != nullptr && checks::effects_of(*launch.entry->function).orders_workgroups();
    if (clock->orders_workgroups_) sample = std::max(sample, most_that_differ);
    const auto& grid = launch.workgroups;
    const bool whole = first == 0 && step == 1 && count == std::uint64_t{grid[0]} * grid[1] * grid[2];
    clock->seeds_ =
        whole ? choose_sample(grid, sample, *launch.target) : choose_sample(first, step, count, sample, *launch.target);
    const std::uint64_t last = clock->workgroups() - 1;
    if (clock->orders_workgroups_ && whole && !std::ranges::contains(clock->seeds_, last, &Seed::workgroup)) {
      clock->seeds_.push_back(with_neighbours(last, grid, *launch.target));
    }
    clock->sample_ = workgroups_of(clock->seeds_);
    if (whole) clock->ends_ = Survey::ends(grid, clock->sample_);
    std::ranges::set_union(clock->sample_, clock->ends_, std::back_inserter(clock->to_run_));
    clock->recorder_ = std::make_unique<TraceRecorder>(*timing, clock->sample_, clock->ends_);
    clock->begin_ = launch.begin.value_or(ClockLog::instance().launch_begin());
    if (reads_clock(launch)) {
      clock->guest_clock_ = std::make_unique<GuestClock>(*clock->recorder_, launch, clock->begin_, memory_of(launch));
    }
  }
  return clock;
}

std::uint64_t LaunchClock::workgroups() const {
  const auto& grid = launch_->workgroups;
  return std::uint64_t{grid[0]} * grid[1] * grid[2];
}

std::span<const std::uint64_t> LaunchClock::needed() const {
  constexpr std::uint64_t few = 64;
  return workgroups() <= few || orders_workgroups_ ? std::span<const std::uint64_t>() : to_run_;
}

// A kernel that stores and multiplies no matrices may prepare what kernels behind it go by, as walks of lists. How many
// workgroups it has says nothing: what all of them cost decides.
bool LaunchClock::prepares_cheaply() const {
  constexpr std::uint64_t most_instructions = 100'000'000;
  constexpr std::uint64_t most_workgroups = 1'000'000;
  if (workgroups() > most_workgroups) return false;
  const std::vector<SampledWork> timed = recorder_->work();
  std::uint64_t all = 0;
  if (survey_) {
    for (std::uint64_t id = 0; id < workgroups(); ++id) all += survey_->work_of(id);
  } else {
    for (const SampledWork& each : timed) all += each.instructions * workgroups() / timed.size();
  }
  if (all > most_instructions) return false;
  std::unordered_set<const Instruction*> seen;
  bool stores = false;
  for (const WorkgroupTrace& trace : recorder_->traces()) {
    for (const WaveTrace& wave : trace.waves) {
      for (const Record& record : wave.records) {
        const Instruction& instruction = *record.instruction;
        if (!seen.insert(&instruction).second) continue;
        if (kind_of(instruction) == Kind::matrix) return false;
        if (instruction.instruction_class != InstructionClass::memory) continue;
        const checks::Effects& effects = checks::effects_of(
            *instruction.function)[static_cast<std::size_t>(&instruction - instruction.function->instructions.data())];
        const bool of_memory =
            effects.space == Space::buffer || effects.space == Space::global || effects.space == Space::flat;
        stores = stores || (effects.stores && of_memory);
      }
    }
  }
  return stores;
}

std::vector<std::uint64_t> LaunchClock::widen() {
  if (recorder_ == nullptr || needed().empty() || whole_) return {};
  if (ran_.empty()) ran_.insert(to_run_.begin(), to_run_.end());
  if (std::vector<std::uint64_t> more = more_to_time(); !more.empty()) {
    ran_.insert(more.begin(), more.end());
    return more;
  }
  whole_ = true;
  if (!prepares_cheaply()) return {};
  std::vector<std::uint64_t> others;
  for (std::uint64_t id = 0; id < workgroups(); ++id)
    if (!ran_.contains(id)) others.push_back(id);
  return others;
}

std::vector<std::uint64_t> LaunchClock::more_to_time() {
  if (surveyed_) return {};
  std::vector<SampledWork> work = recorder_->work();
  if (!survey_) {
    surveyed_ = !Survey::needed(work, recorder_->counted(), launch_->workgroups);
    if (surveyed_) return {};
    survey_.emplace(launch_->workgroups);
  }
  // The sample's traces are dropped: others are timed.
  std::ranges::copy(recorder_->counted(), std::back_inserter(work));
  if (const std::vector<std::uint64_t> ids = survey_->next(work); !ids.empty()) {
    recorder_->count(ids);
    return ids;
  }
  surveyed_ = true;
  if (survey_->found_nothing()) {
    survey_.reset();
  } else {
    seeds_ = survey_->seeds(*launch_->target);
  }
  sample_ = workgroups_of(seeds_);
  recorder_->trace(sample_);
  return sample_;
}

void LaunchClock::refuse(std::string reason) {
  if (keeps_results_) ClockLog::instance().add(refusal_json(launch_->kernel->name, *launch_->target, reason));
  launch_->not_timed = std::move(reason);
}

void LaunchClock::finish() {
  if (recorder_ == nullptr) return refuse(std::move(refusal_));
  Program program(*timing::find_timing(*launch_->target), *launch_->target);
  GridShape shape;
  shape.workgroups = launch_->workgroups;
  const auto& size = launch_->workgroup_size;
  const auto lanes = static_cast<unsigned>(launch_->target->wave_size);
  shape.waves = ((size[0] * size[1] * size[2]) + lanes - 1) / lanes;
  shape.vgprs = launch_->descriptor->vgprs();
  shape.lds_bytes = launch_->lds_bytes;
  const std::uint64_t timeline = ClockLog::instance().timeline();
  LaunchMemory memory = memory_of(*launch_);
  Writes written = written_by(recorder_->traces(), workgroups(),
                              static_cast<std::uint64_t>(program.timing().memory.line.cycles()), memory.find);
  if (memory.warm) {
    const Writes launches[] = {ClockLog::instance().writes(launch_->queue_address).latest(), written};
    memory.written = lines_of(launches);
  }
  ClockLog::instance().add_writes(launch_->queue_address, std::move(written));
  auto grid = time_grid(program, shape, seeds_, recorder_->traces(), timeline, survey_ ? &*survey_ : nullptr, memory);
  if (!grid) return refuse(grid.error());
  // Nobody could ask for more of a launch that ran whole.
  if (grid->doubt.empty() && !surveyed_ && seeds_.size() < shape.total() &&
      Survey::needed(recorder_->work(), recorder_->counted(), launch_->workgroups)) {
    grid->doubt = std::format(
        "the launch ran whole and its workgroups differ: {} of {} were timed, and the work of others is guessed from theirs{}",
        grid->units.size(), grid->workgroups,
        orders_workgroups_ ? "" : "; `wavejit profile` and `run --cycles` look for those that differ");
  }
  launch_->time = {.cycles = grid->cycles,
                   .dependent_cycles = static_cast<std::uint64_t>(program.timing().launch.dependent.cycles())};
  if (!launch_->begin) {
    const std::uint64_t all = grid->cycles + (begin_.waits ? launch_->time->dependent_cycles : 0);
    ClockLog::instance().launch_ended(begin_.picoseconds + picoseconds_of(all, launch_->target->clock_khz));
  }
  launch_->doubt = grid->doubt;
  if (timeline != 0) {
    ClockLog::instance().offer_trace(grid->cycles,
                                     [&] { return chrome_trace(launch_->kernel->name, grid->units.front(), program); });
  }
  if (keeps_results_) ClockLog::instance().add(grid_json(*launch_->kernel, shape, *grid, program));
}

}  // namespace wavejit::simgpu::clock
