// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pages of predicted figures: each is a function, and a row of predicted_pages.cpp.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

namespace wavejit::bench {

struct PageRequest {
  const char* file = nullptr;    // --check: the page that must be today's; null: print it
  std::span<char* const> words;  // only calls that have all of them

  // Whether a call is asked for: `line` has its target and its words.
  bool asks_for(std::string_view line) const {
    const std::string whole = fmt::format("{} ", line);
    return std::ranges::all_of(words, [&](const char* word) { return whole.contains(fmt::format("{} ", word)); });
  }
};

// Each returns the program's exit code.
int predict_shapes(const PageRequest& request);
int predict_backward(const PageRequest& request);
int predict_decode(const PageRequest& request);
int predict_latent(const PageRequest& request);
int predict_indexer(const PageRequest& request);
int predict_sparse(const PageRequest& request);
int predict_low_precision(const PageRequest& request);
int predict_rdna4(const PageRequest& request);
int predict_rdna4_trace(const PageRequest& request);
int predict_table(const PageRequest& request);
int predict_ladders(const PageRequest& request);

}  // namespace wavejit::bench
