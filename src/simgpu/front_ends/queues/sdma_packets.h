// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What AMD's runtime writes for a copy engine (SDMA): packets of dwords, the first with the operation in bits 7..0 and
// its kind in bits 15..8. Layouts: libhsa-runtime64's sdma_registers.h (ROCm 7.2) and Linux's amdgpu driver. Reading
// them touches nothing but the words given; whoever runs a command checks its addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "boards/board.h"

namespace wavejit::simgpu::queues {

// No packet is longer, nothing's fillers aside.
inline constexpr std::size_t longest_sdma_packet = 13;

// Fillers, cache control, flushes of the host's data path: there is nothing to do.
struct SdmaNothing {};

struct SdmaCopy {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::uint64_t bytes = 0;
};

// One side of a rectangle's copy, in elements.
struct SdmaSurface {
  std::uint64_t address = 0;
  std::uint64_t x = 0;
  std::uint64_t y = 0;
  std::uint64_t z = 0;
  std::uint64_t pitch = 0;  // from row to row
  std::uint64_t slice = 0;  // from plane to plane
};

struct SdmaRectangle {
  SdmaSurface from;
  SdmaSurface to;
  std::uint64_t element_bytes = 1;
  std::uint64_t width = 0;  // elements
  std::uint64_t height = 0;
  std::uint64_t depth = 0;
};

struct SdmaFill {
  std::uint64_t to = 0;
  std::uint64_t bytes = 0;
  std::uint32_t value = 0;
  std::uint32_t element_bytes = 4;  // how many bytes of the value are repeated
};

// Writes 4 bytes after everything before.
struct SdmaFence {
  std::uint64_t to = 0;
  std::uint32_t value = 0;
};

// Raises an event.
struct SdmaTrap {
  std::uint32_t event_id = 0;
};

enum class SdmaCompare : std::uint8_t { always, less, less_or_equal, equal, not_equal, greater_or_equal, greater };

// Waits until 4 bytes of memory, masked, compare so with the reference.
struct SdmaPoll {
  std::uint64_t at = 0;
  std::uint32_t reference = 0;
  std::uint32_t mask = 0;
  SdmaCompare compare = SdmaCompare::always;
};

enum class SdmaAtomicKind : std::uint8_t {
  swap,
  compare_swap,
  add,
  subtract,
  signed_minimum,
  unsigned_minimum,
  signed_maximum,
  unsigned_maximum,
  bits_and,
  bits_or,
  bits_xor,
  increment,  // to the operand, then 0
  decrement,  // from the operand
};

struct SdmaAtomic {
  std::uint64_t at = 0;
  std::uint64_t operand = 0;
  std::uint64_t compare = 0;
  SdmaAtomicKind kind = SdmaAtomicKind::add;
  std::uint32_t bytes = 8;
  bool until_equal = false;  // a compare-and-swap that waits for what it compares with
};

// Writes 8 bytes: ticks of the GPU's clock.
struct SdmaTimestamp {
  std::uint64_t to = 0;
};

using SdmaCommand = std::variant<SdmaNothing, SdmaCopy, SdmaRectangle, SdmaFill, SdmaFence, SdmaTrap, SdmaPoll,
                                 SdmaAtomic, SdmaTimestamp>;

struct SdmaPacket {
  std::string_view name;  // "CONST_FILL (11)"
  SdmaCommand command;
  std::uint64_t dwords = 0;  // more than `words` has for a filler alone
};

// The packet that `words` begin with. The text names the operation and what is wrong with it: a kind that is not known,
// a misaligned address, a field that is not simulated.
std::expected<SdmaPacket, std::string> read_sdma(std::span<const std::uint32_t> words,
                                                 const boards::SdmaPackets& layout);

}  // namespace wavejit::simgpu::queues
