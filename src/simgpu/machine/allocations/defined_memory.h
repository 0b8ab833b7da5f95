// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which bytes of a device allocation were ever written: a bit a byte, kept beside the allocation while the check
// `uninitialised` is on. Fresh device memory holds nothing; copies and fills of the host and stores of kernels define
// it.
#pragma once

#include <cstdint>

namespace wavejit::simgpu {

// Bits of an allocation of this many bytes, none set. Address space only, until it is touched. Null: no room.
std::uint8_t* make_defined_bits(std::uint64_t bytes);
void free_defined_bits(std::uint8_t* bits, std::uint64_t bytes);

// Whether every byte of the range holds something.
bool all_bytes_defined(const std::uint8_t* bits, std::uint64_t offset, std::uint64_t bytes);
// At most 16 bytes: bit i is set when byte `offset` + i holds nothing.
std::uint32_t undefined_bytes(const std::uint8_t* bits, std::uint64_t offset, std::uint32_t bytes);
// Any number of bytes. Workgroups on other threads may define neighbours at the same time.
void define_bytes(std::uint8_t* bits, std::uint64_t offset, std::uint64_t bytes);
// Copies what is known of one range to another.
void copy_defined(std::uint8_t* to, std::uint64_t to_offset, const std::uint8_t* from, std::uint64_t from_offset,
                  std::uint64_t bytes);

}  // namespace wavejit::simgpu
