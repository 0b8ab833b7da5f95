#include "simgpu/clock/compute_unit.h"

#include <algorithm>
#include <deque>
#include <format>
#include <limits>
#include <memory>
#include <queue>

#include "simgpu/wave/wave.h"
#include "targets/targets.h"

namespace wavejit::simgpu::clock {
namespace {

constexpr double not_yet = std::numeric_limits<double>::infinity();
// What a look grants beyond its own cycle: a resource that gets free before the next look.
constexpr double slack = 3;

// What a wave has issued and a counter still counts.
struct Outstanding {
  double done = not_yet;
  Cause cause = Cause::vector_memory;
};

// A counter: results arrive in order.
class Counter {
 public:
  std::uint64_t issue(Outstanding entry) {
    entries_.push_back(entry);
    return retired_ + entries_.size() - 1;
  }
  void finish(std::uint64_t number, double done) { entries_[number - retired_].done = done; }
  void retire(double now) {
    while (!entries_.empty() && entries_.front().done <= now) {
      entries_.pop_front();
      ++retired_;
    }
  }
  std::size_t pending() const { return entries_.size(); }
  Cause cause() const { return entries_.front().cause; }

 private:
  std::deque<Outstanding> entries_;
  std::uint64_t retired_ = 0;
};

struct Slot;

struct RunningWave {
  const WaveTrace* trace = nullptr;
  std::vector<std::uint32_t> steps;  // of the trace's records
  Slot* slot = nullptr;
  std::size_t position = 0;
  std::size_t result = 0;  // in ComputeUnitResult::waves
  unsigned simd = 0;
  unsigned priority = 0;
  double next_issue = 0;
  Cause next_cause = Cause::own_interval;
  bool at_barrier = false;
  bool ended = false;
  Counter vector_counter;
  Counter local_counter;
  std::array<double, 512> ready{};  // vector registers
  std::array<bool, 512> from_matrix{};
  std::array<double, sgpr_count> scalar_ready{};
  // The wait that is being counted, for the timeline.
  Cause waiting_for = Cause::count;
  std::uint64_t waiting_since = 0;
};

// A place for a workgroup.
struct Slot {
  std::vector<std::unique_ptr<RunningWave>> waves;
  std::uint64_t instance = 0;  // how many workgroups started before
  std::size_t alive = 0;
  std::size_t at_barrier = 0;
};

struct Simd {
  std::vector<RunningWave*> waves;  // oldest first
  double port_free = 0;
  double pipe_free = 0;
};

class ComputeUnit {
 public:
  ComputeUnit(Program& program, const ComputeUnitRequest& request)
      : program_(&program),
        timing_(&program.timing()),
        request_(&request),
        memory_(program.timing().memory, request.neighbours),
        instructions_(static_cast<std::uint64_t>(program.timing().wave.instruction_cache.cycles()) / code_line, 8),
        simds_(static_cast<std::size_t>(program.target().simds_per_compute_unit)),
        lds_ports_(static_cast<std::size_t>(program.timing().lds_unit.ports.cycles())) {
    result_.simds.resize(simds_.size());
  }

  std::expected<ComputeUnitResult, std::string> run();

 private:
  static constexpr std::uint64_t code_line = 64;
  static constexpr std::uint64_t patience = 50'000'000;  // cycles without an instruction: nobody will issue again

  struct Arrival {
    double at = 0;
    std::uint64_t number = 0;
    RunningWave* wave = nullptr;
    std::uint64_t entry = 0;
    double cycles = 0;
    bool operator>(const Arrival& other) const { return at > other.at || (at == other.at && number > other.number); }
  };

  void start_workgroup(Slot& slot, double earliest);
  void arrive(double now);
  void look(std::uint64_t now, std::size_t index);
  // Why the wave cannot issue now; `Cause::count` when it can.
  Cause obstacle(RunningWave& wave, const Step& step, const Simd& simd, double now);
  Cause wait_obstacle(RunningWave& wave, const Step& step, double now);
  static Cause operand_obstacle(const RunningWave& wave, const Step& step, double now);
  bool fetch(RunningWave& wave, const Step& step, double now);
  void issue(RunningWave& wave, const Step& step, std::size_t simd_index, std::uint64_t now);
  void issue_vector(RunningWave& wave, const Step& step, std::size_t simd_index, double now);
  void issue_memory(RunningWave& wave, const Step& step, const Record& record, double now);
  void issue_lds(RunningWave& wave, const Step& step, const Record& record, double now);
  double lds_service(const Step& step, const Record& record);
  double take_lds(double now, double cycles) {
    lds_free_ = std::max(lds_free_, now) + cycles;
    return lds_free_;
  }
  void barrier(RunningWave& wave, double now);
  void release(Slot& slot, double now);
  void end_wave(RunningWave& wave, std::uint64_t now);
  void note(RunningWave& wave, std::uint32_t step, Cause cause, std::uint64_t now);
  void add_matrix_busy(double from, int cycles);

