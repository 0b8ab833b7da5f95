// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A call of one kind: its arguments, set field by field, asked and launched any number of times.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "address.h"
#include "call_kinds.h"
#include "engine.h"
#include "interpreter.h"

namespace wavejit::python {

template <typename Number>
Number number_from(const std::string& name, const nb::object& value) {
  Number number{};
  if (!nb::try_cast<Number>(value, number)) {
    const std::string given = nb::cast<std::string>(nb::str(value));
    const std::string accepted = std::is_floating_point_v<Number>
                                     ? "a number"
                                     : "an integer of " + std::to_string(8 * sizeof(Number)) + " bits" +
                                           (std::is_signed_v<Number> ? "" : ", not negative");
    throw Error(WAVEJIT_INVALID_ARGUMENT, (name + " = " + given + "; accepted: " + accepted).c_str());
  }
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

template <typename Arguments>
class Call {
 public:
  using Of = Kind<Arguments>;

  explicit Call(std::shared_ptr<EngineHandle> engine) : engine_(std::move(engine)) {
    arguments_.size = sizeof arguments_;
  }

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
    if constexpr (requires { Of::kept_tensors; })
      for (const auto& field : Of::kept_tensors)
        if (name == field.name) return arguments_.*field.member;
    if constexpr (requires { Of::placed_tensors; })
      for (const auto& field : Of::placed_tensors)
        if (name == field.name) return *placed<wavejit_tensor>(field);
    return arguments_.*field_named(Of::tensors, name).member;
  }
  void set_number(const std::string& name, const nb::object& value) {
    if constexpr (requires { Of::placed_numbers; }) {
      for (const auto& field : Of::placed_numbers) {
        if (name != field.name) continue;
        *placed<std::int64_t>(field) = number_from<std::int64_t>(name, value);
        return;
      }
    }
    std::visit(
        [&](auto member) {
          auto& field = arguments_.*member;
          field = number_from<std::remove_reference_t<decltype(field)>>(name, value);
        },
        field_named(Of::numbers, name).member);
  }
  void set_address(const std::string& name, std::uintptr_t address) {
    if constexpr (requires { Of::kept_addresses; }) {
      for (const auto& field : Of::kept_addresses) {
        if (name != field.name) continue;
        set_pointer(field.member, address);
        return;
      }
    }
    set_pointer(field_named(Of::addresses, name).member, address);
  }
  template <typename Member>
  void set_pointer(const Member& field_of, std::uintptr_t address) {
    std::visit(
        [&](auto member) {
          auto& field = arguments_.*member;
          field = pointer_at<std::remove_reference_t<decltype(field)>>(address);
        },
        field_of);
  }

  const Arguments& arguments() const { return arguments_; }

  void launch(std::uintptr_t stream) const {
    const Released released;
    check(Of::launch(engine_->get(), &arguments_, pointer_at<ihipStream_t*>(stream)));
  }
  // The same call over other memory, in the order of the tables above, and with so much of a workspace; for callers
  // that keep one call for each shape. The call itself stays as it is, so that threads may share it.
  using TensorAddresses = std::array<std::uintptr_t, Of::tensors.size()>;
  using NumberAddresses = std::array<std::uintptr_t, Of::addresses.size()>;
  void launch_over(std::uintptr_t stream, const TensorAddresses& tensors, const NumberAddresses& numbers,
                   std::size_t workspace_bytes) const {
    Arguments arguments = arguments_;
    if constexpr (requires { arguments.workspace_bytes; }) arguments.workspace_bytes = workspace_bytes;
    for (std::size_t i = 0; i < tensors.size(); ++i)
      (arguments.*(Of::tensors[i].member)).data = pointer_at<void*>(tensors[i]);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      std::visit(
          [&](auto member) {
            auto& field = arguments.*member;
            field = pointer_at<std::remove_reference_t<decltype(field)>>(numbers[i]);
          },
          Of::addresses[i].member);
    const Released released;
    check(Of::launch(engine_->get(), &arguments, pointer_at<ihipStream_t*>(stream)));
  }
  nb::dict launch_with_report(std::uintptr_t stream) const {
    wavejit_call_report report = make_report();
    Arguments arguments = arguments_;
    arguments.report = &report;
    {
      const Released released;
      check(Of::launch(engine_->get(), &arguments, pointer_at<ihipStream_t*>(stream)));
    }
    return told(report);
  }
  // What the call would answer: a status and its detail.
  nb::tuple supported() const { return answer(Of::supported); }
  nb::tuple ready() const { return answer(Of::ready); }
  std::string describe() const {
    std::string text;
    const auto keep = [](void* context, const char* line) { *static_cast<std::string*>(context) = line; };
    const Released released;
    check(Of::describe(engine_->get(), &arguments_, keep, &text));
    return text;
  }
  std::size_t workspace_bytes() const
    requires requires { Of::workspace; }
  {
    std::size_t bytes = 0;
    const Released released;
    check(Of::workspace(engine_->get(), &arguments_, &bytes));
    return bytes;
  }

 private:
  template <typename Field>
  Field* placed(const PlacedField& field) {
    return reinterpret_cast<Field*>(reinterpret_cast<char*>(&arguments_) + field.at);
  }

  template <typename Question>
  nb::tuple answer(Question question) const {
    wavejit_status status = WAVEJIT_OK;
    std::string detail;
    {
      const Released released;
      status = question(engine_->get(), &arguments_);
      if (status != WAVEJIT_OK) detail = wavejit_last_detail();
    }
    return nb::make_tuple(static_cast<int>(status), nb::str(detail.c_str()));
  }

  std::shared_ptr<EngineHandle> engine_;
  Arguments arguments_{};
};

}  // namespace wavejit::python
