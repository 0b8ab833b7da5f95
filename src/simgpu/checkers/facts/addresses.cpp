// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/facts/addresses.h"

#include <algorithm>

#include "simgpu/machine/memory/buffer.h"
#include "simgpu/machine/memory/flat.h"
#include "simgpu/machine/memory/transfer.h"

namespace wavejit::simgpu::checks {
namespace {

template <FlatSpace space>
void flat_addresses(const Wave& wave, const Instruction& instruction, const Operand& address, const Operand& base,
                    LaneAddresses& to) {
  const FlatAddress<space> from(wave, instruction, address, base);
  for_active_lanes(to.lanes, [&](unsigned lane) { to.first[lane] = from.at(lane); });
}

}  // namespace

Runs::Runs(const LaneAddresses& addresses, std::uint32_t bytes) {
  const bool whole_dwords = bytes % 4 == 0;
  unsigned next_lane = lane_places;
  std::uint64_t next = 0;
  for_active_lanes(addresses.lanes, [&](unsigned lane) {
    const std::uint32_t available = addresses.available[lane];
    const std::uint64_t first = addresses.first[lane];
    if (lane == next_lane && first == next && available == bytes) {
      runs_[count_ - 1].bytes += bytes;
    } else {
      if (available == 0) return;
      runs_[count_++] = {.first = first,
                         .bytes = available,
                         .lane = static_cast<std::uint16_t>(lane),
                         .lane_bytes = static_cast<std::uint16_t>(available)};
    }
    next_lane = whole_dwords && first % 4 == 0 && available == bytes ? lane + 1 : lane_places;
    next = first + bytes;
  });
}

std::uint64_t split_flat(LaneAddresses& device, LocalAddresses& local) {
  std::uint64_t others = 0;
  local.lanes = 0;
  for_active_lanes(device.lanes, [&](unsigned lane) {
    const std::uint64_t aperture = device.first[lane] & ~(aperture_bytes - 1);
    if (aperture == private_aperture) others |= std::uint64_t{1} << lane;
    if (aperture != shared_aperture) return;
    others |= std::uint64_t{1} << lane;
    local.lanes |= std::uint64_t{1} << lane;
    local.first[lane] = static_cast<std::uint32_t>(device.first[lane]);
  });
  device.lanes &= ~others;
  return others;
}

void local_addresses(const Wave& wave, const Instruction& instruction, const Effects& effects, LocalAddresses& to) {
  to.lanes = wave.exec();
  if (effects.lds_dma) {
    for_active_lanes(to.lanes,
                     [&](unsigned lane) { to.first[lane] = lds_dma_address(wave, instruction, lane, effects.bytes); });
    return;
  }
  const auto offset = static_cast<std::uint32_t>(instruction.offset);
  if (instruction.record->reads_m0) {
    for_active_lanes(to.lanes, [&](unsigned lane) { to.first[lane] = (wave.m0() & 0xffff) + offset + (4 * lane); });
    return;
  }
  const std::uint32_t* address = wave.vgpr[instruction.source[0].index];
  if (effects.elements == 2) {
    const std::uint32_t low = offset * effects.stride;
    const std::uint32_t high = static_cast<std::uint32_t>(instruction.offset1) * effects.stride;
    for_active_lanes(to.lanes, [&](unsigned lane) {
      to.first[lane] = address[lane] + low;
      to.second[lane] = address[lane] + high;
    });
    return;
  }
  for (unsigned lane = 0; lane < lane_places; ++lane) to.first[lane] = address[lane] + offset;
}

void device_addresses(const Wave& wave, const Instruction& instruction, const Effects& effects, LaneAddresses& to) {
  to.lanes = wave.exec();
  const unsigned at = effects.address_operand;
  if (effects.space == Space::buffer) {
    const BufferAddress address(wave, instruction, instruction.source[at], instruction.source[at + 1],
                                instruction.source[at + 2]);
    if (to.lanes == wave.all_lanes && address.all_lanes_of(effects.bytes).of == BufferAddress::Range::Of::inside) {
      for (unsigned lane = 0; lane < lane_places; ++lane) to.first[lane] = address.plain_address(lane);
      std::fill(std::begin(to.available), std::end(to.available), effects.bytes);
      return;
    }
    for_active_lanes(to.lanes, [&](unsigned lane) {
      const BufferAddress::Place place = address.at(lane);
      to.first[lane] = place.address;
      to.available[lane] = static_cast<std::uint8_t>(std::min<std::uint64_t>(place.available, effects.bytes));
    });
    return;
  }
  std::fill(std::begin(to.available), std::end(to.available), effects.bytes);
  const Operand& address = instruction.source[at];
  const Operand& base = instruction.source[effects.loads && !effects.atomic ? 1 : 2];
  switch (effects.space) {
    case Space::flat:
      return flat_addresses<FlatSpace::flat>(wave, instruction, address, base, to);
    case Space::scratch:
      return flat_addresses<FlatSpace::scratch>(wave, instruction, address, base, to);
    default:
      return flat_addresses<FlatSpace::global>(wave, instruction, address, base, to);
  }
}

}  // namespace wavejit::simgpu::checks
