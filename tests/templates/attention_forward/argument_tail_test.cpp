// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where a kernel's arguments end: the table of kernel/arguments.h, by words.
#include "templates/attention_forward/kernel/argument_tail.h"

#include <gtest/gtest.h>

#include <string>

namespace wavejit::tests {
namespace {

using attention_forward::Tail;

struct Ending {
  const char* words;
  Tail tail;
  std::size_t bytes;
};

// With flags of sequences and a scale of O, what stands before them counts, too.
constexpr Ending endings[] = {
    {"", Tail::plain, 304},
    {" lse bias softcap", Tail::plain, 304},
    {" paged", Tail::pages, 344},
    {" split=512 merged heads=packed", Tail::arrivals, 352},
    {" split=512 merged heads=packed paged", Tail::arrivals, 352},
    {" rows=few paged", Tail::row_limits, 360},
    {" causal causal_flags", Tail::plain, 368},
    {" causal causal_flags rows=few", Tail::row_limits, 368},
    {" causal causal_flags split=512 merged heads=packed", Tail::arrivals, 368},
    {" block_lists", Tail::block_lists, 400},
    {" block_lists bool_mask paged", Tail::block_lists, 400},
    {" listed slots heads=packed paged", Tail::key_lists, 416},
    {" cache=e4m3", Tail::cache_scales, 464},
    {" cache=e4m3 listed heads=packed", Tail::cache_scales, 464},
    {" cache=e4m3 causal causal_flags", Tail::cache_scales, 464},
    {" cache=e4m3 cache_scales=token", Tail::token_strides, 472},
    {" trans_o", Tail::dim_strides, 480},
    {" queries=e4m3", Tail::query_scale, 488},
    {" qk=i8", Tail::integer_scales, 552},
    {" qk=i8 trans_k", Tail::integer_scales, 552},
    {" qk=i8 cache_scales=token", Tail::integer_scales, 552},
    {" o=e4m3", Tail::plain, 568},
    {" o=e4m3 cache=e4m3 cache_scales=token paged", Tail::token_strides, 568},
    {" o=e4m3 causal causal_flags qk=i8", Tail::integer_scales, 568},
};

TEST(ArgumentTail, ArgumentsEndWhereTheTableSays) {
  for (const Ending& ending : endings) {
    const auto spec = attention_forward::parse_spec("attention_forward bf16 d128" + std::string(ending.words) +
                                                    " pipeline=generic tile=128x64 o_store=scalar target=gfx950 "
                                                    "lowering=llvm");
    ASSERT_TRUE(spec) << spec.error();
    EXPECT_EQ(attention_forward::tail_of(*spec), ending.tail) << ending.words;
    EXPECT_EQ(attention_forward::argument_bytes(*spec), ending.bytes) << ending.words;
  }
}

}  // namespace
}  // namespace wavejit::tests
