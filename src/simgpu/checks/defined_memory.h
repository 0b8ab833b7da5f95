#pragma once
// Which bytes of a device allocation were ever written: a bit a byte, kept beside the allocation while the check
// `uninitialised` is on. Fresh device memory holds nothing; copies and fills of the host and stores of kernels define
// it.

#include <cstdint>

namespace wavejit::simgpu {

/// Bits of an allocation of so many bytes, none set. Address space only, until it is touched. Null: no room.
uint8_t* make_defined_bits(uint64_t bytes);
void free_defined_bits(uint8_t* bits, uint64_t bytes);

/// Whether every byte of the range holds something.
[[nodiscard]] bool all_bytes_defined(const uint8_t* bits, uint64_t offset, uint64_t bytes);
/// At most 16 bytes: bit i is set when byte `offset` + i holds nothing.
[[nodiscard]] uint32_t undefined_bytes(const uint8_t* bits, uint64_t offset, uint32_t bytes);
/// Any number of bytes. Workgroups on other threads may define neighbours at the same time.
void define_bytes(uint8_t* bits, uint64_t offset, uint64_t bytes);
/// Copies what is known of one range to another.
void copy_defined(uint8_t* to, uint64_t to_offset, const uint8_t* from, uint64_t from_offset, uint64_t bytes);

}  // namespace wavejit::simgpu
