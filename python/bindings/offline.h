// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What needs no device: explain, supported, targets, prebuild, the cache.
#pragma once

#include <nanobind/nanobind.h>

namespace wavejit::python {

namespace nb = nanobind;

void bind_offline(nb::module_& module);

}  // namespace wavejit::python
