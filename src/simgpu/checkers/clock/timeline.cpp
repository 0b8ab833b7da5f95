// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/clock/timeline.h"

#include <format>
#include <nlohmann/json.hpp>

namespace wavejit::simgpu::clock {
namespace {

using Json = nlohmann::json;

constexpr unsigned pipe_track = 0;
unsigned wave_track(std::uint16_t wave) { return wave + 1U; }

Json name_of_track(std::string_view what, unsigned process, unsigned track, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", track}, {"args", {{"name", name}}}};
}

Json span(const std::string& name, std::string_view category, unsigned process, unsigned track, std::uint64_t start,
          std::uint64_t cycles) {
  return {{"name", name}, {"cat", category}, {"ph", "X"},    {"pid", process},
          {"tid", track}, {"ts", start},     {"dur", cycles}};
}

}  // namespace

std::string chrome_trace(const std::string& kernel, const ComputeUnitResult& unit, const Program& program) {
  Json events = Json::array();
  for (unsigned simd = 0; simd < unit.simds.size(); ++simd) {
    events.push_back(name_of_track("process_name", simd, pipe_track, std::format("SIMD {}", simd)));
    events.push_back(name_of_track("thread_name", simd, pipe_track, "matrix pipe"));
  }
  for (std::size_t i = 0; i < unit.waves.size(); ++i) {
    const WaveResult& wave = unit.waves[i];
    events.push_back(name_of_track("thread_name", wave.simd, wave_track(static_cast<std::uint16_t>(i)),
                                   std::format("workgroup {}, wave {}", wave.workgroup, wave.wave)));
  }
  const auto look = static_cast<std::uint64_t>(program.timing().wave.look.cycles());
  for (const TimelineEvent& event : unit.timeline) {
    const Step& step = program.steps()[event.step];
    const unsigned simd = unit.waves[event.wave].simd;
    if (event.waited_for != Cause::count) {
      events.push_back(span(std::format("waits: {}", to_text(event.waited_for)), "wait", simd, wave_track(event.wave),
                            event.start, event.cycles));
      continue;
    }
    const std::string text = step.instruction->function->text(*step.instruction);
    // One look: for as long as it occupies its wave beyond that, the wave waits for its own interval.
    Json issued = span(text, to_text(step.kind), simd, wave_track(event.wave), event.start, look);
    issued["args"] = {{"offset", step.instruction->offset_in_function}};
    events.push_back(std::move(issued));
    if (step.kind == Kind::matrix) {
      events.push_back(
          span(text, "matrix pipe", simd, pipe_track, event.start, static_cast<std::uint64_t>(step.pipe_cycles)));
    }
  }
  return Json({{"traceEvents", std::move(events)},
               {"otherData",
                {{"kernel", kernel}, {"predicted", "true"}, {"time", "one cycle stands as one microsecond"}}}})
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace wavejit::simgpu::clock
