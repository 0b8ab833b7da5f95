// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The functions behind the C table (codegen_api.h).
#pragma once

#include <cstdint>

#include "codegen/codegen_api.h"

namespace wavejit::codegen {

// Null when this build does not speak `abi`.
const struct wavejit_codegen_table* table(std::uint32_t abi);

}  // namespace wavejit::codegen
