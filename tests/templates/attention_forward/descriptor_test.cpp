// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem descriptors: what is printed parses back to the same, and every wrong or later word is refused by place.
#include "templates/attention_forward/call/descriptor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>
#include <random>
#include <string>

#include "templates/attention/call/hints.h"
#include "templates/attention_forward/call/route.h"
#include "templates/attention_forward/kernel/words.h"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;
using namespace attention_forward;

constexpr const char* base = "attention_forward bf16 b2 q1024 k8192 h64/8 d128";

TEST(Descriptor, ReadsEveryWordOfThisVersion) {
  const auto parsed = parse_descriptor(
      "attention_forward fp16 b3 q5 k0 h8/2 d64 causal lse layout=bhsd scale=0.25 "
      "seed=7 inputs=adversarial:one_hot");
  ASSERT_TRUE(parsed) << parsed.error().detail;
  AttentionShape shape = {{.dtype = attention_forward::DataType::fp16,
                           .head_dim_qk = 64,
                           .head_dim_v = 64,
                           .mask = attention_forward::Mask::causal,
                           .lse = true}};
  shape.query_rows = attention_forward::QueryRows::up_to_32;
  shape.packed_heads = true;
  EXPECT_EQ(parsed->shape, shape);
  EXPECT_EQ(parsed->batch, 3);
  EXPECT_EQ(parsed->query_length, 5);
  EXPECT_EQ(parsed->key_length, 0);
  EXPECT_EQ(parsed->query_heads, 8);
  EXPECT_EQ(parsed->kv_heads, 2);
  EXPECT_EQ(parsed->layout, Layout::bhsd);
  EXPECT_EQ(parsed->scale, "0.25");
  EXPECT_EQ(parsed->seed, "7");
  EXPECT_EQ(parsed->inputs, "adversarial:one_hot");
}

TEST(Descriptor, WordsMayComeInAnyOrderAndPrintInOne) {
  std::vector<std::string> words = {"bf16",          "b2",
                                    "q1024",         "k8192",
                                    "h64/8",         "d128/64",
                                    "causal=5",      "window=128,-1",
                                    "lse",           "o=fp32",
                                    "layout=packed", "q_lengths=1024,7",
                                    "q_rows=1040",   "k_lengths=0,8192",
                                    "k_total=8192",  "scale=1.5e-1",
                                    "bias=bh",       "alibi=h",
                                    "sink",          "softcap=30",
                                    "splits=auto",   "seed=3",
                                    "inputs=uniform"};
  std::string canonical = "attention_forward";
  for (const std::string& word : words) canonical += " " + word;
  std::mt19937 random(1);
  for (int round = 0; round < 100; ++round) {
    std::ranges::shuffle(words, random);
    std::string shuffled = "attention_forward";
    for (const std::string& word : words) shuffled += (round % 2 == 0 ? " " : "  \t") + word;
    const auto parsed = parse_descriptor(shuffled);
    ASSERT_TRUE(parsed) << parsed.error().detail;
    ASSERT_EQ(to_text(*parsed), canonical);
  }
}

TEST(Descriptor, LocalChunksAndFlagsAreOfCausalRows) {
  for (const char* words :
       {" causal chunked=8192 lse", " causal=5 chunked=2", " causal causal_flags", " causal=9 causal_flags lse"}) {
    const auto parsed = parse_descriptor(std::string(base) + words);
    ASSERT_TRUE(parsed) << parsed.error().detail;
    EXPECT_EQ(to_text(*parsed), std::string(base) + words);
  }
  EXPECT_EQ(parse_descriptor(std::string(base) + " causal chunked=8192")->shape.mask, attention_forward::Mask::chunked);
  EXPECT_EQ(parse_descriptor(std::string(base) + " causal chunked=1")->shape.mask, attention_forward::Mask::window);
  for (const auto& [words, detail] :
       {std::pair{" chunked=8", "accepted: causal and no window"},
        {" causal window=3,0 chunked=8", "accepted: causal and no window"},
        {" causal chunked=0", "'chunked=0' (column 57) is no number"},
        {" causal chunked=1073741825", "is no number; accepted: chunked=<keys of a local chunk, 1 to 1073741824>"},
        {" causal_flags", "causal_flags; accepted: causal beside it"},
        {" causal window=-1,5 causal_flags", "causal_flags; accepted: causal beside it"},
        {" causal chunked=9 causal_flags", "causal_flags; accepted: causal beside it"},
        {" causal chunked=9 top_k=64", "top_k beside local chunks"},
        {" causal causal_flags top_k=64", "top_k beside causal_flags"}}) {
    const auto parsed = parse_descriptor(std::string(base) + words);
    ASSERT_FALSE(parsed) << words;
    EXPECT_THAT(parsed.error().detail, HasSubstr(detail)) << words;
  }
}

