// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/clock/ordered_issue.h"

#include <algorithm>
#include <span>

#include "simgpu/checkers/clock/wave_state.h"

namespace wavejit::simgpu::clock {
namespace {

std::span<const checks::Registers> reads_of(const Step& step) {
  return std::span(step.effects.reads).first(step.effects.read_count);
}

bool is_full(OrderedQueue& queue, const timing::OrderedRules& rules, double now) {
  while (!queue.ends.empty() && queue.ends.front() <= now) queue.ends.pop_front();
  return queue.ends.size() >= static_cast<std::size_t>(rules.queue.cycles());
}

// When all scalar registers that it reads are there: of vector instructions, of others, or of both.
enum class Writer : std::uint8_t { vector, other, any };
double scalars_ready(const RunningWave& wave, const Step& step, Writer writer) {
  double ready = 0;
  for (const checks::Registers& range : reads_of(step)) {
    if (!range.scalar) continue;
    for (unsigned r = range.first; r < range.first + range.count && r < sgpr_count; ++r) {
      if (writer == Writer::any || wave.ordered.from_vector[r] == (writer == Writer::vector))
        ready = std::max(ready, wave.scalar_ready[r]);
    }
  }
  return ready;
}

// Scalar instructions follow each other faster than others follow them.
double scalar_begins(const RunningWave& wave, const Step& step, double now) {
  double begins = std::max(now, wave.ordered.scalar_begins + 1);
  if (step.effects.reads_scc) begins = std::max(begins, wave.ordered.condition_chain);
  for (const checks::Registers& range : reads_of(step)) {
    if (!range.scalar) continue;
    for (unsigned r = range.first; r < range.first + range.count && r < sgpr_count; ++r)
      begins = std::max(begins, wave.ordered.chain[r]);
  }
  return begins;
}

// The dependencies that s_delay_alu encodes (LLVM, AMDGPUInsertDelayAlu): the distance to an earlier vector or
// transcendental instruction, and beyond those values the cycles after a scalar one.
double delayed_until(const RunningWave& wave, unsigned dependency) {
  constexpr unsigned first_transcendental = 5;
  constexpr unsigned accumulation = 8;
  if (dependency == 0 || dependency >= accumulation) return 0;
  if (dependency < first_transcendental) return wave.ordered.vector_results[dependency - 1];
  return wave.ordered.transcendental_results[dependency - first_transcendental];
}

double operands_ready(const RunningWave& wave, const Step& step, const timing::OrderedRules& rules) {
  double ready = 0;
  for (const checks::Registers& range : reads_of(step)) {
    if (range.scalar) continue;
    const bool is_accumulator = step.accumulator.count != 0 && range.first == step.accumulator.first;
    for (unsigned r = range.first; r < range.first + range.count && r < wave.ready.size(); ++r) {
      const bool accumulates = is_accumulator && wave.from_matrix[r];
      ready =
          std::max(ready, wave.ready[r] - (accumulates ? rules.matrix_result.value - rules.accumulated.value : 0.0));
    }
  }
  return ready;
}

template <std::size_t count>
void push_front(std::array<double, count>& results, double result) {
  std::ranges::rotate(results, results.end() - 1);
  results.front() = result;
}

Cause of_queue(const OrderedQueue& queue) { return queue.last_is_matrix ? Cause::matrix_pipe : Cause::vector_port; }

}  // namespace

Cause ordered_obstacle(RunningWave& wave, const Step& step, OrderedQueue& queue, const timing::OrderedRules& rules,
                       double now) {
  const OrderedWave& state = wave.ordered;
  const bool is_vector = step.unit == Unit::vector;
  if ((is_vector || state.last_was_vector) && is_full(queue, rules, now)) return of_queue(queue);
  if (state.hold > now) return Cause::operand;
  for (const OrderedWave::Delay& delay : state.delays) {
    if (delay.position == wave.position && delayed_until(wave, delay.dependency) > now) return Cause::operand;
  }
  switch (step.unit) {
    case Unit::internal:
      return state.internal_from > now ? Cause::own_interval : Cause::count;
    case Unit::vector:
      if (queue.takes > now) return of_queue(queue);
      if (step.transcendental_unit && queue.takes_transcendental > now) return Cause::vector_port;
      return scalars_ready(wave, step, Writer::other) > now ? Cause::operand : Cause::count;
    case Unit::branch:
      if (step.effects.reads_scc && state.condition_ready > now) return Cause::operand;
      if (step.effects.action == Action::branch_exec && wave.scalar_ready[sgpr_exec] > now) return Cause::operand;
      return scalars_ready(wave, step, Writer::any) > now ? Cause::operand : Cause::count;
    case Unit::scalar:
      if (step.kind == Kind::scalar_load)
        return scalars_ready(wave, step, Writer::any) > now ? Cause::operand : Cause::count;
      if (scalars_ready(wave, step, Writer::vector) > now) return Cause::operand;
      if (state.scalars_read > now && step.writes_scalars) return Cause::operand;
      return scalar_begins(wave, step, now) > now + rules.scalar_backlog.value ? Cause::operand : Cause::count;
    default:
      if (state.vector_done > now) return Cause::operand;
      if (queue.data_free > now + rules.data_backlog.value) return Cause::queue;
      return scalars_ready(wave, step, Writer::any) > now ? Cause::operand : Cause::count;
  }
}

double enter_queue(RunningWave& wave, const Step& step, OrderedQueue& queue, const timing::OrderedRules& rules,
                   double now) {
  const bool is_matrix = step.kind == Kind::matrix;
  double begins = std::max({now, queue.begins + step.fetch_cycles, operands_ready(wave, step, rules)});
  if (is_matrix || step.transcendental_unit) begins = std::max(begins, queue.transcendental_free);
  queue.begins = begins + step.port_cycles;
  const double own = step.transcendental_unit ? rules.transcendental_unit.value : step.port_cycles;
  if (step.transcendental_unit) queue.transcendental_free = begins + own;
  const double end = queue.begins + (is_matrix ? rules.matrix_stays.value : 0.0);
  queue.ends.push_back(queue.ends.empty() ? end : std::max(end, queue.ends.back()));
  queue.last_is_matrix = is_matrix;
  // A matrix instruction waits in the queue, others of several cycles before it.
  queue.takes = now + (is_matrix ? 1 : step.port_cycles);
  if (step.transcendental_unit) queue.takes_transcendental = now + own;

  OrderedWave& state = wave.ordered;
  const double result = begins + own + (is_matrix ? rules.matrix_result : rules.result).value;
  state.vector_done = std::max(state.vector_done, begins + own + rules.leaves.value);
  if (step.reads_scalars) state.scalars_read = begins + rules.scalar_reads.value;
  if (step.transcendental_unit) {
    push_front(state.transcendental_results, result);
  } else {
    push_front(state.vector_results, result);
  }
  for (const checks::Registers& range : std::span(step.effects.writes).first(step.effects.write_count)) {
    for (unsigned r = range.first; r < unsigned{range.first} + range.count; ++r) {
      if (!range.scalar && r < wave.ready.size()) {
        wave.ready[r] = result;
        wave.from_matrix[r] = is_matrix;
      } else if (range.scalar && r < sgpr_count) {
        wave.scalar_ready[r] = begins + own + rules.leaves.value;
        state.from_vector[r] = true;
      }
    }
  }
  return begins;
}

void issue_scalar(RunningWave& wave, const Step& step, const timing::OrderedRules& rules, double now) {
  OrderedWave& state = wave.ordered;
  const double begins = scalar_begins(wave, step, now);
  state.scalar_begins = begins;
  const double ready = begins + rules.scalar_result.value;
  const double chain = begins + rules.scalar_chain.value;
  state.scalar_done = std::max(state.scalar_done, ready);
  if (step.effects.writes_scc) {
    state.condition_ready = ready;
    state.condition_chain = chain;
  }
  for (const checks::Registers& range : std::span(step.effects.writes).first(step.effects.write_count)) {
    for (unsigned r = range.first; range.scalar && r < unsigned{range.first} + range.count && r < sgpr_count; ++r) {
      wave.scalar_ready[r] = ready;
      state.chain[r] = chain;
      state.from_vector[r] = false;
    }
  }
}

double send_data(const Step& step, OrderedQueue& queue, double now) {
  const double start = std::max(now, queue.data_free);
  queue.data_free = start + step.data_cycles;
  return queue.data_free - 1;
}

void look_ahead(RunningWave& wave, const Step& step) {
  OrderedWave& state = wave.ordered;
  const std::uint32_t word = step.instruction->immediate;
  if (step.effects.action == Action::wait_alu) {
    // va_vdst in bits 15:12, va_sdst in bits 11:9, va_vcc in bit 1, sa_sdst in bit 0.
    const bool of_vector = ((word >> 12) & 15) == 0 || ((word >> 9) & 7) == 0 || (word & 2) == 0;
    if (of_vector) state.hold = std::max(state.hold, state.vector_done);
    if ((word & 1) == 0) state.hold = std::max(state.hold, state.scalar_done);
    return;
  }
  // The next instruction waits for the dependency in bits 3:0. Bits 6:4 say how far behind it the instruction is that
  // waits for the dependency in bits 10:7.
  const std::size_t next = wave.position + 1;
  state.delays = {{{.position = next, .dependency = word & 15},
                   {.position = next + ((word >> 4) & 7), .dependency = (word >> 7) & 15}}};
}

}  // namespace wavejit::simgpu::clock
