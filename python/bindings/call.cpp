// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "call.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <tuple>
#include <type_traits>

#include "call_of.h"
#include "engine.h"

namespace wavejit::python {

namespace {

template <typename Arguments>
void bind_call(nb::module_& calls) {
  using C = Call<Arguments>;
  nb::class_<C>(calls, Kind<Arguments>::family, "The arguments of a call, by the names of wavejit.h.")
      .def(nb::init<std::shared_ptr<EngineHandle>>(), nb::arg("engine"))
      .def("set_tensor", &C::set_tensor, nb::arg("name"), nb::arg("address"), nb::arg("dtype"), nb::arg("sizes"),
           nb::arg("strides"))
      .def("set_number", &C::set_number, nb::arg("name"), nb::arg("value"))
      .def("set_address", &C::set_address, nb::arg("name"), nb::arg("address"))
      .def("launch", &C::launch, nb::arg("stream"))
      .def("launch_over", &C::launch_over, nb::arg("stream"), nb::arg("tensors"), nb::arg("numbers"),
           nb::arg("workspace_bytes"))
      .def("launch_with_report", &C::launch_with_report, nb::arg("stream"))
      .def("supported", &C::supported)
      .def("ready", &C::ready)
      .def("prepare", &C::prepare)
      .def("describe", &C::describe)
      .def("workspace_bytes", &C::workspace_bytes);
}

}  // namespace

void bind_calls(nb::module_& module) {
  nb::module_ calls = module.def_submodule("calls", "A class for the calls of each family, by its name.");
  const auto bind = [&]<typename... Calls>(std::type_identity<std::tuple<Calls...>>) {
    (bind_call<typename Calls::C>(calls), ...);
  };
  bind(std::type_identity<wavejit::Calls>());
}

}  // namespace wavejit::python
