// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Addresses and bounds of buffer instructions (CDNA3 ISA, chapter 9.1: "Buffer addressing", "Range checking").
//
// Where that chapter leaves a choice, this is what AMD's emulator does since it was held against a gfx950
// (ROCm/rocm-systems#10928), and what LLVM knows of gfx9 (review D44401: bytes or records, IDXEN decides):
//  * Only an index makes a buffer one of records: from a register (idxen), or the thread's number (the descriptor's
//    ADD_TID_ENABLE). Without one every offset is plain bytes, whatever stride and swizzle-enable say. Triton and
//    HipKittens put a row's length into the stride, for the cache's own swizzle, and HipKittens sets swizzle-enable
//    too.
//  * With idxen and a stride the index is checked against NUM_RECORDS; with ADD_TID_ENABLE nothing is; otherwise bytes
//    are, dword by dword, the scalar offset included.
//  * The lane's and the instruction's offset are added in 32 bits. The scalar offset comes on top without wrapping.
//  * Elements of swizzled buffers have four bytes: gfx9 has no ELEMENT_SIZE (LLVM, getScratchRsrcWords23).
#pragma once

#include <algorithm>

#include "simgpu/machine/memory/access.h"
#include "simgpu/machine/memory/lane_kernels.h"

namespace wavejit::simgpu {

class BufferAddress {
 public:
  // `address`: the printed vector address (or off); `descriptor`: four scalar registers; `scalar_offset`: the scalar
  // offset.
  BufferAddress(const Wave& wave, const Instruction& instruction, const Operand& address, const Operand& descriptor,
                const Operand& scalar_offset) {
    const std::uint32_t* words = &wave.sgpr[descriptor.index];
    base_ = words[0] | (std::uint64_t{words[1] & 0xffff} << 32);
    stride_ = (words[1] >> 16) & 0x3fff;
    records_ = words[2];
    index_stride_ = 8u << ((words[3] >> 21) & 3);
    add_thread_id_ = ((words[3] >> 23) & 1) != 0;
    if (add_thread_id_) stride_ |= ((words[3] >> 15) & 0xf) << 14;
    scalar_offset_ = wave.scalar(scalar_offset);
    kernels_ = &lanes::kernels(wave);
    instruction_offset_ = static_cast<std::uint32_t>(instruction.offset);
    if (address.is_vector()) {
      unsigned next = address.index;
      if (instruction.idxen) index_ = wave.vgpr[next++];
      if (instruction.offen) offset_ = wave.vgpr[next];
    }
    const bool swizzle_enable = (words[1] >> 31) != 0;
    swizzle_ = swizzle_enable && stride_ != 0 && (index_ != nullptr || add_thread_id_);
  }

  // Where all lanes' accesses of `bytes` lie, if that is easily seen.
  struct Range {
    enum class Of : std::uint8_t {
      unknown,  // each lane has to be looked at
      inside,   // the buffer: every lane
      outside,  // every byte of every lane
    };
    Of of = Of::unknown;
    bool aligned = false;  // all of them to four bytes
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
  };
  Range all_lanes_of(unsigned bytes) const {
    if (add_thread_id_ || index_ != nullptr || offset_ == nullptr) return {};
    const lanes::Span span = kernels_->span_of(offset_);
    if (span.highest > ~instruction_offset_) return {};  // some sum wraps around
    const std::uint64_t range = bytes_left();
    if (std::uint64_t{span.lowest} + instruction_offset_ >= range) return {.of = Range::Of::outside};
    if (std::uint64_t{span.highest} + instruction_offset_ + bytes > range) return {};
    return {.of = Range::Of::inside,
            .aligned = ((span.bits | fixed()) & 3) == 0,
            .address = fixed() + span.lowest,
            .bytes = std::uint64_t{span.highest} - span.lowest + bytes};
  }
  // The address of a lane, once all_lanes_of has found all of them inside: `fixed` and its own offset.
  std::uint64_t plain_address(unsigned lane) const { return fixed() + offset_[lane]; }
  std::uint64_t fixed() const { return base_ + scalar_offset_ + instruction_offset_; }
  const std::uint32_t* offsets() const { return offset_; }

  struct Place {
    std::uint64_t address = 0;
    // Bytes from `address` on that are inside the buffer and contiguous.
    std::uint64_t available = 0;
  };
  // `extra`: the offset of a part of the lane's access.
  Place at(unsigned lane, unsigned extra = 0) const {
    const std::uint32_t lane_offset = offset_ == nullptr ? 0 : offset_[lane];
    const std::uint64_t offset = std::uint64_t{instruction_offset_ + lane_offset} + extra;
    std::uint64_t index = 0;
    if (index_ != nullptr) index = index_[lane];
    if (add_thread_id_) index += lane;
    if (swizzle_) return swizzled(index, offset);
    const std::uint64_t address = base_ + scalar_offset_ + offset + (index * stride_);
    if (add_thread_id_) return {address, everything};
    if (index_ != nullptr && stride_ != 0) return {address, index < records_ ? everything : 0};
    const std::uint64_t range = bytes_left();
    return {address, offset < range ? range - offset : 0};
  }

 private:
  static constexpr std::uint64_t everything = ~std::uint64_t{0};
  static constexpr std::uint64_t element_bytes = 4;

  std::uint64_t bytes_left() const { return records_ > scalar_offset_ ? std::uint64_t{records_} - scalar_offset_ : 0; }
  // Element by element: those of as many records as the index stride says stand together.
  Place swizzled(std::uint64_t index, std::uint64_t offset) const {
    const std::uint64_t group = ((index / index_stride_) * stride_) + (offset / element_bytes * element_bytes);
    const std::uint64_t inside = offset % element_bytes;
    const std::uint64_t buffer_offset = (group * index_stride_) + (index % index_stride_ * element_bytes) + inside;
    const bool exists = add_thread_id_ || (index < records_ && offset < stride_);
    return {base_ + scalar_offset_ + buffer_offset, exists ? element_bytes - inside : 0};
  }

  std::uint64_t base_ = 0;
  std::uint32_t stride_ = 0;
  std::uint32_t records_ = 0;
  std::uint32_t index_stride_ = 8;
  std::uint32_t scalar_offset_ = 0;
  std::uint32_t instruction_offset_ = 0;
  bool swizzle_ = false;
  bool add_thread_id_ = false;
  const std::uint32_t* index_ = nullptr;
  const std::uint32_t* offset_ = nullptr;
  const lanes::Kernels* kernels_ = nullptr;
};

}  // namespace wavejit::simgpu