TEST(Descriptor, BoolMasksStandBesideMasksOfPositions) {
  for (const char* words : {" bool_mask=1", " causal lse bool_mask=bh", " window=5,5 bool_mask=h softcap=30"}) {
    const auto parsed = parse_descriptor(std::string(base) + words);
    ASSERT_TRUE(parsed) << parsed.error().detail;
    EXPECT_EQ(to_text(*parsed), std::string(base) + words);
    EXPECT_TRUE(parsed->shape.bool_mask && parsed->shape.block_lists);
  }
  for (const auto& [words, detail] : {std::pair{" bool_mask=none", "accepted: bool_mask=1, bool_mask=h, bool_mask=b"},
                                      {" bool_mask=1 bias=1", "bool_mask beside bias"},
                                      {" bool_mask=1 lists=64x64", "bool_mask beside lists of key blocks"},
                                      {" bool_mask=1 top_k=64", "bool_mask beside lists of keys"},
                                      {" causal chunked=9 bool_mask=1", "bool_mask beside local chunks"},
                                      {" causal causal_flags bool_mask=1", "bool_mask beside causal_flags"}}) {
    const auto parsed = parse_descriptor(std::string(base) + words);
    ASSERT_FALSE(parsed) << words;
    EXPECT_THAT(parsed.error().detail, HasSubstr(detail)) << words;
  }
}

TEST(Descriptor, HintsAreWordsThatChangeNoShape) {
  constexpr std::string_view base = "attention_forward bf16 b1 q128 k128 h1 d64 lists=64x64:10";
  const auto plain = parse_descriptor(base);
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->hints, 0U);
  for (const attention::Hint& hint : attention::hints) {
    const std::string line = std::string(base) + " " + std::string(hint.word);
    const auto parsed = parse_descriptor(line);
    ASSERT_TRUE(parsed) << parsed.error().detail;
    EXPECT_EQ(to_text(*parsed), line);
    EXPECT_EQ(parsed->hints, hint.bit);
    const auto alone = parse_descriptor("attention_forward bf16 b1 q128 k128 h1 d64 " + std::string(hint.word));
    EXPECT_EQ(alone.has_value(), hint.beside == attention::Hint::Beside::any) << hint.word;
    if (!alone) {
      EXPECT_THAT(alone.error().detail, HasSubstr(std::string(hint.word) + " without lists; accepted: lists="));
    }
  }
}

// A head dim has 6 bits of a shape's code. One that they cannot say would have another's code: 1,152 was run as 128.
TEST(Descriptor, HeadDimsBeyondTheBitsOfACodeAreRefused) {
  for (int dim = 1; dim <= 2200; ++dim)
    for (const std::string& words : {std::format("d{}", dim), std::format("d64/{}", dim), std::format("d{}/64", dim)}) {
      const auto parsed = parse_descriptor("attention_forward bf16 b1 q1 k64 h1 " + words);
      ASSERT_EQ(parsed.has_value(), dim % 8 == 0 && dim <= 512) << words;
      if (parsed)
        ASSERT_EQ(AttentionShape::of_code(parsed->shape.code()), parsed->shape) << words;
      else
        ASSERT_THAT(parsed.error().detail, HasSubstr("head dim " + words.substr(1) + " has no kernel; accepted: "));
    }
  const auto refusal = [](const std::string& dims) {
    return parse_descriptor("attention_forward bf16 b1 q1 k64 h1 " + dims).error().detail;
  };
  EXPECT_EQ(refusal("d100"),
            "head dim 100 has no kernel; accepted: 96, 104 and other multiples of 8 up to 512, of which `wavejit "
            "supported` lists those of a target");
  EXPECT_EQ(refusal("d1152"),
            "head dim 1152 has no kernel; accepted: multiples of 8 up to 512, of which `wavejit supported` lists those "
            "of a target");
}

