// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which lines `wavejit prebuild` builds: descriptors of the command line, presets, models and lists, one after the other.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/exit_code.h"
#include "tools/refused_lines.h"
#include "tools/served_model.h"

namespace wavejit::tools {

struct PrebuildSources {
  std::vector<std::string> descriptors;
  std::vector<std::string> presets;
  std::vector<std::string> models;
  ServedModel served;  // but for its configuration
  std::vector<std::string> lists;
};

// A descriptor and where it stands, for messages.
struct PrebuildLine {
  std::string text;
  Place place;
  bool of_preset = false;  // of calls that many targets are asked for: what one of them lacks is left out
};

// Prints what was read of a model, in front of the lines of --print-list, as a list has it.
Result<std::vector<PrebuildLine>> gather_lines(const PrebuildSources& sources);

// The words of --kv; the first and the last are vLLM's.
inline constexpr std::string_view kv_floats = "fp8";
inline constexpr std::string_view kv_integers = "int8";
inline constexpr std::string_view kv_rows_with_scales = "fp8_ds_mla";

// Lines with keys and values in 8 bits, where their family has such. Integers are the same on every target.
std::vector<PrebuildLine> in_8_bits(std::vector<PrebuildLine> lines, const std::string& kv, const std::string& target);

}  // namespace wavejit::tools
