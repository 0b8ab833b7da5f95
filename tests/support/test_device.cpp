// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/test_device.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <format>
#include <fstream>
#include <mutex>
#include <stdexcept>

namespace wavejit::tests {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// "gfx942x2": 2 of them.
int gpus_of(const std::string& named, const std::string& target) {
  if (!named.starts_with(target)) return 0;
  const std::string rest = named.substr(target.size());
  if (rest.empty()) return 1;
  return rest.front() == 'x' ? std::stoi(rest.substr(1)) : 0;
}

// AMD's HIP waits by looking without a pause, unless it was told to sleep before its first wait. Simulated kernels take
// long, and their threads want the processor.
void let_hip_sleep() {
  constexpr unsigned schedule_blocking_sync = 4;  // hipDeviceScheduleBlockingSync
  const auto set_flags = reinterpret_cast<int (*)(unsigned)>(::dlsym(RTLD_DEFAULT, "hipSetDeviceFlags"));
  if (set_flags != nullptr) (void)set_flags(schedule_blocking_sync);
}

}  // namespace

bool on_hip() { return variable("WAVEJIT_TEST_DEVICE") == "hip"; }

std::string test_device(const std::string& target, int count, int ordinal) {
  if (!on_hip()) {
    const std::string one = "sim:" + target;
    return count == 1 ? one : std::format("{}x{}:{}", one, count, ordinal);
  }
  const std::string there = variable("WAVEJIT_SIM_TARGET");
  if (gpus_of(there, target) < count)
    throw std::runtime_error(std::format("{} of {} are wanted; WAVEJIT_SIM_TARGET is '{}'", count, target, there));
  static std::once_flag once;
  std::call_once(once, let_hip_sleep);
  return std::format("hip:{}", ordinal);
}

std::string a_target() {
  if (!on_hip()) return "gfx950";
  constexpr std::size_t shortest = 5;  // "gfx" and two more
  const std::string there = variable("WAVEJIT_SIM_TARGET");
  return there.substr(0, there.find('x', shortest));
}

void Outputs::add(const void* data, std::size_t bytes) {
  const auto* const values = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < bytes; ++i) digest_ = (digest_ ^ values[i]) * 0x100000001b3;
}

Outputs::~Outputs() {
  const std::string file = variable("WAVEJIT_TEST_OUTPUTS");
  if (file.empty()) return;
  const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string name = test == nullptr ? "?" : std::format("{}.{}", test->test_suite_name(), test->name());
  static std::string last;
  static int call = 0;
  call = name == last ? call + 1 : 0;
  last = name;
  std::ofstream(file, std::ios::app) << std::format("{} {} {} {:016x}\n", name, call, status_, digest_);
}

}  // namespace wavejit::tests