// Heads are packed and keys split as without it; of heads that have their own, and in pages, walks are made.
TEST(Descriptor, FewRowsUnderOneMaskHaveNoWalks) {
  const std::string few = "attention_forward bf16 b2 q9 k2000 h8/2 d128";
  for (const auto& [words, walks] : {std::pair{" bool_mask=1", false},
                                     {" causal lse bool_mask=b softcap=30", false},
                                     {" bool_mask=h", true},
                                     {" layout=paged:16 bool_mask=1", true}}) {
    const auto parsed = parse_descriptor(few + words);
    ASSERT_TRUE(parsed) << parsed.error().detail;
    EXPECT_TRUE(parsed->shape.bool_mask);
    EXPECT_EQ(parsed->shape.block_lists, walks) << words;
    EXPECT_EQ(parsed->shape.packed_heads, !walks) << words;
    EXPECT_EQ(AttentionShape::of_code(parsed->shape.code()), parsed->shape);
  }
  // A range has both.
  const auto range = parse_descriptor("attention_forward bf16 b2 q30..40 k2000 h8/2 d128 bool_mask=1");
  ASSERT_TRUE(range) << range.error().detail;
  const std::vector<ProblemDescriptor> each = without_ranges(*range);
  const auto walks = [](const ProblemDescriptor& one) { return one.shape.block_lists; };
  EXPECT_TRUE(std::ranges::any_of(each, walks) && !std::ranges::all_of(each, walks));
}

TEST(Descriptor, ABiasGoesByTileWhereItIsSaid) {
  for (const char* words : {" bias=1 bias_by_tile", " causal lse bias=bh bias_by_tile",
                            " window=5,5 bias=h alibi=h softcap=30 bias_type=fp32 bias_by_tile"}) {
    const auto parsed = parse_descriptor(std::string(base) + words);
    ASSERT_TRUE(parsed) << parsed.error().detail;
    EXPECT_EQ(to_text(*parsed), std::string(base) + words);
    EXPECT_TRUE(parsed->shape.bias_by_tile && parsed->shape.block_lists && !parsed->shape.bool_mask);
    EXPECT_EQ(AttentionShape::of_code(parsed->shape.code()), parsed->shape);
  }
  // Few rows go as without the word.
  const auto few = parse_descriptor("attention_forward bf16 b1 q32 k900 h2 d64 bias=1 bias_by_tile");
  ASSERT_TRUE(few) << few.error().detail;
  EXPECT_EQ(to_text(*few), "attention_forward bf16 b1 q32 k900 h2 d64 bias=1");
  EXPECT_FALSE(few->shape.bias_by_tile || few->shape.block_lists);
  for (const auto& [words, detail] : {std::pair{" bias_by_tile", "bias_by_tile without a bias"},
                                      {" bias=1 bias_by_tile lists=64x64", "bias_by_tile beside lists of key blocks"},
                                      {" causal chunked=9 bias=1 bias_by_tile", "bias_by_tile beside local chunks"},
                                      {" layout=paged:16 bias=1 bias_by_tile", "bias_by_tile beside pages"},
                                      {" first_keys bias=1 bias_by_tile", "bias_by_tile beside first_keys"}}) {
    const auto parsed = parse_descriptor(std::string(base) + words);
    ASSERT_FALSE(parsed) << words;
    EXPECT_THAT(parsed.error().detail, HasSubstr(detail)) << words;
  }
}

