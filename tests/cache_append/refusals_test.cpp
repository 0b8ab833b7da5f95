// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every field of a call of cache_append that cannot be right is refused by its name; nothing is launched.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "templates/cache_append/call/descriptor.h"
#include "wavejit/wavejit.h"

namespace wavejit::cache_append {
namespace {

using ::testing::HasSubstr;

// Addresses of nothing: a check never looks there.
void* memory(std::uintptr_t at) { return reinterpret_cast<void*>(at << 32U); }  // NOLINT(performance-no-int-to-ptr)

wavejit_cache_append_arguments good() {
  wavejit_cache_append_arguments call{};
  call.head.size = sizeof call;
  call.head.family = WAVEJIT_CACHE_APPEND;
  call.k = wavejit_dense_tensor(memory(1), WAVEJIT_BF16, 1, 100, 8, 128);
  call.v = wavejit_dense_tensor(memory(2), WAVEJIT_BF16, 1, 100, 8, 64);
  call.k_cache = wavejit_dense_tensor(memory(3), WAVEJIT_BF16, 50, 16, 8, 128);
  call.v_cache = wavejit_dense_tensor(memory(4), WAVEJIT_BF16, 50, 16, 8, 64);
  call.q = wavejit_dense_tensor(memory(5), WAVEJIT_BF16, 1, 100, 32, 128);
  call.q_out = wavejit_dense_tensor(memory(6), WAVEJIT_BF16, 1, 100, 32, 128);
  call.cos = wavejit_dense_tensor(memory(7), WAVEJIT_FP32, 1, 4096, 1, 32);
  call.sin = wavejit_dense_tensor(memory(8), WAVEJIT_FP32, 1, 4096, 1, 32);
  call.slots = memory(9);
  call.positions = memory(10);
  call.rotary = WAVEJIT_ROTARY_HALVES;
  call.rotary_dim = 64;
  return call;
}

TEST(CacheAppendRefusals, NamesTheField) {
  ASSERT_TRUE(check(nullptr).error().detail.contains("arguments = null"));
  const auto call = good();
  ASSERT_TRUE(check(&call).has_value()) << check(&call).error().detail;
  using Call = wavejit_cache_append_arguments;
  const std::vector<std::pair<std::string, std::function<void(Call&)>>> wrong = {
      {"k.dtype", [](Call& c) { c.k.dtype = WAVEJIT_FP32; }},
      {"v.dtype", [](Call& c) { c.v.dtype = WAVEJIT_FP16; }},
      {"k.data", [](Call& c) { c.k.data = nullptr; }},
      {"k.sizes[3]", [](Call& c) { c.k.sizes[3] = 100; }},
      {"k.sizes[3]", [](Call& c) { c.k.sizes[3] = 520; }},
      {"k.strides[1]", [](Call& c) { c.k.strides[1] = 0; }},
      {"v.sizes[1]", [](Call& c) { c.v.sizes[1] = 99; }},
      {"v.sizes[2]", [](Call& c) { c.v.sizes[2] = 4; }},
      {"k_cache.dtype", [](Call& c) { c.k_cache.dtype = WAVEJIT_FP32; }},
      {"v_cache.dtype", [](Call& c) { c.k_cache.dtype = WAVEJIT_E4M3; }},
      {"token_scales", [](Call& c) { c.scales.token_scales = 1; }},
      {"k_scale.data", [](Call& c) { c.scales.k_scale = wavejit_dense_tensor(memory(11), WAVEJIT_FP32, 1, 1, 8, 1); }},
      {"k_cache.sizes[2]", [](Call& c) { c.k_cache.sizes[2] = 4; }},
      {"k_cache.sizes[1]", [](Call& c) { c.k_cache.sizes[0] = std::int64_t{1} << 28; }},
      {"k_cache", [](Call& c) { c.k_cache.strides[1] = 8; }},
      {"v_cache.sizes[0]", [](Call& c) { c.v_cache.sizes[0] = 49; }},
      {"v_cache.data", [](Call& c) { c.v.data = nullptr; }},
      {"q_out.data", [](Call& c) { c.q.data = nullptr; }},
      {"q_out.sizes[2]", [](Call& c) { c.q_out.sizes[2] = 31; }},
      {"q_out", [](Call& c) { c.q_out.data = c.k.data; }},
      {"q_out.strides[1]",
       [](Call& c) {
         c.q_out.data = c.q.data;
         c.q_out.strides[1] *= 2;
       }},
      {"v_cache", [](Call& c) { c.v_cache.data = c.k_cache.data; }},
      {"cos.sizes[3]", [](Call& c) { c.cos.sizes[3] = 64; }},
      {"sin.dtype", [](Call& c) { c.sin.dtype = WAVEJIT_BF16; }},
      {"sin.sizes[1]", [](Call& c) { c.sin.sizes[1] = 7; }},
      {"cos.data", [](Call& c) { c.cos.data = nullptr; }},
      {"rotary_base", [](Call& c) { c.cos.data = c.sin.data = nullptr; }},
      {"rotary_base", [](Call& c) { c.rotary_base = 10000; }},
      {"rotary_dim", [](Call& c) { c.rotary_dim = 24; }},
      {"rotary_dim", [](Call& c) { c.rotary_dim = 256; }},
      {"rotary = 3", [](Call& c) { c.rotary = 3; }},
      {"rotary_dim", [](Call& c) { c.rotary = 0; }},
      {"positions", [](Call& c) { c.positions = nullptr; }},
      {"position_bytes", [](Call& c) { c.position_bytes = 2; }},
      {"slots", [](Call& c) { c.slots = nullptr; }},
      {"slot_bytes", [](Call& c) { c.slot_bytes = 16; }},
      {"page_layout", [](Call& c) { c.page_layout = 3; }},
      {"k_cache.strides[1]", [](Call& c) { c.page_layout = WAVEJIT_PAGES_VECTORISED; }},
      {"flags", [](Call& c) { c.head.flags = WAVEJIT_CHECK_LENGTHS; }},
  };
  for (const auto& [field, change] : wrong) {
    Call bad = good();
    change(bad);
    const auto checked = check(&bad);
    ASSERT_FALSE(checked.has_value()) << field;
    EXPECT_THAT(checked.error().detail, HasSubstr(field));
    EXPECT_THAT(checked.error().detail, HasSubstr("accepted"));
  }
}

// Into 8 bits: what is wrong with scales, and with rows of latent attention.
TEST(CacheAppendRefusals, NamesTheFieldOfScales) {
  using Call = wavejit_cache_append_arguments;
  const auto tokens = [](std::uintptr_t at) { return wavejit_dense_tensor(memory(at), WAVEJIT_FP32, 50, 16, 8, 1); };
  Call narrow = good();
  narrow.k_cache.dtype = narrow.v_cache.dtype = WAVEJIT_E4M3;
  narrow.scales.k_scale = wavejit_dense_tensor(memory(11), WAVEJIT_FP32, 1, 1, 8, 1);
  Call found = narrow;
  found.scales.token_scales = 1;
  found.scales.k_scale = tokens(11);
  found.scales.v_scale = tokens(12);
  Call rows = narrow;
  rows.k = wavejit_dense_tensor(memory(1), WAVEJIT_BF16, 1, 100, 1, 64);
  rows.v = wavejit_dense_tensor(memory(2), WAVEJIT_BF16, 1, 100, 1, 512);
  rows.k_cache = wavejit_dense_tensor(memory(3), WAVEJIT_E4M3, 50, 16, 1, 656);
  rows.v_cache = rows.scales.k_scale = {};
  for (const Call& call : {narrow, found, rows}) ASSERT_TRUE(check(&call).has_value()) << check(&call).error().detail;
  EXPECT_EQ(check(&narrow)->shape.scales, Scales::heads);
  EXPECT_EQ(check(&found)->shape.scales, Scales::tokens);
  EXPECT_EQ(check(&rows)->shape.scales, Scales::tiles);
  const auto refused = [](Call call, const std::string& field, const std::function<void(Call&)>& change) {
    change(call);
    const auto checked = check(&call);
    ASSERT_FALSE(checked.has_value()) << field;
    EXPECT_THAT(checked.error().detail, HasSubstr(field));
    EXPECT_THAT(checked.error().detail, HasSubstr("accepted"));
  };
  refused(narrow, "token_scales = 2", [](Call& c) { c.scales.token_scales = 2; });
  refused(narrow, "k_scale.dtype", [](Call& c) { c.scales.k_scale.dtype = WAVEJIT_BF16; });
  refused(narrow, "k_scale.sizes[2]", [](Call& c) { c.scales.k_scale.sizes[2] = 4; });
  refused(narrow, "k_scale.data",
          [](Call& c) { c.scales.k_scale.data = static_cast<char*>(c.scales.k_scale.data) + 2; });
  refused(narrow, "v_scale.data", [](Call& c) {
    c.v = c.v_cache = {};
    c.scales.v_scale = wavejit_dense_tensor(memory(12), WAVEJIT_FP32, 1, 1, 8, 1);
  });
  refused(narrow, "page_layout", [](Call& c) {
    c.page_layout = WAVEJIT_PAGES_VECTORISED;
    c.k_cache.strides[1] = 8;
    c.k_cache.strides[2] = 16 * 128;
    c.v_cache.strides[1] = 1;
    c.v_cache.strides[2] = 16 * 64;
    c.v_cache.strides[3] = 16;
  });
  refused(found, "v_scale.data", [](Call& c) { c.scales.v_scale.data = nullptr; });
  refused(found, "k_scale.sizes[1]", [](Call& c) { c.scales.k_scale.sizes[1] = 1; });
  refused(found, "k_scale", [](Call& c) { c.scales.k_scale.strides[1] = 1; });
  refused(found, "k_scale", [](Call& c) { c.scales.k_scale.data = c.scales.v_scale.data; });
  refused(found, "k_scale", [](Call& c) { c.scales.k_scale.data = c.k.data; });
  refused(rows, "k.sizes[3]", [](Call& c) { c.k.sizes[3] = 128; });
  refused(rows, "v.sizes[3]", [](Call& c) { c.v.sizes[3] = 448; });
  refused(rows, "k.sizes[2]", [](Call& c) { c.k.sizes[2] = c.v.sizes[2] = 2; });
  refused(rows, "k_cache.sizes[2]", [](Call& c) { c.k_cache.sizes[2] = 2; });
  refused(rows, "k_cache.strides[1]", [](Call& c) { c.k_cache.strides[1] = 658; });
  refused(rows, "k_cache.strides[0]", [](Call& c) { c.k_cache.strides[0] = 0; });
  refused(rows, "k_cache", [](Call& c) { c.k_cache.strides[0] = 656; });
  refused(rows, "k_cache.data", [](Call& c) { c.k_cache.data = static_cast<char*>(c.k_cache.data) + 2; });
  refused(rows, "token_scales", [](Call& c) { c.scales.token_scales = 1; });
  refused(rows, "k_scale.data",
          [](Call& c) { c.scales.k_scale = wavejit_dense_tensor(memory(11), WAVEJIT_FP32, 1, 1, 1, 1); });
  refused(rows, "k_cache.strides[1]", [](Call& c) {
    c.v.sizes[3] = 448;
    c.k_cache.sizes[3] = 584;
  });
}

TEST(CacheAppendDescriptor, IsCanonical) {
  for (
      const std::string text :
      {"cache_append bf16 b1 q37 h8 d128 page=16", "cache_append fp16 b3 q5 h2 d64/128 page=32:hnd holes seed=2",
       "cache_append bf16 b2 q9 h1 d128 page=64 queries=5 rotary=interleaved:64 angles=bf16",
       "cache_append bf16 b1 q33 h2 d128/64 page=32:vectorised_keys no_values",
       "cache_append bf16 b2 q7 h2 d40 page=24 queries=3 rotary=interleaved:16 angles=base elements=source,keys,values,queries",
       "cache_append fp16 b1 q5 h3 d64 page=16:hnd rotary=halves cache=i8 cache_scales=token",
       "cache_append bf16 b1 q5 h3 d64 page=16 cache=e4m3_fnuz cache_scales=h holes",
       "cache_append bf16 b1 q5 h3 d64 page=16 no_values cache=e5m2",
       "cache_append bf16 b1 q5 h1 d64/512 page=64 cache=e4m3 row_scales=128",
       "cache_append bf16 b1 q5 h1 d64/448 page=64 queries=128 rotary=interleaved cache=e4m3 row_scales=64"}) {
    const auto said = parse_descriptor(text);
    ASSERT_TRUE(said.has_value()) << said.error().detail;
    const std::string printed = to_text(*said);
    const auto again = parse_descriptor(printed);
    ASSERT_TRUE(again.has_value()) << again.error().detail;
    EXPECT_EQ(to_text(*again), printed);
    EXPECT_EQ(AppendShape::of(said->shape().shape().code), said->shape());
    if (!text.contains("no_values")) EXPECT_EQ(printed, text);
  }
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"cache_append bf16 b1 q1 h1 d20 page=16", "multiples of 8"},
           {"cache_append bf16 b1 q1 h1 d64", "page=<keys>"},
           {"cache_append bf16 b1 q1 h1 d64 page=24:vectorised", "multiples of 16"},
           {"cache_append bf16 b1 q1 h1 d64 page=16:rows", "nhd"},
           {"cache_append bf16 b1 q1 h1 d64 page=16 rotary=halves:72", "multiples of 16"},
           {"cache_append bf16 b1 q1 h1 d64 page=16 angles=base", "rotary=halves"},
           {"cache_append bf16 b1 q1 h1 d64 page=16 queries=4", "rotary=halves"},
           {"cache_append bf16 b1 q1 h1 d64 page=16 no_values elements=values", "values"},
           {"cache_append bf16 b1 q1 h1 d64 page=16 elements=rows", "source,keys,values,queries"},
           {"cache_append bf16 b1 q1 h1 d64 page=16 cache=bf16", "cache=e4m3"},
           {"cache_append bf16 b1 q1 h1 d64 page=16 cache_scales=h", "cache=<type of 8 bits>"},
           {"cache_append bf16 b1 q1 h1 d64 page=16 cache=i8 cache_scales=1", "cache_scales=token"},
           {"cache_append bf16 b1 q1 h1 d64 page=16:vectorised cache=i8", "nhd, hnd"},
           {"cache_append bf16 b1 q1 h1 d64 page=16 cache=e4m3 row_scales=128", "d64/512"},
           {"cache_append bf16 b1 q1 h1 d64/512 page=16 cache=e4m3 row_scales=32", "row_scales=64"},
           {"cache_append bf16 b1 q1 h1 d64/512 page=16 cache=e4m3 cache_scales=h row_scales=128", "one of them"}}) {
    const auto said = parse_descriptor(text);
    ASSERT_FALSE(said.has_value()) << text;
    EXPECT_THAT(said.error().detail, HasSubstr(why));
  }
}

}  // namespace
}  // namespace wavejit::cache_append
