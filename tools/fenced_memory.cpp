// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/fenced_memory.h"

#include <fmt/format.h>

#include <algorithm>

namespace wavejit::tools {

Result<void> FencedMemory::fill(char* first, std::size_t size, unsigned char byte) const {
  constexpr std::size_t at_once = std::size_t{8} << 20;  // the memory may be larger than the host's
  const std::vector<unsigned char> marks(std::min(size, at_once), byte);
  for (std::size_t done = 0; done < size; done += marks.size()) {
    const std::size_t count = std::min(marks.size(), size - done);
    if (auto copied = checked(wavejit_device_copy_in(engine, first + done, marks.data(), count)); !copied)
      return copied;
  }
  return {};
}

Result<void> FencedMemory::fill_margins(unsigned char byte) const {
  auto filled = fill(begin, margin, byte);
  return filled ? fill(data() + bytes, margin, byte) : filled;
}

Result<std::string> FencedMemory::broken(std::string_view name) const {
  for (const bool behind : {false, true}) {
    const auto fence = copy_of<unsigned char>(behind ? data() + bytes : begin, margin);
    if (!fence) return std::unexpected(fence.error());
    const auto touched = std::ranges::find_if(*fence, [](unsigned char byte) { return byte != unwritten; });
    if (touched == fence->end()) continue;
    const auto at = static_cast<std::size_t>(touched - fence->begin());
    return behind ? fmt::format("byte {} behind {} was written", at, name)
                  : fmt::format("byte {} before {} was written", margin - at, name);
  }
  return std::string();
}

}  // namespace wavejit::tools