TEST(Descriptor, RandomDescriptorsSurviveTheRoundTrip) {
  std::mt19937_64 random(2);
  const auto up_to = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most)) + 1;
  };
  for (int round = 0; round < 500; ++round) {
    ProblemDescriptor d;
    d.shape = {{.dtype = random() % 2 == 0 ? attention_forward::DataType::bf16 : attention_forward::DataType::fp16,
                .head_dim_qk = static_cast<int>(8 * up_to(64)),
                .head_dim_v = static_cast<int>(8 * up_to(64)),
                .mask = random() % 2 == 0 ? attention_forward::Mask::none : attention_forward::Mask::causal,
                .lse = random() % 2 == 0}};
    d.batch = up_to(max_batch);
    d.query_length = up_to(round % 2 == 0 ? max_length : 300);
    d.key_length = up_to(max_length) - 1;
    d.kv_heads = up_to(255);
    const std::int64_t group = up_to(256);
    d.query_heads = d.kv_heads * group;
    d.shape.set_rows(
        attention_forward::plan_rows(static_cast<std::uint64_t>(d.query_length), static_cast<std::uint64_t>(group)));
    d.mask.causal = d.shape.mask == attention_forward::Mask::causal;
    if (d.mask.causal && random() % 2 == 0)
      d.mask.causal_prefix = static_cast<std::int64_t>(random() % 2) * d.key_length;
    if (random() % 4 == 0) {
      d.mask.window = {static_cast<std::int64_t>(random() % 9) - 1, static_cast<std::int64_t>(random() % 9) - 1};
      d.shape.mask = choose_mask(d.mask.causal, true, d.mask.window->first, d.mask.window->second).mask;
    }
    if (d.mask.causal && !d.mask.window && random() % 4 == 0) {
      d.mask.kind = attention_forward::Mask::chunked;
      d.mask.number = up_to(9000);
      d.shape.mask = choose_mask(d.mask).mask;
    }
    d.shape.causal_flags = d.mask.causal && !d.mask.window && !d.mask.number && random() % 4 == 0;
    d.layout = std::array{Layout::bshd, Layout::bhsd, Layout::packed, Layout::paged}[random() % 4];
    if (d.layout == Layout::paged) {
      d.shape.paged = true;
      d.page_size = random() % 4 == 0 ? 1 : 16 * up_to(512);
      d.shape.single_keys = d.page_size == 1;
      d.page_heads_first = random() % 2 == 0;
      d.shape.vectorised = !d.page_heads_first && !d.shape.single_keys && random() % 2 == 0;
      d.values_by_keys = d.shape.vectorised && random() % 2 == 0;
      d.key_length = std::min(d.key_length, attention_forward::max_paged_length);
      if (d.mask.causal_prefix) d.mask.causal_prefix = std::min(*d.mask.causal_prefix, d.key_length);
    }
    if (random() % 3 == 0) {
      d.batch = up_to(5);
      d.key_lengths.assign(static_cast<std::size_t>(d.batch), 0);
      d.key_lengths.back() = d.key_length;
      if (d.layout == Layout::packed || d.layout == Layout::paged) {
        d.query_lengths.assign(static_cast<std::size_t>(d.batch), 0);
        d.query_lengths.front() = d.query_length;
      }
    }
    if (random() % 4 == 0) d.query_rows = std::min(d.query_length + up_to(100), max_length);
    d.shape.first_keys = d.layout != Layout::packed && !d.shape.vectorised && random() % 3 == 0;
    d.shape.whole_tiles = d.shape.paged && d.page_size % 64 == 0 && !d.shape.first_keys && !d.shape.vectorised;
    if (d.shape.first_keys && d.batch <= 5 && random() % 2 == 0)
      d.first_keys.assign(static_cast<std::size_t>(d.batch), 0);
    for (const auto& row : attention_forward::modifier_rows) {
      using attention_forward::Extent;
      if (random() % 2 == 0) continue;
      const Extent extent = row.number != nullptr ? Extent::none
                            : row.extents.empty() ? Extent::one
                                                  : row.extents[random() % row.extents.size()].extent;
      if (row.number != nullptr || extent != Extent::none)
        d.add(row.modifier, extent, row.number != nullptr ? "30.5" : "");
    }
    d.splits = static_cast<std::int64_t>(random() % 4) - 1;
    if (random() % 2 == 0) d.scale = std::to_string(static_cast<double>(random() % 1000) / 512);
    if (random() % 2 == 0) d.seed = std::to_string(random() >> 1U);
    if (random() % 2 == 0) d.inputs = random() % 2 == 0 ? "normal" : "adversarial:nan-tails";
    const auto parsed = parse_descriptor(to_text(d));
    ASSERT_TRUE(parsed) << parsed.error().detail;
    ASSERT_EQ(*parsed, d) << to_text(d);
    ASSERT_EQ(AttentionShape::of_code(parsed->shape.code()), parsed->shape) << to_text(d);
  }
}

