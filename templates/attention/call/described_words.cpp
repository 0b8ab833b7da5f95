// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/call/described_words.h"

#include <algorithm>

namespace wavejit::attention {

families::Result<void> check_lengths(const std::string& key, const std::vector<std::int64_t>& lengths,
                                     std::int64_t batch, std::int64_t longest, bool exactly) {
  if (lengths.empty()) return {};
  if (std::ssize(lengths) != batch)
    return families::refuse_line(key + ": " + std::to_string(lengths.size()) + " lengths",
                                 std::to_string(batch) + ", one for each of b" + std::to_string(batch));
  const std::int64_t most = std::ranges::max(lengths);
  if (exactly ? most == longest : most <= longest) return {};
  return families::refuse_line(key + ": the longest is " + std::to_string(most),
                               (exactly ? "" : "up to ") + std::to_string(longest));
}

}  // namespace wavejit::attention
