// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lists of descriptors that come with the program, one a model: share/wavejit/presets, found from where the program
// itself lies, so that an installation may be moved.
#pragma once

#include <string>
#include <vector>

#include "tools/exit_code.h"

namespace wavejit::tools {

struct Preset {
  std::string name;
  std::string path;   // for read_list
  std::string title;  // the file's first line, without its '#'
};

// All of them, by name.
Result<std::vector<Preset>> find_presets();
// The one of that name; the failure lists those that there are.
Result<Preset> find_preset(const std::string& name);

}  // namespace wavejit::tools
