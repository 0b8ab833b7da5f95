// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pages.h"

namespace serving {

PagePool::PagePool(int pages) : owners_(static_cast<std::size_t>(pages), 0) {
  for (int page = 0; page < pages; ++page) free_.push_back(page);
}

std::optional<int> PagePool::take() {
  if (free_.empty()) return std::nullopt;
  const int page = free_.back();
  free_.pop_back();
  owners_[page] = 1;
  return page;
}

void PagePool::give_back(int page) {
  if (--owners_[page] > 0) return;
  for (auto entry = by_tokens_.begin(); entry != by_tokens_.end(); ++entry) {
    if (entry->second != page) continue;
    by_tokens_.erase(entry);
    break;
  }
  free_.push_back(page);
}

void PagePool::publish(int page, const std::vector<int>& tokens) { by_tokens_.emplace(tokens, page); }

std::optional<int> PagePool::share(const std::vector<int>& tokens) {
  const auto found = by_tokens_.find(tokens);
  if (found == by_tokens_.end()) return std::nullopt;
  ++owners_[found->second];
  return found->second;
}

}  // namespace serving
