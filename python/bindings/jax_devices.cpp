// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "jax_devices.h"

#include <nanobind/stl/shared_ptr.h>

#include <array>
#include <atomic>
#include <mutex>
#include <string>

#include "interpreter.h"
#include "wavejit/wavejit.hpp"

namespace wavejit::python {

namespace {

constexpr std::size_t workspace_alignment = 256;
constexpr std::array platform_names{"cpu", "rocm"};

struct Table {
  // Asked in each call, without a lock.
  std::array<std::array<std::atomic<EngineHandle*>, most_jax_devices>, jax_platforms> engines{};
  std::mutex mutex;
  // Compiled programs may be under way on engines that others took the place of: they live as long as the process.
  std::vector<std::shared_ptr<EngineHandle>> kept;
  nb::object make;
};

Table& table() {
  static auto* made = new Table;  // outlives Python's end, and threads of XLA's
  return *made;
}

std::size_t element_bytes(std::int32_t dtype) {
  switch (dtype) {
    case xla::int32:
    case xla::float32:
      return sizeof(float);
    case xla::float16:
    case xla::bfloat16:
      return sizeof(std::uint16_t);
    default:
      return 1;
  }
}

std::shared_ptr<EngineHandle> made_by_python(JaxPlatform platform, std::int32_t ordinal) {
  const Held held;
  if (!held) throw Error(WAVEJIT_NO_DEVICE, "wavejit.jax: Python ends");
  try {
    const nb::object made = table().make(platform_names[static_cast<std::size_t>(platform)], ordinal);
    return nb::cast<std::shared_ptr<EngineHandle>>(made);
  } catch (nb::python_error& error) {
    const std::string detail = nb::cast<std::string>(nb::str(error.value()));
    const int status = nb::cast<int>(nb::getattr(error.value(), "status", nb::int_(int{WAVEJIT_INTERNAL})));
    throw Error(static_cast<wavejit_status>(status), detail.c_str());
  }
}

}  // namespace

void set_jax_engines(nb::object make) { table().make = std::move(make); }

void give_jax_engine(JaxPlatform platform, std::int32_t ordinal, std::shared_ptr<EngineHandle> engine) {
  if (ordinal < 0 || ordinal >= most_jax_devices)
    throw Error(WAVEJIT_NO_DEVICE, ("wavejit.jax: device " + std::to_string(ordinal) + "; accepted: 0 … " +
                                    std::to_string(most_jax_devices - 1))
                                       .c_str());
  const std::lock_guard lock(table().mutex);
  table().engines[static_cast<std::size_t>(platform)][static_cast<std::size_t>(ordinal)] = engine.get();
  table().kept.push_back(std::move(engine));
}

EngineHandle& jax_engine(JaxPlatform platform, std::int32_t ordinal) {
  if (ordinal >= 0 && ordinal < most_jax_devices) {
    const auto& place = table().engines[static_cast<std::size_t>(platform)][static_cast<std::size_t>(ordinal)];
    if (EngineHandle* found = place.load(std::memory_order_acquire); found != nullptr) return *found;
  }
  std::shared_ptr<EngineHandle> made = made_by_python(platform, ordinal);
  EngineHandle& engine = *made;
  give_jax_engine(platform, ordinal, std::move(made));
  return engine;
}

std::size_t bytes_of(const xla::Buffer& buffer) {
  std::size_t bytes = element_bytes(buffer.dtype);
  for (std::int64_t i = 0; i < buffer.rank; ++i) bytes *= static_cast<std::size_t>(buffer.dims[i]);
  return bytes;
}

OnDevice::OnDevice(const xla::Frame& frame, EngineHandle&) : frame_(&frame) {
  xla::StreamArguments arguments{
      .size = sizeof arguments, .extensions = nullptr, .context = frame.context, .stream = nullptr};
  if (xla::Error* error = frame.functions->stream(&arguments); error != nullptr) {
    xla::DestroyArguments destroyed{.size = sizeof destroyed, .extensions = nullptr, .error = error};
    frame.functions->destroy_error(&destroyed);
    throw Error(WAVEJIT_INTERNAL, "wavejit.jax: XLA has no stream for this call");
  }
  stream_ = static_cast<ihipStream_t*>(arguments.stream);
}

void* OnDevice::workspace(std::size_t bytes) const {
  xla::MemoryArguments arguments{.size = sizeof arguments,
                                 .extensions = nullptr,
                                 .context = frame_->context,
                                 .bytes = bytes,
                                 .alignment = workspace_alignment,
                                 .memory = nullptr};
  if (xla::Error* error = frame_->functions->allocate(&arguments); error != nullptr) {
    xla::DestroyArguments destroyed{.size = sizeof destroyed, .extensions = nullptr, .error = error};
    frame_->functions->destroy_error(&destroyed);
    return nullptr;
  }
  return arguments.memory;
}

ThroughCopies::ThroughCopies(const xla::Frame&, EngineHandle& engine) : engine_(engine.get()) {}

ThroughCopies::~ThroughCopies() {
  for (void* memory : allocated_) (void)wavejit_device_free(engine_, memory);
}

void* ThroughCopies::allocate(std::size_t bytes) {
  void* memory = nullptr;
  check(wavejit_device_allocate(engine_, bytes, &memory));
  allocated_.push_back(memory);
  return memory;
}

void* ThroughCopies::input(const xla::Buffer& buffer) {
  const std::size_t bytes = bytes_of(buffer);
  if (bytes == 0) return nullptr;
  void* memory = allocate(bytes);
  check(wavejit_device_copy_in(engine_, memory, buffer.data, bytes));
  return memory;
}

void* ThroughCopies::output(const xla::Buffer& buffer) {
  const std::size_t bytes = bytes_of(buffer);
  if (bytes == 0) return nullptr;
  void* memory = allocate(bytes);
  outputs_.push_back({&buffer, memory});
  return memory;
}

void ThroughCopies::finish() {
  check(wavejit_device_synchronize(engine_));
  for (const Output& output : outputs_)
    check(wavejit_device_copy_out(engine_, output.host->data, output.device, bytes_of(*output.host)));
}

}  // namespace wavejit::python
