// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the families have for GPUs by the names that they are sold under.
#pragma once

#include <string>

#include "tools/support_table.h"

namespace wavejit::tools {

// What the families have for each product, from the rows of `wavejit supported`: a table, or an array of objects.
std::string gpus_markdown(const Support& support);
std::string gpus_text(const Support& support);
std::string gpus_json(const Support& support);

}  // namespace wavejit::tools
