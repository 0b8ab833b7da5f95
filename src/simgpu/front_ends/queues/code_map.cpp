// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/queues/code_map.h"

#include <format>
#include <iterator>
#include <utility>

namespace wavejit::simgpu::queues {

CodeMap& CodeMap::instance() {
  // Never destroyed: queues may run while static destructors do.
  static auto* const map = new CodeMap();
  return *map;
}

void CodeMap::set_image_finder(FindImage find_image) {
  const std::scoped_lock lock(mutex_);
  find_image_ = std::move(find_image);
}

void CodeMap::add(std::uint64_t base, std::uint64_t bytes, Device& device) {
  const std::scoped_lock lock(mutex_);
  auto code = device.resident_code(base, bytes, find_image_);
  if (code) code_[base] = std::move(*code);
}

void CodeMap::remove(std::uint64_t base) {
  const std::scoped_lock lock(mutex_);
  code_.erase(base);
}

void CodeMap::invalidate() {
  const std::scoped_lock lock(mutex_);
  for (const auto& [base, code] : code_) code->invalidate();
}

std::expected<std::shared_ptr<ResidentCode>, std::string> CodeMap::find(std::uint64_t address) {
  const std::scoped_lock lock(mutex_);
  const auto after = code_.upper_bound(address);
  if (after != code_.begin()) {
    const auto& [base, code] = *std::prev(after);
    if (address - base < code->bytes()) return code;
  }
  return std::unexpected(std::format("{:#x} lies in none of the {} pieces of executable memory: {}", address,
                                     code_.size(), DeviceMemory::instance().view()->describe(address)));
}

}  // namespace wavejit::simgpu::queues
