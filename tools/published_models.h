// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Models whose config.json is known here, without a file: what `wavejit supported --models` answers for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/exit_code.h"
#include "tools/model_config.h"

namespace wavejit::tools {

struct PublishedModel {
  std::string name;    // of Hugging Face: "Qwen/Qwen3-8B"
  std::string seen;    // where its config.json was seen
  std::string config;  // the fields of that file that say its attention
};

// In the order in which they are printed.
const std::vector<PublishedModel>& published_models();
// By its name in any case; nullptr: it is none of them.
const PublishedModel* published_model(std::string_view name);

}  // namespace wavejit::tools
