// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Global memory through buffer descriptors: bounded by hardware, addressed as base + lane offset + uniform offset.
//
// A descriptor covers one (batch, head) slice with its exact size, so a row past the end reads zero and a store to it
// is dropped: no predicate, no clamped index. The bound is checked against lane offset + uniform offset as long as the
// uniform offset itself lies inside the slice (CDNA3 ISA, "Range checking": the limit is num_records − sgpr offset,
// which would wrap otherwise), so callers keep uniform offsets inside.
#pragma once

#include <cstdint>

#include "codegen/language/kernel.h"

namespace wavejit::language {

// agent: past the caches of a die, so that every die sees what is stored, and loads what was stored, without any cache
// being written back or emptied. As the backend's atomic loads and stores of agent scope are (LLVM, AMDGPUUsage,
// "Memory Model GFX942").
enum class Reach : std::uint8_t { cached, agent };

// A lane that points here is outside of every descriptor, whatever a uniform offset adds to the rest: no slice of a
// tensor comes so near to 4 GiB (call/limits.h), and instructions add less than this leaves.
inline constexpr std::uint32_t far_outside = 0xFFFFC000;

class Buffer {
 public:
  // `base` i64 and `bytes` i32, both uniform.
  Buffer(Kernel& kernel, Value* base, Value* bytes);

  // `bytes` a lane: 4, 8 or 16, as i32, <2 x i32> or <4 x i32>. Offsets are bytes, i32.
  // A store of 16 needs a constant uniform offset.
  Value* load(int bytes, Value* lane_offset, Value* uniform_offset, Reach reach = Reach::cached) const;
  void store(Value* dwords, Value* lane_offset, Value* uniform_offset, Reach reach = Reach::cached) const;
  // One element of 1, 2 or 4 bytes a lane, at any multiple of its size: the low bits of an i32, zeros above them.
  Value* load_element(int bytes, Value* lane_offset, Value* uniform_offset) const;
  // The low bits of an i32.
  void store_element(int bytes, Value* element, Value* lane_offset, Value* uniform_offset) const;

  Value* descriptor() const { return descriptor_; }
  // The same in a vector, as pin_scalars takes it.
  Value* dwords() const;
  // As they were given.
  Value* base() const { return base_; }
  Value* bytes() const { return bytes_; }

 private:
  Kernel* kernel_;
  Value* base_;
  Value* bytes_;
  Value* descriptor_;
};

// Memory without a descriptor: 4, 8 or 16 bytes a lane (as Buffer::load) from each lane's own address (i64, a multiple
// of `bytes`), which must be the device's.
Value* load_lanes(Kernel& kernel, Value* lane_address, int bytes);

// global_load_tr_b128, by all lanes of a wave of 32: each reads eight elements of 16 bits, 16 bytes, at its own place,
// `base` (i64, uniform) + lane offset (bytes, i32) + a constant; then elements are turned in groups of eight lanes:
// lane L has element L mod 8 of the lanes of its group, in their order. <4 x i32>. Nothing bounds it.
Value* load_transposed(Kernel& kernel, Value* base, Value* lane_offset, int constant_offset);

// Bytes that `rows` rows of `row_bytes` take at distance `row_stride`: (rows − 1) · row_stride + row_bytes, 0 for none.
Value* slice_bytes(Kernel& kernel, Value* rows, Value* row_stride, int row_bytes);

}  // namespace wavejit::language
