// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attention over PyTorch's tensors where nobody looks: whether anybody does, the two functions of autograd's node, and
// calls of shapes seen before between them, without a line of Python. What comes for the first time, Python does
// (python/wavejit/torch/_plainly.py).
#pragma once

#include <nanobind/nanobind.h>

namespace wavejit::python {

namespace nb = nanobind;

void bind_torch_node(nb::module_& module);

}  // namespace wavejit::python
