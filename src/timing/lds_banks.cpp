// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "timing/lds_banks.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace wavejit::timing {
namespace {

// Accesses of 16 bytes that begin elsewhere than at a multiple of 16: AMD's traces of gfx950 show a cycle a lane for
// rows that are 4 bytes off; others measured 54 % less throughput for rows at multiples of 8.
int misaligned_extra(const LdsAccess& access, const std::array<std::uint32_t, 64>& addresses, std::uint64_t active,
                     int phases) {
  constexpr std::uint32_t whole = 16;
  constexpr std::uint32_t half = 8;
  if (access.bytes != static_cast<int>(whole)) return 0;
  std::uint32_t off = 0;
  for (std::uint64_t lanes = active; lanes != 0; lanes &= lanes - 1)
    off |= addresses[static_cast<std::size_t>(std::countr_zero(lanes))] % whole;
  if (off == 0) return 0;
  return off % half == 0 ? phases : std::popcount(active) - phases;
}

}  // namespace

BankUse bank_use(const LdsAccess& access, const std::array<std::uint32_t, 64>& addresses, std::uint64_t active) {
  constexpr std::uint32_t bank_bytes = 4;
  constexpr std::size_t most_words = std::size_t{64} * 5;  // 16 bytes that begin inside a word reach into a fifth
  BankUse use;
  for (const std::uint64_t phase : access.phases) {
    std::array<std::uint32_t, most_words> words;
    std::size_t count = 0;
    for (std::uint64_t lanes = phase & active; lanes != 0; lanes &= lanes - 1) {
      const std::uint32_t first = addresses[static_cast<std::size_t>(std::countr_zero(lanes))];
      const std::uint32_t last = first + static_cast<std::uint32_t>(access.bytes) - 1;
      for (std::uint32_t word = first / bank_bytes; word <= last / bank_bytes; ++word) words[count++] = word;
    }
    const auto end = words.begin() + static_cast<std::ptrdiff_t>(count);
    std::sort(words.begin(), end);
    std::array<int, 64> turns{};  // no target has more banks
    const auto unique_end = std::unique(words.begin(), end);
    for (auto word = words.begin(); word != unique_end; ++word)
      ++turns[*word % static_cast<std::uint32_t>(access.banks)];
    const int most = *std::ranges::max_element(turns);
    use.phases += most > 0 ? 1 : 0;
    use.extra += most > 1 ? most - 1 : 0;
  }
  use.extra = std::max(use.extra, misaligned_extra(access, addresses, active, use.phases));
  return use;
}

}  // namespace wavejit::timing
