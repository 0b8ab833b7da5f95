// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The argument structs of wavejit.h, filled field by field, by name, and asked or launched any number of times.
#pragma once

#include <nanobind/nanobind.h>

namespace wavejit::python {

namespace nb = nanobind;

void bind_calls(nb::module_& module);

}  // namespace wavejit::python
