// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is known of loads, stores and atomics from what they move (decode/record.h).
#pragma once

#include "simgpu/machine/instruction/record.h"
#include "simgpu/machine/memory/transfer.h"

namespace wavejit::simgpu {

// The parts of a row that say what moves; where to, the rows' room says: `in_space`, `in_lds`.
constexpr Record loads(const LoadKind& kind) {
  const RegisterHalf half = kind.half < 0    ? RegisterHalf::whole
                            : kind.half == 0 ? RegisterHalf::low
                                             : RegisterHalf::high;
  return {.kind = IssueKind::load, .half = half, .loads = true, .bytes = static_cast<std::uint8_t>(kind.bytes)};
}

constexpr Record loads_to_lds(const LoadKind& kind) {
  return {.kind = IssueKind::lds_dma, .loads = true, .to_lds = true, .bytes = static_cast<std::uint8_t>(kind.bytes)};
}

constexpr Record stores(const StoreKind& kind) {
  return {.kind = IssueKind::store,
          .half = kind.high_half ? RegisterHalf::high : RegisterHalf::whole,
          .stores = true,
          .bytes = static_cast<std::uint8_t>(kind.bytes)};
}

// Atomics. Those that return something are loads as well where it matters (clock/kind.cpp).
template <typename T>
constexpr Record changes() {
  return {.kind = IssueKind::store, .loads = true, .stores = true, .atomic = true, .bytes = sizeof(T)};
}

template <typename T>
constexpr Record compares_and_swaps() {
  Record record = changes<T>();
  record.swaps = true;
  return record;
}

// Two places, `distance` elements times the offsets apart.
constexpr Record two_of(Record record, unsigned bytes, unsigned distance) {
  record.bytes = static_cast<std::uint8_t>(bytes);
  record.elements = 2;
  record.stride = static_cast<std::uint16_t>(bytes * distance);
  return record;
}

constexpr Record in_space(Space space, Record record) {
  record.instruction_class = InstructionClass::memory;
  record.space = space;
  record.counts_vector = true;
  // A flat instruction does not know where its address points: it counts as both.
  record.counts_local = space == Space::flat;
  return record;
}

constexpr Record in_lds(Record record) {
  record.instruction_class = InstructionClass::lds;
  record.kind = record.stores ? IssueKind::lds_write : IssueKind::lds_read;
  record.space = Space::lds;
  record.counts_local = true;
  return record;
}

}  // namespace wavejit::simgpu
