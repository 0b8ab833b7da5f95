// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "byte_cases.h"

#include <string>
#include <utility>
#include <vector>

#include "byte_problems.h"

namespace wavejit::tests {

std::vector<CalledCase> byte_cases() {
  std::vector<CalledCase> all;
  const auto add = [&](const char* name, const char* target, std::vector<std::string> words, Problems problems,
                       const char* pipeline = "generic tile_queries=64") {
    all.push_back({name, target, std::move(words), std::move(problems), true, pipeline});
  };
  const auto caches = [](wavejit_dtype type, ByteScales scales, int head_dim) {
    return Problems([=] { return byte_caches(type, scales, head_dim); });
  };
  const auto pages = [](wavejit_dtype type, ByteScales scales) {
    return Problems([=] { return byte_caches_in_pages(type, scales); });
  };
  const auto latent = [](const char* dims, const char* format) {
    return Problems([=] { return latent_bytes(dims, format); });
  };
  const auto few_latent = [](const char* dims, const char* format) {
    return Problems([=] { return few_latent_bytes(dims, format); });
  };
  const std::string forward_words = "attention_forward ";
  constexpr ByteScales heads = ByteScales::heads;
  constexpr ByteScales tokens = ByteScales::tokens;
  const auto few = [](wavejit_dtype type, ByteScales scales) {
    return Problems([=] { return few_byte_caches(type, scales); });
  };
  add("e4m3_dense_gfx950", "gfx950", {forward_words, " cache=e4m3 "}, few(WAVEJIT_E4M3, heads));
  add("e5m2_dense_gfx950", "gfx950", {forward_words, " cache=e5m2 "}, few(WAVEJIT_E5M2, heads));
  add("i8_dense_gfx950", "gfx950", {forward_words, " cache=i8 "}, few(WAVEJIT_INT8, heads));
  add("fnuz_dense_gfx942", "gfx942", {forward_words, " cache=e4m3_fnuz "}, few(WAVEJIT_E4M3_FNUZ, heads));
  add("e5m2_fnuz_dense_gfx942", "gfx942", {forward_words, " cache=e5m2_fnuz "}, few(WAVEJIT_E5M2_FNUZ, heads));
  add("i8_dualwave_tokens_gfx950", "gfx950", {forward_words, " cache=i8 "}, few(WAVEJIT_INT8, tokens), "dualwave");
  add("fnuz_interleaved_tokens_gfx942", "gfx942", {forward_words, " cache=e4m3_fnuz "}, few(WAVEJIT_E4M3_FNUZ, tokens),
      "interleaved");
  add("e4m3_dualwave_gfx950", "gfx950", {forward_words, " cache=e4m3 "}, few(WAVEJIT_E4M3, heads), "dualwave");
  add("e4m3_dualwave_tokens_gfx950", "gfx950", {forward_words, " cache=e4m3 "}, few(WAVEJIT_E4M3, tokens), "dualwave");
  add("byte_queries_generic_gfx950", "gfx950", {forward_words, " queries=e4m3 "}, few_byte_queries);
  add("e4m3_paged_gfx950", "gfx950", {forward_words, " cache=e4m3 "}, pages(WAVEJIT_E4M3, heads), "generic");
  add("e4m3_paged_tokens_gfx950", "gfx950", {forward_words, " cache=e4m3 "}, pages(WAVEJIT_E4M3, tokens));
  add("fnuz_interleaved_gfx942", "gfx942", {forward_words, " cache=e4m3_fnuz "}, caches(WAVEJIT_E4M3_FNUZ, heads, 128),
      "interleaved");
  add("fnuz_paged_gfx942", "gfx942", {forward_words, " cache=e4m3_fnuz "}, pages(WAVEJIT_E4M3_FNUZ, heads), "generic");
  add("i8_cache_paged_gfx942", "gfx942", {forward_words, " cache=i8 "}, pages(WAVEJIT_INT8, heads), "generic");
  add("i8_cache_tokens_gfx942", "gfx942", {forward_words, " cache=i8 "}, caches(WAVEJIT_INT8, tokens, 64));
  add("byte_queries_gfx950", "gfx950", {forward_words, " queries=e4m3 "}, byte_queries, "dualwave");
  add("i8_queries_gfx950", "gfx950", {forward_words, " qk=i8 "}, integer_queries);
  add("i8_queries_gfx942", "gfx942", {forward_words, " qk=i8 "}, integer_queries);
  add("latent_e4m3_gfx950", "gfx950", {"attention_latent ", " cache="}, latent("d576/512", "cache=e4m3 cache_scales=1"),
      "auto");
  add("latent_e4m3_gfx942", "gfx942", {"attention_latent ", " cache="},
      few_latent("d576/512", "cache=e4m3_fnuz cache_scales=1"), "auto");
  add("latent_656_gfx942", "gfx942", {"attention_latent ", " cache="},
      few_latent("d576/512", "cache=e4m3_fnuz row_scales=128"), "auto");
  add("latent_584_gfx950", "gfx950", {"attention_latent ", " cache="}, few_latent("d512", "cache=e4m3 row_scales=64"),
      "auto");
  add("latent_656_gfx950", "gfx950", {"attention_latent ", " cache="}, latent("d576/512", "cache=e4m3 row_scales=128"),
      "auto");
  add("latent_584_gfx942", "gfx942", {"attention_latent ", " cache="}, latent("d512", "cache=e4m3_fnuz row_scales=64"),
      "auto");
  add(
      "indexer_e4m3_gfx950", "gfx950@1x1", {"sparse_scores "}, [] { return byte_scores(WAVEJIT_E4M3); },
      "auto tile_queries=1");
  add(
      "indexer_fnuz_paged_gfx942", "gfx942@1x1", {"sparse_scores ", " paged "},
      [] { return byte_scores_in_pages(WAVEJIT_E4M3_FNUZ); }, "auto tile_queries=1");
  return all;
}

}  // namespace wavejit::tests
