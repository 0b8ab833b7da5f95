// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A HIP of empty functions that counts: what the runtime asked of its device, and what it would have launched.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "runtime/libraries/hip_library.h"
#include "templates/attention_forward/kernel/arguments.h"
#include "templates/attention_forward/kernel/combine/arguments.h"

namespace wavejit::tests {

// An address out of a number: the fakes' handles, and device memory that no launch will follow.
template <typename T = void>
T* numbered(std::uint64_t number) {
  return reinterpret_cast<T*>(number);  // NOLINT(performance-no-int-to-ptr): nothing reads through it
}

struct FakeLaunch {
  hip_abi::hipFunction_t function = nullptr;
  std::array<unsigned, 3> grid{};
  std::array<unsigned, 3> block{};
  hip_abi::hipStream_t stream = nullptr;
  int current_device = -1;  // of the launching thread
  attention_forward::Arguments arguments{};
  attention_combine::Arguments combine{};  // what the same bytes are to a combine kernel
  std::size_t argument_bytes = 0;
};

struct FakeHip {
  std::atomic<std::uint64_t> launches{0};
  std::atomic<std::uint64_t> module_loads{0};
  std::atomic<std::uint64_t> module_unloads{0};
  std::atomic<std::uint64_t> device_switches{0};
  std::atomic<std::uint64_t> errors_cleared{0};
  // What the next calls answer; loads_to_refuse counts down.
  std::atomic<int> loads_to_refuse{0};
  std::atomic<hip_abi::hipError_t> load_error{hip_abi::hipErrorInvalidImage};
  std::atomic<hip_abi::hipError_t> launch_error{hip_abi::hipSuccess};
  std::atomic<hip_abi::hipError_t> allocate_error{hip_abi::hipSuccess};
  // What hipStreamIsCapturing says of every stream, and how often it was asked.
  std::atomic<hip_abi::hipStreamCaptureStatus> capturing{hip_abi::hipStreamCaptureStatusNone};
  std::atomic<std::uint64_t> capture_questions{0};
  std::atomic<std::uint64_t> strict_loads{0};  // modules loaded while the thread's mode was not relaxed

  // What the device says of itself; 0: that it does not know.
  std::atomic<int> xcds{0};
  std::atomic<int> compute_units{0};

  std::atomic<std::uint64_t> allocations{0};
  std::atomic<std::uint64_t> frees{0};

  std::mutex mutex;
  FakeLaunch last;
  FakeLaunch before_last;
  std::vector<unsigned char> last_image;
  std::set<std::thread::id> loaders;  // the threads that loaded modules
};

// The one that fake_hip_functions() speak to. reset() before each test.
FakeHip& fake_hip();
void reset_fake_hip();
void set_current_device(int device);
int current_device();

// Functions that count and record.
runtime::HipFunctions fake_hip_functions();
// Functions that do nothing at all: for the hot path's time, allocations and system calls.
runtime::HipFunctions empty_hip_functions();

// Device 1 of two, "Fake GPU".
runtime::HipDevice fake_device(const char* architecture = "gfx950:sramecc+:xnack-");

}  // namespace wavejit::tests
