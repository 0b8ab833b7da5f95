// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the library answers to a descriptor, in a few words: the route, or why there is none.
#pragma once

#include <string>

#include "tools/exit_code.h"

namespace wavejit::tools {

struct RouteAnswer {
  bool found = false;
  std::string text;    // "dualwave 256x64", "generic 32x64, keys split"
  std::string reason;  // of a refusal
};

// Nothing is compiled and no device is opened.
RouteAnswer route_of(const std::string& descriptor, const std::string& target);

// Whether the library knows the target, which some families may have no kernels for.
Result<void> check_target(const std::string& target);

// `text` with each {name} replaced.
std::string with(std::string text, const std::string& name, const std::string& value);

}  // namespace wavejit::tools
