// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// MUBUF loads, stores and loads to LDS; MTBUF and format loads with 32-bit components. Semantics: CDNA3 ISA, chapters 9
// and 12.15.
#include "simgpu/machine/memory/buffer.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "simgpu/machine/decode/registry.h"
#include "simgpu/machine/memory/device_memory.h"
#include "simgpu/machine/memory/lane_kernels.h"
#include "simgpu/machine/memory/records.h"
#include "simgpu/machine/memory/rooms.h"
#include "simgpu/machine/memory/transfer.h"

namespace wavejit::simgpu {
namespace {

// Bytes of one range-checked component: dwords are checked one by one, smaller accesses as a whole.
template <unsigned bytes>
inline constexpr unsigned component = bytes < 4 ? bytes : 4;

enum class Way : std::uint8_t { lane_by_lane, all_lanes, nothing };

// `all_lanes`: all of them are active, inside the buffer and inside one allocation, so that nothing about a single
// lane is left to find out. `nothing`: all are active and outside the buffer, as those that fetch the tile behind the
// last one.
Way way_of(Wave& wave, const BufferAddress& address, unsigned bytes, bool write) {
  if (wave.exec() != wave.all_lanes) return Way::lane_by_lane;
  const BufferAddress::Range range = address.all_lanes_of(bytes);
  if (range.of == BufferAddress::Range::Of::outside) return Way::nothing;
  if (range.of != BufferAddress::Range::Of::inside || !range.aligned) return Way::lane_by_lane;
  const Allocation* const holder = allocation_of(wave, range.address, range.bytes);
  return holder != nullptr && (!write || holder->writable) ? Way::all_lanes : Way::lane_by_lane;
}

template <LoadKind kind>
void load_lanes(Wave& wave, const Instruction& instruction) {
  const BufferAddress address(wave, instruction, instruction.source[0], instruction.source[1], instruction.source[2]);
  const unsigned destination = instruction.destination[0].index;
  if constexpr (kind.bytes == 8 || kind.bytes == 16) {
    switch (way_of(wave, address, kind.bytes, false)) {
      case Way::all_lanes: {
        const lanes::Kernels& kernels = lanes::kernels(wave);
        (kind.bytes == 8 ? kernels.load_2 : kernels.load_4)(&wave.vgpr[destination], host_pointer(address.fixed()),
                                                            address.offsets());
        return;
      }
      case Way::nothing:
        std::memset(wave.vgpr[destination], 0, sizeof(lanes::Row) * (kind.bytes / 4));
        return;
      case Way::lane_by_lane:
        break;
    }
  }
  for (std::uint64_t rest = wave.exec(); rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const BufferAddress::Place place = address.at(lane);
    if (place.available >= kind.bytes) {
      const std::uint8_t* from = resolve(wave, instruction, place.address, kind.bytes, false, static_cast<int>(lane));
      if (from == nullptr) return;
      load_lane<kind>(wave, destination, lane, from);
      continue;
    }
    alignas(4) std::uint8_t bytes[kind.bytes] = {};
    for (unsigned at = 0; at < kind.bytes; at += component<kind.bytes>) {
      const BufferAddress::Place part = address.at(lane, at);
      if (part.available < component<kind.bytes>) continue;
      const std::uint8_t* from =
          resolve(wave, instruction, part.address, component<kind.bytes>, false, static_cast<int>(lane));
      if (from == nullptr) return;
      copy_from_device<component<kind.bytes>>(bytes + at, from);
    }
    load_lane<kind>(wave, destination, lane, bytes);
  }
}

// With a scope: what another workgroup published, as loads of flat addresses (flat.cpp).
template <LoadKind kind>
void load(Wave& wave, const Instruction& instruction) {
  load_lanes<kind>(wave, instruction);
  if (instruction.sc0 || instruction.sc1) std::atomic_thread_fence(std::memory_order_acquire);
}

template <StoreKind kind>
void store(Wave& wave, const Instruction& instruction) {
  const BufferAddress address(wave, instruction, instruction.source[1], instruction.source[2], instruction.source[3]);
  if (instruction.sc0 || instruction.sc1) std::atomic_thread_fence(std::memory_order_release);
  const unsigned source = instruction.source[0].index;
  if constexpr (kind.bytes % 4 == 0) {
    const Way way = way_of(wave, address, kind.bytes, true);
    if (way == Way::nothing) return;
    if (way == Way::all_lanes) {
      if constexpr (kind.bytes == 16) {
        return lanes::kernels(wave).store_4(&wave.vgpr[source], host_pointer(address.fixed()), address.offsets());
      }
      for (unsigned lane = 0; lane < wave.lane_count; ++lane) {
        store_lane<kind>(wave, source, lane, host_pointer(address.plain_address(lane)));
      }
      return;
    }
  }
  for (std::uint64_t rest = wave.exec(); rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const BufferAddress::Place place = address.at(lane);
    if (place.available >= kind.bytes) {
      std::uint8_t* to = resolve(wave, instruction, place.address, kind.bytes, true, static_cast<int>(lane));
      if (to == nullptr) return;
      store_lane<kind>(wave, source, lane, to);
      continue;
    }
    if constexpr (kind.bytes > 4) {
      for (unsigned at = 0; at < kind.bytes; at += 4) {
        const BufferAddress::Place part = address.at(lane, at);
        if (part.available < 4) continue;
        std::uint8_t* to = resolve(wave, instruction, part.address, 4, true, static_cast<int>(lane));
        if (to == nullptr) return;
        store_device(to, wave.vgpr[source + (at / 4)][lane]);
      }
    }
  }
}

// `… lds`: no data register. Out-of-range components write zero to LDS, as they would to a register.
template <LoadKind kind>
void load_to_lds(Wave& wave, const Instruction& instruction) {
  const BufferAddress address(wave, instruction, instruction.source[0], instruction.source[1], instruction.source[2]);
  if constexpr (kind.bytes % 4 == 0) {
    // LDS bytes follow lane by lane.
    const std::uint64_t first = lds_dma_address(wave, instruction, 0, kind.bytes);
    const std::uint64_t all = std::uint64_t{wave.lane_count} * kind.bytes;
    const Way way = first + all <= wave.lds_bytes ? way_of(wave, address, kind.bytes, false) : Way::lane_by_lane;
    if (way == Way::nothing) {
      std::memset(wave.lds + first, 0, all);
      return;
    }
    if (way == Way::all_lanes) {
      std::uint8_t* to = wave.lds + first;
      const std::uint8_t* const base = host_pointer(address.fixed());
      if constexpr (kind.bytes == 16) return lanes::kernels(wave).copy_4(to, base, address.offsets());
      for (unsigned lane = 0; lane < wave.lane_count; ++lane, to += kind.bytes) {
        copy_from_device<kind.bytes>(to, base + address.offsets()[lane]);
      }
      return;
    }
  }
  for (std::uint64_t rest = wave.exec(); rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const BufferAddress::Place place = address.at(lane);
    alignas(4) std::uint8_t bytes[kind.bytes] = {};
    const std::uint8_t* from = bytes;
    if (place.available >= kind.bytes) {
      from = resolve(wave, instruction, place.address, kind.bytes, false, static_cast<int>(lane));
      if (from == nullptr) return;
    } else {
      for (unsigned at = 0; at < kind.bytes; at += component<kind.bytes>) {
        const BufferAddress::Place part = address.at(lane, at);
        if (part.available < component<kind.bytes>) continue;
        const std::uint8_t* piece =
            resolve(wave, instruction, part.address, component<kind.bytes>, false, static_cast<int>(lane));
        if (piece == nullptr) return;
        copy_from_device<component<kind.bytes>>(bytes + at, piece);
      }
    }
    transfer_to_lds<kind>(wave, instruction, lane, from);
  }
}

template <LoadKind kind>
Handler select_load(Instruction& instruction) {
  if (!instruction.lds) return load<kind>;
  if (kind.half >= 0 || kind.bytes == 8) return nullptr;
  return load_to_lds<kind>;
}

}  // namespace

void register_buffer(Registry& registry) {
  const auto add_load = [&](std::string_view name, Select select, const Record& record) {
    registry.add_select(name, select, in_space(Space::buffer, record));
  };
  const auto add = [&](std::string_view name, Handler handler, const Record& record) {
    registry.add(name, handler, in_space(Space::buffer, record));
  };
  add_load("buffer_load_ubyte", select_load<load_ubyte>, loads(load_ubyte));
  add_load("buffer_load_sbyte", select_load<load_sbyte>, loads(load_sbyte));
  add_load("buffer_load_ushort", select_load<load_ushort>, loads(load_ushort));
  add_load("buffer_load_sshort", select_load<load_sshort>, loads(load_sshort));
  add_load("buffer_load_dword", select_load<load_dword>, loads(load_dword));
  add_load("buffer_load_dwordx2", select_load<load_dwordx2>, loads(load_dwordx2));
  add_load("buffer_load_dwordx3", select_load<load_dwordx3>, loads(load_dwordx3));
  add_load("buffer_load_dwordx4", select_load<load_dwordx4>, loads(load_dwordx4));
  add_load("buffer_load_ubyte_d16", select_load<load_ubyte_d16>, loads(load_ubyte_d16));
  add_load("buffer_load_ubyte_d16_hi", select_load<load_ubyte_d16_hi>, loads(load_ubyte_d16_hi));
  add_load("buffer_load_sbyte_d16", select_load<load_sbyte_d16>, loads(load_sbyte_d16));
  add_load("buffer_load_sbyte_d16_hi", select_load<load_sbyte_d16_hi>, loads(load_sbyte_d16_hi));
  add_load("buffer_load_short_d16", select_load<load_short_d16>, loads(load_short_d16));
  add_load("buffer_load_short_d16_hi", select_load<load_short_d16_hi>, loads(load_short_d16_hi));
  add("buffer_store_byte", store<store_byte>, stores(store_byte));
  add("buffer_store_byte_d16_hi", store<store_byte_d16_hi>, stores(store_byte_d16_hi));
  add("buffer_store_short", store<store_short>, stores(store_short));
  add("buffer_store_short_d16_hi", store<store_short_d16_hi>, stores(store_short_d16_hi));
  add("buffer_store_dword", store<store_dword>, stores(store_dword));
  add("buffer_store_dwordx2", store<store_dwordx2>, stores(store_dwordx2));
  add("buffer_store_dwordx3", store<store_dwordx3>, stores(store_dwordx3));
  add("buffer_store_dwordx4", store<store_dwordx4>, stores(store_dwordx4));
}

}  // namespace wavejit::simgpu
