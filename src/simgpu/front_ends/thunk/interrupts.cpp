// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/thunk/interrupts.h"

#include <mutex>
#include <vector>

#include "simgpu/front_ends/thunk/runtime_version.h"

namespace wavejit::simgpu::thunk {
namespace {

std::span<std::uint8_t> memory_of_runtime() {
  const LoadedRuntime runtime = loaded_runtime();
  return knows_runtime(runtime.file) ? runtime.zeroed : std::span<std::uint8_t>();
}

struct Switch {
  std::mutex mutex;
  std::vector<std::uint8_t> before;  // empty: nobody is between the two questions, or the switch is known
  std::uint8_t* known = nullptr;
  bool was_set = false;  // of the known one

  static Switch& instance() {
    static auto* const one = new Switch();
    return *one;
  }
};

}  // namespace

std::optional<std::size_t> only_cleared_byte(std::span<const std::uint8_t> before, std::span<const std::uint8_t> now) {
  std::optional<std::size_t> place;
  for (std::size_t i = 0; i < before.size() && i < now.size(); ++i) {
    if (before[i] != 1 || now[i] != 0) continue;
    if (place) return std::nullopt;
    place = i;
  }
  return place;
}

void forget_interrupts() {
  Switch& of_runtime = Switch::instance();
  const std::scoped_lock lock(of_runtime.mutex);
  of_runtime.known = nullptr;
  of_runtime.before.clear();
}

void before_interrupts_are_cleared() {
  Switch& of_runtime = Switch::instance();
  const std::scoped_lock lock(of_runtime.mutex);
  if (of_runtime.known != nullptr) {
    of_runtime.was_set = *of_runtime.known == 1;
    return;
  }
  const std::span<std::uint8_t> memory = memory_of_runtime();
  of_runtime.before.assign(memory.begin(), memory.end());
}

void set_interrupts_again() {
  Switch& of_runtime = Switch::instance();
  const std::scoped_lock lock(of_runtime.mutex);
  if (of_runtime.known != nullptr) {
    if (of_runtime.was_set) *of_runtime.known = 1;
    return;
  }
  if (of_runtime.before.empty()) return;
  const std::span<std::uint8_t> memory = memory_of_runtime();
  const auto place = only_cleared_byte(of_runtime.before, memory);
  of_runtime.before.clear();
  if (!place) return;
  of_runtime.known = &memory[*place];
  *of_runtime.known = 1;
  of_runtime.was_set = true;
}

}  // namespace wavejit::simgpu::thunk
