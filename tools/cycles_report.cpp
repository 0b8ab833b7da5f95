#include "tools/cycles_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>
#include <vector>

namespace wavejit::tools {

namespace {

using Json = nlohmann::json;

// "matrix pipe 41 %, LDS 12 %": shares of `whole`, the largest first, those below one percent left out.
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

std::string launch_text(const Json& launch) {
  std::string text;
  const auto line = [&](const char* name, const std::string& value) { text += fmt::format("{:<8} {}\n", name, value); };
  if (launch.contains("refused")) {
    line("cycles", fmt::format("not predicted: {}", launch["refused"].get<std::string>()));
    return text;
  }
  line("cycles",
       fmt::format("{} predicted for the launch on {}; matrix pipes busy {:.1f} %, {:.1f} % in the middle half "
                   "of a compute unit's time",
                   launch["cycles"].get<std::uint64_t>(), launch["target"].get<std::string>(),
                   100 * launch["matrix_busy"].get<double>(), 100 * launch["steady_matrix_busy"].get<double>()));
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
  constexpr std::size_t most = 5;
  std::size_t shown = 0;
  for (const Json& instruction : launch["instructions"]) {
    if (shown++ == most) break;
    line(
        shown == 1 ? "longest" : "",
        fmt::format("{:4.1f} % of wave time before {:#06x} {}: {}", 100 * total_of(instruction["waited"]) / wave_cycles,
                    instruction["offset"].get<unsigned>(), instruction["text"].get<std::string>(),
                    shares(instruction["waited"], total_of(instruction["waited"]))));
  }
  return text;
}

}  // namespace

std::string cycles_text(const std::string& lines) {
  std::string text;
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);) {
    const Json launch = Json::parse(line, nullptr, false);
    if (launch.is_object()) text += launch_text(launch);
  }
  return text;
}

}  // namespace wavejit::tools
