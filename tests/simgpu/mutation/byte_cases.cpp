// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "byte_cases.h"

#include <vector>

#include "byte_problems.h"

namespace wavejit::tests {

std::vector<CalledCase> byte_cases() {
  const auto caches = [](wavejit_dtype type) { return Problems([=] { return byte_caches(type); }); };
  const auto pages = [](wavejit_dtype type) { return Problems([=] { return byte_caches_in_pages(type); }); };
  const char* const forward_words = "attention_forward ";
  return {
      {"e4m3_paged_gfx950", "gfx950", {forward_words, " cache=e4m3 "}, pages(WAVEJIT_E4M3), true, "generic"},
      {"fnuz_paged_gfx942", "gfx942", {forward_words, " cache=e4m3_fnuz "}, pages(WAVEJIT_E4M3_FNUZ), true, "generic"},
      {"fnuz_interleaved_gfx942",
       "gfx942",
       {forward_words, " cache=e4m3_fnuz "},
       caches(WAVEJIT_E4M3_FNUZ),
       true,
       "interleaved"},
      {"byte_queries_gfx950", "gfx950", {forward_words, " queries=e4m3 "}, byte_queries, true, "dualwave"},
      {"i8_queries_gfx942", "gfx942", {forward_words, " qk=i8 "}, integer_queries, true, "generic tile_queries=64"},
      {"indexer_e4m3_gfx950",
       "gfx950@1x1",
       {"sparse_scores "},
       [] { return byte_scores(WAVEJIT_E4M3); },
       true,
       "auto tile_queries=1"},
  };
}

}  // namespace wavejit::tests
