// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The figures of a row one by one.
#include <string>

#include "timing/timing.h"

namespace wavejit::timing {
namespace {

using Visit = std::function<void(std::string_view, std::string_view, const Figure&)>;

void visit_ordered(const OrderedRules& ordered, const Visit& visit) {
  if (!ordered.known()) return;
  visit("ordered.queue", "instructions", ordered.queue);
  visit("ordered.matrix_stays", "cycles", ordered.matrix_stays);
  visit("ordered.result", "cycles", ordered.result);
  visit("ordered.matrix_result", "cycles", ordered.matrix_result);
  visit("ordered.accumulated", "cycles", ordered.accumulated);
  visit("ordered.transcendental_unit", "cycles", ordered.transcendental_unit);
  visit("ordered.leaves", "cycles", ordered.leaves);
  visit("ordered.scalar_result", "cycles", ordered.scalar_result);
  visit("ordered.scalar_chain", "cycles", ordered.scalar_chain);
  visit("ordered.scalar_backlog", "cycles", ordered.scalar_backlog);
  visit("ordered.internal", "cycles", ordered.internal);
  visit("ordered.data_backlog", "cycles", ordered.data_backlog);
  visit("ordered.scalar_reads", "cycles", ordered.scalar_reads);
  visit("ordered.banks", "", ordered.banks);
}

}  // namespace

void for_each_figure(const Timing& timing, const Visit& visit) {
  // Figures that not every target has.
  const auto visit_known = [&](std::string_view name, std::string_view unit, const Figure& figure) {
    if (figure.value > 0) visit(name, unit, figure);
  };
  const IssueCosts& issue = timing.issue;
  visit("issue.plain", "cycles", issue.plain);
  visit("issue.three_source", "cycles", issue.three_source);
  visit("issue.packed", "cycles", issue.packed);
  visit("issue.transcendental", "cycles", issue.transcendental);
  visit("issue.lane_swap", "cycles", issue.lane_swap);
  visit("issue.double_precision", "cycles", issue.double_precision);
  visit_known("issue.wide", "cycles", issue.wide);
  visit_known("issue.multiply", "cycles", issue.multiply);
  visit("issue.matrix_issue", "cycles", issue.matrix_issue);
  visit("issue.matrix_issue_wide", "cycles", issue.matrix_issue_wide);
  visit("issue.packed_after_matrix", "cycles", issue.packed_after_matrix);
  const WaveRules& wave = timing.wave;
  visit("wave.look", "cycles", wave.look);
  visit("wave.lds_issue", "cycles", wave.lds_issue);
  visit("wave.memory_issue", "cycles", wave.memory_issue);
  visit("wave.vector_to_memory", "cycles", wave.vector_to_memory);
  visit("wave.pass", "cycles", wave.pass);
  visit("wave.result_states", "wait states", wave.result_states);
  visit("wave.vector_to_scalar", "cycles", wave.vector_to_scalar);
  visit("wave.taken_branch", "cycles", wave.taken_branch);
  visit("wave.passed_scc_branch", "cycles", wave.passed_scc_branch);
  visit("wave.barrier_release", "cycles", wave.barrier_release);
  visit("wave.nop", "cycles", wave.nop);
  visit("wave.sleep", "cycles", wave.sleep);
  visit("wave.instruction_cache", "bytes", wave.instruction_cache);
  visit("wave.instruction_miss", "cycles", wave.instruction_miss);
  visit("wave.wave_start", "cycles", wave.wave_start);
  visit("wave.cold_code", "cycles", wave.cold_code);
  visit_ordered(timing.ordered, visit);
  visit("lds.latency", "cycles", timing.lds_unit.latency);
  visit("lds.ports", "", timing.lds_unit.ports);
  visit("lds.queue", "requests", timing.lds_unit.queue);
  visit_known("lds.sets", "", timing.lds_unit.sets);
  for (const LdsAccess& access : timing.lds) {
    const std::string name = "lds." + std::string(access.name);
    visit(name + ".cycles", "cycles", access.cycles);
    visit(name + ".port", "cycles", access.port);
  }
  const MemoryRules& memory = timing.memory;
  visit("memory.lanes_narrow", "lanes", memory.lanes_narrow);
  visit("memory.lanes_wide", "lanes", memory.lanes_wide);
  visit("memory.queue", "requests", memory.queue);
  visit("memory.in_flight", "bytes", memory.in_flight);
  visit("memory.l1_bytes", "bytes", memory.l1_bytes);
  visit("memory.l1_sets", "sets", memory.l1_sets);
  visit("memory.line", "bytes", memory.line);
  visit("memory.l1_rate", "bytes a clock", memory.l1_rate);
  visit("memory.l1_latency", "cycles", memory.l1_latency);
  visit("memory.l2_bytes", "bytes", memory.l2_bytes);
  visit("memory.l2_rate", "bytes a clock", memory.l2_rate);
  visit("memory.l2_latency", "cycles", memory.l2_latency);
  visit("memory.mall_bytes", "bytes", memory.mall_bytes);
  visit("memory.mall_rate", "bytes a clock of a die", memory.mall_rate);
  visit("memory.mall_latency", "cycles", memory.mall_latency);
  visit("memory.memory_rate", "bytes a clock", memory.memory_rate);
  visit("memory.memory_latency", "cycles", memory.memory_latency);
  visit_known("memory.scalar_bytes", "bytes", memory.scalar_bytes);
  visit("memory.scalar_latency", "cycles", memory.scalar_latency);
  visit("memory.cold_arguments", "cycles", memory.cold_arguments);
  visit("memory.write_back", "cycles", memory.write_back);
  visit("memory.invalidate", "cycles", memory.invalidate);
  visit("launch.dependent", "cycles", timing.launch.dependent);
  visit("launch.workgroup", "cycles", timing.launch.workgroup);
  if (!timing.power.known()) return;
  visit("power.idle", "MHz", timing.power.idle);
  visit("power.slope", "MHz a percent", timing.power.slope);
  visit("power.delivered", "", timing.power.delivered);
}

}  // namespace wavejit::timing
