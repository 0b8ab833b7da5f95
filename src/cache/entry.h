// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The bytes of one cache entry: one immutable file per code object. docs/cache-format.md tells the same for people who
// write tools in other languages.
//
//   entry    := fixed kernel{kernel_count} key_text target_id kernel_name{kernel_count} padding code_object checksum
//   fixed    := magic            8 bytes   89 'W' 'J' 'I' 'T' 0d 0a 1a: not text, and a transfer as text damages it
//               format_version   u32       entry_format_version
//               header_bytes     u32       of everything before code_object; a multiple of 64
//               payload_bytes    u64       of code_object
//               key_text_bytes   u32       1 … max_key_text_bytes
//               target_id_bytes  u32       1 … max_target_id_bytes
//               kernel_count     u32       1 … max_kernels
//               reserved         u32       0
//   kernel   := name_bytes u32  kernarg_bytes u32  lds_bytes u32  private_bytes u32
//               vgprs u32  agprs u32  sgprs u32  threads u32
//   key_text, kernel_name: UTF-8 without control characters, no terminator; target_id: see is_target_id
//   padding  := 0 bytes up to the next multiple of 64, so that the code object is aligned in the file
//   checksum := 16 bytes   XXH3-128 (seed 0) of all bytes before it, in XXH's canonical (big-endian) order
//
// Integers are little-endian. A file holds exactly one entry: header_bytes + payload_bytes + 16 is its size.
// A change of this grammar raises entry_format_version, which is also part of the path: older files are never misread,
// they are simply not looked at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wavejit::cache {

inline constexpr std::uint32_t entry_format_version = 1;
inline constexpr std::size_t max_entry_bytes = std::size_t{64} << 20;
inline constexpr std::size_t max_key_text_bytes = std::size_t{16} << 10;
inline constexpr std::size_t max_target_id_bytes = 128;  // also one component of a path
inline constexpr std::size_t max_kernel_name_bytes = 1024;
inline constexpr std::size_t max_kernels = 16;
inline constexpr std::size_t entry_fixed_bytes = 40;
inline constexpr std::size_t entry_kernel_bytes = 32;
inline constexpr std::size_t entry_alignment = 64;
inline constexpr std::size_t entry_checksum_bytes = 16;

// What the code object's own metadata says of one kernel, kept beside it so that a hit needs no ELF reader.
struct KernelFacts {
  std::string name;
  std::uint32_t kernarg_bytes = 0;
  std::uint32_t lds_bytes = 0;
  std::uint32_t private_bytes = 0;
  std::uint32_t vgprs = 0;
  std::uint32_t agprs = 0;
  std::uint32_t sgprs = 0;
  std::uint32_t threads = 0;  // per workgroup

  bool operator==(const KernelFacts&) const = default;
};

// An entry as its fields; the code object is a view of bytes that somebody else owns.
struct Entry {
  std::string key_text;
  std::string target_id;
  std::vector<KernelFacts> kernels;
  std::span<const std::byte> code_object;
};

// The file's bytes. The error names the field that the format cannot hold (empty or too long).
std::expected<std::vector<std::byte>, std::string> serialise(const Entry& entry);

// Reads an entry out of untrusted bytes: never reads outside `file`, never allocates more than `file` holds, checks
// every field and the checksum. The error is one line for people: what is wrong. code_object points into `file`.
std::expected<Entry, std::string> parse(std::span<const std::byte> file);

// Target ids are folder names: letters, digits and ":+-_.", not starting with '.', at most max_target_id_bytes.
bool is_target_id(std::string_view text);

}  // namespace wavejit::cache
