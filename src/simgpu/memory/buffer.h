// Addresses and bounds of buffer instructions (CDNA3 ISA, chapter 9.1: "Buffer addressing", "Range checking").
#pragma once

#include <algorithm>

#include "simgpu/memory/access.h"
#include "simgpu/memory/lane_kernels.h"

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
    swizzle_ = (words[1] >> 31) != 0 && stride_ != 0;
    records_ = words[2];
    index_stride_ = 8u << ((words[3] >> 21) & 3);
    add_thread_id_ = ((words[3] >> 23) & 1) != 0;
    if (add_thread_id_) stride_ |= ((words[3] >> 15) & 0xf) << 14;
    element_size_ = 2u << ((words[3] >> 19) & 3);
    scalar_offset_ = wave.scalar(scalar_offset);
    instruction_offset_ = static_cast<std::uint32_t>(instruction.offset);
    if (address.is_vector()) {
      unsigned next = address.index;
      if (instruction.idxen) index_ = wave.vgpr[next++];
      if (instruction.offen) offset_ = wave.vgpr[next];
    }
  }

  // Where all 64 lanes' accesses of `bytes` lie, if that is easily seen.
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
    if (swizzle_ || add_thread_id_ || index_ != nullptr || offset_ == nullptr) return {};
    const lanes::Span span = lanes::kernels().span_of(offset_);
    const std::uint64_t range = records_ > scalar_offset_ ? std::uint64_t{records_} - scalar_offset_ : 0;
    if (std::uint64_t{span.lowest} + instruction_offset_ >= range) return {.of = Range::Of::outside};
    if (std::uint64_t{span.highest} + instruction_offset_ + bytes > range) return {};
    return {.of = Range::Of::inside,
            .aligned = ((span.bits | fixed()) & 3) == 0,
            .address = fixed() + span.lowest,
            .bytes = std::uint64_t{span.highest} - span.lowest + bytes};
  }
  // Of a lane, once all_lanes_of has found all of them inside: `fixed` and its own offset.
  std::uint64_t plain_address(unsigned lane) const { return fixed() + offset_[lane]; }
  std::uint64_t fixed() const { return base_ + scalar_offset_ + instruction_offset_; }
  const std::uint32_t* offsets() const { return offset_; }

  struct Place {
    std::uint64_t address = 0;
    // Bytes from `address` on that are inside the buffer and contiguous.
    std::uint64_t available = 0;
  };
  Place at(unsigned lane, unsigned extra = 0) const {
    std::uint64_t offset = std::uint64_t{instruction_offset_} + extra;
    if (offset_ != nullptr) offset += offset_[lane];
    std::uint64_t index = 0;
    if (index_ != nullptr) index = index_[lane];
    if (add_thread_id_) index += lane;
    if (!swizzle_) {
      const std::uint64_t buffer_offset = offset + (index * stride_);
      const std::uint64_t range = records_ > scalar_offset_ ? std::uint64_t{records_} - scalar_offset_ : 0;
      // gfx9: with a stride and an index register NUM_RECORDS counts records and the index alone is checked; otherwise
      // it counts bytes.
      if (stride_ != 0 && index_ != nullptr) {
        return {base_ + scalar_offset_ + buffer_offset, index < records_ ? ~std::uint64_t{0} : 0};
      }
      return {base_ + scalar_offset_ + buffer_offset, buffer_offset < range ? range - buffer_offset : 0};
    }
    const std::uint64_t index_high = index / index_stride_;
    const std::uint64_t index_low = index % index_stride_;
    const std::uint64_t offset_high = offset / element_size_;
    const std::uint64_t offset_low = offset % element_size_;
    const std::uint64_t buffer_offset = (((index_high * stride_) + (offset_high * element_size_)) * index_stride_) +
                                        (index_low * element_size_) + offset_low;
    const bool inside = index < records_ && offset < stride_;
    return {base_ + scalar_offset_ + buffer_offset, inside ? element_size_ - offset_low : 0};
  }

 private:
  std::uint64_t base_ = 0;
  std::uint32_t stride_ = 0;
  std::uint32_t records_ = 0;
  std::uint32_t index_stride_ = 8;
  std::uint32_t element_size_ = 4;
  std::uint32_t scalar_offset_ = 0;
  std::uint32_t instruction_offset_ = 0;
  bool swizzle_ = false;
  bool add_thread_id_ = false;
  const std::uint32_t* index_ = nullptr;
  const std::uint32_t* offset_ = nullptr;
};

}  // namespace wavejit::simgpu
