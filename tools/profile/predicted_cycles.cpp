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
  }
  return cycles;
}

std::string parts_text(std::span<const Json> launches) {
  if (launches.size() < 2) return {};
  std::string sum;
  for (const Json& launch : launches)
    sum += fmt::format("{}{}", sum.empty() ? "" : " + ", launch.at("cycles").get<std::uint64_t>());
  return fmt::format("{}: {}, and {} (guessed) for each launch that waits for the one before",
                     predicted_cycles(launches).total(), sum,
                     launches.back().at("dependent_launch_cycles").get<std::uint64_t>());
}

Json parts_json(std::span<const Json> launches) {
  Json parts = Json::array();
  for (const Json& launch : launches) {
    const std::uint64_t wait =
        &launch == launches.data() ? 0 : launch.at("dependent_launch_cycles").get<std::uint64_t>();
    parts.push_back({{"kernel", launch.at("kernel")}, {"wait", wait}, {"cycles", launch.at("cycles")}});
  }
  return parts;
}

}  // namespace wavejit::tools
