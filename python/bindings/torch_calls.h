// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What Python sees of torch_seen.h and torch_tensors.h.
#pragma once

#include <nanobind/nanobind.h>

namespace wavejit::python {

namespace nb = nanobind;

void bind_torch_calls(nb::module_& module);

}  // namespace wavejit::python
