// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device memory of one call; freed behind it. The first failure stays, so that a caller looks once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tools/device_array.h"

namespace wavejit::tools {

// False: no kernel does it on this engine.
inline Result<bool> supported(wavejit_status status) {
  if (status == WAVEJIT_UNSUPPORTED) return false;
  if (auto done = checked(status); !done) return std::unexpected(done.error());
  return true;
}

class CallMemory {
 public:
  explicit CallMemory(wavejit_engine* engine) : engine_(engine) {}

  // Null: there is nothing to hold.
  template <typename Element>
  Element* in(const std::vector<Element>& values) {
    if (values.empty()) return nullptr;
    return static_cast<Element*>(take(values.data(), values.size() * sizeof(Element)));
  }
  // Filled with what no answer is, if nobody says otherwise: NaN of every type.
  void* out(std::size_t bytes, std::uint8_t fill = 0xFF) {
    const std::vector<std::uint8_t> filled(std::max<std::size_t>(bytes, 4), fill);
    return take(filled.data(), filled.size());
  }
  // What somebody else has made.
  void* hold(Result<DeviceArray> array) {
    if (!array) {
      keep(std::unexpected(array.error()));
      return nullptr;
    }
    arrays_.push_back(*std::move(array));
    return arrays_.back().data();
  }
  template <typename Element>
  std::vector<Element> back(const void* memory, std::size_t count) {
    std::vector<Element> values(count);
    if (count != 0 && good_)
      keep(checked(wavejit_device_copy_out(engine_, values.data(), memory, count * sizeof(Element))));
    return values;
  }
  void keep(Result<void> done) {
    if (good_ && !done) good_ = std::move(done);
  }
  const Result<void>& good() const { return good_; }

 private:
  void* take(const void* values, std::size_t bytes) {
    auto array = DeviceArray::allocate(engine_, bytes);
    if (array) keep(array->copy_in(values));
    return hold(std::move(array));
  }

  wavejit_engine* engine_;
  Result<void> good_;
  std::vector<DeviceArray> arrays_;
};

}  // namespace wavejit::tools