  Program* program_;
  const timing::Timing* timing_;
  const ComputeUnitRequest* request_;
  MemoryPath memory_;
  Cache instructions_;
  std::unordered_set<std::uint64_t> fetched_;
  std::vector<Simd> simds_;
  std::vector<double> lds_ports_;
  double lds_free_ = 0;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
  std::uint64_t arrival_number_ = 0;
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
    const auto least = std::ranges::min_element(simds_, {}, [](const Simd& simd) { return simd.waves.size(); });
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
    slot.waves.push_back(std::move(wave));
  }
  result_.steps.resize(program_->steps().size());
}

void ComputeUnit::arrive(double now) {
  while (!arrivals_.empty() && arrivals_.top().at <= now) {
    const Arrival arrival = arrivals_.top();
    arrivals_.pop();
    arrival.wave->vector_counter.finish(arrival.entry, take_lds(arrival.at, arrival.cycles));
  }
}

Cause ComputeUnit::wait_obstacle(RunningWave& wave, const Step& step, double now) {
  wave.vector_counter.retire(now);
  wave.local_counter.retire(now);
  if (wave.vector_counter.pending() > step.effects.wait.vector) return wave.vector_counter.cause();
  if (wave.local_counter.pending() > step.effects.wait.local) return wave.local_counter.cause();
  return Cause::count;
}

Cause ComputeUnit::operand_obstacle(const RunningWave& wave, const Step& step, double now) {
  for (unsigned i = 0; i < step.effects.read_count; ++i) {
    const checks::Registers& range = step.effects.reads[i];
    if (range.scalar) {
      for (unsigned r = 0; r < range.count && range.first + r < sgpr_count; ++r) {
        if (wave.scalar_ready[range.first + r] > now) return Cause::operand;
      }
      continue;
    }
    // The pipe adds to what it has just accumulated without waiting for it.
    const bool is_accumulator = step.accumulator.count != 0 && range.first == step.accumulator.first;
    for (unsigned r = 0; r < range.count && range.first + r < wave.ready.size(); ++r) {
      const unsigned place = range.first + r;
      if (wave.ready[place] <= now || (is_accumulator && wave.from_matrix[place])) continue;
      return wave.from_matrix[place] ? Cause::matrix_result : Cause::operand;
    }
  }
  return Cause::count;
}

bool ComputeUnit::fetch(RunningWave& wave, const Step& step, double now) {
  const std::uint64_t line = step.instruction->address / code_line;
  const bool there = instructions_.touch(line);
  // The first time it is taken to be there: other compute units ran it before, and what follows is fetched ahead.
  if (there || fetched_.insert(line).second) return true;
  wave.next_issue = now + timing_->wave.instruction_miss.value;
  wave.next_cause = Cause::fetch;
  return false;
}

Cause ComputeUnit::obstacle(RunningWave& wave, const Step& step, const Simd& simd, double now) {
  if (wave.at_barrier) return Cause::barrier;
  if (wave.next_issue > now + slack) return wave.next_cause;
  if (!fetch(wave, step, now)) return Cause::fetch;
  if (step.effects.action == Action::wait) return wait_obstacle(wave, step, now);
  if (const Cause cause = operand_obstacle(wave, step, now); cause != Cause::count) return cause;
  if (step.effects.counts_vector || step.effects.counts_local) {
    constexpr checks::Counts most;  // what the counters can hold
    wave.vector_counter.retire(now);
    wave.local_counter.retire(now);
    if (step.effects.counts_vector && wave.vector_counter.pending() >= most.vector) return Cause::counter;
    if (step.effects.counts_local && wave.local_counter.pending() >= most.local) return Cause::counter;
  }
  if (step.unit == Unit::vector) {
    if ((step.kind == Kind::matrix || step.no_overlap) && simd.pipe_free > now) return Cause::matrix_pipe;
    if (simd.port_free > now + slack) return Cause::vector_port;
  }
  return Cause::count;
}

void ComputeUnit::add_matrix_busy(double from, int cycles) {
  auto at = static_cast<std::uint64_t>(from);
  const std::uint64_t end = at + static_cast<std::uint64_t>(cycles);
  while (at < end) {
    const std::uint64_t bucket = at / ComputeUnitResult::bucket_cycles;
    if (result_.matrix_buckets.size() <= bucket) result_.matrix_buckets.resize(bucket + 1);
    const std::uint64_t next = std::min(end, (bucket + 1) * ComputeUnitResult::bucket_cycles);
    result_.matrix_buckets[bucket] += next - at;
    at = next;
  }
}

void ComputeUnit::issue_vector(RunningWave& wave, const Step& step, std::size_t simd_index, double now) {
  Simd& simd = simds_[simd_index];
  SimdResult& counts = result_.simds[simd_index];
  const double begin = std::max(simd.port_free, now);
  if (step.kind != Kind::matrix && simd.pipe_free > begin) {
    counts.overlapped += static_cast<std::uint64_t>(std::min<double>(simd.pipe_free - begin, step.port_cycles));
  }
  simd.port_free = begin + step.port_cycles;
  counts.port_busy += static_cast<std::uint64_t>(step.port_cycles);
  if (step.kind == Kind::matrix) {
    simd.pipe_free = now + step.pipe_cycles;
    counts.matrix_busy += static_cast<std::uint64_t>(step.pipe_cycles);
    add_matrix_busy(now, step.pipe_cycles);
  }
  for (unsigned i = 0; i < step.effects.write_count; ++i) {
    const checks::Registers& range = step.effects.writes[i];
    for (unsigned r = 0; r < range.count; ++r) {
      const unsigned place = range.first + r;
      if (range.scalar) {
        if (place < sgpr_count) wave.scalar_ready[place] = now + timing_->wave.vector_to_scalar.value;
      } else if (place < wave.ready.size()) {
        // Vector results are forwarded: the wave's own interval is all it waits for.
        wave.ready[place] = step.kind == Kind::matrix ? now + step.result_cycles : now;
        wave.from_matrix[place] = step.kind == Kind::matrix;
      }
    }
  }
}

void ComputeUnit::issue_memory(RunningWave& wave, const Step& step, const Record& record, double now) {
  const auto lines = std::span(wave.trace->lines).subspan(record.first, record.count);
  if (step.kind == Kind::store) {
    wave.vector_counter.issue({.done = memory_.store(now, step.address_cycles, lines)});
  } else {
    const double there = memory_.load(now, step.address_cycles, lines, wave.slot->instance);
    if (step.kind == Kind::lds_dma && step.access != nullptr) {
      const std::uint64_t entry = wave.vector_counter.issue({});
      arrivals_.push({.at = there,
                      .number = arrival_number_++,
                      .wave = &wave,
                      .entry = entry,
                      .cycles = step.access->cycles.value});
    } else {
      wave.vector_counter.issue({.done = there});
    }
  }
  if (step.effects.counts_local) wave.local_counter.issue({.done = now, .cause = Cause::lds});
}

double ComputeUnit::lds_service(const Step& step, const Record& record) {
  if (step.kind == Kind::lds_lanes || step.access == nullptr)
    return step.access == nullptr ? 1 : step.access->cycles.value;
  const double turn = step.access->cycles.value / static_cast<double>(step.access->phases.size());
  result_.lds_lost += record.first;
  return (turn * record.count) + record.first;
}

void ComputeUnit::issue_lds(RunningWave& wave, const Step& step, const Record& record, double now) {
  const double cycles = lds_service(step, record);
  double& port = lds_ports_[wave.simd * lds_ports_.size() / simds_.size()];
  // Banks and ports queue on their own: an access that waits for one port does not hold up the other's.
  const double done = take_lds(now, cycles);
  const double port_cycles = step.access == nullptr ? 0 : step.access->port.value * step.effects.elements;
  port = std::max(port, now) + std::max(cycles, port_cycles);
  result_.lds_busy += static_cast<std::uint64_t>(cycles);
  wave.local_counter.issue({.done = std::max(done, port) + timing_->lds_unit.latency.value, .cause = Cause::lds});
}

void ComputeUnit::release(Slot& slot, double now) {
  if (slot.alive == 0 || slot.at_barrier < slot.alive) return;
  slot.at_barrier = 0;
  for (const auto& wave : slot.waves) {
    if (!wave->at_barrier) continue;
    wave->at_barrier = false;
    wave->next_issue = now + timing_->wave.barrier_release.value;
    wave->next_cause = Cause::barrier;
  }
}

void ComputeUnit::barrier(RunningWave& wave, double now) {
  wave.at_barrier = true;
  ++wave.slot->at_barrier;
  release(*wave.slot, now);
}

void ComputeUnit::end_wave(RunningWave& wave, std::uint64_t now) {
  wave.ended = true;
  result_.waves[wave.result].end = now;
  result_.cycles = std::max(result_.cycles, now);
  Slot& slot = *wave.slot;
  --slot.alive;
  release(slot, static_cast<double>(now));
  if (slot.alive != 0) return;
  --alive_;
  for (Simd& simd : simds_) std::erase_if(simd.waves, [&](const RunningWave* each) { return each->slot == &slot; });
  // DMA that nobody waited for.
  std::vector<Arrival> kept;
  for (; !arrivals_.empty(); arrivals_.pop()) {
    if (arrivals_.top().wave->slot != &slot) kept.push_back(arrivals_.top());
  }
  for (const Arrival& arrival : kept) arrivals_.push(arrival);
  if (next_workgroup_ < request_->workgroups.size()) start_workgroup(slot, static_cast<double>(now) + slack + 1);
}

void ComputeUnit::note(RunningWave& wave, std::uint32_t step, Cause cause, std::uint64_t now) {
  if (request_->timeline_first == request_->timeline_last) return;
  const auto inside = [&](std::uint64_t at) { return at >= request_->timeline_first && at < request_->timeline_last; };
  if (cause == wave.waiting_for && cause != Cause::count) return;
  const auto index = static_cast<std::uint16_t>(wave.result);
  if (wave.waiting_for != Cause::count && inside(wave.waiting_since)) {
    result_.timeline.push_back({.start = wave.waiting_since,
                                .cycles = static_cast<std::uint32_t>(now - wave.waiting_since),
                                .step = step,
                                .wave = index,
                                .waited_for = wave.waiting_for});
  }
  wave.waiting_for = cause;
  wave.waiting_since = now;
  if (cause != Cause::count) return;
  const Step& what = program_->steps()[step];
  if (inside(now)) {
    result_.timeline.push_back(
        {.start = now,
         .cycles = static_cast<std::uint32_t>(what.kind == Kind::matrix ? what.pipe_cycles : what.interval),
         .step = step,
         .wave = index});
  }
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
      if (step.effects.counts_local) {
        wave.local_counter.issue({.done = now + timing_->memory.scalar_latency.value, .cause = Cause::scalar_memory});
      }
      break;
    case Unit::branch:
      if (wave.position + 1 < wave.steps.size() && wave.steps[wave.position + 1] != wave.steps[wave.position] + 1) {
        wave.next_issue = now + timing_->wave.taken_branch.value;
        wave.next_cause = Cause::branch;
      }
      break;
    default:
      break;
  }
  if (step.effects.action == Action::set_priority) wave.priority = step.instruction->immediate & 3;
  if (step.interval > timing_->wave.look.cycles() && step.unit == Unit::internal) wave.next_cause = Cause::pause;
  ++wave.position;
  if (step.effects.action == Action::barrier) barrier(wave, now);
  if (wave.position == wave.steps.size()) end_wave(wave, cycle);
}

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
  for (std::size_t i = 0; i < waves; ++i) {
    RunningWave& wave = *order[i];
    const std::uint32_t place = wave.steps[wave.position];
    const Step& step = program_->steps()[place];
    Cause cause = obstacle(wave, step, simd, now);
    bool& unit = taken[static_cast<std::size_t>(step.unit)];
    if (cause == Cause::count && unit && step.unit != Unit::internal) cause = Cause::other_wave;
    StepCount& at_step = result_.steps[place];
    note(wave, place, cause, cycle);
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
    start += timing_->wave.wave_start.value * static_cast<double>(waves) * request_->neighbours.compute_units_of_die;
  }
  for (std::uint64_t cycle = 0; alive_ != 0; ++cycle) {
    arrive(static_cast<double>(cycle));
    if (cycle % period < simds_.size()) look(cycle, cycle % period);
    if (cycle - last_issue_ > patience) {
      return std::unexpected(std::format("no wave has issued an instruction for {} cycles", patience));
    }
  }
  result_.memory = memory_.counts();
  return std::move(result_);
}

}  // namespace

