// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The owners of each page of the KV cache. A page may have several owners: requests whose prompts begin alike share
// the pages of what they have in common.
#pragma once

#include <map>
#include <optional>
#include <vector>

namespace serving {

constexpr int page_size = 16;  // keys of a page

constexpr int pages_of(int tokens) { return (tokens + page_size - 1) / page_size; }

class PagePool {
 public:
  explicit PagePool(int pages);

  // A page of one owner; nothing when none is free.
  std::optional<int> take();
  // One owner fewer; without any it is free, and what was in it is forgotten.
  void give_back(int page);

  // The page is full of computed keys, and `tokens` are all of the sequence up to its end: others may have it, too.
  void publish(int page, const std::vector<int>& tokens);
  // The page whose end these tokens are, with one owner more.
  std::optional<int> share(const std::vector<int>& tokens);

 private:
  std::vector<int> owners_;  // of each page
  std::vector<int> free_;
  std::map<std::vector<int>, int> by_tokens_;
};

}  // namespace serving
