// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "forward_problems.h"

#include <algorithm>
#include <cstddef>

namespace wavejit::tests {

void append(std::vector<std::uint32_t>& bits, const std::vector<std::uint32_t>& more) {
  bits.insert(bits.end(), more.begin(), more.end());
}

CallProblem forward(const AttentionCase& which, bool lies) {
  return {[which, lies](wavejit_engine* engine, bool judges) {
    const AttentionOutput output = run_attention(engine, which);
    CallResult result = result_of(output);
    result.bits.assign(output.o.begin(), output.o.end());
    append(result.bits, bits_of(output.lse));
    if (judges && !lies && output.status == WAVEJIT_OK)
      result.wrong = compare_rows(which, attention_reference(which.inputs), output).wrong();
    return result;
  }};
}

// Keys grow every three tiles, so that maxima rise and sums are rescaled in the middle of the walk.
void grow(AttentionCase& which) {
  AttentionInputs& in = which.inputs;
  const std::size_t row = std::size_t(in.kv_heads) * in.head_dim;
  for (std::size_t i = 0; i < in.k.size(); ++i) {
    const int key = static_cast<int>(i / row) % in.key_length;
    const int step = key / 192;
    const float grown = in.k[i] * (1.0F + (2 * static_cast<float>(step)));
    in.k[i] = from_storage(which.storage, to_storage(which.storage, grown));
  }
}

// Packed queries of these lengths, and this many keys of each sequence; two query heads a kv head.
AttentionCase sequences(const std::vector<std::int32_t>& queries, const std::vector<std::int32_t>& keys,
                        std::uint64_t seed, int heads) {
  AttentionCase which = make_case(Storage::bf16, static_cast<int>(keys.size()), 1, std::ranges::max(keys), heads,
                                  heads / 2, 64, true, seed);
  grow(which);
  AttentionInputs& in = which.inputs;
  in.key_lengths = keys;
  in.query_starts = {0};
  for (const std::int32_t length : queries) in.query_starts.push_back(in.query_starts.back() + length);
  in.query_length = std::ranges::max(queries);
  in.q = normal_values(which.storage, std::size_t(in.query_rows()) * in.query_heads * in.head_dim, 1.0, seed + 77);
  return which;
}

AttentionCase in_storage(AttentionCase which, Storage storage) {
  which.storage = storage;
  AttentionInputs& in = which.inputs;
  for (std::vector<float>* numbers : {&in.q, &in.k, &in.v})
    for (float& number : *numbers) number = from_storage(storage, to_storage(storage, number));
  return which;
}
AttentionCase in_pages(AttentionCase which, const Pages& pages) {
  which.pages = pages;
  return which;
}
AttentionCase in_window(AttentionCase which, int left, int right) {
  which.inputs.causal = false;
  which.inputs.window = true;
  which.inputs.window_left = left;
  which.inputs.window_right = right;
  return which;
}
AttentionCase without_scale(AttentionCase which) {
  which.inputs.scale = 0;
  return which;
}
AttentionCase with_sink(AttentionCase which) {
  add_sink(which, 0.5);
  return which;
}
// `queries` dense rows a sequence behind so much padding.
AttentionCase padded(int queries, const std::vector<std::int32_t>& keys, const std::vector<std::int32_t>& firsts,
                     std::uint64_t seed, int heads) {
  AttentionCase which = make_case(Storage::bf16, static_cast<int>(keys.size()), queries, std::ranges::max(keys), heads,
                                  heads / 2, 64, true, seed);
  grow(which);
  which.inputs.key_lengths = keys;
  which.first_keys = firsts;
  return which;
}

std::vector<ForwardProblem> keys_in_pages(const Pages& plain, const Pages& list) {
  std::vector<ForwardProblem> all = {
      {in_pages(sequences({40, 3, 0, 140}, {70, 1, 20, 300}, 1), plain)},
      {in_pages(with_sink(sequences({35, 40}, {33, 0}, 2)), list)},
      {in_pages(sequences({7, 33}, {3, 0}, 8), list)},
      {in_pages(without_scale(sequences({33}, {33}, 7, 2)), plain)},
      {in_pages(sequences({126}, {126}, 5, 2), plain)},
      {in_pages(sequences({40}, {1029}, 6, 2), list)},
      {in_pages(sequences({36}, {2150}, 3, 2), plain)},
  };
  // Entries that are no page are cut to the cache.
  for (const std::int32_t lie : {-1, 2147483647}) {
    Pages lies = lie > 0 ? list : plain;
    lies.every_entry = lie;
    all.push_back({in_pages(sequences({40, 36}, {200, 330}, 4, 2), lies), true});
  }
  return all;
}

}  // namespace wavejit::tests
