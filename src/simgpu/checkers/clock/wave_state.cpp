// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/clock/wave_state.h"

#include <span>

namespace wavejit::simgpu::clock {

Cause wait_obstacle(RunningWave& wave, const Step& step, double now) {
  wave.vector_counter.retire(now);
  wave.local_counter.retire(now);
  wave.store_counter.retire(now);
  wave.scalar_counter.retire(now);
  if (wave.vector_counter.pending() > step.effects.wait.vector) return wave.vector_counter.cause();
  if (wave.local_counter.pending() > step.effects.wait.local) return wave.local_counter.cause();
  if (wave.store_counter.pending() > step.effects.wait.store) return wave.store_counter.cause();
  if (wave.scalar_counter.pending() > step.effects.wait.scalar) return wave.scalar_counter.cause();
  return Cause::count;
}

Cause operand_obstacle(const RunningWave& wave, const Step& step, double now) {
  for (const checks::Registers& range : std::span(step.effects.reads).first(step.effects.read_count)) {
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

Cause port_obstacle(const Simd& simd, const Step& step, const timing::IssueCosts& costs, double now, double slack) {
  if (step.kind == Kind::matrix && simd.pipe_free > now) return Cause::matrix_pipe;
  // Such an instruction issues neither beside a matrix instruction nor within `packed_after_matrix` cycles after one.
  if (step.no_overlap && simd.pipe_free > 0 && simd.pipe_free + costs.packed_after_matrix.value > now)
    return Cause::matrix_pipe;
  return simd.port_free > now + slack ? Cause::vector_port : Cause::count;
}

void release_barrier(Slot& slot, const timing::WaveRules& rules, double now) {
  if (slot.alive == 0 || slot.at_barrier < slot.alive) return;
  slot.at_barrier = 0;
  ++slot.barriers;
  slot.released = now;
  for (RunningWave* const wave : slot.waves) {
    if (!wave->at_barrier) continue;
    wave->at_barrier = false;
    wave->next_issue = now + rules.barrier_release.value;
    wave->next_cause = Cause::barrier;
  }
}

void write_results(RunningWave& wave, const Step& step, const timing::WaveRules& rules, double now) {
  if (step.writes_scalars) wave.scalar_from = now + rules.vector_to_scalar.value;
  for (const checks::Registers& range : std::span(step.effects.writes).first(step.effects.write_count)) {
    for (unsigned r = 0; r < range.count; ++r) {
      const unsigned place = range.first + r;
      if (range.scalar) {
        // Vector instructions read it at once, scalar ones and branches wait.
        if (place < sgpr_count) wave.scalar_ready[place] = now;
      } else if (place < wave.ready.size()) {
        // Vector results are forwarded: the wave's own interval is all it waits for.
        wave.ready[place] = step.kind == Kind::matrix ? now + step.result_cycles : now;
        wave.from_matrix[place] = step.kind == Kind::matrix;
      }
    }
  }
}

}  // namespace wavejit::simgpu::clock
