// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A call of one kind: its arguments, set field by field, asked and launched any number of times.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "address.h"
#include "call_kinds.h"
#include "engine.h"
#include "interpreter.h"

namespace wavejit::python {

[[noreturn]] inline void refuse_number(const char* name, const nb::object& value, const std::string& accepted) {
  constexpr std::size_t longest = 80;
  std::string given = nb::cast<std::string>(nb::repr(value));
  if (given.size() > longest) given = given.substr(0, longest) + "…";
  throw Error(WAVEJIT_INVALID_ARGUMENT, (name + (" = " + given) + "; accepted: " + accepted).c_str());
}

// What Python's operator.index takes, and nothing that only can be made an integer: neither "3" nor numpy's 2.7.
template <std::integral Number>
Number number_from(const char* name, const nb::object& value) {
  Number number{};
  const nb::object whole = nb::steal(PyIndex_Check(value.ptr()) != 0 ? PyNumber_Index(value.ptr()) : nullptr);
  if (!whole.is_valid()) PyErr_Clear();
  if (!whole.is_valid() || !nb::try_cast<Number>(whole, number))
    refuse_number(name, value,
                  "an integer of " + std::to_string(8 * sizeof(Number)) + " bits" +
                      (std::is_signed_v<Number> ? "" : ", not negative"));
  return number;
}

// A number of fp32. What fp32 rounds to 0 or to infinity would mean something else.
template <std::floating_point Number>
Number number_from(const char* name, const nb::object& value) {
  double wide = 0;
  if (!nb::try_cast<double>(value, wide)) refuse_number(name, value, "a number that fp32 holds");
  const auto number = static_cast<Number>(wide);
  if ((number == 0) != (wide == 0) || std::isinf(number) != std::isinf(wide))
    refuse_number(name, value, "a number that fp32 holds, 0 or from 1.4e-45 to 3.4e38");
  return number;
}

inline nb::dict told(const wavejit_call_report& report) {
  nb::dict result;
  result["kernel_spec"] = nb::str(report.kernel_spec);
  result["key"] = nb::str(report.key);
  result["origin"] = report.origin;
  result["route_ns"] = report.route_ns;
  result["lookup_ns"] = report.lookup_ns;
  result["emit_ns"] = report.emit_ns;
  result["lower_ns"] = report.lower_ns;
  result["link_ns"] = report.link_ns;
  result["inspect_ns"] = report.inspect_ns;
  result["publish_ns"] = report.publish_ns;
  result["load_ns"] = report.load_ns;
  result["launch_ns"] = report.launch_ns;
  return result;
}

// A field of a call's arguments, which has this type.
template <typename Member>
Member* place(void* arguments, const Field& field) {
  return reinterpret_cast<Member*>(static_cast<char*>(arguments) + field.at);
}
// An address, or the data of a tensor.
inline void put_address(void* arguments, const Field& field, std::uintptr_t address) {
  if (field.type == FieldType::tensor)
    place<wavejit_tensor>(arguments, field)->data = pointer_at<void*>(address);
  else
    *place<void*>(arguments, field) = pointer_at<void*>(address);
}

template <typename Arguments>
class Call {
 public:
  using Of = Kind<Arguments>;

  static constexpr auto moved = joined(Of::tensors, Of::addresses);

  explicit Call(std::shared_ptr<EngineHandle> engine) : engine_(std::move(engine)) {}

  void set_tensor(const std::string& name, std::uintptr_t address, std::int32_t dtype,
                  const std::array<std::int64_t, 4>& sizes, const std::array<std::int64_t, 4>& strides) {
    wavejit_tensor& tensor = tensor_named(name);
    tensor.data = pointer_at<void*>(address);
    tensor.dtype = dtype;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      tensor.sizes[i] = sizes[i];
      tensor.strides[i] = strides[i];
    }
  }
  wavejit_tensor& tensor_named(const std::string& name) {
    return *place<wavejit_tensor>(&arguments_, field_named(name, {FieldType::tensor}));
  }
  void set_number(const std::string& name, const nb::object& value) {
    const Field& field =
        field_named(name, {FieldType::fp32, FieldType::i32, FieldType::u32, FieldType::i64, FieldType::u64});
    const auto set = [&]<typename Number>(Number* number) { *number = number_from<Number>(field.python, value); };
    if (field.type == FieldType::fp32) set(place<float>(&arguments_, field));
    if (field.type == FieldType::i32) set(place<std::int32_t>(&arguments_, field));
    if (field.type == FieldType::u32) set(place<std::uint32_t>(&arguments_, field));
    if (field.type == FieldType::i64) set(place<std::int64_t>(&arguments_, field));
    if (field.type == FieldType::u64) set(place<std::size_t>(&arguments_, field));
  }
  void set_address(const std::string& name, std::uintptr_t address) {
    put_address(&arguments_, field_named(name, {FieldType::address}), address);
  }

