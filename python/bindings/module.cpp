// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// wavejit._wavejit: the C interface for python/wavejit, which is what users import. Nothing here is for them.
#include <nanobind/nanobind.h>

#include <exception>

#include "call.h"
#include "engine.h"
#include "exchange.h"
#include "interpreter.h"
#include "jax_calls.h"
#include "memory.h"
#include "offline.h"
#include "torch_calls.h"
#include "torch_node.h"

namespace nb = nanobind;

namespace {

// A status becomes the exception of its class (python/wavejit/_errors.py).
void translate(const std::exception_ptr& raised, void*) {
  try {
    std::rethrow_exception(raised);
  } catch (const wavejit::Error& error) {
    try {
      const nb::object made =
          nb::module_::import_("wavejit._errors").attr("error_of")(static_cast<int>(error.status()), error.what());
      PyErr_SetObject(made.type().ptr(), made.ptr());
    } catch (nb::python_error& failure) {
      failure.restore();
    }
  }
}

}  // namespace

NB_MODULE(_wavejit, module) {
  // Engines that live until the interpreter ends are nobody's mistake.
  nb::set_leak_warnings(false);
  nb::register_exception_translator(translate);
  wavejit::python::watch_for_pythons_end();
  wavejit::python::bind_engine(module);
  wavejit::python::bind_memory(module);
  wavejit::python::bind_exchange(module);
  wavejit::python::bind_calls(module);
  wavejit::python::bind_torch_calls(module);
  wavejit::python::bind_torch_node(module);
  wavejit::python::bind_jax_calls(module);
  wavejit::python::bind_offline(module);
}
