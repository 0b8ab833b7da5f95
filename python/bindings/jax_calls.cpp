// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "jax_calls.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "jax_arguments.h"
#include "jax_devices.h"
#include "wavejit/wavejit.hpp"

namespace wavejit::python {

namespace {

// What jaxlib says its interface is, as far as this knows it.
std::atomic<int> minor_version{xla::newest_minor_version};

std::int32_t code_of(wavejit_status status) {
  switch (status) {
    case WAVEJIT_INVALID_ARGUMENT:
      return xla::invalid_argument;
    case WAVEJIT_UNSUPPORTED:
      return xla::unimplemented;
    case WAVEJIT_OUT_OF_MEMORY:
      return xla::resource_exhausted;
    case WAVEJIT_NO_DEVICE:
    case WAVEJIT_NO_COMPILER:
    case WAVEJIT_NOT_READY:
    case WAVEJIT_SEALED:
      return xla::failed_precondition;
    case WAVEJIT_NOT_FOUND:
      return xla::not_found;
    default:
      return xla::internal_error;
  }
}

xla::Error* error_of(const xla::Frame& frame, std::int32_t code, const char* message) {
  xla::ErrorArguments arguments{.size = sizeof arguments, .extensions = nullptr, .message = message, .code = code};
  return frame.functions->make_error(&arguments);
}

// XLA asks a handler what it is before it calls it.
bool tells_about_itself(const xla::Frame& frame) {
  if (frame.extensions == nullptr || frame.extensions->type != xla::metadata_extension) return false;
  xla::Metadata& metadata = *reinterpret_cast<xla::MetadataExtension*>(frame.extensions)->metadata;
  metadata.version = {.size = sizeof metadata.version,
                      .extensions = nullptr,
                      .major_number = xla::major_version,
                      .minor_number = minor_version};
  metadata.traits = 0;  // not to be captured: a kernel that is not loaded cannot be then
  if (metadata.size >= offsetof(xla::Metadata, state_type) + sizeof metadata.state_type) metadata.state_type = 0;
  return true;
}

std::int32_t ordinal_of(const xla::Frame& frame) {
  xla::OrdinalArguments arguments{
      .size = sizeof arguments, .extensions = nullptr, .context = frame.context, .ordinal = 0};
  if (xla::Error* error = frame.functions->ordinal(&arguments); error != nullptr) {
    xla::DestroyArguments destroyed{.size = sizeof destroyed, .extensions = nullptr, .error = error};
    frame.functions->destroy_error(&destroyed);
    throw Error(WAVEJIT_INTERNAL, "wavejit.jax: XLA does not say which device this is");
  }
  return arguments.ordinal;
}

// One chunk of keys has no parts to be merged.
constexpr std::int64_t chunk_keys = 1024;

template <typename Dispatch>
struct Forward {
  static void call(const xla::Frame& frame, EngineHandle& engine) {
    Dispatch dispatch(frame, engine);
    AttentionForward call;
    const std::uint64_t given = read_attributes(frame, call);
    BufferReader operands(frame.operands);
    BufferReader results(frame.results);
    for (wavejit_tensor* tensor : {&call.q, &call.k, &call.v}) {
      const xla::Buffer& buffer = operands.next(tensor_rank);
      *tensor = whole(buffer, dispatch.input(buffer));
    }
    read_others(dispatch, operands, given, call);
    if ((given & given_block_table) != 0) {
      const xla::Buffer& pages = operands.next(2);
      call.pages.block_table = static_cast<const std::int32_t*>(dispatch.input(pages));
      call.pages.table_columns = pages.dims[1];
      if (call.sequences.query_starts == nullptr) call.sequences.count = 0;
    }
    for (const auto& [bit, tensor] :
         {std::pair{given_k_scale, &call.scales.k_scale}, {given_v_scale, &call.scales.v_scale}}) {
      if ((given & bit) == 0) continue;
      const std::int64_t rank = operands.peek().rank;
      const xla::Buffer& scales = operands.next(rank);
      *tensor = of_scales(scales, dispatch.input(scales));
      if (rank == 3) call.scales.token_scales = 1;
    }
    if ((given & given_mask) != 0) {
      const xla::Buffer& mask = operands.next(tensor_rank);
      call.modifiers.bool_mask = whole(mask, dispatch.input(mask));
    }
    const xla::Buffer& out = results.next(tensor_rank);
    call.o = whole(out, dispatch.output(out));
    if ((given & wanted_lse) != 0) {
      const xla::Buffer& lse = results.next(tensor_rank - 1);
      call.lse = of_rows(lse, dispatch.output(lse));
    }
    if (Dispatch::checks_lengths) call.head.flags |= WAVEJIT_CHECK_LENGTHS;
    const std::int64_t longest = call.sequences.max_key_length != 0 ? call.sequences.max_key_length : call.k.sizes[1];
    if (longest > chunk_keys || (given & given_mask) != 0 || (call.head.flags & WAVEJIT_BIAS_BY_TILE) != 0) {
      std::size_t bytes = 0;
      check(wavejit_call_workspace(engine.get(), &call.head, &bytes));
      if (bytes != 0) {
        call.split.workspace = dispatch.workspace(bytes);
        call.split.workspace_bytes = call.split.workspace == nullptr ? 0 : bytes;
      }
    }
    check(wavejit_attention_forward(engine.get(), &call, dispatch.stream()));
    dispatch.finish();
  }
};

template <typename Dispatch>
struct Backward {
  static void call(const xla::Frame& frame, EngineHandle& engine) {
    Dispatch dispatch(frame, engine);
    AttentionBackward call;
    const std::uint64_t given = read_attributes(frame, call);
    BufferReader operands(frame.operands);
    BufferReader results(frame.results);
    for (wavejit_tensor* tensor : {&call.q, &call.k, &call.v, &call.o, &call.d_o}) {
      const xla::Buffer& buffer = operands.next(tensor_rank);
      *tensor = whole(buffer, dispatch.input(buffer));
    }
    const xla::Buffer& lse = operands.next(tensor_rank - 1);
    call.lse = of_rows(lse, dispatch.input(lse));
    read_others(dispatch, operands, given, call);
    if ((given & given_d_lse) != 0) {
      const xla::Buffer& d_lse = operands.next(tensor_rank - 1);
      call.d_lse = of_rows(d_lse, dispatch.input(d_lse));
    }
    for (wavejit_tensor* tensor : {&call.dq, &call.dk, &call.dv}) {
      const xla::Buffer& buffer = results.next(tensor_rank);
      *tensor = whole(buffer, dispatch.output(buffer));
    }
    if ((given & wanted_d_sinks) != 0) {
      const xla::Buffer& d_sinks = results.next(2);
      call.d_sink = of_heads(d_sinks, dispatch.output(d_sinks));
    }
    if ((given & wanted_d_bias) != 0) {
      const xla::Buffer& d_bias = results.next(tensor_rank);
      call.d_bias = whole(d_bias, dispatch.output(d_bias));
      call.d_bias.sizes[3] = call.modifiers.bias.sizes[3];
    }
    std::size_t bytes = 0;
    check(wavejit_call_workspace(engine.get(), &call.head, &bytes));
    call.split.workspace = dispatch.workspace(bytes);
    call.split.workspace_bytes = call.split.workspace == nullptr ? 0 : bytes;
    check(wavejit_attention_backward(engine.get(), &call, dispatch.stream()));
    dispatch.finish();
  }
};

// As on a device, where the memory of JAX's CPUs stands for the device's: what a call costs into empty HIP functions.
class InPlace {
 public:
  InPlace(const xla::Frame&, EngineHandle&) {}
  static void* input(const xla::Buffer& buffer) { return buffer.data; }
  static void* output(const xla::Buffer& buffer) { return buffer.data; }
  static ihipStream_t* stream() { return nullptr; }
  static void* workspace(std::size_t) { return nullptr; }
  static void finish() {}
  static constexpr bool checks_lengths = false;
};

// No exception leaves it: XLA is not C++ of this library's.
template <JaxPlatform platform, typename Call>
xla::Error* handle(xla::Frame* frame) {
  if (tells_about_itself(*frame)) return nullptr;
  try {
    Call::call(*frame, jax_engine(platform, ordinal_of(*frame)));
    return nullptr;
  } catch (const Error& error) {
    return error_of(*frame, code_of(error.status()), error.what());
  } catch (const std::exception& error) {
    return error_of(*frame, xla::internal_error, error.what());
  }
}

// What a call through XLA costs without one of ours: for measuring.
xla::Error* handle_nothing(xla::Frame* frame) {
  (void)tells_about_itself(*frame);
  return nullptr;
}

nb::object capsule_of(xla::Handler* handler) {
  return nb::steal(PyCapsule_New(reinterpret_cast<void*>(handler), nullptr, nullptr));
}

JaxPlatform platform_of(const std::string& name) { return name == "cpu" ? JaxPlatform::cpu : JaxPlatform::rocm; }

nb::dict handlers(int minor) {
  minor_version = minor < xla::newest_minor_version ? minor : xla::newest_minor_version;
  nb::dict cpu;
  cpu["wavejit_attention_forward"] = capsule_of(&handle<JaxPlatform::cpu, Forward<ThroughCopies>>);
  cpu["wavejit_attention_backward"] = capsule_of(&handle<JaxPlatform::cpu, Backward<ThroughCopies>>);
  nb::dict rocm;
  rocm["wavejit_attention_forward"] = capsule_of(&handle<JaxPlatform::rocm, Forward<OnDevice>>);
  rocm["wavejit_attention_backward"] = capsule_of(&handle<JaxPlatform::rocm, Backward<OnDevice>>);
  for (nb::dict* platform : {&cpu, &rocm}) (*platform)["wavejit_nothing"] = capsule_of(&handle_nothing);
  cpu["wavejit_attention_forward_in_place"] = capsule_of(&handle<JaxPlatform::rocm, Forward<InPlace>>);
  nb::dict all;
  all["cpu"] = cpu;
  all["ROCM"] = rocm;
  return all;
}

}  // namespace

void bind_jax_calls(nb::module_& module) {
  module.def("jax_handlers", &handlers, nb::arg("minor_version"));
  module.def("set_jax_engines", &set_jax_engines, nb::arg("make"));
  module.def(
      "give_jax_engine",
      [](const std::string& platform, std::int32_t ordinal, std::shared_ptr<EngineHandle> engine) {
        give_jax_engine(platform_of(platform), ordinal, std::move(engine));
      },
      nb::arg("platform"), nb::arg("ordinal"), nb::arg("engine"));
}

}  // namespace wavejit::python
