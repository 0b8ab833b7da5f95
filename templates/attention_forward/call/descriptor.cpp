// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/call/descriptor.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "families/kernel/names.h"
#include "templates/attention_forward/call/descriptor_words.h"
#include "templates/attention_forward/call/merging.h"
#include "templates/attention_forward/call/mix.h"
#include "templates/attention_forward/call/pairs.h"
#include "templates/attention_forward/call/shared_chunks.h"
#include "templates/attention_forward/call/splits.h"
#include "templates/attention_forward/call/walks/bool_mask.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::attention_forward {

void ProblemDescriptor::add(Modifier one, Extent extent, std::string number) {
  of(one) = {.there = true, .extent = extent, .number = std::move(number)};
  if (row_of(one).in_code) shape.modifiers.add(one);
}

namespace {

// Packed queries of which one is the longest and all others are one row: what makes two kernels share a call (mix.h),
// with keys whole and split, if they can be. Two sequences leave the device room for splits.
std::vector<ProblemDescriptor> mixes_of(const ProblemDescriptor& one) {
  std::vector<ProblemDescriptor> mixes;
  const bool may_pack = one.layout == Layout::packed || one.layout == Layout::paged || one.query_rows;
  // A line that lists its lengths is one call.
  const bool is_told = !one.query_lengths.empty() || one.query_rows;
  if (!may_pack || one.batch < 2 || one.splits > 1 || (is_told && few_rows_of(problem_of(one)) == 0)) return mixes;
  if (one.query_length <= static_cast<std::int64_t>(longest_packed_query)) return mixes;
  ProblemDescriptor mix = one;
  mix.batch = 2;
  mix.query_lengths.clear();
  mix.first_keys.clear();
  if (!mix.key_lengths.empty()) mix.key_lengths.assign(2, mix.key_length);
  mix.query_rows = one.query_length + 1;
  for (const std::int64_t splits : {std::int64_t{1}, one.splits}) {
    mix.splits = splits;
    // Whether waves of the short ones share chunks goes by the batch.
    for (const bool shares : {false, true}) {
      mix.shared_chunks = shares;
      mixes.push_back(mix);
    }
  }
  return mixes;
}

// What a smaller batch has where this one's parts are too many to stand side by side (splits.h).
ProblemDescriptor alone(ProblemDescriptor one) {
  one.batch = 1;
  one.query_lengths.clear();
  one.query_rows.reset();
  one.first_keys.clear();
  one.total_keys.reset();
  if (!one.key_lengths.empty()) one.key_lengths.assign(1, one.key_length);
  return one;
}

}  // namespace

// Routes know the class of the query length. Whether keys are split goes one way with each length, so that the ends of
// a class and of the keys meet both answers, if there are two.
std::vector<ProblemDescriptor> without_ranges(const ProblemDescriptor& descriptor) {
  std::vector<ProblemDescriptor> each;
  if (descriptor.shape.listed) {
    // As one length: whole, and where there is more than a chunk, cut.
    const bool has_chunks =
        descriptor.splits <= 0 && descriptor.top_k > list_chunk_keys && descriptor.second_top_k == 0;
    each.push_back(descriptor);
    if (has_chunks)
      for (const std::int64_t splits : {1, 2}) each.emplace_back(descriptor).splits = splits;
    if (has_chunks) each.erase(each.begin());
    return each;
  }
  const auto take = [&](const ProblemDescriptor& one) {
    if (std::ranges::find(each, one) == each.end()) each.push_back(one);
  };
  // Lengths and the batch also decide what merges.
  const auto take_merged = [&](ProblemDescriptor one) {
    const bool either = one.launches == 0 && one.splits != 1 && one.key_length > chunk_keys &&
                        may_merge_by_itself(one.shape) && can_merge_somewhere(one.shape) &&
                        !has_parts_by_sequence(problem_of(one));
    if (!either) return take(one);
    for (const std::int64_t launches : {2, 1}) {
      one.launches = launches;
      take(one);
    }
  };
  const auto add = [&](std::int64_t queries, std::int64_t keys) {
    ProblemDescriptor one = descriptor;
    one.least_query_length.reset();
    one.least_key_length.reset();
    one.query_length = queries;
    one.key_length = keys;
    one.shape.set_rows(rows_of(descriptor, queries));
    if (one.shape.bias_by_tile && !bias_goes_by_tile(queries)) one.shape.bias_by_tile = one.shape.block_lists = false;
    if (one.shape.bool_mask) one.shape.block_lists = makes_walks_of_mask(one, queries);
    if (one.mask.causal_prefix) one.mask.causal_prefix = std::min(*one.mask.causal_prefix, keys);
    // Whether few rows of several chunks are split goes by the batch, too: they have both.
    const bool either = descriptor.splits <= 0 && queries <= static_cast<std::int64_t>(longest_packed_query);
    for (const std::int64_t splits : {1, 2}) {
      if (either && keys > chunk_keys) one.splits = splits;
      // And so does whether query tiles go in pairs, and whether waves share chunks.
      for (const bool other : {false, true}) {
        if (may_pair(one.shape)) one.paired_tiles = other;
        if (can_share_somewhere(one.shape)) one.shared_chunks = other;
        take_merged(one);
        if (has_parts_by_sequence(problem_of(one))) take_merged(alone(one));
      }
    }
    for (const ProblemDescriptor& mix : mixes_of(one)) take(mix);
  };
  const std::int64_t longest = descriptor.query_length;
  for (std::int64_t first = descriptor.least_query_length.value_or(longest); first <= longest;) {
    std::int64_t last = first;  // of the class
    for (std::int64_t beyond = longest + 1; last + 1 < beyond;) {
      const std::int64_t middle = last + (beyond - last) / 2;
      (rows_of(descriptor, middle) == rows_of(descriptor, first) ? last : beyond) = middle;
    }
    for (const std::int64_t queries : {first, last})
      for (const std::int64_t keys :
           {descriptor.least_key_length.value_or(descriptor.key_length), descriptor.key_length})
        add(queries, keys);
    first = last + 1;
  }
  return each;
}

