// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which arguments a kernel reads last, and where they end. How many bytes a launch has and what a call fills in both go
// by this.
#pragma once

#include <cstddef>
#include <cstdint>

#include "templates/attention_forward/kernel/arrival_arguments.h"
#include "templates/attention_forward/kernel/cache_arguments.h"
#include "templates/attention_forward/kernel/flag_arguments.h"
#include "templates/attention_forward/kernel/integer_arguments.h"
#include "templates/attention_forward/kernel/key_list_arguments.h"
#include "templates/attention_forward/kernel/output_scale_arguments.h"
#include "templates/attention_forward/kernel/query_scale_arguments.h"
#include "templates/attention_forward/kernel/row_limits.h"
#include "templates/attention_forward/kernel/spec.h"
#include "templates/attention_forward/kernel/strided_arguments.h"
#include "templates/attention_forward/kernel/token_scale_arguments.h"
#include "templates/attention_forward/kernel/walks/list_arguments.h"

namespace wavejit::attention_forward {

// The last of a kernel's arguments but for flags of sequences and the scale of O: a row of the table in arguments.h.
enum class Tail : std::uint8_t {
  plain,
  pages,
  arrivals,
  row_limits,
  block_lists,
  key_lists,
  cache_scales,
  // Behind the scales of a cache, which kernels of scattered dims and of integers do not read.
  token_strides,
  query_scale,
  dim_strides,
  integer_scales,
};

// Words whose tails begin at one place have no kernel together (combinations.cpp), but for scattered dims beside
// integers, which have room for both.
constexpr Tail tail_of(const ForwardKernel& spec) {
  if (spec.narrow_queries) return Tail::query_scale;
  if (spec.integers) return Tail::integer_scales;
  if (spec.trans_any()) return Tail::dim_strides;
  if (spec.token_scales) return Tail::token_strides;
  if (spec.cache != CacheType::as_queries) return Tail::cache_scales;
  if (spec.listed) return Tail::key_lists;
  if (spec.block_lists) return Tail::block_lists;
  if (spec.shares_call()) return Tail::row_limits;
  if (spec.merged) return Tail::arrivals;
  return spec.paged ? Tail::pages : Tail::plain;
}

constexpr std::size_t end_of(Tail tail) {
  switch (tail) {
    case Tail::plain:
      return sizeof(Arguments);
    case Tail::pages:
      return sizeof(PagedArguments);
    case Tail::arrivals:
      return sizeof(ArrivalArguments);
    case Tail::row_limits:
      return sizeof(LimitedArguments);
    case Tail::block_lists:
      return sizeof(ListedArguments);
    case Tail::key_lists:
      return sizeof(KeyListedArguments);
    case Tail::cache_scales:
      return sizeof(CacheArguments);
    case Tail::token_strides:
      return sizeof(TokenScaleArguments);
    case Tail::query_scale:
      return sizeof(QueryScaleArguments);
    case Tail::dim_strides:
      return sizeof(StridedArguments);
    case Tail::integer_scales:
      break;
  }
  return sizeof(IntegerArguments);
}

// The table in arguments.h, where others do not hold it.
static_assert(cache_scales_at == 416 && sizeof(CacheArguments) == 464);
static_assert(sizeof(FlaggedArguments) == 368);
static_assert(sizeof(TokenScaleArguments) == 472);
static_assert(sizeof(StridedArguments) == 480);
static_assert(sizeof(QueryScaleArguments) == 488);
static_assert(output_scale_at == 552 && sizeof(OutputScaleArguments) == 568);

}  // namespace wavejit::attention_forward
