// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The only symbol that libwavejit_simgpu_compile.so exports.
#include "simgpu/machine/compile/host/session.h"

namespace compile = wavejit::simgpu::compile;

extern "C" __attribute__((visibility("default"))) const compile::Table* wavejit_simgpu_compile_table() {
  static constexpr compile::Table table = {
      .shape = compile::shape_of_types(), .translate = &compile::translate, .release = &compile::release};
  return &table;
}
