// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/thunk/interrupts.h"

#include <mutex>
#include <vector>

#include "simgpu/thunk/runtime_version.h"

namespace wavejit::simgpu::thunk {
namespace {

std::span<std::uint8_t> memory_of_runtime() {
  const LoadedRuntime runtime = loaded_runtime();
  return knows_runtime(runtime.file) ? runtime.zeroed : std::span<std::uint8_t>();
}

struct Switch {
  std::mutex mutex;
  std::vector<std::uint8_t> before;  // empty: nobody is between the two questions
  std::optional<std::size_t> place;  // once known

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

void before_interrupts_are_cleared() {
  Switch& known = Switch::instance();
  const std::scoped_lock lock(known.mutex);
  const std::span<std::uint8_t> memory = memory_of_runtime();
  known.before.assign(memory.begin(), memory.end());
}

void set_interrupts_again() {
  Switch& known = Switch::instance();
  const std::scoped_lock lock(known.mutex);
  if (known.before.empty()) return;
  const std::span<std::uint8_t> memory = memory_of_runtime();
  if (!known.place) known.place = only_cleared_byte(known.before, memory);
  const auto place = known.place;
  if (place && *place < memory.size() && known.before[*place] == 1) memory[*place] = 1;
  known.before.clear();
}

}  // namespace wavejit::simgpu::thunk
