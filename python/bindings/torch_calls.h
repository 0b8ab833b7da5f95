// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls over PyTorch's tensors, remembered by the shapes that they were made for: a call of a shape that was seen
// before makes its outputs, puts addresses into arguments that were checked, and launches.
#pragma once

#include <nanobind/nanobind.h>

namespace wavejit::python {

namespace nb = nanobind;

void bind_torch_calls(nb::module_& module);

}  // namespace wavejit::python
