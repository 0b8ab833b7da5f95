// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writes the pages of predicted figures, one a row:
//
//   wavejit_predicted <page>                           prints it
//   wavejit_predicted <page> <word>…                   only calls whose target and words have all of these
//   wavejit_predicted <page> --check <file> [<word>…]  exit 1 when the file differs, or the rows of these calls
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <span>
#include <string_view>

#include "predicted_page.h"

namespace {

using wavejit::bench::PageRequest;

enum class Words : unsigned char { none, checked, printed, always, one };

struct Page {
  std::string_view name;
  std::string_view what;
  int (*write)(const PageRequest&);
  Words words;  // when it takes them
};

constexpr std::array pages = {
    Page{"shapes", "whole launches of forward shapes that others have published", wavejit::bench::predict_shapes,
         Words::checked},
    Page{"backward", "whole calls of gradients, beside what others published", wavejit::bench::predict_backward,
         Words::none},
    Page{"decode", "a few query rows over many keys", wavejit::bench::predict_decode, Words::checked},
    Page{"latent", "latent attention: walk and merge", wavejit::bench::predict_latent, Words::always},
    Page{"indexer", "the indexer of sparse attention", wavejit::bench::predict_indexer, Words::none},
    Page{"sparse", "lists of key blocks", wavejit::bench::predict_sparse, Words::none},
    Page{"low_precision", "caches, queries and integers of 8 bits beside bf16", wavejit::bench::predict_low_precision,
         Words::printed},
    Page{"rdna4", "gfx1201's kernels, and its clock beside hardware's traces", wavejit::bench::predict_rdna4,
         Words::none},
    Page{"rdna4-trace", "one trace (a file of tests/simgpu/clock/traces), and where it differs most",
         wavejit::bench::predict_rdna4_trace, Words::one},
    Page{"table", "the steady state of every kernel, a compute unit each", wavejit::bench::predict_table,
         Words::printed},
    Page{"ladders", "the steady state with every ladder, for people who tune", wavejit::bench::predict_ladders,
         Words::printed},
};

int usage() {
  fmt::print(stderr, "usage: wavejit_predicted <page> [--check <file>] [<word>…]\n");
  for (const Page& page : pages) fmt::print(stderr, "  {:<14} {}\n", page.name, page.what);
  return 2;
}

bool takes(const Page& page, const PageRequest& request) {
  switch (page.words) {
    case Words::none:
      return request.words.empty();
    case Words::checked:
      return request.words.empty() || request.file != nullptr;
    case Words::printed:
      return request.words.empty() || request.file == nullptr;
    case Words::always:
      return true;
    case Words::one:
      return request.words.size() == 1 && request.file == nullptr;
  }
  return false;
}

}  // namespace

int main(int count, char** values) {
  std::span<char* const> arguments = std::span(values, static_cast<std::size_t>(count)).subspan(1);
  if (arguments.empty()) return usage();
  for (const Page& page : pages) {
    if (page.name != arguments[0]) continue;
    PageRequest request = {.words = arguments.subspan(1)};
    if (request.words.size() >= 2 && std::string_view(request.words[0]) == "--check")
      request = {.file = request.words[1], .words = request.words.subspan(2)};
    return takes(page, request) ? page.write(request) : usage();
  }
  return usage();
}
