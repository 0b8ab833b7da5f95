// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "append_problems.h"

#include <bit>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>

#include "attention/modified.h"
#include "cache_append/append_run.h"

namespace wavejit::tests {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();

// `nan`: which NaN stands where is nobody's promise.
CallProblem append(const AppendCase& which, bool nan = false) {
  return {[which, nan](wavejit_engine* engine, bool judges) {
    const AppendOutput output = run_append(engine, which);
    CallResult result;
    result.status = output.status;
    result.reports = output.status != WAVEJIT_OK && output.reports.empty() ? output.detail : output.reports;
    result.fence_intact = output.rest_intact;
    const auto add = [&](const auto& more) { result.bits.insert(result.bits.end(), more.begin(), more.end()); };
    add(output.k);
    add(output.v);
    add(output.q);
    for (const auto* scales : {&output.k_scales, &output.v_scales})
      for (const float scale : *scales) result.bits.push_back(std::bit_cast<std::uint32_t>(scale));
    if (!judges || nan || output.status != WAVEJIT_OK) return result;
    const AppendOutput wanted = expected_append(which);
    if (output.k != wanted.k) result.wrong = "keys";
    if (output.v != wanted.v) result.wrong = "values";
    if (output.q != wanted.q) result.wrong = "queries";
    if (output.k_scales != wanted.k_scales || output.v_scales != wanted.v_scales) result.wrong = "scales";
    return result;
  }};
}

// Every kind of slot, of either width, in pages whose size is a power of two and one that is none.
std::vector<CallProblem> with_every_slot(AppendCase which) {
  std::vector<CallProblem> all;
  which.tokens = 9;
  which.slots = {-1, 0, 5, 59, 60, most, -most, 41, 17};
  which.positions = {0, 1, which.table_rows - 1, which.table_rows, -1, most, 7, 3, 9};
  for (const bool wide : {false, true}) {
    which.pages = wide ? 12 : 15;
    which.page_size = wide ? 5 : 4;
    which.wide_slots = wide;
    if (wide) which.slots[4] = (std::int64_t{1} << 32U) + 5;
    all.push_back(append(filled(which, wide ? 2 : 1)));
  }
  which.batch = 2;
  which.tokens = 3;
  which.slots = {3, 4, 5, 20, 21, -5};
  which.source = AppendCase::Order::hnd;
  all.push_back(append(filled(which, 3)));
  // NaN with a long payload and a short one, zeros of both signs, infinities: in every place of a lane.
  which = filled(which, 5);
  constexpr std::uint16_t special[] = {0x8000, 0x7F81, 0x0000, 0xFFFF, 0x7F80, 0x8000, 0x7FC0};
  for (std::size_t at = 0; at < which.k.size(); ++at)
    if (at % 9 < 4) which.k[at] = special[at % std::size(special)];
  for (std::size_t at = 0; at < which.v.size(); ++at)
    if (at % 9 < 4) which.v[at] = special[at % std::size(special)];
  for (std::size_t at = 0; at < which.q.size(); ++at)
    if (at % 9 < 4) which.q[at] = special[at % std::size(special)];
  all.push_back(append(which, true));
  which.k.clear();
  which.v.clear();
  which.q.clear();
  which.cosines.clear();
  which.sines.clear();
  // One token, one head.
  which.batch = which.tokens = which.heads = 1;
  which.slots = {7};
  which.positions = {11};
  all.push_back(append(filled(which, 4)));
  return all;
}

}  // namespace

std::vector<CallProblem> turned_appends() {
  return with_every_slot({.heads = 5,
                          .query_heads = 3,
                          .key_dims = 96,
                          .value_dims = 40,
                          .rotary = WAVEJIT_ROTARY_HALVES,
                          .rotary_dims = 64});
}

std::vector<CallProblem> narrow_appends(int most_dims) {
  std::vector<CallProblem> all;
  for (const std::int64_t dims : {96, 16, most_dims})
    for (CallProblem& problem : with_every_slot({.heads = 5,
                                                 .key_dims = dims,
                                                 .value_dims = dims == 96 ? 40 : dims,
                                                 .narrow = WAVEJIT_E4M3,
                                                 .token_scales = true}))
      all.push_back(std::move(problem));
  // One lane a head, two, four … in waves that are full: a neighbour's numbers would show in a scale.
  for (const std::int64_t dims : {8, 16, 32, 64, 128, 256})
    all.push_back(append(filled({.tokens = 3,
                                 .heads = 512 / dims,
                                 .key_dims = dims,
                                 .value_dims = dims,
                                 .slots = {3, 9, 40},
                                 .narrow = WAVEJIT_E4M3,
                                 .token_scales = true},
                                static_cast<std::uint64_t>(dims))));
  return all;
}

}  // namespace wavejit::tests
