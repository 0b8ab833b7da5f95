// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/profile/predicted_cycles.h"

#include <fmt/format.h>

namespace wavejit::tools {

using Json = nlohmann::json;

PredictedCycles predicted_cycles(std::span<const Json> launches) {
  PredictedCycles cycles;
  for (const Json& launch : launches) {
    if (&launch != launches.data()) cycles.of_waits += launch.at("dependent_launch_cycles").get<std::uint64_t>();
    cycles.of_launches += launch.at("cycles").get<std::uint64_t>();
    cycles.of_cold_starts += launch.at("cold_cycles").get<std::uint64_t>();
  }
  return cycles;
}

std::string parts_text(std::span<const Json> launches) {
  if (launches.size() < 2) return {};
  std::string sum;
  for (const Json& launch : launches)
    sum += fmt::format("{}{}", sum.empty() ? "" : " + ", launch.at("cycles").get<std::uint64_t>());
  return fmt::format("{}: {}, and {} (derived from an MI300A's times) for each launch that waits for the one before",
                     predicted_cycles(launches).total(), sum,
                     launches.back().at("dependent_launch_cycles").get<std::uint64_t>());
}

std::string whereabouts_text(std::span<const Json> launches) {
  const PredictedCycles cycles = predicted_cycles(launches);
  const auto percent = [&](std::uint64_t part) {
    return 100 * static_cast<double>(part) / static_cast<double>(cycles.total());
  };
  std::string text;
  if (cycles.of_waits != 0)
    text += fmt::format("{:.1f} % between launches (derived from an MI300A's times), ", percent(cycles.of_waits));
  text += fmt::format("{:.1f} % until code and arguments are there", percent(cycles.of_cold_starts));
  for (const Json& launch : launches) {
    const auto running = launch.at("cycles").get<std::uint64_t>() - launch.at("cold_cycles").get<std::uint64_t>();
    text += fmt::format(", {:.1f} % {}", percent(running), launch.at("kernel").get<std::string>());
  }
  return text;
}

Json parts_json(std::span<const Json> launches) {
  Json parts = Json::array();
  for (const Json& launch : launches) {
    const std::uint64_t wait =
        &launch == launches.data() ? 0 : launch.at("dependent_launch_cycles").get<std::uint64_t>();
    parts.push_back({{"kernel", launch.at("kernel")},
                     {"wait", wait},
                     {"cycles", launch.at("cycles")},
                     {"cold", launch.at("cold_cycles")}});
  }
  return parts;
}

}  // namespace wavejit::tools
