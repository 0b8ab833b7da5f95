// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/queues/sdma_packets.h"

#include <algorithm>
#include <array>
#include <format>
#include <optional>
#include <string_view>

namespace wavejit::simgpu::queues {
namespace {

using Words = std::span<const std::uint32_t>;
using Read = std::expected<SdmaPacket, std::string>;

enum class Operation : std::uint8_t {
  nothing = 0,
  copy = 1,
  fence = 5,
  trap = 6,
  poll = 8,
  atomic = 10,
  fill = 11,
  timestamp = 13,
  cache = 17,
};

constexpr std::uint32_t bits(std::uint32_t word, int low, int count) {
  constexpr int all = 32;
  return count >= all ? word : (word >> low) & ((std::uint32_t{1} << count) - 1);
}
constexpr std::uint32_t kind_bits(std::uint32_t header) { return bits(header, 8, 8); }

// Two dwords, the lower half first.
constexpr std::uint64_t wide(Words words, std::size_t at) { return words[at] | (std::uint64_t{words[at + 1]} << 32); }

std::unexpected<std::string> refuse(std::string_view name, std::string_view why) {
  return std::unexpected(std::format("{}: {}", name, why));
}

std::unexpected<std::string> refuse_kind(std::string_view name, std::uint32_t header, std::string_view known) {
  return refuse(name, std::format("kind {} (bits 15..8); known is {}", kind_bits(header), known));
}

// "COPY: 7 dwords, of which 3 are there". Empty: they are.
std::optional<std::string> missing(std::string_view name, Words words, std::size_t dwords) {
  if (words.size() >= dwords) return std::nullopt;
  return std::format("{}: a packet of {} dwords, of which the queue holds {}", name, dwords, words.size());
}

std::optional<std::string> misaligned(std::string_view name, std::uint64_t address, std::uint64_t alignment) {
  if (address % alignment == 0) return std::nullopt;
  return std::format("{}: address {:#x}, which is no multiple of {}", name, address, alignment);
}

// Counts hold bytes less one; bits above them are nobody's.
std::expected<std::uint64_t, std::string> bytes_of(std::string_view name, std::uint32_t word, int count_bits) {
  const std::uint32_t count = bits(word, 0, count_bits);
  if (count != word)
    return refuse(name, std::format("count {:#x}, of which the bits from {} on must be 0", word, count_bits));
  return std::uint64_t{count} + 1;
}

Read read_nothing(Words words) {
  constexpr std::string_view name = "NOP (0)";
  constexpr int count_bits = 14;
  return SdmaPacket{
      .name = name, .command = SdmaNothing{}, .dwords = 1 + std::uint64_t{bits(words[0], 16, count_bits)}};
}

Read read_linear_copy(Words words, const boards::SdmaPackets& layout) {
  constexpr std::string_view name = "COPY (1), linear";
  constexpr std::size_t dwords = 7;
  if (auto problem = missing(name, words, dwords)) return std::unexpected(std::move(*problem));
  if (bits(words[0], 16, 16) != 0)
    return refuse(
        name, std::format("header {:#010x}: encrypted, compressed or broadcast copies are not simulated", words[0]));
  // Byte swaps of either side.
  if (bits(words[2], 16, 2) != 0 || bits(words[2], 24, 2) != 0)
    return refuse(name, std::format("dword 2 is {:#010x}: byte swaps are not simulated", words[2]));
  const auto bytes = bytes_of(name, words[1], layout.count_bits);
  if (!bytes) return std::unexpected(bytes.error());
  return SdmaPacket{.name = name,
                    .command = SdmaCopy{.from = wide(words, 3), .to = wide(words, 5), .bytes = *bytes},
                    .dwords = dwords};
}

SdmaSurface surface_at(Words words, std::size_t at, const boards::SdmaPackets& layout) {
  const std::uint32_t place = words[at + 2];
  const std::uint32_t pitch = words[at + 3];
  constexpr int second_half = 16;
  return {.address = wide(words, at),
          .x = bits(place, 0, layout.rectangle_xy_bits),
          .y = bits(place, second_half, layout.rectangle_xy_bits),
          .z = bits(pitch, 0, layout.rectangle_z_bits),
          .pitch = std::uint64_t{bits(pitch, layout.pitch_shift, layout.pitch_bits)} + 1,
          .slice = std::uint64_t{bits(words[at + 4], 0, layout.slice_bits)} + 1};
}

Read read_rectangle(Words words, const boards::SdmaPackets& layout) {
  constexpr std::string_view name = "COPY (1), rectangle";
  constexpr std::size_t dwords = 13;
  if (auto problem = missing(name, words, dwords)) return std::unexpected(std::move(*problem));
  const std::uint32_t element = bits(words[0], 29, 3);
  constexpr std::uint32_t widest = 4;
  if (element > widest) return refuse(name, std::format("elements of 2^{} bytes; there are 1 to 16", element));
  SdmaRectangle copy{.from = surface_at(words, 1, layout), .to = surface_at(words, 6, layout)};
  for (const SdmaSurface* side : {&copy.from, &copy.to})
    if (auto problem = misaligned(name, side->address, 4)) return std::unexpected(std::move(*problem));
  copy.element_bytes = std::uint64_t{1} << element;
  copy.width = std::uint64_t{bits(words[11], 0, layout.rectangle_xy_bits)} + 1;
  copy.height = std::uint64_t{bits(words[11], 16, layout.rectangle_xy_bits)} + 1;
  copy.depth = std::uint64_t{bits(words[12], 0, layout.rectangle_z_bits)} + 1;
  return SdmaPacket{.name = name, .command = copy, .dwords = dwords};
}

Read read_copy(Words words, const boards::SdmaPackets& layout) {
  constexpr std::uint32_t linear = 0;
  constexpr std::uint32_t rectangle = 4;
  switch (kind_bits(words[0])) {
    case linear:
      return read_linear_copy(words, layout);
    case rectangle:
      return read_rectangle(words, layout);
    default:
      return refuse_kind("COPY (1)", words[0], "0 (linear) and 4 (rectangle)");
  }
}

Read read_fill(Words words, const boards::SdmaPackets& layout) {
  constexpr std::string_view name = "CONST_FILL (11)";
  constexpr std::size_t dwords = 5;
  if (auto problem = missing(name, words, dwords)) return std::unexpected(std::move(*problem));
  if (kind_bits(words[0]) != 0) return refuse_kind(name, words[0], "0");
  const std::uint32_t size = bits(words[0], 30, 2);
  constexpr std::uint32_t widest = 2;
  if (size > widest) return refuse(name, "a fill size of 3 (bits 31..30); it takes 0 to 2");
  const std::uint32_t element = std::uint32_t{1} << size;
  const auto bytes = bytes_of(name, words[4], layout.count_bits);
  if (!bytes) return std::unexpected(bytes.error());
  const std::uint64_t to = wide(words, 1);
  if (auto problem = misaligned(name, to, element)) return std::unexpected(std::move(*problem));
  // The count's bits below an element are not looked at: 0 is one element.
  const std::uint64_t whole = ((*bytes - 1) / element + 1) * element;
  return SdmaPacket{.name = name,
                    .command = SdmaFill{.to = to, .bytes = whole, .value = words[3], .element_bytes = element},
                    .dwords = dwords};
}

Read read_fence(Words words) {
  constexpr std::string_view name = "FENCE (5)";
  constexpr std::size_t dwords = 4;
  if (auto problem = missing(name, words, dwords)) return std::unexpected(std::move(*problem));
  if (kind_bits(words[0]) != 0) return refuse_kind(name, words[0], "0");
  if (auto problem = misaligned(name, wide(words, 1), 4)) return std::unexpected(std::move(*problem));
  return SdmaPacket{.name = name, .command = SdmaFence{.to = wide(words, 1), .value = words[3]}, .dwords = dwords};
}

Read read_trap(Words words) {
  constexpr std::string_view name = "TRAP (6)";
  constexpr std::size_t dwords = 2;
  if (auto problem = missing(name, words, dwords)) return std::unexpected(std::move(*problem));
  constexpr int event_bits = 28;
  return SdmaPacket{.name = name, .command = SdmaTrap{.event_id = bits(words[1], 0, event_bits)}, .dwords = dwords};
}

Read read_poll(Words words) {
  constexpr std::string_view name = "POLL_REGMEM (8)";
  constexpr std::size_t dwords = 6;
  if (auto problem = missing(name, words, dwords)) return std::unexpected(std::move(*problem));
  const std::uint32_t header = words[0];
  if (kind_bits(header) != 0) return refuse_kind(name, header, "0");
  const bool flushes = bits(header, 26, 1) != 0;
  const std::uint32_t compare = bits(header, 28, 3);
  // Flushes of the host's data path are written as polls: by their bit, or of a register and always true.
  if (flushes || compare == 0) return SdmaPacket{.name = name, .command = SdmaNothing{}, .dwords = dwords};
  if (compare > static_cast<std::uint32_t>(SdmaCompare::greater))
    return refuse(name, "comparison 7 (bits 30..28); it takes 0 to 6");
  if (bits(header, 31, 1) == 0)
    return refuse(name, std::format("waits for register {:#x}; memory alone is polled", wide(words, 1)));
  if (auto problem = misaligned(name, wide(words, 1), 4)) return std::unexpected(std::move(*problem));
  return SdmaPacket{.name = name,
                    .command = SdmaPoll{.at = wide(words, 1),
                                        .reference = words[3],
                                        .mask = words[4],
                                        .compare = static_cast<SdmaCompare>(compare)},
                    .dwords = dwords};
}

// The numbers of the memory system: those of 32 bits, and 32 higher those of 64.
struct AtomicRow {
  std::uint32_t number;
  SdmaAtomicKind kind;
};
constexpr std::array<AtomicRow, 13> atomics = {{{7, SdmaAtomicKind::swap},
                                                {8, SdmaAtomicKind::compare_swap},
                                                {15, SdmaAtomicKind::add},
                                                {16, SdmaAtomicKind::subtract},
                                                {17, SdmaAtomicKind::signed_minimum},
                                                {18, SdmaAtomicKind::unsigned_minimum},
                                                {19, SdmaAtomicKind::signed_maximum},
                                                {20, SdmaAtomicKind::unsigned_maximum},
                                                {21, SdmaAtomicKind::bits_and},
                                                {22, SdmaAtomicKind::bits_or},
                                                {23, SdmaAtomicKind::bits_xor},
                                                {24, SdmaAtomicKind::increment},
                                                {25, SdmaAtomicKind::decrement}}};

Read read_atomic(Words words) {
  constexpr std::string_view name = "ATOMIC (10)";
  constexpr std::size_t dwords = 8;
  if (auto problem = missing(name, words, dwords)) return std::unexpected(std::move(*problem));
  if (kind_bits(words[0]) != 0) return refuse_kind(name, words[0], "0");
  constexpr std::uint32_t first_of_64 = 32;
  const std::uint32_t number = bits(words[0], 25, 7);
  const auto* const row = std::ranges::find(atomics, number % first_of_64, &AtomicRow::number);
  if (row == atomics.end() || number >= 2 * first_of_64)
    return refuse(name, std::format("operation {} (bits 31..25); known are 7, 8 and 15 to 25 of 32 bits, 39, 40 and "
                                    "47 (add) to 57 of 64 bits",
                                    number));
  const std::uint32_t bytes = number >= first_of_64 ? 8 : 4;
  if (auto problem = misaligned(name, wide(words, 1), bytes)) return std::unexpected(std::move(*problem));
  return SdmaPacket{.name = name,
                    .command = SdmaAtomic{.at = wide(words, 1),
                                          .operand = wide(words, 3),
                                          .compare = wide(words, 5),
                                          .kind = row->kind,
                                          .bytes = bytes,
                                          .until_equal = bits(words[0], 16, 1) != 0},
                    .dwords = dwords};
}

Read read_timestamp(Words words) {
  constexpr std::string_view name = "TIMESTAMP (13)";
  constexpr std::size_t dwords = 3;
  if (auto problem = missing(name, words, dwords)) return std::unexpected(std::move(*problem));
  // Timestamps of the engine's own clock, and of the GPU's. They are one here.
  constexpr std::uint32_t get_local = 1;
  constexpr std::uint32_t get_global = 2;
  if (kind_bits(words[0]) != get_local && kind_bits(words[0]) != get_global)
    return refuse_kind(name, words[0], "1 (local) and 2 (global)");
  if (auto problem = misaligned(name, wide(words, 1), 8)) return std::unexpected(std::move(*problem));
  return SdmaPacket{.name = name, .command = SdmaTimestamp{.to = wide(words, 1)}, .dwords = dwords};
}

// What caches hold is what memory holds.
Read read_cache(Words words, const boards::SdmaPackets& layout) {
  constexpr std::string_view name = "GCR (17)";
  constexpr std::size_t dwords = 5;
  if (!layout.cache_control) return refuse(name, "this target's engines have no cache control");
  if (auto problem = missing(name, words, dwords)) return std::unexpected(std::move(*problem));
  if (kind_bits(words[0]) > 1) return refuse_kind(name, words[0], "0 and 1");
  return SdmaPacket{.name = name, .command = SdmaNothing{}, .dwords = dwords};
}

}  // namespace

std::expected<SdmaPacket, std::string> read_sdma(Words words, const boards::SdmaPackets& layout) {
  if (words.empty()) return refuse("SDMA", "no packet");
  const std::uint32_t operation = bits(words[0], 0, 8);
  switch (static_cast<Operation>(operation)) {
    case Operation::nothing:
      return read_nothing(words);
    case Operation::copy:
      return read_copy(words, layout);
    case Operation::fence:
      return read_fence(words);
    case Operation::trap:
      return read_trap(words);
    case Operation::poll:
      return read_poll(words);
    case Operation::atomic:
      return read_atomic(words);
    case Operation::fill:
      return read_fill(words, layout);
    case Operation::timestamp:
      return read_timestamp(words);
    case Operation::cache:
      return read_cache(words, layout);
  }
  return std::unexpected(
      std::format("operation {} (header {:#010x}); known are NOP (0), COPY (1), FENCE (5), TRAP (6), "
                  "POLL_REGMEM (8), ATOMIC (10), CONST_FILL (11), TIMESTAMP (13) and GCR (17)",
                  operation, words[0]));
}

}  // namespace wavejit::simgpu::queues