std::string_view to_text(Cause cause) {
  constexpr std::array<std::string_view, cause_count> names = {
      "own interval", "matrix result", "operand",      "matrix pipe", "vector port", "other wave", "vector memory",
      "LDS",          "scalar memory", "full counter", "barrier",     "branch",      "pause",      "fetch"};
  return cause == Cause::count ? "nothing" : names[static_cast<std::size_t>(cause)];
}

double ComputeUnitResult::matrix_busy() const {
  std::uint64_t busy = 0;
  for (const SimdResult& simd : simds) busy += simd.matrix_busy;
  return cycles == 0 ? 0 : static_cast<double>(busy) / static_cast<double>(cycles * simds.size());
}

double ComputeUnitResult::steady_matrix_busy() const {
  const std::uint64_t first = cycles / 4 / bucket_cycles;
  const std::uint64_t last = std::min<std::uint64_t>(cycles * 3 / 4 / bucket_cycles, matrix_buckets.size());
  if (last <= first) return matrix_busy();
  std::uint64_t busy = 0;
  for (std::uint64_t bucket = first; bucket < last; ++bucket) busy += matrix_buckets[bucket];
  return static_cast<double>(busy) / static_cast<double>((last - first) * bucket_cycles * simds.size());
}

std::expected<ComputeUnitResult, std::string> run_compute_unit(Program& program, const ComputeUnitRequest& request) {
  return ComputeUnit(program, request).run();
}

}  // namespace wavejit::simgpu::clock
