// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "call.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "address.h"
#include "engine.h"
#include "interpreter.h"

namespace wavejit::python {

namespace {

template <typename Arguments>
struct TensorField {
  const char* name;
  wavejit_tensor Arguments::* member;
};
template <typename Arguments>
struct NumberField {
  const char* name;
  std::variant<float Arguments::*, std::int32_t Arguments::*, std::int64_t Arguments::*, std::uint32_t Arguments::*,
               std::size_t Arguments::*>
      member;
};
template <typename Arguments>
struct AddressField {
  const char* name;
  std::variant<const std::int32_t* Arguments::*, std::int32_t* Arguments::*, float* Arguments::*, void* Arguments::*>
      member;
};

// A function of the C interface that is a call: its struct's fields and what can be asked of it.
template <typename Arguments>
struct Kind;

template <>
struct Kind<wavejit_attention_forward_arguments> {
  using A = wavejit_attention_forward_arguments;
  static constexpr const char* class_name = "AttentionForwardCall";
  static constexpr std::array tensors{
      TensorField<A>{"q", &A::q},       TensorField<A>{"k", &A::k},         TensorField<A>{"v", &A::v},
      TensorField<A>{"o", &A::o},       TensorField<A>{"lse", &A::lse},     TensorField<A>{"bias", &A::bias},
      TensorField<A>{"sink", &A::sink}, TensorField<A>{"alibi", &A::alibi},
  };
  static constexpr std::array numbers{
      NumberField<A>{"scale", &A::scale},
      NumberField<A>{"mask", &A::mask},
      NumberField<A>{"window_left", &A::window_left},
      NumberField<A>{"window_right", &A::window_right},
      NumberField<A>{"causal_prefix", &A::causal_prefix},
      NumberField<A>{"sequences", &A::sequences},
      NumberField<A>{"max_query_length", &A::max_query_length},
      NumberField<A>{"max_key_length", &A::max_key_length},
      NumberField<A>{"softcap", &A::softcap},
      NumberField<A>{"splits", &A::splits},
      NumberField<A>{"workspace_bytes", &A::workspace_bytes},
      NumberField<A>{"flags", &A::flags},
      NumberField<A>{"table_columns", &A::table_columns},
      NumberField<A>{"table_row_stride", &A::table_row_stride},
      NumberField<A>{"page_layout", &A::page_layout},
      NumberField<A>{"max_total_keys", &A::max_total_keys},
      NumberField<A>{"list_row_blocks", &A::list_row_blocks},
      NumberField<A>{"list_capacity", &A::list_capacity},
      NumberField<A>{"full_capacity", &A::full_capacity},
      NumberField<A>{"list_rows", &A::list_rows},
      NumberField<A>{"list_keys", &A::list_keys},
      NumberField<A>{"list_batches", &A::list_batches},
      NumberField<A>{"list_heads", &A::list_heads},
      NumberField<A>{"lists_alike", &A::lists_alike},
  };
  static constexpr std::array addresses{
      AddressField<A>{"query_starts", &A::query_starts}, AddressField<A>{"key_starts", &A::key_starts},
      AddressField<A>{"key_lengths", &A::key_lengths},   AddressField<A>{"block_table", &A::block_table},
      AddressField<A>{"table_starts", &A::table_starts}, AddressField<A>{"first_keys", &A::first_keys},
      AddressField<A>{"workspace", &A::workspace},
  };
  // launch_over leaves them as they are.
  static constexpr std::array kept_addresses{
      AddressField<A>{"list_counts", &A::list_counts},   AddressField<A>{"list_indices", &A::list_indices},
      AddressField<A>{"list_starts", &A::list_starts},   AddressField<A>{"full_counts", &A::full_counts},
      AddressField<A>{"full_indices", &A::full_indices}, AddressField<A>{"full_starts", &A::full_starts},
  };
  static constexpr auto launch = wavejit_attention_forward;
  static constexpr auto supported = wavejit_attention_forward_supported;
  static constexpr auto ready = wavejit_attention_forward_ready;
  static constexpr auto describe = wavejit_attention_forward_describe;
  static constexpr auto workspace = wavejit_attention_forward_workspace;
};

template <>
struct Kind<wavejit_softmax_lse_arguments> {
  using A = wavejit_softmax_lse_arguments;
  static constexpr const char* class_name = "SoftmaxLseCall";
  static constexpr std::array tensors{
      TensorField<A>{"scores", &A::scores},
      TensorField<A>{"weights", &A::weights},
      TensorField<A>{"lse", &A::lse},
  };
  static constexpr std::array numbers{
      NumberField<A>{"scale", &A::scale},
      NumberField<A>{"mask", &A::mask},
      NumberField<A>{"window_left", &A::window_left},
      NumberField<A>{"window_right", &A::window_right},
      NumberField<A>{"causal_prefix", &A::causal_prefix},
      NumberField<A>{"flags", &A::flags},
  };
  static constexpr std::array addresses{AddressField<A>{"key_lengths", &A::key_lengths}};
  static constexpr auto launch = wavejit_softmax_lse;
  static constexpr auto supported = wavejit_softmax_lse_supported;
  static constexpr auto ready = wavejit_softmax_lse_ready;
  static constexpr auto describe = wavejit_softmax_lse_describe;
};

template <>
struct Kind<wavejit_sparse_indexer_arguments> {
  using A = wavejit_sparse_indexer_arguments;
  static constexpr const char* class_name = "SparseIndexerCall";
  static constexpr std::array tensors{
      TensorField<A>{"queries", &A::queries}, TensorField<A>{"keys", &A::keys},
      TensorField<A>{"weights", &A::weights}, TensorField<A>{"key_scales", &A::key_scales},
      TensorField<A>{"scores", &A::scores},
  };
  static constexpr std::array numbers{
      NumberField<A>{"indices_row_stride", &A::indices_row_stride},
      NumberField<A>{"top_k", &A::top_k},
      NumberField<A>{"mask", &A::mask},
      NumberField<A>{"window_left", &A::window_left},
      NumberField<A>{"window_right", &A::window_right},
      NumberField<A>{"causal_prefix", &A::causal_prefix},
      NumberField<A>{"flags", &A::flags},
      NumberField<A>{"table_columns", &A::table_columns},
      NumberField<A>{"table_row_stride", &A::table_row_stride},
      NumberField<A>{"max_key_length", &A::max_key_length},
      NumberField<A>{"workspace_bytes", &A::workspace_bytes},
  };
  static constexpr std::array addresses{
      AddressField<A>{"indices", &A::indices},         AddressField<A>{"values", &A::values},
      AddressField<A>{"counts", &A::counts},           AddressField<A>{"key_lengths", &A::key_lengths},
      AddressField<A>{"key_begins", &A::key_begins},   AddressField<A>{"key_ends", &A::key_ends},
      AddressField<A>{"block_table", &A::block_table}, AddressField<A>{"table_starts", &A::table_starts},
      AddressField<A>{"workspace", &A::workspace},
  };
  static constexpr auto launch = wavejit_sparse_indexer;
  static constexpr auto supported = wavejit_sparse_indexer_supported;
  static constexpr auto ready = wavejit_sparse_indexer_ready;
  static constexpr auto describe = wavejit_sparse_indexer_describe;
  static constexpr auto workspace = wavejit_sparse_indexer_workspace;
};

template <>
struct Kind<wavejit_attention_backward_arguments> {
  using A = wavejit_attention_backward_arguments;
  static constexpr const char* class_name = "AttentionBackwardCall";
  static constexpr std::array tensors{
      TensorField<A>{"q", &A::q},           TensorField<A>{"k", &A::k},         TensorField<A>{"v", &A::v},
      TensorField<A>{"o", &A::o},           TensorField<A>{"d_o", &A::d_o},     TensorField<A>{"lse", &A::lse},
      TensorField<A>{"d_lse", &A::d_lse},   TensorField<A>{"dq", &A::dq},       TensorField<A>{"dk", &A::dk},
      TensorField<A>{"dv", &A::dv},         TensorField<A>{"alibi", &A::alibi}, TensorField<A>{"sink", &A::sink},
      TensorField<A>{"d_sink", &A::d_sink}, TensorField<A>{"delta", &A::delta}, TensorField<A>{"bias", &A::bias},
      TensorField<A>{"d_bias", &A::d_bias},
  };
  static constexpr std::array numbers{
      NumberField<A>{"scale", &A::scale},
      NumberField<A>{"mask", &A::mask},
      NumberField<A>{"window_left", &A::window_left},
      NumberField<A>{"window_right", &A::window_right},
      NumberField<A>{"causal_prefix", &A::causal_prefix},
      NumberField<A>{"sequences", &A::sequences},
      NumberField<A>{"max_query_length", &A::max_query_length},
      NumberField<A>{"max_key_length", &A::max_key_length},
      NumberField<A>{"softcap", &A::softcap},
      NumberField<A>{"workspace_bytes", &A::workspace_bytes},
      NumberField<A>{"flags", &A::flags},
      NumberField<A>{"sums_before", &A::sums_before},
      NumberField<A>{"sums_behind", &A::sums_behind},
  };
  static constexpr std::array addresses{
      AddressField<A>{"query_starts", &A::query_starts}, AddressField<A>{"key_starts", &A::key_starts},
      AddressField<A>{"key_lengths", &A::key_lengths}, AddressField<A>{"workspace", &A::workspace}};
  static constexpr auto launch = wavejit_attention_backward;
  static constexpr auto supported = wavejit_attention_backward_supported;
  static constexpr auto ready = wavejit_attention_backward_ready;
  static constexpr auto describe = wavejit_attention_backward_describe;
  static constexpr auto workspace = wavejit_attention_backward_workspace;
};

template <>
struct Kind<wavejit_attention_latent_arguments> {
  using A = wavejit_attention_latent_arguments;
  static constexpr const char* class_name = "AttentionLatentCall";
  static constexpr std::array tensors{
      TensorField<A>{"q", &A::q},       TensorField<A>{"q_rope", &A::q_rope}, TensorField<A>{"k", &A::k},
      TensorField<A>{"o", &A::o},       TensorField<A>{"k_rope", &A::k_rope}, TensorField<A>{"lse", &A::lse},
      TensorField<A>{"sink", &A::sink},
  };
  static constexpr std::array numbers{
      NumberField<A>{"scale", &A::scale},
      NumberField<A>{"mask", &A::mask},
      NumberField<A>{"causal_prefix", &A::causal_prefix},
      NumberField<A>{"sequences", &A::sequences},
      NumberField<A>{"max_query_length", &A::max_query_length},
      NumberField<A>{"max_key_length", &A::max_key_length},
      NumberField<A>{"softcap", &A::softcap},
      NumberField<A>{"splits", &A::splits},
      NumberField<A>{"workspace_bytes", &A::workspace_bytes},
      NumberField<A>{"flags", &A::flags},
      NumberField<A>{"table_columns", &A::table_columns},
      NumberField<A>{"table_row_stride", &A::table_row_stride},
      NumberField<A>{"max_total_keys", &A::max_total_keys},
  };
  static constexpr std::array addresses{
      AddressField<A>{"query_starts", &A::query_starts}, AddressField<A>{"key_starts", &A::key_starts},
      AddressField<A>{"key_lengths", &A::key_lengths},   AddressField<A>{"block_table", &A::block_table},
      AddressField<A>{"table_starts", &A::table_starts}, AddressField<A>{"workspace", &A::workspace}};
  static constexpr auto launch = wavejit_attention_latent;
  static constexpr auto supported = wavejit_attention_latent_supported;
  static constexpr auto ready = wavejit_attention_latent_ready;
  static constexpr auto describe = wavejit_attention_latent_describe;
  static constexpr auto workspace = wavejit_attention_latent_workspace;
};

template <typename Fields>
const auto& field_named(const Fields& fields, const std::string& name) {
  for (const auto& field : fields)
    if (name == field.name) return field;
  throw nb::type_error(("'" + name + "' is no field of this call").c_str());
}

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

nb::dict told(const wavejit_call_report& report) {
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
    wavejit_tensor& tensor = arguments_.*field_named(Of::tensors, name).member;
    tensor.data = pointer_at<void*>(address);
    tensor.dtype = dtype;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      tensor.sizes[i] = sizes[i];
      tensor.strides[i] = strides[i];
    }
  }
  void set_number(const std::string& name, const nb::object& value) {
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

template <typename Arguments>
nb::class_<Call<Arguments>> bind_call(nb::module_& module) {
  using C = Call<Arguments>;
  return nb::class_<C>(module, Kind<Arguments>::class_name, "The arguments of a call, by the names of wavejit.h.")
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
      .def("describe", &C::describe);
}

}  // namespace

void bind_calls(nb::module_& module) {
  bind_call<wavejit_attention_forward_arguments>(module).def(
      "workspace_bytes", &Call<wavejit_attention_forward_arguments>::workspace_bytes);
  bind_call<wavejit_softmax_lse_arguments>(module);
  bind_call<wavejit_sparse_indexer_arguments>(module).def("workspace_bytes",
                                                          &Call<wavejit_sparse_indexer_arguments>::workspace_bytes);
  bind_call<wavejit_attention_backward_arguments>(module).def(
      "workspace_bytes", &Call<wavejit_attention_backward_arguments>::workspace_bytes);
  bind_call<wavejit_attention_latent_arguments>(module).def("workspace_bytes",
                                                            &Call<wavejit_attention_latent_arguments>::workspace_bytes);
}

}  // namespace wavejit::python
