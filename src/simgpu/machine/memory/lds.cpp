// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// LDS loads and stores with one and two addresses. Semantics: CDNA3 ISA, chapters 11 and 12.12; addresses are bytes, 32
// bits wide.
#include <bit>

#include "simgpu/machine/decode/registry.h"
#include "simgpu/machine/memory/access.h"
#include "simgpu/machine/memory/lane_kernels.h"
#include "simgpu/machine/memory/records.h"
#include "simgpu/machine/memory/rooms.h"
#include "simgpu/machine/memory/transfer.h"

namespace wavejit::simgpu {
namespace {

template <unsigned bytes>
void read_words(Wave& wave, unsigned destination, unsigned lane, const std::uint8_t* from) {
  std::uint32_t words[bytes / 4];
  std::memcpy(words, from, bytes);
  for (unsigned i = 0; i < bytes / 4; ++i) wave.vgpr[destination + i][lane] = words[i];
}
template <unsigned bytes>
void write_words(const Wave& wave, unsigned source, unsigned lane, std::uint8_t* to) {
  std::uint32_t words[bytes / 4];
  for (unsigned i = 0; i < bytes / 4; ++i) words[i] = wave.vgpr[source + i][lane];
  std::memcpy(to, words, bytes);
}

constexpr bool has_lane_kernel(unsigned bytes) { return bytes == 4 || bytes == 8 || bytes == 16; }

template <LoadKind kind>
void read(Wave& wave, const Instruction& instruction) {
  const std::uint32_t* address = wave.vgpr[instruction.source[0].index];
  const unsigned destination = instruction.destination[0].index;
  const auto offset = static_cast<std::uint32_t>(instruction.offset);
  // The destination may be the address register: lanes read their own address before they write.
  if constexpr (has_lane_kernel(kind.bytes)) {
    if (all_inside_lds(wave, address, offset, kind.bytes)) {
      const lanes::Kernels& kernels = lanes::kernels(wave);
      (kind.bytes == 4   ? kernels.read_1
       : kind.bytes == 8 ? kernels.read_2
                         : kernels.read_4)(&wave.vgpr[destination], wave.lds + offset, address);
      return;
    }
  }
  for (std::uint64_t rest = wave.exec(); rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint8_t* from = resolve_lds(wave, address[lane] + offset, kind.bytes);
    if constexpr (kind.bytes >= 4) {
      read_words<kind.bytes>(wave, destination, lane, from);
    } else {
      load_lane<kind>(wave, destination, lane, from);
    }
  }
}

template <StoreKind kind>
void write(Wave& wave, const Instruction& instruction) {
  const std::uint32_t* address = wave.vgpr[instruction.source[0].index];
  const unsigned source = instruction.source[1].index;
  const auto offset = static_cast<std::uint32_t>(instruction.offset);
  if constexpr (has_lane_kernel(kind.bytes)) {
    if (all_inside_lds(wave, address, offset, kind.bytes)) {
      const lanes::Kernels& kernels = lanes::kernels(wave);
      (kind.bytes == 4   ? kernels.write_1
       : kind.bytes == 8 ? kernels.write_2
                         : kernels.write_4)(&wave.vgpr[source], wave.lds + offset, address);
      return;
    }
  }
  for (std::uint64_t rest = wave.exec(); rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    std::uint8_t* to = resolve_lds(wave, address[lane] + offset, kind.bytes);
    if constexpr (kind.bytes >= 4) {
      write_words<kind.bytes>(wave, source, lane, to);
    } else {
      store_lane<kind>(wave, source, lane, to);
    }
  }
}

// Two elements of `bytes` at offset0 and offset1, counted in elements (times 64 for the st64 forms).
template <unsigned bytes, unsigned scale>
void read2(Wave& wave, const Instruction& instruction) {
  const std::uint32_t* address = wave.vgpr[instruction.source[0].index];
  const unsigned destination = instruction.destination[0].index;
  const auto first = static_cast<std::uint32_t>(instruction.offset) * bytes * scale;
  const auto second = static_cast<std::uint32_t>(instruction.offset1) * bytes * scale;
  for (std::uint64_t rest = wave.exec(); rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint32_t base = address[lane];  // the first result may overwrite it
    read_words<bytes>(wave, destination, lane, resolve_lds(wave, base + first, bytes));
    read_words<bytes>(wave, destination + (bytes / 4), lane, resolve_lds(wave, base + second, bytes));
  }
}

template <unsigned bytes, unsigned scale>
void write2(Wave& wave, const Instruction& instruction) {
  const std::uint32_t* address = wave.vgpr[instruction.source[0].index];
  const auto first = static_cast<std::uint32_t>(instruction.offset) * bytes * scale;
  const auto second = static_cast<std::uint32_t>(instruction.offset1) * bytes * scale;
  for (std::uint64_t rest = wave.exec(); rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    write_words<bytes>(wave, instruction.source[1].index, lane, resolve_lds(wave, address[lane] + first, bytes));
    write_words<bytes>(wave, instruction.source[2].index, lane, resolve_lds(wave, address[lane] + second, bytes));
  }
}

// The lane's number takes the place of an address register: M0[15:0] + offset + 4·lane.
void read_addtid(Wave& wave, const Instruction& instruction) {
  const std::uint32_t base = (wave.m0() & 0xffff) + static_cast<std::uint32_t>(instruction.offset);
  for (std::uint64_t rest = wave.exec(); rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    read_words<4>(wave, instruction.destination[0].index, lane, resolve_lds(wave, base + (4 * lane), 4));
  }
}
void write_addtid(Wave& wave, const Instruction& instruction) {
  const std::uint32_t base = (wave.m0() & 0xffff) + static_cast<std::uint32_t>(instruction.offset);
  for (std::uint64_t rest = wave.exec(); rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    write_words<4>(wave, instruction.source[0].index, lane, resolve_lds(wave, base + (4 * lane), 4));
  }
}

// No global data share on these targets.
template <Handler handler>
Handler local_only(Instruction& instruction) {
  return instruction.gds ? nullptr : handler;
}

constexpr Record from_m0(Record record) {
  record.reads_m0 = true;
  return record;
}

}  // namespace

void register_lds(Registry& registry) {
  const auto add = [&](std::string_view name, Select select, const Record& record) {
    registry.add_select(name, select, in_lds(record));
  };
  add("ds_read_u8", local_only<read<load_ubyte>>, loads(load_ubyte));
  add("ds_read_i8", local_only<read<load_sbyte>>, loads(load_sbyte));
  add("ds_read_u16", local_only<read<load_ushort>>, loads(load_ushort));
  add("ds_read_i16", local_only<read<load_sshort>>, loads(load_sshort));
  add("ds_read_b32", local_only<read<load_dword>>, loads(load_dword));
  add("ds_read_b64", local_only<read<load_dwordx2>>, loads(load_dwordx2));
  add("ds_read_b96", local_only<read<load_dwordx3>>, loads(load_dwordx3));
  add("ds_read_b128", local_only<read<load_dwordx4>>, loads(load_dwordx4));
  add("ds_read_u8_d16", local_only<read<load_ubyte_d16>>, loads(load_ubyte_d16));
  add("ds_read_u8_d16_hi", local_only<read<load_ubyte_d16_hi>>, loads(load_ubyte_d16_hi));
  add("ds_read_i8_d16", local_only<read<load_sbyte_d16>>, loads(load_sbyte_d16));
  add("ds_read_i8_d16_hi", local_only<read<load_sbyte_d16_hi>>, loads(load_sbyte_d16_hi));
  add("ds_read_u16_d16", local_only<read<load_short_d16>>, loads(load_short_d16));
  add("ds_read_u16_d16_hi", local_only<read<load_short_d16_hi>>, loads(load_short_d16_hi));
  add("ds_write_b8", local_only<write<store_byte>>, stores(store_byte));
  add("ds_write_b8_d16_hi", local_only<write<store_byte_d16_hi>>, stores(store_byte_d16_hi));
  add("ds_write_b16", local_only<write<store_short>>, stores(store_short));
  add("ds_write_b16_d16_hi", local_only<write<store_short_d16_hi>>, stores(store_short_d16_hi));
  add("ds_write_b32", local_only<write<store_dword>>, stores(store_dword));
  add("ds_write_b64", local_only<write<store_dwordx2>>, stores(store_dwordx2));
  add("ds_write_b96", local_only<write<store_dwordx3>>, stores(store_dwordx3));
  add("ds_write_b128", local_only<write<store_dwordx4>>, stores(store_dwordx4));
  add("ds_read2_b32", local_only<read2<4, 1>>, two_of(loads({}), 4, 1));
  add("ds_read2_b64", local_only<read2<8, 1>>, two_of(loads({}), 8, 1));
  add("ds_read2st64_b32", local_only<read2<4, 64>>, two_of(loads({}), 4, 64));
  add("ds_read2st64_b64", local_only<read2<8, 64>>, two_of(loads({}), 8, 64));
  add("ds_write2_b32", local_only<write2<4, 1>>, two_of(stores({}), 4, 1));
  add("ds_write2_b64", local_only<write2<8, 1>>, two_of(stores({}), 8, 1));
  add("ds_write2st64_b32", local_only<write2<4, 64>>, two_of(stores({}), 4, 64));
  add("ds_write2st64_b64", local_only<write2<8, 64>>, two_of(stores({}), 8, 64));
  add("ds_read_addtid_b32", local_only<read_addtid>, from_m0(loads(load_dword)));
  add("ds_write_addtid_b32", local_only<write_addtid>, from_m0(stores(store_dword)));
}

}  // namespace wavejit::simgpu
