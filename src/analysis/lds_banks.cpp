#include "analysis/lds_banks.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace wavejit::analysis {

BankUse bank_use(const timing::LdsAccess& access, const std::array<std::uint32_t, 64>& addresses,
                 std::uint64_t active) {
  constexpr std::uint32_t bank_bytes = 4;
  BankUse use;
  for (const std::uint64_t phase : access.phases) {
    std::vector<std::vector<std::uint32_t>> wanted(static_cast<std::size_t>(access.banks));  // 4-byte words per bank
    for (std::uint64_t lanes = phase & active; lanes != 0; lanes &= lanes - 1) {
      const std::uint32_t first = addresses[static_cast<std::size_t>(std::countr_zero(lanes))];
      const std::uint32_t last = first + static_cast<std::uint32_t>(access.bytes) - 1;
      for (std::uint32_t word = first / bank_bytes; word <= last / bank_bytes; ++word) {
        std::vector<std::uint32_t>& bank = wanted[word % wanted.size()];
        if (std::ranges::find(bank, word) == bank.end()) bank.push_back(word);
      }
    }
    const std::size_t turns = std::ranges::max(wanted, {}, &std::vector<std::uint32_t>::size).size();
    use.phases += turns > 0 ? 1 : 0;
    use.extra += turns > 1 ? static_cast<int>(turns) - 1 : 0;
  }
  return use;
}

}  // namespace wavejit::analysis
