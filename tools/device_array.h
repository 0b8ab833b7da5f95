// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device memory that is freed at the end of its scope.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <utility>

#include "tools/exit_code.h"

namespace wavejit::tools {

struct DestroyEngine {
  void operator()(wavejit_engine* engine) const { wavejit_engine_destroy(engine); }
};

class DeviceArray {
 public:
  // No bytes, no memory: data() is then null.
  static Result<DeviceArray> allocate(wavejit_engine* engine, std::size_t bytes) {
    DeviceArray array(engine, bytes);
    if (bytes > 0) {
      if (auto done = checked(wavejit_device_allocate(engine, bytes, &array.memory_)); !done) {
        return std::unexpected(done.error());
      }
    }
    return array;
  }

  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  DeviceArray(DeviceArray&& other) noexcept
      : engine_(other.engine_), memory_(std::exchange(other.memory_, nullptr)), bytes_(other.bytes_) {}
  DeviceArray& operator=(DeviceArray&&) = delete;
  ~DeviceArray() {
    if (memory_ != nullptr) (void)wavejit_device_free(engine_, memory_);
  }

  void* data() const { return memory_; }
  Result<void> copy_in(const void* host) const {
    return bytes_ == 0 ? Result<void>{} : checked(wavejit_device_copy_in(engine_, memory_, host, bytes_));
  }
  Result<void> copy_out(void* host) const {
    return bytes_ == 0 ? Result<void>{} : checked(wavejit_device_copy_out(engine_, host, memory_, bytes_));
  }
  // Part of it, from byte `offset`.
  Result<void> copy_in(const void* host, std::size_t offset, std::size_t bytes) const {
    if (bytes == 0) return {};
    return checked(wavejit_device_copy_in(engine_, static_cast<char*>(memory_) + offset, host, bytes));
  }

 private:
  DeviceArray(wavejit_engine* engine, std::size_t bytes) : engine_(engine), bytes_(bytes) {}

  wavejit_engine* engine_;
  void* memory_ = nullptr;
  std::size_t bytes_;
};

}  // namespace wavejit::tools
