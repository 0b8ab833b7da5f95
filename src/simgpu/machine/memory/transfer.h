// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How a lane's registers and bytes of memory correspond, for every width that loads and stores come in.
#pragma once

#include <cstdint>
#include <cstring>

#include "simgpu/machine/memory/access.h"
#include "simgpu/machine/memory/device_memory.h"
#include "simgpu/machine/wave/wave.h"

namespace wavejit::simgpu {

// What a load does with the bytes it got.
struct LoadKind {
  unsigned bytes = 4;
  bool sign_extend = false;
  // −1: writes whole registers; 0 or 1: writes that half of the register (…_d16, …_d16_hi). The other one becomes 0:
  // memory with ECC, which every target has, does not keep it (LLVM d16PreservesUnusedBits), and AMD's rocBLAS ORs the
  // two halves of a register that it loads one by one.
  int half = -1;
};
struct StoreKind {
  unsigned bytes = 4;
  bool high_half = false;  // …_d16_hi: the data is the upper half of the register
};

template <LoadKind kind>
inline void load_lane(Wave& wave, unsigned destination, unsigned lane, const std::uint8_t* from) {
  if constexpr (kind.bytes >= 4) {
    std::uint32_t words[kind.bytes / 4];
    load_words<kind.bytes / 4>(words, from);
    for (unsigned i = 0; i < kind.bytes / 4; ++i) wave.vgpr[destination + i][lane] = words[i];
  } else {
    std::uint32_t value = 0;
    if constexpr (kind.bytes == 1) {
      const auto byte = load_device<std::uint8_t>(from);
      value = kind.sign_extend ? static_cast<std::uint32_t>(static_cast<std::int8_t>(byte)) : byte;
    } else {
      const auto half = load_device<std::uint16_t>(from);
      value = kind.sign_extend ? static_cast<std::uint32_t>(static_cast<std::int16_t>(half)) : half;
    }
    std::uint32_t& target = wave.vgpr[destination][lane];
    if constexpr (kind.half < 0) {
      target = value;
    } else if constexpr (kind.half == 0) {
      target = value & 0xffff;
    } else {
      target = value << 16;
    }
  }
}

template <StoreKind kind>
inline void store_lane(const Wave& wave, unsigned source, unsigned lane, std::uint8_t* to) {
  if constexpr (kind.bytes >= 4) {
    std::uint32_t words[kind.bytes / 4];
    for (unsigned i = 0; i < kind.bytes / 4; ++i) words[i] = wave.vgpr[source + i][lane];
    store_words<kind.bytes / 4>(to, words);
  } else {
    const std::uint32_t value = wave.vgpr[source][lane] >> (kind.high_half ? 16 : 0);
    if constexpr (kind.bytes == 1) {
      store_device(to, static_cast<std::uint8_t>(value));
    } else {
      store_device(to, static_cast<std::uint16_t>(value));
    }
  }
}

inline constexpr LoadKind load_ubyte{.bytes = 1};
inline constexpr LoadKind load_sbyte{.bytes = 1, .sign_extend = true};
inline constexpr LoadKind load_ushort{.bytes = 2};
inline constexpr LoadKind load_sshort{.bytes = 2, .sign_extend = true};
inline constexpr LoadKind load_dword{.bytes = 4};
inline constexpr LoadKind load_dwordx2{.bytes = 8};
inline constexpr LoadKind load_dwordx3{.bytes = 12};
inline constexpr LoadKind load_dwordx4{.bytes = 16};
inline constexpr LoadKind load_ubyte_d16{.bytes = 1, .half = 0};
inline constexpr LoadKind load_ubyte_d16_hi{.bytes = 1, .half = 1};
inline constexpr LoadKind load_sbyte_d16{.bytes = 1, .sign_extend = true, .half = 0};
inline constexpr LoadKind load_sbyte_d16_hi{.bytes = 1, .sign_extend = true, .half = 1};
inline constexpr LoadKind load_short_d16{.bytes = 2, .half = 0};
inline constexpr LoadKind load_short_d16_hi{.bytes = 2, .half = 1};

inline constexpr StoreKind store_byte{.bytes = 1};
inline constexpr StoreKind store_byte_d16_hi{.bytes = 1, .high_half = true};
inline constexpr StoreKind store_short{.bytes = 2};
inline constexpr StoreKind store_short_d16_hi{.bytes = 2, .high_half = true};
inline constexpr StoreKind store_dword{.bytes = 4};
inline constexpr StoreKind store_dwordx2{.bytes = 8};
inline constexpr StoreKind store_dwordx3{.bytes = 12};
inline constexpr StoreKind store_dwordx4{.bytes = 16};

// Where the data of an LDS DMA goes (CDNA3 ISA, "Memory buffer load to LDS"; docs/isa.md): M0 plus the instruction's
// offset plus the lane's place. Bytes and shorts fill whole dwords. The chapter gives M0 16 bits; on gfx950, whose
// workgroups have up to 160 KiB, AMD's own attention kernel goes up to 0x105C0, in an image of 68,096 bytes.
inline std::uint32_t lds_dma_address(const Wave& wave, const Instruction& instruction, unsigned lane, unsigned bytes) {
  const unsigned stride = bytes < 4 ? 4 : bytes;
  return wave.m0() + static_cast<std::uint32_t>(instruction.offset) + (lane * stride);
}

template <LoadKind kind>
inline void transfer_to_lds(Wave& wave, const Instruction& instruction, unsigned lane, const std::uint8_t* from) {
  constexpr unsigned written = kind.bytes < 4 ? 4 : kind.bytes;
  std::uint8_t* to = resolve_lds(wave, lds_dma_address(wave, instruction, lane, kind.bytes), written);
  if constexpr (kind.bytes >= 4) {
    copy_from_device<kind.bytes>(to, from);
  } else {
    std::uint32_t value = 0;
    copy_from_device<kind.bytes>(reinterpret_cast<std::uint8_t*>(&value), from);
    constexpr unsigned shift = 32 - (8 * kind.bytes);
    if constexpr (kind.sign_extend)
      value = static_cast<std::uint32_t>(static_cast<std::int32_t>(value << shift) >> shift);
    std::memcpy(to, &value, 4);
  }
}

}  // namespace wavejit::simgpu
