// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The only symbol that libwavejit_codegen.so exports.
#include "codegen/codegen_api.h"
#include "codegen/table.h"

extern "C" const struct wavejit_codegen_table* wavejit_codegen_table(std::uint32_t abi) {
  return wavejit::codegen::table(abi);
}
