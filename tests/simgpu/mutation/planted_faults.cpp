// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planted_faults.h"

#include <algorithm>
#include <cstring>
#include <expected>
#include <stdexcept>
#include <utility>

namespace wavejit::tests {
namespace {

using simgpu::Instruction;

template <typename Value>
Value value_or_throw(std::expected<Value, std::string> value) {
  if (!value) throw std::runtime_error(value.error());
  return *std::move(value);
}

const std::vector<std::byte>& code_object_of(const CalledKernel& kernel) {
  if (!kernel.problem().empty()) throw std::runtime_error(kernel.problem());
  return kernel.code_object();
}

}  // namespace

PlantedFaults::PlantedFaults(CalledKernel& kernel)
    : kernel_(kernel),
      mutations_(value_or_throw(mutations_of(code_object_of(kernel)))),
      code_(value_or_throw(analysis::KernelCode::read(kernel.code_object()))) {}

std::byte* PlantedFaults::place_of(std::vector<std::byte>& code_object, const Instruction& instruction) const {
  const std::span<const std::uint8_t> bytes = instructions().front().function->code;
  const auto* first = reinterpret_cast<const std::uint8_t*>(code_object.data());
  const auto function = std::search(first, first + code_object.size(), bytes.begin(), bytes.end()) - first;
  return code_object.data() + function + instruction.offset_in_function;
}

Outcome PlantedFaults::with_words(const std::vector<const Instruction*>& instructions,
                                  const std::function<std::uint32_t(std::uint32_t)>& change) const {
  std::vector<std::byte> code_object = kernel_.code_object();
  std::vector<std::byte*> places;  // before the bytes differ by which the function is found
  places.reserve(instructions.size());
  for (const Instruction* each : instructions) places.push_back(place_of(code_object, *each));
  for (std::byte* place : places) {
    std::uint32_t word = 0;
    std::memcpy(&word, place, sizeof word);
    word = change(word);
    std::memcpy(place, &word, sizeof word);
  }
  return kernel_.run(code_object);
}

Outcome PlantedFaults::without(const Instruction& instruction, Change change) const {
  const auto found = std::ranges::find_if(mutations_, [&](const Mutation& mutation) {
    return mutation.offset == instruction.offset_in_function && mutation.change == change;
  });
  if (found == mutations_.end()) throw std::runtime_error("no such mutation");
  return kernel_.run(found->code_object);
}

Outcome PlantedFaults::behind_the_next(const Instruction& instruction, std::size_t count) const {
  std::size_t bytes = 0;
  for (const Instruction& passed : std::span(&instruction, count + 1)) {
    bytes += passed.bytes;
    if (passed.target != nullptr) throw std::runtime_error("a branch would lead elsewhere: " + text(passed));
    if (&passed == &instruction) continue;
    for (const Instruction& each : instructions())
      if (each.target == &passed) throw std::runtime_error("somebody branches to " + text(passed));
  }
  std::vector<std::byte> code_object = kernel_.code_object();
  std::byte* place = place_of(code_object, instruction);
  std::rotate(place, place + instruction.bytes, place + bytes);
  return kernel_.run(code_object);
}

}  // namespace wavejit::tests