// A flag is one row of the words of kernel specs: it stands in a shape's code, is told of a problem, and descriptors
// that say it say it by the same word.
TEST(Descriptor, AFlagOfAProblemIsOneRow) {
  using attention_forward::AttentionShape;
  const std::string plain =
      "attention_forward fp16 d128 pipeline=generic tile=128x64 o_store=scalar target=gfx950 lowering=llvm";
  const AttentionShape without{attention_forward::parse_spec(plain).value()};
  int flags = 0;
  int described = 0;
  for (const auto& word : attention_forward::spec_words) {
    const std::string text(word.accepted);
    if (!word.of_problem || text.find_first_of("<,") != std::string::npos || text.ends_with('=')) continue;
    auto spec = attention_forward::parse_spec(plain + " " + text);
    ASSERT_TRUE(spec) << spec.error();
    if (word.beside != nullptr) word.beside(*spec);  // what it never stands without
    EXPECT_EQ(attention_forward::parse_spec(to_text(*spec)), *spec) << text;
    const AttentionShape shape{*spec};
    EXPECT_NE(shape.code(), without.code()) << text;
    EXPECT_EQ(AttentionShape::of_code(shape.code()), shape) << text;
    EXPECT_THAT(to_text(shape), HasSubstr(text));
    ++flags;
    if (!word.described) continue;
    const std::string line = std::string(base) + (word.beside != nullptr ? " causal bias=1 " : " ") + text;
    const auto said = parse_descriptor(line);
    ASSERT_TRUE(said) << said.error().detail;
    EXPECT_THAT(to_text(*said), HasSubstr(" " + text));
    EXPECT_THAT(to_text(said->shape), HasSubstr(text));
    EXPECT_THAT(parse_descriptor(line + " " + text).error().detail, HasSubstr("says again"));
    ++described;
  }
  EXPECT_EQ(flags, 25);
  EXPECT_EQ(described, 12);
}

// One word for scales of tokens, and one answer where rows are moved whole.
TEST(Descriptor, ScalesOfTokensAndRowsThatAreMovedWhole) {
  const std::string base = "attention_forward bf16 b1 q5 k70 h4/2 d64 ";
  for (const char* words :
       {"qk=i8 cache_scales=token", "cache_scales=token cache=e4m3", "cache_scales=token cache=i8"}) {
    const auto said = parse_descriptor(base + words);
    ASSERT_TRUE(said) << said.error().detail;
    EXPECT_TRUE(said->shape.token_scales) << words;
    EXPECT_THAT(to_text(*said), HasSubstr(" cache_scales=token"));
  }
  EXPECT_FALSE(parse_descriptor(base + "qk=i8")->shape.token_scales);
  const auto refused = [&](const std::string& words) {
    const auto said = parse_descriptor(base + words);
    return said ? std::string() : said.error().detail;
  };
  EXPECT_THAT(refused("cache_scales=token"), HasSubstr("qk=i8 beside it"));
  EXPECT_THAT(refused("qk=i8 cache_scales=h"), HasSubstr("accepted: cache_scales=token, or no word"));
  EXPECT_THAT(refused("qk=i8 k_scales=token"), HasSubstr("'k_scales=token'"));
  for (const char* words : {"cache=e4m3 trans_k", "queries=e4m3 trans_q", "layout=paged:16 trans_v",
                            "lists=64x64 trans_o", "top_k=9 trans_k"})
    EXPECT_THAT(refused(words), HasSubstr("need dense or packed tensors")) << words;
  EXPECT_EQ(refused("qk=i8 cache_scales=token trans_q trans_k trans_v trans_o"), "");
}

TEST(Descriptor, KeysInPages) {
  const auto parsed =
      parse_descriptor("attention_forward bf16 b2 q4 k100 h8/2 d128 layout=paged:48:hnd q_lengths=1,4 k_lengths=0,100");
  ASSERT_TRUE(parsed) << parsed.error().detail;
  EXPECT_EQ(parsed->layout, Layout::paged);
  EXPECT_EQ(parsed->page_size, 48);
  EXPECT_TRUE(parsed->page_heads_first);
  EXPECT_TRUE(parsed->shape.paged);
  const auto whole = parse_descriptor("attention_forward bf16 b1 q1 k1 h1 d64 layout=paged:16:nhd");
  ASSERT_TRUE(whole) << whole.error().detail;
  EXPECT_EQ(to_text(*whole), "attention_forward bf16 b1 q1 k1 h1 d64 layout=paged:16");
  // A shape's number says it, too.
  EXPECT_EQ(attention_forward::AttentionShape::of_code(parsed->shape.code()), parsed->shape);
  const auto longer = parse_descriptor("attention_forward bf16 b1 q1 k67108865 h1 d64 layout=paged:16");
  ASSERT_FALSE(longer);
  EXPECT_NE(longer.error().detail.find("k0 to k67108864"), std::string::npos) << longer.error().detail;
}