  const Arguments& arguments() const { return arguments_; }

  void launch(std::uintptr_t stream) const {
    const Released released;
    check(wavejit::launch(engine_->get(), arguments_, pointer_at<ihipStream_t*>(stream)));
  }
  // Launches this call over other memory, and with so much of a workspace; for callers that keep one call for each shape.
  // Addresses by Python's names: what has none is not there. The call itself stays as it is, so that threads may share it.
  void launch_over(std::uintptr_t stream, const nb::dict& addresses, std::size_t workspace_bytes) const {
    Arguments arguments = arguments_;
    if constexpr (requires { arguments.split; }) arguments.split.workspace_bytes = workspace_bytes;
    for (const Field& field : moved) put_address(&arguments, field, 0);
    PyObject* name = nullptr;
    PyObject* address = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(addresses.ptr(), &at, &name, &address) != 0;)
      put_address(&arguments, moved_field(name), nb::cast<std::uintptr_t>(nb::handle(address)));
    const Released released;
    check(wavejit::launch(engine_->get(), arguments, pointer_at<ihipStream_t*>(stream)));
  }
  nb::dict launch_with_report(std::uintptr_t stream) const {
    wavejit_call_report report = make_report();
    Arguments arguments = arguments_;
    arguments.head.report = &report;
    {
      const Released released;
      check(wavejit::launch(engine_->get(), arguments, pointer_at<ihipStream_t*>(stream)));
    }
    return told(report);
  }
  // What the call would answer: a status and its detail.
  nb::tuple supported() const { return answer(wavejit_call_supported); }
  nb::tuple ready() const { return answer(wavejit_call_ready); }
  void prepare() const {
    const Released released;
    check(wavejit_call_prepare(engine_->get(), &arguments_.head));
  }
  std::string describe() const {
    std::string text;
    const auto keep = [](void* context, const char* line) { *static_cast<std::string*>(context) = line; };
    const Released released;
    check(wavejit_call_describe(engine_->get(), &arguments_.head, keep, &text));
    return text;
  }
  std::size_t workspace_bytes() const {
    std::size_t bytes = 0;
    const Released released;
    check(wavejit_call_workspace(engine_->get(), &arguments_.head, &bytes));
    return bytes;
  }

  // What moves from call to call, by Python's name. Those that programs write down are interned, and found by their place.
  static const Field& moved_field(PyObject* name) {
    static const std::array names = [] {
      std::array<PyObject*, moved.size()> interned{};
      std::ranges::transform(moved, interned.begin(),
                             [](const Field& field) { return PyUnicode_InternFromString(field.python); });
      return interned;
    }();
    auto found = std::ranges::find(names, name);
    if (found == names.end() && PyUnicode_Check(name) != 0)
      found = std::ranges::find_if(names, [&](PyObject* known) { return PyUnicode_Compare(known, name) == 0; });
    if (found != names.end()) return moved[static_cast<std::size_t>(found - names.begin())];
    throw nb::type_error((nb::cast<std::string>(nb::repr(name)) + " does not move from call to call").c_str());
  }

 private:
  static const Field& field_named(const std::string& name, std::initializer_list<FieldType> types) {
    const auto is_it = [&](const Field& field) {
      return name == field.name && std::ranges::find(types, field.type) != types.end();
    };
    for (const std::span<const Field> table :
         {std::span<const Field>(Of::tensors), std::span<const Field>(Of::addresses),
          std::span<const Field>(Of::others)})
      if (const auto found = std::ranges::find_if(table, is_it); found != table.end()) return *found;
    throw nb::type_error(("'" + name + "' is no field of this call").c_str());
  }

  template <typename Question>
  nb::tuple answer(Question question) const {
    wavejit_status status = WAVEJIT_OK;
    std::string detail;
    {
      const Released released;
      status = question(engine_->get(), &arguments_.head);
      if (status != WAVEJIT_OK) detail = wavejit_last_detail();
    }
    return nb::make_tuple(static_cast<int>(status), nb::str(detail.c_str()));
  }

  std::shared_ptr<EngineHandle> engine_;
  Of::Owner arguments_;
};

}  // namespace wavejit::python
