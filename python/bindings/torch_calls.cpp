// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "torch_calls.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>

#include "torch_seen.h"

namespace wavejit::python {

namespace {

template <typename Arguments>
void bind(nb::module_& module, const char* name) {
  using C = TorchCalls<Arguments>;
  const auto run = [](C& calls, std::uintptr_t stream, int variant, const nb::tuple& tensors, const nb::dict& words) {
    nb::object found = calls.run(stream, variant, objects_of(tensors), words.ptr());
    return found.is_valid() ? found : nb::none();
  };
  nb::class_<C>(module, name, "Calls over PyTorch's tensors, remembered by their shapes.")
      .def(nb::init<std::shared_ptr<EngineHandle>, std::shared_ptr<TorchTensors>>(), nb::arg("engine"),
           nb::arg("torch"))
      .def("remember", &C::remember, nb::arg("variant"), nb::arg("tensors"), nb::arg("words"), nb::arg("call"),
           nb::arg("fields"), nb::arg("output_fields"), nb::arg("outputs"), nb::arg("before"),
           nb::arg("workspace_like").none(), nb::arg("workspace_bytes"))
      .def("run", run, nb::arg("stream"), nb::arg("variant"), nb::arg("tensors"), nb::arg("words"));
}

}  // namespace

void bind_torch_calls(nb::module_& module) {
  nb::class_<TorchTensors>(module, "TorchTensors", "PyTorch's tensors, read and made without linking PyTorch.")
      .def(nb::init<nb::object>(), nb::arg("tensor_type"));
  bind<wavejit_attention_forward_arguments>(module, "TorchForwardCalls");
  bind<wavejit_attention_backward_arguments>(module, "TorchBackwardCalls");
}

}  // namespace wavejit::python
