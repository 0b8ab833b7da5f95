// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// DLPack capsules, in and out: tensors of other libraries without a copy. Which streams wait for which is Python's part
// (python/wavejit/_arrays.py).
#pragma once

#include <nanobind/nanobind.h>

namespace wavejit::python {

namespace nb = nanobind;

void bind_exchange(nb::module_& module);

}  // namespace wavejit::python
