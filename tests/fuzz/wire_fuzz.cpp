// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Frames of an isolated compile's answer, as they come and with the right build's mark in front.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "codegen/wire.h"
#include "forge.h"

namespace {

void check(std::span<const unsigned char> frame) {
  namespace wire = wavejit::codegen::wire;
  using wavejit::fuzz::require;
  const auto compiled = wire::decode(frame);
  if (!compiled) return require(!compiled.error().empty());
  require(compiled->detail.size() + compiled->bytes.size() <= frame.size());
  const auto again = wire::decode(wire::encode(*compiled));
  require(again && again->detail == compiled->detail && again->bytes == compiled->bytes &&
          again->status == compiled->status);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t mark = 16;
  check({data, size});
  static const auto ours = wavejit::codegen::wire::encode({});
  std::vector<unsigned char> marked(data, data + size);
  std::copy_n(ours.begin(), std::min(mark, size), marked.begin());
  check(marked);
  return 0;
}