TEST(Descriptor, VectorisedPages) {
  const std::string words = "attention_forward bf16 b2 q4 k100 h8/2 d128 layout=paged:64:";
  const auto by_dims = parse_descriptor(words + "vectorised");
  const auto by_keys = parse_descriptor(words + "vectorised_keys");
  ASSERT_TRUE(by_dims && by_keys);
  EXPECT_EQ(to_text(*by_dims), words + "vectorised");
  EXPECT_EQ(to_text(*by_keys), words + "vectorised_keys");
  EXPECT_TRUE(by_keys->values_by_keys && !by_dims->values_by_keys);
  // One kernel, which looks up granules.
  EXPECT_EQ(by_dims->shape, by_keys->shape);
  EXPECT_TRUE(by_dims->shape.vectorised && !by_dims->shape.whole_tiles);
  EXPECT_EQ(attention_forward::AttentionShape::of_code(by_dims->shape.code()), by_dims->shape);
  const auto padded = parse_descriptor(words + "vectorised first_keys");
  ASSERT_FALSE(padded);
  EXPECT_THAT(padded.error().detail, HasSubstr("first_keys: beside vectorised pages; accepted: layout=paged:<n>"));
}

TEST(Descriptor, LeftPadding) {
  const std::string words = "attention_forward bf16 b2 q4 k100 h8/2 d128";
  const auto numbers = parse_descriptor(words + " k_lengths=0,60 first_keys=100,40");
  ASSERT_TRUE(numbers) << numbers.error().detail;
  EXPECT_TRUE(numbers->shape.first_keys);
  EXPECT_EQ(numbers->first_keys, (std::vector<std::int64_t>{100, 40}));
  EXPECT_EQ(attention_forward::AttentionShape::of_code(numbers->shape.code()), numbers->shape);
  const auto pool = parse_descriptor(words + " layout=paged:1 first_keys");
  ASSERT_TRUE(pool) << pool.error().detail;
  EXPECT_TRUE(pool->shape.single_keys && pool->shape.first_keys && pool->first_keys.empty());
  EXPECT_EQ(to_text(*pool), words + " layout=paged:1 first_keys");
  EXPECT_EQ(attention_forward::AttentionShape::of_code(pool->shape.code()), pool->shape);
  const auto refused = [&](const std::string& more, const char* why) {
    const auto parsed = parse_descriptor(words + more);
    ASSERT_FALSE(parsed) << more;
    EXPECT_THAT(parsed.error().detail, HasSubstr(why));
  };
  refused(" first_keys=1", "1 numbers; accepted: 2, one for each sequence of b2");
  refused(" first_keys=1,101", "101, of sequence 1; accepted: 0 to 100");
  refused(" k_lengths=30,60 first_keys=71,0", "71, of sequence 0; accepted: 0 to 70");
  refused(" layout=packed first_keys", "layout=packed; accepted: other layouts");
}

struct Refused {
  const char* word;
  wavejit_status status;
  const char* accepted;
};

class RefusedWords : public ::testing::TestWithParam<Refused> {};

TEST_P(RefusedWords, AreToldWithTheirPlaceAndWhatIsAccepted) {
  const auto parsed = parse_descriptor(std::string(base) + " " + GetParam().word + " lse");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().status, GetParam().status) << parsed.error().detail;
  EXPECT_THAT(parsed.error().detail, HasSubstr("word 8 '" + std::string(GetParam().word) + "' (column 50)"));
  EXPECT_THAT(parsed.error().detail, HasSubstr("accepted"));
  EXPECT_THAT(parsed.error().detail, HasSubstr(GetParam().accepted));
}

