// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which engine computes for a device of JAX's, and how a call's buffers get there.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine.h"
#include "xla_ffi.h"

namespace wavejit::python {

enum class JaxPlatform : std::uint8_t { cpu, rocm };
inline constexpr std::size_t jax_platforms = 2;
inline constexpr std::int32_t most_jax_devices = 256;

// Python's function that makes an engine where there is none yet: platform's name, ordinal -> EngineHandle.
void set_jax_engines(nb::object make);
void give_jax_engine(JaxPlatform platform, std::int32_t ordinal, std::shared_ptr<EngineHandle> engine);
// Throws wavejit::Error.
EngineHandle& jax_engine(JaxPlatform platform, std::int32_t ordinal);

// ROCm: buffers are the device's already, and work goes to XLA's stream.
class OnDevice {
 public:
  OnDevice(const xla::Frame& frame, EngineHandle& engine);

  void* input(const xla::Buffer& buffer) const { return buffer.data; }
  void* output(const xla::Buffer& buffer) const { return buffer.data; }
  ihipStream_t* stream() const { return stream_; }
  // Null: XLA has none, and the engine's own serves.
  void* workspace(std::size_t bytes) const;
  void finish() {}
  static constexpr bool checks_lengths = false;  // it would wait for the stream

 private:
  const xla::Frame* frame_;
  ihipStream_t* stream_ = nullptr;
};

// JAX's CPUs: inputs are copied to a simulated device, and outputs back.
class ThroughCopies {
 public:
  ThroughCopies(const xla::Frame& frame, EngineHandle& engine);
  ~ThroughCopies();
  ThroughCopies(const ThroughCopies&) = delete;
  ThroughCopies& operator=(const ThroughCopies&) = delete;

  void* input(const xla::Buffer& buffer);
  void* output(const xla::Buffer& buffer);
  ihipStream_t* stream() const { return nullptr; }
  void* workspace(std::size_t) const { return nullptr; }
  void finish();
  static constexpr bool checks_lengths = true;

 private:
  struct Output {
    const xla::Buffer* host;
    void* device;
  };

  void* allocate(std::size_t bytes);

  wavejit_engine* engine_;
  std::vector<void*> allocated_;
  std::vector<Output> outputs_;
};

std::size_t bytes_of(const xla::Buffer& buffer);

}  // namespace wavejit::python
