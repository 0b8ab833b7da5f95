// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "call.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

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
      .def("launch_over", &C::launch_over, nb::arg("stream"), nb::arg("addresses"), nb::arg("workspace_bytes"))
      .def("launch_with_report", &C::launch_with_report, nb::arg("stream"))
      .def("supported", &C::supported)
      .def("ready", &C::ready)
      .def("prepare", &C::prepare)
      .def("describe", &C::describe)
      .def("workspace_bytes", &C::workspace_bytes);
}

// The family, the name in C, Python's, what it is set from, and whether launch_over moves it.
using Row = std::tuple<const char*, const char*, const char*, const char*, bool>;

template <typename Arguments>
void add_rows(std::vector<Row>& rows) {
  using Of = Kind<Arguments>;
  const auto add = [&](std::span<const Field> table, bool moves) {
    for (const Field& field : table) rows.emplace_back(Of::family, field.name, field.python, field.how, moves);
  };
  add(Call<Arguments>::moved, true);
  add(Of::others, false);
}

}  // namespace

void bind_calls(nb::module_& module) {
  nb::module_ calls = module.def_submodule("calls", "A class for the calls of each family, by its name.");
  const auto bind = [&]<typename... Calls>(std::type_identity<std::tuple<Calls...>>) {
    (bind_call<typename Calls::C>(calls), ...);
    module.def(
        "call_fields",
        [] {
          std::vector<Row> rows;
          (add_rows<typename Calls::C>(rows), ...);
          return rows;
        },
        "The fields of every call: its family, the field's name in C, Python's, what it is set from, and whether it moves.");
  };
  bind(std::type_identity<wavejit::Calls>());
  module.def(
      "call_arguments",
      [] {
        return std::vector<std::tuple<const char*, const char*, const char*>>{
#define WAVEJIT_ARGUMENTS(family, heading, text) {#family, heading, text},
#include "arguments.def"
#undef WAVEJIT_ARGUMENTS
        };
      },
      "What is said of the arguments of calls: the family, which arguments with their shapes, and the text.");
  module.def(
      "hints",
      [] {
        std::vector<std::tuple<const char*, std::uint32_t>> rows;
        rows.reserve(std::size(hints));
        for (const Hint& hint : hints) rows.emplace_back(hint.word, hint.bit);
        return rows;
      },
      "The hints of calls of attention_forward: their word, and their bit of flags.");
  module.def(
      "call_flags",
      [] {
        std::vector<std::tuple<const char*, const char*, std::uint32_t>> rows;
        rows.reserve(std::size(flag_values));
        for (const Flag& flag : flag_values) rows.emplace_back(flag.python, flag.value, flag.bits);
        return rows;
      },
      "Arguments that are bits of flags: which, a value as Python writes it, and its bits.");
  module.def(
      "mask_kinds",
      [] {
        std::vector<std::tuple<std::int32_t, const char*, const char*>> rows;
        rows.reserve(std::size(mask_kinds));
        for (const MaskKind& kind : mask_kinds) rows.emplace_back(kind.bit, kind.word, kind.field);
        return rows;
      },
      "The kinds of masks that have a number: their bit, the word of lines, and the keyword.");
}

}  // namespace wavejit::python