constexpr auto unsupported = WAVEJIT_UNSUPPORTED;
constexpr auto invalid = WAVEJIT_INVALID_ARGUMENT;
INSTANTIATE_TEST_SUITE_P(
    Words, RefusedWords,
    ::testing::Values(
        // of the grammar, not of this version
        Refused{"layout=paged:1:vectorised", invalid, "not of pages of 1 key, :vectorised or :vectorised_keys"},
        Refused{"layout=paged:16:vectorized", invalid, ":vectorised or :vectorised_keys"},
        Refused{"layout=paged:2", invalid, "1 or a multiple of 16 up to 8192"},
        Refused{"layout=paged", invalid, "has no page size"}, Refused{"layout=paged:", invalid, "is no page size"},
        Refused{"layout=paged:24", invalid, "is no page size"},
        Refused{"layout=paged:8208", invalid, "is no page size"},
        Refused{"layout=paged:16:dhn", invalid, "an order that such pages do not have"},
        Refused{"fp8", unsupported, "fp16, bf16"}, Refused{"fp32", unsupported, "fp16, bf16"},
        // of no grammar
        Refused{"causal=", invalid, "causal=<keys"}, Refused{"causal=-1", invalid, "causal=<keys"},
        Refused{"window=", invalid, "window=<left>,<right>"}, Refused{"window=4", invalid, "window=<left>,<right>"},
        Refused{"window=-2,0", invalid, "-1 for no limit"}, Refused{"window=1,2,3", invalid, "window=<left>,<right>"},
        Refused{"q_lengths=", invalid, "separated by commas"},
        Refused{"q_lengths=1,,2", invalid, "separated by commas"},
        Refused{"k_lengths=1,-2", invalid, "separated by commas"},
        Refused{"first_keys=", invalid, "separated by commas"}, Refused{"bias=x", invalid, "bias=bh"},
        Refused{"bias=", invalid, "bias=1"}, Refused{"alibi=b", invalid, "alibi=bh"}, Refused{"sinks", invalid, "sink"},
        Refused{"softcap=0", invalid, "positive"}, Refused{"softcap=-1", invalid, "positive"},
        Refused{"softcap=inf", invalid, "positive"}, Refused{"softcap=32769", invalid, "up to 32768"},
        Refused{"splits=0", invalid, "splits=auto"}, Refused{"splits=65536", invalid, "splits=65535"},
        Refused{"casual", invalid, "causal"},
        Refused{"x5", invalid, "`wavejit explain \"attention_forward help\"` lists"}, Refused{"bf17", invalid, "bf16"},
        Refused{"LSE", invalid, "help"}, Refused{"color=red", invalid, "help"}, Refused{"=", invalid, "help"},
        Refused{"help", invalid, "words of attention_forward; accepted: fp16, bf16, b<n>"},
        Refused{"layout=", invalid, "layout=bshd"}, Refused{"layout=sbhd", invalid, "layout=bshd"},
        Refused{"scale=", invalid, "scale="}, Refused{"scale=nan", invalid, "scale="},
        Refused{"scale=inf", invalid, "scale="}, Refused{"scale=1x", invalid, "scale="},
        Refused{"seed=-1", invalid, "seed="}, Refused{"seed=1e3", invalid, "seed="},
        Refused{"inputs=random", invalid, "inputs=normal"}, Refused{"inputs=adversarial:", invalid, "inputs=normal"},
        Refused{"inputs=adversarial:../x", invalid, "inputs=normal"}, Refused{"invariance=none", invalid, "help"},
        // said twice
        Refused{"bf16", invalid, "each once"}, Refused{"fp16", invalid, "each once"},
        Refused{"b2", invalid, "each once"}, Refused{"q1", invalid, "each once"}, Refused{"k1", invalid, "each once"},
        Refused{"h8", invalid, "each once"}, Refused{"d64", invalid, "each once"},
        // out of range
        Refused{"b0", invalid, "b1 to b65535"}, Refused{"b65536", invalid, "b1 to b65535"},
        Refused{"b-1", invalid, "accepted"}, Refused{"q0", invalid, "q1 to q"}, Refused{"q07", invalid, "q1 to q"},
        Refused{"k99999999999999999999", invalid, "k0 to k"}, Refused{"h0", invalid, "h1 to h65535"},
        Refused{"h8/", invalid, "h1 to h"}, Refused{"h8/0", invalid, "h1 to h"}, Refused{"h8/2/1", invalid, "h1 to h"},
        Refused{"q4..", invalid, "q4 to q"}, Refused{"q..4", invalid, "accepted"}, Refused{"q4..3", invalid, "q4 to q"},
        Refused{"k9..8", invalid, "k9 to k"}, Refused{"q0..4", invalid, "q1 to q"},
        Refused{"q1..2..3", invalid, "q1 to q"}, Refused{"b1..2", invalid, "b1 to b"},
        Refused{"d0", invalid, "d1 to d"}, Refused{"d128/x", invalid, "d1 to d"}, Refused{"d1.5", invalid, "d1 to d"}));