AttentionProblem problem_of(const ProblemDescriptor& descriptor) {
  AttentionProblem problem;
  problem.shape = descriptor.shape;
  problem.batch = static_cast<std::uint32_t>(descriptor.batch);
  problem.query_length = static_cast<std::uint32_t>(descriptor.query_length);
  problem.key_length = static_cast<std::uint32_t>(descriptor.key_length);
  problem.query_heads = static_cast<std::uint32_t>(descriptor.query_heads);
  problem.kv_heads = static_cast<std::uint32_t>(descriptor.kv_heads);
  problem.query_rows = static_cast<std::uint64_t>(descriptor.batch) * problem.query_length;
  if (!descriptor.query_lengths.empty()) {
    problem.query_rows = 0;
    for (const std::int64_t length : descriptor.query_lengths) problem.query_rows += static_cast<std::uint64_t>(length);
  }
  if (descriptor.query_rows) problem.query_rows = static_cast<std::uint64_t>(*descriptor.query_rows);
  problem.packed_queries =
      descriptor.layout == Layout::packed || !descriptor.query_lengths.empty() || descriptor.query_rows.has_value();
  problem.splits = static_cast<std::uint32_t>(std::max<std::int64_t>(descriptor.splits, 0));
  problem.hints = descriptor.hints;
  // As calls of such layouts have them: only the device knows.
  const bool on_device = descriptor.layout == Layout::packed || descriptor.layout == Layout::paged;
  problem.uneven_lengths = may_be_uneven(on_device || !descriptor.key_lengths.empty() || descriptor.shape.first_keys,
                                         descriptor.batch, descriptor.key_length, descriptor.total_keys.value_or(0));
  if (descriptor.launches != 0)
    problem.launches = descriptor.launches == 1 ? attention::Launches::one : attention::Launches::two;
  problem.bottom_right = !descriptor.mask.causal_prefix;
  problem.causal_prefix = static_cast<std::int32_t>(descriptor.mask.causal_prefix.value_or(0));
  problem.paired_tiles = descriptor.paired_tiles;
  problem.shared_chunks = descriptor.shared_chunks;
  if (descriptor.shape.block_lists || descriptor.shape.bool_mask) {
    const bool by_batch = descriptor.bool_mask == attention::Extent::batch ||
                          descriptor.bool_mask == attention::Extent::batch_and_head || problem.packed_queries;
    const bool by_head =
        descriptor.bool_mask == attention::Extent::head || descriptor.bool_mask == attention::Extent::batch_and_head;
    if (descriptor.shape.bool_mask) {
      problem.lists = lists_of_mask(problem, by_batch ? descriptor.batch : 1, by_head ? descriptor.query_heads : 1);
      return problem;
    }
    if (descriptor.shape.bias_by_tile) {
      const attention::Extent bias = descriptor.of(Modifier::bias).extent;
      const bool batches = bias == Extent::batch || bias == Extent::batch_and_head || problem.packed_queries;
      const bool heads = bias == Extent::head || bias == Extent::batch_and_head;
      problem.lists = lists_of_mask(problem, batches ? descriptor.batch : 1, heads ? descriptor.query_heads : 1);
      return problem;
    }
    // A list a head, with room for every block.
    BlockLists lists = lists_of(descriptor);
    lists.batches = problem.batch;
    lists.heads = problem.query_heads;
    lists.row_blocks = (problem.query_length + lists.rows - 1) / lists.rows;
    lists.capacity = (std::uint64_t{problem.key_length} + lists.keys - 1) / lists.keys;
    problem.lists = lists;
  }
  if (descriptor.shape.listed) {
    problem.top_k = static_cast<std::uint32_t>(descriptor.top_k);
    problem.key_list_heads = descriptor.list_each_head ? problem.kv_heads : 1;
    problem.causal = descriptor.mask.causal;
    problem.second_top_k = static_cast<std::uint32_t>(descriptor.second_top_k);
    problem.uneven_lengths = false;
  }
  return problem;
}

ProblemDescriptor with_lengths(const ProblemDescriptor& descriptor) {
  ProblemDescriptor told = descriptor;
  const bool may_pack = told.layout == Layout::packed || told.layout == Layout::paged;
  if (!told.query_rows || !told.query_lengths.empty() || !may_pack) return told;
  std::int64_t left = *told.query_rows;
  std::int64_t longest = told.query_length;
  for (std::int64_t b = 0; b < told.batch; ++b) {
    const std::int64_t others = told.batch - 1 - b;
    const std::int64_t length = b == 0 ? longest : std::min(longest, (left + others) / (others + 1));
    told.query_lengths.push_back(std::min(length, left));
    left -= told.query_lengths.back();
  }
  return told;
}

}  // namespace wavejit::attention_forward
