// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The call of attention_latent: what is refused, by which field, and with what would do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "attention_latent/latent_run.h"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;

struct Refused {
  const char* words;
  void (*change)(wavejit_attention_latent_arguments& call);
  wavejit_status status;
  const char* detail;  // a part of it
};

constexpr const char* plain = "bf16 b1 q1 k70 h16 d576/512 lse";
constexpr const char* paged = "bf16 b1 q1 k70 h16 d576/512 layout=paged:16 apart";

const Refused refusals[] = {
    {plain, [](auto& call) { call.modifiers.scale = 0; }, WAVEJIT_INVALID_ARGUMENT, "scale = 0; accepted: the model's"},
    {plain, [](auto& call) { call.q.sizes[3] = call.q.strides[2] = 584; }, WAVEJIT_UNSUPPORTED,
     "q.sizes[3] (with q_rope.sizes[3]) = 584 with o.sizes[3] = 512; accepted: 576 with o.sizes[3] = 512"},
    {plain, [](auto& call) { call.q.data = nullptr; }, WAVEJIT_INVALID_ARGUMENT, "q.data"},
    {plain, [](auto& call) { call.k.data = nullptr; }, WAVEJIT_INVALID_ARGUMENT, "k.data"},
    {plain, [](auto& call) { call.o.data = nullptr; }, WAVEJIT_INVALID_ARGUMENT, "o.data"},
    {plain, [](auto& call) { call.lse.sizes[2] = 2; }, WAVEJIT_INVALID_ARGUMENT, "lse.sizes[2]"},
    {plain, [](auto& call) { call.o.sizes[3] = 256; }, WAVEJIT_UNSUPPORTED, "576 with o.sizes[3] = 256"},
    {plain, [](auto& call) { call.k.sizes[3] = 512; }, WAVEJIT_INVALID_ARGUMENT,
     "k.sizes[3] (head dim) = 512; accepted: 576 columns"},
    {plain, [](auto& call) { call.k.sizes[2] = 2; }, WAVEJIT_INVALID_ARGUMENT, "k.sizes[2] (heads) = 2; accepted: 1"},
    {plain, [](auto& call) { call.q.sizes[2] = call.o.sizes[2] = call.lse.sizes[1] = 129; }, WAVEJIT_UNSUPPORTED,
     "q.sizes[2] (heads) = 129; accepted: 1 to 128"},
    {plain, [](auto& call) { call.k.dtype = WAVEJIT_FP16; }, WAVEJIT_INVALID_ARGUMENT, "k.dtype"},
    {plain, [](auto& call) { call.mask.bits = WAVEJIT_MASK_WINDOW; }, WAVEJIT_UNSUPPORTED, "mask = 2"},
    {plain, [](auto& call) { call.split.splits = -1; }, WAVEJIT_INVALID_ARGUMENT, "splits = -1"},
    {plain, [](auto& call) { call.modifiers.softcap = -1; }, WAVEJIT_INVALID_ARGUMENT, "softcap"},
    {plain, [](auto& call) { call.o.data = call.k.data; }, WAVEJIT_INVALID_ARGUMENT, "o.data"},
    {paged,
     [](auto& call) {
       call.k.sizes[1] = 20;
       call.k_rope.sizes[1] = 20;
     },
     WAVEJIT_INVALID_ARGUMENT, "k.sizes[1] (page size) = 20"},
    {paged, [](auto& call) { call.k_rope.sizes[1] = 64; }, WAVEJIT_INVALID_ARGUMENT,
     "k_rope.sizes[1] = 64; accepted: 16 (k.sizes[1])"},
    {paged, [](auto& call) { call.sequences.key_lengths = nullptr; }, WAVEJIT_INVALID_ARGUMENT, "key_lengths = null"},
    {paged,
     [](auto& call) {
       call.q.sizes[3] = 448;
       call.q_rope.sizes[3] = 128;
     },
     WAVEJIT_INVALID_ARGUMENT, "q.sizes[3] (head dim) = 448; accepted: 512 (o.sizes[3]) beside q_rope"},
};

TEST(LatentInterface, RefusesByField) {
  Engine engine{"gfx950"};
  for (const Refused& refused : refusals) {
    const LatentArrays arrays = latent_arrays(refused.words);
    const LatentOutput output = run_latent(engine.get(), arrays, refused.change);
    EXPECT_EQ(output.status, refused.status) << refused.detail << ": " << output.detail;
    EXPECT_THAT(output.detail, HasSubstr(refused.detail));
  }
}

TEST(LatentInterface, DescribesACall) {
  Engine engine{"gfx950"};
  for (const std::string words :
       {"bf16 b2 q3 k150 h12 d576/512 causal lse apart layout=paged:64 q_lengths=1,3", "fp16 b1 q1 k2000 h16 d512"}) {
    const LatentArrays arrays = latent_arrays(words);
    std::string line;
    run_latent(engine.get(), arrays, [&](wavejit_attention_latent_arguments& call) {
      const auto keep = [](void* context, const char* text) { *static_cast<std::string*>(context) = text; };
      EXPECT_EQ(wavejit_call_describe(engine.get(), &call.head, keep, &line), WAVEJIT_OK);
      EXPECT_EQ(wavejit_call_supported(engine.get(), &call.head), WAVEJIT_OK);
      call.split.splits = -1;  // not launched
    });
    EXPECT_THAT(line, HasSubstr(words.substr(0, words.find(" q_lengths"))));
    EXPECT_EQ(wavejit_describe(line.c_str(), [](void*, const char*) {}, nullptr), WAVEJIT_OK) << line;
  }
}

TEST(LatentInterface, NamesWordsOfCachesThatAreNotKnown) {
  for (const char* word : {"cache=fp8", "cache_scales=h"}) {
    const std::string line = "attention_latent bf16 b1 q1 k70 h16 d576/512 " + std::string(word);
    EXPECT_EQ(wavejit_describe(line.c_str(), [](void*, const char*) {}, nullptr), WAVEJIT_INVALID_ARGUMENT);
    EXPECT_THAT(wavejit_last_detail(), HasSubstr(word));
  }
}

}  // namespace
}  // namespace wavejit::tests
