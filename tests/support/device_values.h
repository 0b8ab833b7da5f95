// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <vector>

#include "wavejit/wavejit.h"

namespace wavejit::tests {

// Values on a device, as long as a test has them.
class DeviceValues {
 public:
  template <typename Element>
  DeviceValues(wavejit_engine* engine, const std::vector<Element>& values) : engine_(engine) {
    if (wavejit_device_allocate(engine, std::max<std::size_t>(values.size() * sizeof(Element), 256), &memory_) !=
            WAVEJIT_OK ||
        wavejit_device_copy_in(engine, memory_, values.data(), values.size() * sizeof(Element)) != WAVEJIT_OK)
      throw std::runtime_error(wavejit_last_detail());
  }
  ~DeviceValues() { wavejit_device_free(engine_, memory_); }
  DeviceValues(const DeviceValues&) = delete;
  DeviceValues& operator=(const DeviceValues&) = delete;
  void* data() const { return memory_; }

 private:
  wavejit_engine* engine_;
  void* memory_ = nullptr;
};

}  // namespace wavejit::tests
