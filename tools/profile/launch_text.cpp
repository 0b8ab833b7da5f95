// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/profile/launch_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <sstream>

#include "tools/profile/model_error.h"
#include "tools/targets.h"

namespace wavejit::tools {

using Json = nlohmann::json;

std::string shares(const Json& cycles, double whole) {
  std::vector<std::pair<std::uint64_t, std::string>> parts;
  for (const auto& [name, value] : cycles.items()) parts.emplace_back(value.get<std::uint64_t>(), name);
  std::ranges::sort(parts, std::greater<>());
  std::string text;
  for (const auto& [value, name] : parts) {
    const double percent = whole <= 0 ? 0 : 100 * static_cast<double>(value) / whole;
    if (percent < 1) break;
    text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", name, percent);
  }
  return text.empty() ? "nothing" : text;
}

double total_of(const Json& cycles) {
  double total = 0;
  for (const auto& [name, value] : cycles.items()) total += value.get<double>();
  return total;
}

std::vector<std::pair<std::string, double>> unit_occupancy(const Json& launch) {
  const Json& unit = launch.at("compute_unit");
  const auto cycles = std::max(unit.at("cycles").get<double>(), 1.0);
  const double simd_cycles = cycles * unit.at("simds").get<double>();
  const auto part = [&](const char* field, double whole) { return unit.at(field).get<double>() / whole; };
  return {{"matrix pipe", part("matrix_busy", simd_cycles)},
          {"vector port", part("port_busy", simd_cycles)},
          {"LDS", part("lds_busy", cycles)},
          {"vector memory", part("address_busy", cycles)},
          {"scalar", part("scalar_busy", simd_cycles)}};
}

namespace {

// The instructions with the longest waits before them.
std::string longest_text(const Json& launch, std::size_t most) {
  std::string text;
  const auto wave_cycles = launch.at("waves").at("cycles").get<double>();
  std::size_t shown = 0;
  for (const Json& instruction : launch.at("instructions")) {
    if (shown++ == most) break;
    text += fmt::format("{:<8} {:4.1f} % of wave time before {:#06x} {}: {}\n", shown == 1 ? "longest" : "",
                        100 * total_of(instruction.at("waited")) / wave_cycles,
                        instruction.at("offset").get<unsigned>(), instruction.at("text").get<std::string>(),
                        shares(instruction.at("waited"), total_of(instruction.at("waited"))));
  }
  return text;
}

// "64.1 µs at 2400 MHz".
std::string time_text(const Json& launch) {
  const auto khz = launch.at("clock_khz").get<double>();
  return fmt::format("{:.1f} µs at {:.0f} MHz", launch.at("cycles").get<double>() * 1000 / khz, khz / 1000);
}

// What the timed compute units did and read, as parts of what they can: the roofline of the page.
std::string peaks_text(const Json& launch) {
  const Json& roof = launch.at("roofline");
  const auto cycles = std::max(roof.at("cycles").get<double>(), 1.0);
  const auto part = [&](const Json& done, const Json& a_cycle) {
    const auto most = a_cycle.get<double>();
    return most <= 0 ? 0 : 100 * done.get<double>() / cycles / most;
  };
  std::string text;
  if (roof.contains("pipe"))
    text = fmt::format("matrix {:.1f} %", part(roof.at("operations"), roof.at("pipe").at("operations_a_cycle")));
  for (const Json& level : roof.at("levels"))
    text += fmt::format("{}{} {:.1f} %", text.empty() ? "" : ", ", level.at("name").get<std::string>(),
                        part(level.at("bytes"), level.at("bytes_a_cycle")));
  return text;
}

// Runs of instructions between jumps and barriers, by what they cost.
std::string clusters_text(const Json& launch, std::span<const std::string> steps) {
  const auto wave_cycles = launch.at("waves").at("cycles").get<double>();
  const auto simd_cycles =
      launch.at("compute_unit").at("cycles").get<double>() * launch.at("compute_unit").at("simds").get<double>();
  std::string text;
  std::size_t widest = 0;
  for (const std::string& step : steps) widest = std::max(widest, step.size());
  std::size_t number = 0;
  for (const Json& cluster : launch.at("clusters")) {
    const std::string step = steps.empty() ? "" : fmt::format("  {:<{}}", steps[number], widest);
    ++number;
    const double waited = total_of(cluster.at("waited")) / wave_cycles;
    const double matrix = cluster.at("matrix_cycles").get<double>() / simd_cycles;
    if (waited < 0.01 && matrix < 0.01) continue;
    text += fmt::format("{:<8} {:#06x} to {:#06x}{}  matrix {:4.1f} %  waits {:4.1f} % of wave time: {}\n",
                        text.empty() ? "clusters" : "", cluster.at("first").get<unsigned>(),
                        cluster.at("last").get<unsigned>(), step, 100 * matrix, 100 * waited,
                        shares(cluster.at("waited"), total_of(cluster.at("waited"))));
  }
  return text;
}

}  // namespace

std::vector<std::string> step_names(const Json& launch, const Family* family, const std::string& kernel_spec) {
  if (family == nullptr || !launch.contains("clusters")) return {};
  std::vector<CodeStretch> stretches;
  std::vector<std::size_t> stretch_of;
  unsigned last = 0;
  for (const Json& cluster : launch["clusters"]) {
    const auto number = cluster.at("stretch").get<unsigned>();
    if (stretches.empty() || number != last) stretches.emplace_back();
    last = number;
    stretch_of.push_back(stretches.size() - 1);
    const Json& kinds = cluster.at("kinds");
    CodeStretch& stretch = stretches.back();
    stretch.matrix += kinds.value("matrix", 0U);
    stretch.matrix_from_zero += cluster.at("matrix_from_zero").get<unsigned>();
    stretch.transcendental += kinds.value("transcendental", 0U);
    stretch.lds_reads += kinds.value("lds_read", 0U);
  }
  const std::vector<std::string> names =
      family->step_names(kernel_spec, launch.at("kernel").get<std::string>(), stretches);
  std::vector<std::string> steps;
  if (!names.empty())
    for (const std::size_t stretch : stretch_of) steps.push_back(names.at(stretch));
  return steps;
}

std::string waits_help() {
  return "Waits: own interval: the instruction that the wave issued last still occupies it. matrix result, operand: what it reads is\n"
         "not there yet. matrix pipe, vector port: the unit works for another. other wave: one of higher priority or age went first.\n"
         "vector memory, LDS, scalar memory: s_waitcnt waits for such results. full counter, full queue: no more requests may be under\n"
         "way. barrier: other waves have not arrived. branch, fetch: the next instruction is on its way. pause: s_nop, s_sleep.";
}

std::string launch_text(const Json& launch, Detail detail, std::span<const std::string> steps) {
  std::string text;
  const auto line = [&](const char* name, const std::string& value) { text += fmt::format("{:<8} {}\n", name, value); };
  if (launch.contains("refused")) {
    line("cycles", fmt::format("not predicted: {}", launch["refused"].get<std::string>()));
    return text;
  }
  line("cycles",
       fmt::format("{} predicted for the launch on {}: {}; matrix pipes busy {:.1f} %, {:.1f} % in the middle half "
                   "of a compute unit's time",
                   launch["cycles"].get<std::uint64_t>(), launch["target"].get<std::string>(), time_text(launch),
                   100 * launch["matrix_busy"].get<double>(), 100 * launch["steady_matrix_busy"].get<double>()));
  if (launch.contains("doubt")) line("doubt", launch["doubt"].get<std::string>());
  const Json& occupancy = launch["occupancy"];
  line("",
       fmt::format("{} workgroup(s) of {} waves on a compute unit (room for {}, limited by {}); places taken {:.0f} % "
                   "of the time",
                   occupancy["resident"].get<unsigned>(), launch["waves_of_workgroup"].get<unsigned>(),
                   occupancy["workgroups"].get<unsigned>(), occupancy["limited_by"].get<std::string>(),
                   100 * launch["places_taken"].get<double>()));
  const Json& waves = launch["waves"];
  const auto wave_cycles = waves["cycles"].get<double>();
  line("waves", fmt::format("issued {} instructions on {} compute unit(s) timed; of their time they waited for: {}",
                            waves["issued"].get<std::uint64_t>(), launch["sample"].size(),
                            shares(waves["waited"], wave_cycles)));
  const Json& unit = launch["compute_unit"];
  const double simd_cycles = unit["cycles"].get<double>() * unit["simds"].get<double>();
  line("SIMDs", fmt::format("matrix pipe {:.0f} %, vector port {:.0f} %; both idle while waiting for: {}",
                            100 * unit["matrix_busy"].get<double>() / simd_cycles,
                            100 * unit["port_busy"].get<double>() / simd_cycles, shares(unit["idle"], simd_cycles)));
  constexpr std::size_t few = 5;
  constexpr std::size_t many = 12;
  if (detail == Detail::full) {
    std::string units;
    for (const auto& [name, busy] : unit_occupancy(launch))
      units += fmt::format("{}{} {:.0f} %", units.empty() ? "" : ", ", name, 100 * busy);
    line("busy", units);
    const Json& code = launch.at("static");
    line("code", fmt::format("{} instructions, {} bytes; {} vector registers ({} of accumulation), {} scalar; {} bytes "
                             "of LDS, {} bytes of private memory a lane",
                             code.at("instructions").get<unsigned>(), code.at("code_bytes").get<std::uint64_t>(),
                             launch.at("vgprs").get<unsigned>(), code.at("agprs").get<unsigned>(),
                             code.at("sgprs").get<unsigned>(), launch.at("lds_bytes").get<unsigned>(),
                             code.at("private_bytes").get<unsigned>()));
  }
  line("of peak", peaks_text(launch));
  text += longest_text(launch, detail == Detail::full ? many : few);
  if (detail == Detail::full) text += clusters_text(launch, steps);
  return text;
}

std::vector<Json> launches_of(const std::string& lines) {
  std::vector<Json> launches;
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);) {
    Json launch = Json::parse(line, nullptr, false);
    if (launch.is_object()) launches.push_back(std::move(launch));
  }
  return launches;
}

