// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the simulated GPU's clock says of a launch, for people: the lines of `run --cycles` and of `profile`.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/family.h"

namespace wavejit::tools {

// One JSON object for each launch and line, as wavejit_simgpu_take_cycles gives them.
std::vector<nlohmann::json> launches_of(const std::string& lines);

// How much a reader wants: `run` adds a few lines to what it tells anyway.
enum class Detail : std::uint8_t { brief, full };
// `steps`: a name for each of the launch's clusters; none where nobody knows them.
std::string launch_text(const nlohmann::json& launch, Detail detail, std::span<const std::string> steps = {});

// The launch's clusters as `family` names them by its schedule; none where it names none.
std::vector<std::string> step_names(const nlohmann::json& launch, const Family* family, const std::string& kernel_spec);

// How waits are called in these lines, for help texts.
std::string waits_help();

// A unit of a compute unit and the part of the time, 0 to 1, in which it was busy.
std::vector<std::pair<std::string, double>> unit_occupancy(const nlohmann::json& launch);

// The sum of cycles by cause.
double total_of(const nlohmann::json& cycles);
// "matrix pipe 41 %, LDS 12 %": shares of `whole`, the largest first, those below one percent left out.
std::string shares(const nlohmann::json& cycles, double whole);

// What must be said beside every prediction: that it is one, and how far the clock was off from published figures that
// no constant was taken from. Launches without a matrix instruction have an error of their own.
std::string model_error_text(std::string_view target, std::span<const nlohmann::json> launches);
// The text of differences between two kernels.
std::string change_error_text();
nlohmann::json model_error_json(std::string_view target, std::span<const nlohmann::json> launches);

}  // namespace wavejit::tools
