// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What XLA calls for the operators of wavejit.jax.
#pragma once

#include <nanobind/nanobind.h>

namespace wavejit::python {

namespace nb = nanobind;

void bind_jax_calls(nb::module_& module);

}  // namespace wavejit::python
