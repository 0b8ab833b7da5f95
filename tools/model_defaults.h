// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a config.json of transformers leaves out: figures that are those of the model type's class.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace wavejit::tools {

// The class's default of a field; nullptr where the type has no class, the class has no such field, or computes it.
const nlohmann::json* default_of(std::string_view model_type, const char* field);
// "Gemma3TextConfig of transformers 5.23.0"; "" where the type has no class there.
std::string name_of_class(std::string_view model_type);

}  // namespace wavejit::tools
