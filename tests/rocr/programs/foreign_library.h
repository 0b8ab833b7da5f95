// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What tests of AMD's libraries share: names of a library that is opened when the test runs, memory of the GPU, and a
// failure that says which call it was.
#pragma once

#include <dlfcn.h>
#include <hip/hip_runtime_api.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace wavejit::testing {

inline void expect(bool is_true, const std::string& what) {
  if (is_true) return;
  static_cast<void>(std::fprintf(stderr, "not true: %s\n", what.c_str()));
  std::exit(1);
}

// Statuses of HIP, rocBLAS and rocRAND: 0 is success in all of them.
template <typename Status>
void succeeded(Status status, const std::string& call) {
  expect(static_cast<int>(status) == 0, call + " answers " + std::to_string(static_cast<int>(status)));
}

class Library {
 public:
  explicit Library(const char* file) : handle_(::dlopen(file, RTLD_NOW)) {
    if (handle_ == nullptr) expect(false, ::dlerror());
  }
  template <typename Function>
  Function* function(const char* name) const {
    void* const address = ::dlsym(handle_, name);
    expect(address != nullptr, std::string(name) + " is there");
    return reinterpret_cast<Function*>(address);
  }

 private:
  void* handle_;
};

// An array on the GPU.
template <typename Value>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : count_(count) {
    succeeded(hipMalloc(reinterpret_cast<void**>(&memory_), count * sizeof(Value)), "hipMalloc");
  }
  explicit DeviceArray(const std::vector<Value>& values) : DeviceArray(values.size()) {
    succeeded(hipMemcpy(memory_, values.data(), count_ * sizeof(Value), hipMemcpyHostToDevice), "hipMemcpy to the GPU");
  }
  ~DeviceArray() { static_cast<void>(hipFree(memory_)); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  Value* get() const { return memory_; }
  std::vector<Value> read() const {
    std::vector<Value> values(count_);
    succeeded(hipMemcpy(values.data(), memory_, count_ * sizeof(Value), hipMemcpyDeviceToHost),
              "hipMemcpy from the GPU");
    return values;
  }

 private:
  std::size_t count_;
  Value* memory_ = nullptr;
};

}  // namespace wavejit::testing
