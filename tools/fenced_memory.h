// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory that a call writes, between two margins that it must not touch. Before a run all of it holds a mark, so that
// what was written can be told from what was not.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tools/exit_code.h"
#include "wavejit/wavejit.h"

namespace wavejit::tools {

// All bits set: NaN in every type, and no result of a finite input.
inline constexpr unsigned char unwritten = 0xFF;

// Somebody else's memory on an engine's device.
struct FencedMemory {
  wavejit_engine* engine = nullptr;
  char* begin = nullptr;   // of the first margin
  std::size_t margin = 0;  // bytes on either side
  std::size_t bytes = 0;

  char* data() const { return begin + margin; }
  std::size_t all_bytes() const { return bytes + (2 * margin); }

  Result<void> mark() const { return fill(begin, all_bytes(), unwritten); }
  Result<void> fill_margins(unsigned char byte) const;
  // "" or "byte 3 behind o was written".
  Result<std::string> broken(std::string_view name) const;

  template <typename Element>
  Result<std::vector<Element>> copy_of(const char* from, std::size_t size) const {
    std::vector<Element> copy(size / sizeof(Element));
    if (copy.empty()) return copy;
    if (auto copied = checked(wavejit_device_copy_out(engine, copy.data(), from, size)); !copied)
      return std::unexpected(copied.error());
    return copy;
  }

 private:
  Result<void> fill(char* first, std::size_t size, unsigned char byte) const;
};

}  // namespace wavejit::tools