TEST(Descriptor, RangesOfLengthsPrintBack) {
  for (const char* text : {"attention_forward bf16 b1 q1..4096 k0..8192 h8 d128 causal lse",
                           "attention_forward fp16 b1 q7 k1..2 h8 d64", "attention_forward fp16 b1 q1..2 k7 h8 d64"}) {
    const auto parsed = parse_descriptor(text);
    ASSERT_TRUE(parsed) << parsed.error().detail;
    EXPECT_TRUE(parsed->has_range());
    EXPECT_EQ(to_text(*parsed), text);
    for (const ProblemDescriptor& one : without_ranges(*parsed)) {
      EXPECT_FALSE(one.has_range());
      EXPECT_TRUE(parse_descriptor(to_text(one)));
    }
  }
  const auto point = parse_descriptor("attention_forward fp16 b1 q5..5 k7 h8 d64");
  ASSERT_TRUE(point);
  EXPECT_FALSE(point->has_range());
  EXPECT_THAT(parse_descriptor("attention_forward fp16 b1 q1..5 k7 h8 d64 k_lengths=7").error().detail,
              HasSubstr("beside a range of lengths"));
}

TEST(Descriptor, EveryRequiredWordIsMissed) {
  const std::vector<std::string> words = {"bf16", "b2", "q1024", "k8192", "h64/8", "d128"};
  for (const std::string& missing : words) {
    std::string text = "attention_forward";
    for (const std::string& word : words)
      if (word != missing) text += " " + word;
    const auto parsed = parse_descriptor(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().detail, HasSubstr("missing"));
  }
}

TEST(Descriptor, ListsOfLengthsFitTheirWords) {
  struct Wrong {
    const char* words;
    const char* accepted;
  };
  for (const Wrong& wrong : {Wrong{"q_lengths=1,1024", "layout=packed"},
                             {"layout=packed q_lengths=1024", "2, one for each sequence"},
                             {"layout=packed q_lengths=1024,1,1", "2, one for each sequence"},
                             {"layout=packed q_lengths=1023,1", "1024, as q1024 says"},
                             {"layout=packed k_lengths=8191,1", "8192, as k8192 says"},
                             {"k_lengths=8193,1", "up to 8192"},
                             {"causal=8193", "0 to 8192, the keys"}}) {
    const auto parsed = parse_descriptor(std::string(base) + " " + wrong.words);
    ASSERT_FALSE(parsed) << wrong.words;
    EXPECT_EQ(parsed.error().status, invalid);
    EXPECT_THAT(parsed.error().detail, HasSubstr(wrong.accepted));
  }
}

TEST(Descriptor, MasksAreWhatTheirWordsAmountTo) {
  using attention_forward::Mask;
  for (const auto& [words, mask] : {std::pair{"", Mask::none},
                                    {"causal", Mask::causal},
                                    {"causal=3", Mask::causal},
                                    {"window=-1,-1", Mask::none},
                                    {"window=-1,0", Mask::causal},
                                    {"causal window=-1,5", Mask::causal},
                                    {"causal window=5,-1", Mask::window},
                                    {"window=0,0", Mask::window},
                                    {"window=-1,1", Mask::window}}) {
    const auto parsed = parse_descriptor(std::string(base) + " " + words);
    ASSERT_TRUE(parsed) << parsed.error().detail;
    EXPECT_EQ(parsed->shape.mask, mask) << words;
  }
}

TEST(Descriptor, TheFamilyComesFirst) {
  for (const char* text : {"", "   ", "attention bf16", "bf16 attention_forward", "attention_backward bf16"}) {
    const auto parsed = parse_descriptor(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().detail, HasSubstr("attention_forward"));
  }
}

TEST(Descriptor, HeadsDivide) {
  const auto parsed = parse_descriptor("attention_forward bf16 b2 q1024 k8192 h8/3 d128");
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error().detail, HasSubstr("h8/3"));
}

TEST(Descriptor, NoBytesCrashIt) {
  std::mt19937 random(3);
  const std::string alphabet = "attention_forward bf16 b2 q1 k= h/8 d12\n\t\0\xff:,x";
  for (int round = 0; round < 20000; ++round) {
    std::string text = round % 2 == 0 ? "attention_forward " : "";
    for (std::size_t length = random() % 60; length > 0; --length) text += alphabet[random() % alphabet.size()];
    const auto parsed = parse_descriptor(text);
    if (parsed) {
      ASSERT_EQ(*parse_descriptor(to_text(*parsed)), *parsed) << text;
    }
  }
  EXPECT_FALSE(parse_descriptor(std::string(100000, 'x')));
}

}  // namespace
}  // namespace wavejit::tests
