// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/clock/compute_unit.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <format>
#include <memory>
#include <span>
#include <unordered_set>
#include <utility>

#include "boards/board.h"
#include "simgpu/checkers/clock/lds_unit.h"
#include "simgpu/checkers/clock/memory_unit.h"
#include "simgpu/checkers/clock/timeline_notes.h"
#include "simgpu/checkers/clock/wave_state.h"

namespace wavejit::simgpu::clock {
namespace {

class ComputeUnit {
 public:
  ComputeUnit(Program& program, const ComputeUnitRequest& request)
      : program_(&program),
        timing_(&program.timing()),
        request_(&request),
        path_(program.timing().memory, request.neighbours,
              static_cast<std::size_t>(boards::compute_units_of_place(program.target()))),
        instructions_(static_cast<std::uint64_t>(program.timing().wave.instruction_cache.cycles()) / code_line, 8),
        simds_(static_cast<std::size_t>(program.target().simds_per_compute_unit *
                                        boards::compute_units_of_place(program.target()))),
        lds_(program.timing().lds_unit, simds_.size()),
        notes_(request.timeline_first, request.timeline_last),
        slack_(program.timing().wave.look.value - 1),
        is_ordered_(program.timing().ordered.known()) {
    result_.simds.resize(simds_.size());
    const auto units = static_cast<std::size_t>(boards::compute_units_of_place(program.target()));
    for (std::size_t unit = 0; unit < units; ++unit) memory_.emplace_back(timing_->memory, path_, unit);
  }

  std::expected<ComputeUnitResult, std::string> run();

 private:
  static constexpr std::uint64_t code_line = 64;
  static constexpr std::uint64_t patience = 50'000'000;  // cycles without an instruction: nobody will issue again

  void start_workgroup(Slot& slot, double earliest);
  void look(std::uint64_t cycle, std::size_t index);
  // Why the wave cannot issue now; `Cause::count` when it can.
  Cause obstacle(RunningWave& wave, const Step& step, const Simd& simd, double now);
  Cause counter_obstacle(RunningWave& wave, const Step& step, double now);
  bool fetch(RunningWave& wave, const Step& step, double now);
  void issue(RunningWave& wave, const Step& step, std::size_t simd_index, std::uint64_t cycle);
  void issue_vector(RunningWave& wave, const Step& step, std::size_t simd_index, double now);
  void issue_memory(RunningWave& wave, const Step& step, const Record& record, double now);
  void issue_lds(RunningWave& wave, const Step& step, const Record& record, double now);
  void branch(RunningWave& wave, const Step& step, double now) const;
  void barrier(RunningWave& wave, double now);
  void signal(RunningWave& wave, double now) const;
  void pass_ahead(RunningWave& wave);
  MemoryUnit& memory_of(const RunningWave& wave) { return memory_[wave.simd * memory_.size() / simds_.size()]; }
  void end_wave(RunningWave& wave, std::uint64_t now, bool ends);

