// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// MessagePack as the simulated GPU's loader reads it: a tree of no more values than there are bytes.
#include <cstdint>

#include "forge.h"
#include "simgpu/machine/loader/message_pack.h"

namespace {

std::size_t values_in(const wavejit::simgpu::MessageValue& value) {
  std::size_t count = 1;
  for (const auto& element : value.elements) count += values_in(element);
  using Kind = wavejit::simgpu::MessageValue::Kind;
  wavejit::fuzz::require(value.keys.size() == (value.kind == Kind::map ? value.elements.size() : 0));
  return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const wavejit::simgpu::Bytes bytes(std::as_bytes(std::span(data, size)));
  if (const auto value = wavejit::simgpu::read_message_pack(bytes)) wavejit::fuzz::require(values_in(*value) <= size);
  return 0;
}
