// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A profile as one HTML file that needs nothing else: no network, no other file.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/profile/prediction.h"

namespace wavejit::tools {

// The page shows one profile, or two with what `comparison` says of them (comparison.h); null: nothing.
std::string page_of(const std::string& title, const std::vector<const Prediction*>& predictions,
                    const nlohmann::json& comparison);

}  // namespace wavejit::tools
