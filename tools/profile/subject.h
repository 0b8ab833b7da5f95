// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is profiled or compared: a problem or a kernel in a file, and how it is to be made and launched.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/engine_options.h"
#include "tools/exit_code.h"
#include "tools/family.h"
#include "tools/profile/code_object_call.h"

namespace wavejit::tools {

struct Subject {
  std::string text;                // a canonical descriptor or a path
  std::string settings;            // "kv-splits=4", as given; empty: none
  std::vector<std::string> asked;  // names of engine settings that this kernel must have
  EngineOptions engine;
  std::shared_ptr<const Problem> problem;  // null: a code object
  std::optional<CodeObjectCall> code;
};

// `what` is a problem descriptor or the name of a file with a code object. `settings`: "name=value" each; what they are
// is in settings_help(). `field` names the option that they come from in errors: "set-a".
Result<Subject> parse_subject(const std::string& what, const std::vector<std::string>& settings,
                              const EngineOptions& engine, const std::string& field);

// The names that a setting may have, for help texts.
std::string settings_help();

}  // namespace wavejit::tools
