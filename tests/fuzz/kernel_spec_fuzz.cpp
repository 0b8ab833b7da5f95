// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Key texts: kernel specs, which print back to a text that means the same; digests; and what lock files say.
#include <cstdint>
#include <string>
#include <string_view>

#include "cache/digest.h"
#include "cache/lock.h"
#include "forge.h"
#include "templates/attention_backward/kernel/spec.h"
#include "templates/attention_forward/kernel/spec.h"
#include "templates/attention_latent/kernel/spec.h"
#include "templates/attention_merge/kernel/spec.h"
#include "templates/cache_append/kernel/spec.h"
#include "templates/softmax_lse/kernel/spec.h"
#include "templates/sparse_indexer/kernel/spec.h"

namespace {

using wavejit::fuzz::require;

template <typename Spec>
void check(const Spec& spec, Spec (*parse)(std::string_view)) {
  if (!spec) return;
  const std::string canonical = to_text(*spec);
  const auto again = parse(canonical);
  require(again.has_value() && to_text(*again) == canonical);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check(wavejit::attention_forward::parse_spec(text), wavejit::attention_forward::parse_spec);
  check(wavejit::attention_backward::parse_query_kernel(text), wavejit::attention_backward::parse_query_kernel);
  check(wavejit::attention_backward::parse_key_kernel(text), wavejit::attention_backward::parse_key_kernel);
  check(wavejit::attention_backward::parse_sink_kernel(text), wavejit::attention_backward::parse_sink_kernel);
  check(wavejit::attention_backward::parse_bias_kernel(text), wavejit::attention_backward::parse_bias_kernel);
  check(wavejit::attention_latent::parse_walk_kernel(text), wavejit::attention_latent::parse_walk_kernel);
  check(wavejit::attention_latent::parse_combine_kernel(text), wavejit::attention_latent::parse_combine_kernel);
  check(wavejit::families::parse_kernel<wavejit::attention_merge::AskedWords>(text),
        wavejit::families::parse_kernel<wavejit::attention_merge::AskedWords>);
  check(wavejit::families::parse_kernel<wavejit::cache_append::AskedWords>(text),
        wavejit::families::parse_kernel<wavejit::cache_append::AskedWords>);
  check(wavejit::families::parse_kernel<wavejit::softmax_lse::AskedWords>(text),
        wavejit::families::parse_kernel<wavejit::softmax_lse::AskedWords>);
  check(wavejit::sparse_indexer::parse_scores(text), wavejit::sparse_indexer::parse_scores);
  check(wavejit::sparse_indexer::parse_select(text), wavejit::sparse_indexer::parse_select);
  if (const auto digest = wavejit::cache::parse_digest(text)) require(digest->hex() == text);
  const std::string holder = wavejit::cache::holder_text(text);
  require(!holder.empty() && holder.find('\n') == std::string::npos);
  return 0;
}