  Program* program_;
  const timing::Timing* timing_;
  const ComputeUnitRequest* request_;
  MemoryPath path_;
  std::vector<MemoryUnit> memory_;  // of each compute unit
  Cache instructions_;
  std::unordered_set<std::uint64_t> fetched_;
  std::vector<Simd> simds_;
  LdsUnit lds_;
  TimelineNotes notes_;
  double slack_;  // what a look grants beyond its own cycle: a resource that gets free before the next look
  bool is_ordered_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<std::unique_ptr<RunningWave>> waves_;  // all that ever ran: accesses may outlive their wave
  std::size_t next_workgroup_ = 0;
  std::size_t alive_ = 0;  // workgroups
  std::uint64_t last_issue_ = 0;
  ComputeUnitResult result_;
};

void ComputeUnit::start_workgroup(Slot& slot, double earliest) {
  const WorkgroupTrace& trace = *request_->workgroups[next_workgroup_];
  slot.instance = next_workgroup_++;
  slot.waves.clear();
  slot.at_barrier = 0;
  slot.barriers = 0;
  slot.alive = trace.waves.size();
  ++alive_;
  double start = earliest;
  for (std::size_t i = 0; i < trace.waves.size(); ++i) {
    auto wave = std::make_unique<RunningWave>();
    wave->trace = &trace.waves[i];
    wave->steps.reserve(wave->trace->records.size());
    for (const Record& record : wave->trace->records) wave->steps.push_back(program_->find(*record.instruction));
    wave->slot = &slot;
    // The SIMD with the fewest waves, the first of those: waves of a workgroup go round.
    auto least = std::ranges::min_element(simds_, {}, [](const Simd& simd) { return simd.waves.size(); });
    if (!request_->pinned.empty()) {
      least = simds_.begin();
      wave->pinned = &request_->pinned[slot.instance];
    }
    wave->simd = static_cast<unsigned>(least - simds_.begin());
    wave->next_issue = start;
    wave->next_cause = Cause::own_interval;
    start += timing_->wave.wave_start.value;
    wave->result = result_.waves.size();
    result_.waves.push_back({.workgroup = trace.workgroup,
                             .wave = static_cast<unsigned>(i),
                             .simd = wave->simd,
                             .start = static_cast<std::uint64_t>(wave->next_issue)});
    least->waves.push_back(wave.get());
    slot.waves.push_back(wave.get());
    waves_.push_back(std::move(wave));
  }
  result_.steps.resize(program_->steps().size());
  for (RunningWave* const wave : slot.waves) {
    pass_ahead(*wave);
    wave->ended = wave->position == wave->steps.size();  // it has not begun
  }
}

bool ComputeUnit::fetch(RunningWave& wave, const Step& step, double now) {
  const std::uint64_t line = step.instruction->address / code_line;
  const bool there = instructions_.touch(line).is_there;
  // The first time it is taken to be there: other compute units ran it before, and what follows is fetched ahead.
  if (there || fetched_.insert(line).second) return true;
  wave.next_issue = now + timing_->wave.instruction_miss.value;
  wave.next_cause = Cause::fetch;
  return false;
}

Cause ComputeUnit::counter_obstacle(RunningWave& wave, const Step& step, double now) {
  // What the counters can hold.
  constexpr checks::Counts together;
  constexpr checks::Counts apart{.vector = 63, .local = 63, .split = true};
  const checks::Counts& most = step.instruction->record->split_counters ? apart : together;
  wave.vector_counter.retire(now);
  wave.local_counter.retire(now);
  if (step.effects.counts_vector && wave.vector_counter.pending() >= most.vector) return Cause::counter;
  if (step.effects.counts_local && wave.local_counter.pending() >= most.local) return Cause::counter;
  if (step.unit == Unit::lds && lds_.full(lds_.port_of(wave.simd))) return Cause::queue;
  if (step.unit == Unit::memory && memory_of(wave).full()) return Cause::queue;
  return Cause::count;
}

Cause ComputeUnit::obstacle(RunningWave& wave, const Step& step, const Simd& simd, double now) {
  if (wave.pinned != nullptr && (*wave.pinned)[wave.position] >= 0)
    return (*wave.pinned)[wave.position] > now ? Cause::vector_memory : Cause::count;
  if (wave.at_barrier) return Cause::barrier;
  if (wave.next_issue > now + slack_) return wave.next_cause;
  if (!fetch(wave, step, now)) return Cause::fetch;
  if (is_ordered_) {
    Simd& queues = simds_[wave.simd];
    const Cause cause = ordered_obstacle(wave, step, queues.ordered, timing_->ordered, now);
    if (cause != Cause::count) return cause;
  }
  if (step.effects.action == Action::wait) return wait_obstacle(wave, step, now);
  if (step.effects.action == Action::wait_barrier) {
    const bool is_open = wave.slot->barriers >= wave.signals;
    return is_open && wave.slot->released + timing_->wave.barrier_release.value <= now ? Cause::count : Cause::barrier;
  }
  if (step.ends_wave && wave.has_stored) {
    // Registers and LDS are free only when stores have arrived.
    Counter& stores = step.instruction->record->split_counters ? wave.store_counter : wave.vector_counter;
    stores.retire(now);
    return stores.has_retired(wave.last_store) ? Cause::count : Cause::vector_memory;
  }
  if (is_ordered_) {
    const bool counts = step.unit == Unit::lds || step.unit == Unit::memory || step.effects.counts_local;
    return counts ? counter_obstacle(wave, step, now) : Cause::count;
  }
  const bool goes_to_memory = step.unit == Unit::lds || step.unit == Unit::memory;
  if (goes_to_memory && wave.memory_from > now + slack_) return Cause::own_interval;
  if ((step.unit == Unit::scalar || step.unit == Unit::branch) && wave.scalar_from > now + slack_)
    return Cause::operand;
  if (const Cause cause = operand_obstacle(wave, step, now); cause != Cause::count) return cause;
  if (goes_to_memory || step.effects.counts_local) return counter_obstacle(wave, step, now);
  return step.unit == Unit::vector ? port_obstacle(simd, step, timing_->issue, now, slack_) : Cause::count;
}

void ComputeUnit::issue_vector(RunningWave& wave, const Step& step, std::size_t simd_index, double now) {
  Simd& simd = simds_[simd_index];
  SimdResult& counts = result_.simds[simd_index];
  if (is_ordered_) {
    const double begin = enter_queue(wave, step, simd.ordered, timing_->ordered, now);
    simd.port_free = begin + step.port_cycles;
    counts.port_busy += static_cast<std::uint64_t>(step.port_cycles);
    if (step.kind != Kind::matrix) return;
    counts.matrix_busy += static_cast<std::uint64_t>(step.pipe_cycles);
    result_.add_matrix_busy(static_cast<std::uint64_t>(begin), step.pipe_cycles);
    return;
  }
  const double begin = std::max(simd.port_free, now);
  if (step.kind != Kind::matrix && simd.pipe_free > begin) {
    counts.overlapped += static_cast<std::uint64_t>(std::min<double>(simd.pipe_free - begin, step.port_cycles));
  }
  simd.port_free = begin + step.port_cycles;
  counts.port_busy += static_cast<std::uint64_t>(step.port_cycles);
  if (step.kind == Kind::matrix) {
    simd.pipe_free = now + step.pipe_cycles;
    counts.matrix_busy += static_cast<std::uint64_t>(step.pipe_cycles);
    result_.add_matrix_busy(static_cast<std::uint64_t>(now), step.pipe_cycles);
  } else {
    wave.memory_from = now + timing_->wave.vector_to_memory.value;
  }
  write_results(wave, step, timing_->wave, now);
}

void ComputeUnit::issue_memory(RunningWave& wave, const Step& step, const Record& record, double now) {
  const bool split = step.instruction->record->split_counters;
  Counter& counter = step.effects.counts_store ? wave.store_counter : wave.vector_counter;
  MemoryRequest request{.at = is_ordered_ ? send_data(step, simds_[wave.simd].ordered, now) : now,
                        .turns = std::max<double>(record.turns, timing_->wave.look.value),
                        .lines = std::span(wave.trace->lines).subspan(record.first, record.count),
                        .part = record.count == 0 ? 1 : record.halves / (2.0 * record.count),
                        .instance = wave.slot->instance,
                        .store = step.kind == Kind::store,
                        .atomic = step.instruction->record->atomic,
                        .past_caches = step.instruction->sc1,
                        .releases = step.effects.action == Action::write_back && step.instruction->sc1,
                        .acquires = step.effects.action == Action::invalidate,
                        .ticket = {}};
  if (!request.acquires) {
    request.ticket = {.counter = &counter, .entry = counter.issue({})};
  }
  if (request.store && !request.acquires && split == step.effects.counts_store) {
    wave.has_stored = true;
    wave.last_store = request.ticket.entry;
  }
  if (step.kind == Kind::lds_dma && step.access != nullptr) {
    request.lds_cycles = step.access->cycles.value;
    request.lds_port = lds_.port_of(wave.simd);
  }
  memory_of(wave).issue(request);
  if (step.effects.counts_local) wave.local_counter.issue({.done = now, .cause = Cause::lds});
}

void ComputeUnit::issue_lds(RunningWave& wave, const Step& step, const Record& record, double now) {
  LdsRequest request{
      .at = is_ordered_ ? send_data(step, simds_[wave.simd].ordered, now) : now,
      .bank_cycles = 1,
      .latency = timing_->lds_unit.latency.value,
      .ticket = {.counter = &wave.local_counter, .entry = wave.local_counter.issue({.cause = Cause::lds})}};
  if (step.access != nullptr) {
    const auto phases = static_cast<double>(step.access->phases.size());
    // Lanes that exchange registers use the ports and the crossbar as an access of all lanes does.
    const double part = step.kind == Kind::lds_lanes ? 1 : record.count / phases;
    request.bank_cycles = (step.access->cycles.value * part) + record.first;
    request.port_cycles = step.access->port.value * part;
    if (timing_->lds_unit.sets.value > 0) {
      // A lost turn is lost in one of the sets, and passes no data.
      request.bank_cycles /= timing_->lds_unit.sets.value;
      request.port_cycles += record.first;
    }
    result_.lds_lost += record.first;
  }
  lds_.issue(lds_.port_of(wave.simd), request);
}

void ComputeUnit::branch(RunningWave& wave, const Step& step, double now) const {
  const bool taken =
      wave.position + 1 < wave.steps.size() && wave.steps[wave.position + 1] != wave.steps[wave.position] + 1;
  if (!taken && step.effects.action != Action::branch_scc && !is_ordered_) return;
  wave.next_issue = now + (taken ? timing_->wave.taken_branch : timing_->wave.passed_scc_branch).value;
  wave.next_cause = Cause::branch;
}

// A barrier in two parts opens when all waves that have not ended have signalled it.
void ComputeUnit::signal(RunningWave& wave, double now) const {
  ++wave.signals;
  ++wave.slot->at_barrier;
  release_barrier(*wave.slot, timing_->wave, now);
}

// What is looked at beside the instruction before it.
void ComputeUnit::pass_ahead(RunningWave& wave) {
  while (wave.position < wave.steps.size() && program_->steps()[wave.steps[wave.position]].ahead) {
    const std::uint32_t place = wave.steps[wave.position];
    look_ahead(wave, program_->steps()[place]);
    ++result_.waves[wave.result].issued;
    ++result_.steps[place].issued;
    ++wave.position;
  }
}

void ComputeUnit::barrier(RunningWave& wave, double now) {
  wave.at_barrier = true;
  ++wave.slot->at_barrier;
  release_barrier(*wave.slot, timing_->wave, now);
}

// `ends`: not only its trace does.
void ComputeUnit::end_wave(RunningWave& wave, std::uint64_t now, bool ends) {
  wave.ended = true;
  wave.steps = {};
  result_.waves[wave.result].end = now;
  result_.cycles = std::max(result_.cycles, now);
  if (request_->until) {
    if (wave.result == *request_->until) alive_ = 0;
    if (alive_ == 0 || !ends) return;
  }
  Slot& slot = *wave.slot;
  --slot.alive;
  release_barrier(slot, timing_->wave, static_cast<double>(now));
  if (slot.alive != 0) return;
  --alive_;
  for (Simd& simd : simds_) std::erase_if(simd.waves, [&](const RunningWave* each) { return each->slot == &slot; });
  if (next_workgroup_ < request_->workgroups.size()) start_workgroup(slot, static_cast<double>(now) + slack_ + 1);
}

void ComputeUnit::issue(RunningWave& wave, const Step& step, std::size_t simd_index, std::uint64_t cycle) {
  const auto now = static_cast<double>(cycle);
  const Record& record = wave.trace->records[wave.position];
  ++result_.waves[wave.result].issued;
  wave.next_issue = std::max(wave.next_issue, now) + step.interval;
  wave.next_cause = Cause::own_interval;
  last_issue_ = cycle;
  switch (step.unit) {
    case Unit::vector:
      issue_vector(wave, step, simd_index, now);
      break;
    case Unit::memory:
      issue_memory(wave, step, record, now);
      break;
    case Unit::lds:
      issue_lds(wave, step, record, now);
      break;
    case Unit::scalar:
      if (is_ordered_ && step.kind != Kind::scalar_load) issue_scalar(wave, step, timing_->ordered, now);
      if (step.effects.counts_local) {
        Counter& counter = step.instruction->record->split_counters ? wave.scalar_counter : wave.local_counter;
        const auto lines = std::span(wave.trace->lines).subspan(record.first, record.count);
        const double done = path_.scalar_load(now, lines, wave.slot->instance);
        counter.issue({.done = done, .cause = Cause::scalar_memory});
      }
      break;
    case Unit::branch:
      branch(wave, step, now);
      break;
    default:
      break;
  }
  if (step.effects.action == Action::set_priority) wave.priority = step.instruction->immediate & 3;
  if (step.interval > timing_->wave.look.cycles() && step.unit == Unit::internal) wave.next_cause = Cause::pause;
  ++wave.position;
  if (is_ordered_) {
    wave.ordered.last_was_vector = step.unit == Unit::vector;
    if (step.unit != Unit::internal) wave.ordered.internal_from = now + timing_->ordered.internal.value;
    pass_ahead(wave);
  }
  if (step.effects.action == Action::signal_barrier) signal(wave, now);
  if (step.effects.action == Action::barrier) barrier(wave, now);
  if (wave.position == wave.steps.size()) end_wave(wave, cycle, step.ends_wave);
}

// LDS and vector memory share one way out of a SIMD: of two waves that want one each, one waits.
Unit port_of(Unit unit) { return unit == Unit::lds ? Unit::memory : unit; }

void ComputeUnit::look(std::uint64_t cycle, std::size_t index) {
  const auto now = static_cast<double>(cycle);
  const auto period = static_cast<std::uint64_t>(timing_->wave.look.cycles());
  Simd& simd = simds_[index];
  SimdResult& counts = result_.simds[index];
  if (simd.waves.empty()) {
    counts.empty += period;
    return;
  }
  const bool was_busy = simd.pipe_free > now || simd.port_free > now;
  // Highest priority first, oldest of those: a unit takes the first that can.
  std::array<RunningWave*, 32> order{};  // more than a SIMD holds
  std::size_t waves = 0;
  for (RunningWave* wave : simd.waves) {
    if (!wave->ended && waves < order.size()) order[waves++] = wave;
  }
  std::stable_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(waves),
                   [](const RunningWave* a, const RunningWave* b) { return a->priority > b->priority; });
  std::array<bool, static_cast<std::size_t>(Unit::count)> taken{};
  Cause foremost = Cause::count;
  bool vector_issued = false;
  for (RunningWave* const each : std::span(order).first(waves)) {
    RunningWave& wave = *each;
    const std::uint32_t place = wave.steps[wave.position];
    const Step& step = program_->steps()[place];
    Cause cause = obstacle(wave, step, simd, now);
    bool& unit = taken[static_cast<std::size_t>(port_of(step.unit))];
    if (cause == Cause::count && unit && step.unit != Unit::internal) cause = Cause::other_wave;
    StepCount& at_step = result_.steps[place];
    notes_.note(wave, place, step, cause, cycle);
    if (cause == Cause::count) {
      unit = true;
      vector_issued = vector_issued || step.unit == Unit::vector;
      ++at_step.issued;
      issue(wave, step, index, cycle);
      continue;
    }
    at_step.waited[static_cast<std::size_t>(cause)] += period;
    result_.waves[wave.result].waited[static_cast<std::size_t>(cause)] += period;
    if (foremost == Cause::count) foremost = cause;
  }
  if (!was_busy && !vector_issued && foremost != Cause::count)
    counts.idle[static_cast<std::size_t>(foremost)] += period;
}

std::expected<ComputeUnitResult, std::string> ComputeUnit::run() {
  const auto period = static_cast<std::uint64_t>(timing_->wave.look.cycles());
  // Workgroups of a die start one after the other, each compute unit gets its first before any gets its second.
  double start = 0;
  for (unsigned i = 0; i < request_->resident && next_workgroup_ < request_->workgroups.size(); ++i) {
    slots_.push_back(std::make_unique<Slot>());
    const std::size_t waves = request_->workgroups[next_workgroup_]->waves.size();
    start_workgroup(*slots_.back(), start);
    start += timing_->wave.wave_start.value * static_cast<double>(waves) * request_->neighbours.busy_units_of_die;
  }
  for (std::uint64_t cycle = 0; alive_ != 0; ++cycle) {
    const auto now = static_cast<double>(cycle);
    for (MemoryUnit& memory : memory_) memory.serve(now, lds_);
    lds_.serve(now);
    for (std::size_t simd = cycle % period; simd < simds_.size(); simd += period) look(cycle, simd);
    if (cycle - last_issue_ > patience) {
      return std::unexpected(std::format("no wave has issued an instruction for {} cycles", patience));
    }
  }
  result_.memory = path_.counts();
  result_.write_back_cycles = static_cast<std::uint64_t>(path_.write_back_cycles(static_cast<double>(result_.cycles)));
  result_.lds_busy = lds_.busy();
  result_.busiest_cycles = std::max(result_.lds_busy, static_cast<std::uint64_t>(path_.busiest_cycles()));
  for (const MemoryUnit& memory : memory_) {
    result_.address_busy += memory.address_busy();
    result_.busiest_cycles = std::max(result_.busiest_cycles, memory.address_busy());
  }
  result_.timeline = notes_.take();
  return std::move(result_);
}

}  // namespace

std::expected<ComputeUnitResult, std::string> run_compute_unit(Program& program, const ComputeUnitRequest& request) {
  return ComputeUnit(program, request).run();
}

}  // namespace wavejit::simgpu::clock
