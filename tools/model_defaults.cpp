// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/model_defaults.h"

#include <nlohmann/json.hpp>

namespace wavejit::tools {
namespace {

constexpr std::string_view defaults_text =
#include "tools/model_defaults.inc"
    ;

const nlohmann::json& defaults_of_classes() {
  static const nlohmann::json parsed = nlohmann::json::parse(defaults_text);
  return parsed;
}

}  // namespace

const nlohmann::json* default_of(std::string_view model_type, const char* field) {
  const auto type = defaults_of_classes().find(model_type);
  if (type == defaults_of_classes().end() || !type->is_object()) return nullptr;
  const auto found = type->find(field);
  return found == type->end() ? nullptr : &*found;
}

std::string name_of_class(std::string_view model_type) {
  const nlohmann::json* name = default_of(model_type, "class");
  if (name == nullptr) return "";
  return name->get<std::string>() + " of " + defaults_of_classes().at("source").get<std::string>();
}

}  // namespace wavejit::tools
