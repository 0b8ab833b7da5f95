// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the launches of one call take together. Each waits for the one before, which costs time of its own: src/timing
// says how much, and whose measurement that leans on (launch.dependent).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

namespace wavejit::tools {

struct PredictedCycles {
  std::uint64_t of_launches = 0;
  std::uint64_t of_cold_starts = 0;  // within them: code and arguments that are not there yet
  std::uint64_t of_waits = 0;        // between them
  std::uint64_t total() const { return of_launches + of_waits; }
};

// The cycles of launches as the simulated GPU tells them, none refused.
PredictedCycles predicted_cycles(std::span<const nlohmann::json> launches);
// "31200: 18000 + 6000, and 1800 (derived from an MI300A's times) for each launch that waits for the one before"; empty for one launch.
std::string parts_text(std::span<const nlohmann::json> launches);
// "3.2 % between launches (derived from an MI300A's times), 3.4 % until code and arguments are there, 75.2 % k, 8.5 % k_combine"
std::string whereabouts_text(std::span<const nlohmann::json> launches);
nlohmann::json parts_json(std::span<const nlohmann::json> launches);

}  // namespace wavejit::tools
