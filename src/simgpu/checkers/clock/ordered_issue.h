// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SIMDs that take vector and matrix instructions in order (timing::OrderedRules). A wave hands an instruction to its
// SIMD's queue and goes on. When the instruction begins is known then: behind all before it, and when what it reads is
// there. Nothing of the SIMD overtakes it, whichever wave it is of.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "simgpu/checkers/clock/result.h"
#include "simgpu/checkers/clock/step.h"
#include "simgpu/machine/instruction/instruction.h"
#include "timing/timing.h"

namespace wavejit::simgpu::clock {

struct RunningWave;

// The queue of a SIMD.
struct OrderedQueue {
  std::deque<double> ends;         // when its instructions leave it, ascending
  bool last_is_matrix = false;     // of those that wait
  double begins = 0;               // the next one, at the earliest
  double transcendental_free = 0;  // the unit of those
  double takes = 0;                // its next instruction, at the earliest
  double takes_transcendental = 0;
  double data_free = 0;  // the way of addresses and data to LDS and memory
};

// What is known of a wave.
struct OrderedWave {
  bool last_was_vector = false;
  double internal_from = 0;
  double vector_done = 0;   // LDS, memory and scalar instructions follow
  double scalars_read = 0;  // by vector instructions: scalar ones may write
  double scalar_done = 0;
  double scalar_begins = 0;
  double condition_ready = 0;  // SCC, for branches …
  double condition_chain = 0;  // … and for scalar instructions
  std::array<double, sgpr_count> chain{};
  std::array<bool, sgpr_count> from_vector{};
  // When what reads them may begin: the latest first.
  std::array<double, 4> vector_results{};
  std::array<double, 3> transcendental_results{};
  double hold = 0;  // s_wait_alu: nothing of the wave issues before
  // s_delay_alu: what the instruction at that place of the trace has to wait for.
  struct Delay {
    std::size_t position = 0;
    unsigned dependency = 0;
  };
  std::array<Delay, 2> delays{};
};

// Why the wave cannot issue for what it did itself, or for its SIMD's queue; `Cause::count` when it can.
Cause ordered_obstacle(RunningWave& wave, const Step& step, OrderedQueue& queue, const timing::OrderedRules& rules,
                       double now);
// A vector or matrix instruction goes into the queue; when it begins.
double enter_queue(RunningWave& wave, const Step& step, OrderedQueue& queue, const timing::OrderedRules& rules,
                   double now);
void issue_scalar(RunningWave& wave, const Step& step, const timing::OrderedRules& rules, double now);
// Addresses and data of LDS and memory instructions leave the SIMD one after the other: when this one's have.
double send_data(const Step& step, OrderedQueue& queue, double now);
// s_delay_alu and s_wait_alu, which are looked at beside what issues.
void look_ahead(RunningWave& wave, const Step& step);

}  // namespace wavejit::simgpu::clock
