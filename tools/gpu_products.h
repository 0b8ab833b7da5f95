// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the families have for GPUs by the names that they are sold under.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tools/support_table.h"

namespace wavejit::tools {

struct GpuProduct {
  std::string_view name;    // "MI325X"
  std::string_view target;  // "gfx942"
};

// By its name in any case, with spaces and hyphens or without: "mi325x", "rx9070", "RX 9070". Nothing: it is none.
std::optional<GpuProduct> gpu_product(std::string_view name);

// What the families have for each product, from the rows of `wavejit supported`: a table, or an array of objects.
std::string gpus_markdown(const Support& support);
std::string gpus_text(const Support& support);
std::string gpus_json(const Support& support);

}  // namespace wavejit::tools
