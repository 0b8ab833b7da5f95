// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory that arrays lie in: of an engine's device, or borrowed from another library through DLPack.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "engine.h"

namespace wavejit::python {

// Device memory of an engine. HIP waits for the work that uses it before it is given back.
class DeviceMemory {
 public:
  DeviceMemory(std::shared_ptr<EngineHandle> engine, std::size_t bytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(buffer_->data()); }
  std::size_t bytes() const { return bytes_; }
  // Host bytes from and to `offset`: an object with Python's buffer protocol, contiguous.
  void copy_in(std::size_t offset, const nb::object& host);
  void copy_out(std::size_t offset, const nb::object& host) const;

 private:
  std::shared_ptr<EngineHandle> engine_;
  std::optional<DeviceBuffer> buffer_;
  std::size_t bytes_;
};

void bind_memory(nb::module_& module);

}  // namespace wavejit::python
