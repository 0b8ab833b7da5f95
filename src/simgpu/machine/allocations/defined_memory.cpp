// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/allocations/defined_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace wavejit::simgpu {
namespace {

std::uint64_t size_of(std::uint64_t bytes) { return (bytes / 8) + 16; }

std::uint8_t load(const std::uint8_t* at) { return __atomic_load_n(at, __ATOMIC_RELAXED); }

void set_bits(std::uint8_t* at, std::uint8_t mask) {
  if ((load(at) & mask) != mask) __atomic_fetch_or(at, mask, __ATOMIC_RELAXED);
}

// 64 of them at once: the bits begin at a page, and what is behind their last byte belongs to them.
constexpr unsigned word_bits = 64;

// Calls `body(bit, mask)` for the words of a range: the first byte of each, and the bits that are of the range.
template <typename Body>
void in_words(std::uint64_t offset, std::uint64_t bytes, Body&& body) {
  const std::uint64_t end = offset + bytes;
  while (offset < end) {
    const std::uint64_t first = offset % word_bits;
    const std::uint64_t count = std::min<std::uint64_t>(word_bits - first, end - offset);
    body(offset, (~std::uint64_t{0} >> (word_bits - count)) << first);
    offset += count;
  }
}

}  // namespace

std::uint8_t* make_defined_bits(std::uint64_t bytes) {
  void* bits =
      mmap(nullptr, size_of(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return bits == MAP_FAILED ? nullptr : static_cast<std::uint8_t*>(bits);
}

void free_defined_bits(std::uint8_t* bits, std::uint64_t bytes) {
  if (bits != nullptr) munmap(bits, size_of(bytes));
}

std::uint32_t undefined_bytes(const std::uint8_t* bits, std::uint64_t offset, std::uint32_t bytes) {
  const std::uint8_t* at = bits + (offset / 8);
  const std::uint32_t window = load(at) | (std::uint32_t{load(at + 1)} << 8) | (std::uint32_t{load(at + 2)} << 16);
  return ~(window >> (offset % 8)) & ((1u << bytes) - 1);
}

bool all_bytes_defined(const std::uint8_t* bits, std::uint64_t offset, std::uint64_t bytes) {
  std::uint64_t missing = 0;
  in_words(offset, bytes, [&](std::uint64_t at, std::uint64_t mask) {
    missing |=
        mask & ~__atomic_load_n(reinterpret_cast<const std::uint64_t*>(bits) + (at / word_bits), __ATOMIC_RELAXED);
  });
  return missing == 0;
}

void define_bytes(std::uint8_t* bits, std::uint64_t offset, std::uint64_t bytes) {
  in_words(offset, bytes, [&](std::uint64_t at, std::uint64_t mask) {
    std::uint64_t* word = reinterpret_cast<std::uint64_t*>(bits) + (at / word_bits);
    if ((__atomic_load_n(word, __ATOMIC_RELAXED) & mask) != mask) __atomic_fetch_or(word, mask, __ATOMIC_RELAXED);
  });
}

void copy_defined(std::uint8_t* to, std::uint64_t to_offset, const std::uint8_t* from, std::uint64_t from_offset,
                  std::uint64_t bytes) {
  for (std::uint64_t i = 0; i < bytes; ++i) {
    const std::uint64_t source = from_offset + i;
    const std::uint64_t target = to_offset + i;
    const auto bit = static_cast<std::uint8_t>(1u << (target % 8));
    if (((load(from + (source / 8)) >> (source % 8)) & 1) != 0) {
      set_bits(to + (target / 8), bit);
    } else {
      __atomic_fetch_and(to + (target / 8), static_cast<std::uint8_t>(~bit), __ATOMIC_RELAXED);
    }
  }
}

}  // namespace wavejit::simgpu