namespace {

std::string program_error_text() {
  std::string kinds;
  int rows = 0;
  for (const ProgramError& error : errors_of_programs) {
    kinds += fmt::format("{}{:.2f} to {:.2f} of {}", kinds.empty() ? "" : ", ", error.least, error.most, error.kind);
    rows += error.rows;
  }
  return fmt::format(
      "predicted, not measured: no launch ran a matrix instruction. For {} launches of such programs that others timed "
      "on an MI300A the predicted time was between {} times the measured one (docs/silicon-score.md)",
      rows, kinds);
}

}  // namespace

std::string model_error_text(std::string_view target, std::span<const Json> launches) {
  // The error is that of targets for which all families have kernels. Of others there are traces at most.
  const std::vector<std::string> complete = known_targets();
  const std::string_view processor = target.substr(0, target.find(':'));
  if (!processor.empty() && std::ranges::find(complete, processor) == complete.end()) {
    return fmt::format(
        "predicted, not measured: how waves of {} issue was compared cycle by cycle with thread traces of hardware; "
        "LDS under load, memory and whole kernels with nothing (bench/predicted_rdna4.md)",
        processor);
  }
  const auto has_none = [](const Json& launch) { return launch.value("matrix_busy", 0.0) == 0; };
  if (!launches.empty() && std::ranges::all_of(launches, has_none)) return program_error_text();
  return fmt::format(
      "predicted, not measured: for {} whole kernels that no constant was taken from, "
      "{} of them real ones of others on gfx950, the clock was between {:.1f} % too low and {:.1f} % too high, "
      "root mean square {:.1f} % (docs/timing-model.md)",
      error_of_kernels.anchors, error_of_real_kernels.anchors, error_of_kernels.too_low, error_of_kernels.too_high,
      error_of_kernels.root_mean_square);
}

std::string change_error_text() {
  return fmt::format(
      "predicted, not measured: what {} changes to kernels add or save was between {:.1f} and {:.1f} points off, root "
      "mean square {:.1f} (docs/timing-model.md)",
      error_of_toggles.anchors, -error_of_toggles.too_low, error_of_toggles.too_high,
      error_of_toggles.root_mean_square);
}

Json model_error_json(std::string_view target, std::span<const Json> launches) {
  Json programs = Json::array();
  for (const ProgramError& error : errors_of_programs)
    programs.push_back({{"kind", error.kind},
                        {"rows", error.rows},
                        {"median", error.median},
                        {"least", error.least},
                        {"most", error.most},
                        {"spread_log2", error.spread}});
  return {{"kernels", error_of_kernels.anchors},
          {"too_low_percent", error_of_kernels.too_low},
          {"too_high_percent", error_of_kernels.too_high},
          {"root_mean_square_percent", error_of_kernels.root_mean_square},
          {"programs", std::move(programs)},
          {"text", model_error_text(target, launches)}};
}

}  // namespace wavejit::tools
