// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/call/walks/bool_mask.h"

#include <algorithm>
#include <string>

#include "families/call/refusal.h"
#include "templates/attention/call/numbers.h"
#include "templates/attention/call/tensors.h"
#include "templates/attention/kernel/marked_tile.h"
#include "templates/attention_forward/call/walks/lists.h"

namespace wavejit::attention_forward {
namespace {

using attention::ceil_div;
using refusal::bad;
using refusal::refuse;

// The workspace of a bool mask has the bits of all rows and keys, then a list of each kind for each block of rows. It
// stands in front of walks.
constexpr std::uint64_t aligned(std::uint64_t bytes) { return ceil_div(bytes, 256) * 256; }
std::uint64_t blocks_of_mask(const BlockLists& lists) {
  return std::uint64_t{lists.batches} * lists.heads * lists.row_blocks * lists.capacity;
}
constexpr std::uint64_t bits_of_block = std::uint64_t{attention::block_rows} * tile_keys / 8;  // bytes
std::uint64_t bits_bytes(const BlockLists& lists) {
  return lists.bits ? aligned(blocks_of_mask(lists) * bits_of_block) : 0;
}
std::uint64_t list_bytes(const BlockLists& lists) { return aligned(blocks_of_mask(lists) * sizeof(std::int32_t)); }
}  // namespace

std::uint64_t mask_bytes(const BlockLists& lists) {
  return lists.of_mask ? bits_bytes(lists) + (2 * list_bytes(lists)) : 0;
}

BlockLists lists_of_mask(const AttentionProblem& problem, std::int64_t batches, std::int64_t heads) {
  const std::uint64_t tiles =
      std::max<std::uint64_t>(ceil_div(problem.key_length, static_cast<unsigned>(tile_keys)), 1);
  return {.rows = attention::block_rows,
          .keys = static_cast<std::uint32_t>(tile_keys),
          .batches = static_cast<std::uint32_t>(batches),
          .heads = static_cast<std::uint32_t>(heads),
          .row_blocks = static_cast<std::uint32_t>(ceil_div(problem.query_length, attention::block_rows)),
          .capacity = tiles,
          .full_capacity = problem.shape.mask == Mask::none ? tiles : 0,
          .alike = true,
          .of_mask = true,
          .bits = problem.shape.bool_mask};
}

namespace {

std::unexpected<Failure> refuse_keys(std::int64_t keys, const std::string& accepted) {
  return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "k.sizes[1] (length)", std::to_string(keys), accepted));
}

// Kernels count bytes of a block of rows, and of the bits of a head, in 32 bits.
constexpr std::int64_t most_mask_stride = std::int64_t{1} << 25;
constexpr std::uint64_t most_bits_of_head = std::uint64_t{1} << 31;
constexpr std::uint64_t most_of_grid = 0xFFFF;

// What goes with walks of either kind of mask.
std::optional<BesideWord> beside_either(const AttentionShape& shape, bool lists, bool listed) {
  if (lists) return BesideWord{.word = "lists of key blocks", .accepted = "one of the two"};
  if (listed) return BesideWord{.word = "lists of keys", .accepted = "one of the two"};
  if (!has_kind(shape.mask) && !shape.causal_flags) return std::nullopt;
  return BesideWord{.word = shape.causal_flags ? "causal_flags" : attention::kind_of(shape.mask)->what,
                    .accepted = "mask none, causal or a window; what else hides, in it"};
}

// Takes the lists of a mask of either kind, whose sizes are good.
Result<void> take_lists_of_mask(const char* name, const wavejit_tensor& mask, AttentionProblem& problem) {
  problem.lists =
      lists_of_mask(problem, problem.packed_queries ? std::int64_t{problem.batch} : mask.sizes[0], mask.sizes[1]);
  const BlockLists& lists = problem.lists;
  const std::uint64_t of_head = lists.row_blocks * lists.capacity * bits_of_block;
  if (of_head >= most_bits_of_head || lists.row_blocks > most_of_grid ||
      std::uint64_t{lists.batches} * lists.heads > most_of_grid)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, std::string(name) + ": bits of one head",
                      std::to_string(of_head) + " bytes",
                      "less than 2147483648 (2 GiB), of up to 65535 batches and heads together"));
  problem.shape.block_lists = true;
  if (!walk_bytes(problem))
    return refuse_keys(problem.key_length, "fewer keys: the walks of this mask are longer than kernels can count");
  return {};
}

}  // namespace

std::optional<BesideWord> beside_bool_mask(const AttentionShape& shape, bool lists, bool listed) {
  if (shape.has(Modifier::bias)) return BesideWord{.word = "bias", .accepted = "a bias alone, whose −inf hides"};
  return beside_either(shape, lists, listed);
}

std::optional<BesideWord> beside_bias_by_tile(const AttentionShape& shape, bool lists, bool listed) {
  if (shape.bool_mask) return BesideWord{.word = "bool_mask", .accepted = "one of the two"};
  if (shape.paged || shape.first_keys)
    return BesideWord{.word = shape.paged ? "pages" : "first_keys",
                      .accepted = "dense or packed keys, or the bias without the flag"};
  return beside_either(shape, lists, listed);
}

[[gnu::cold, gnu::noinline]] Result<void> take_bool_mask(const wavejit_attention_forward_arguments& call,
                                                         AttentionProblem& problem) {
  const wavejit_tensor& t = call.modifiers.bool_mask;
  const attention::Named mask = {"bool_mask", &t};
  if (const auto beside = beside_bool_mask(problem.shape, has_lists(call), call.key_list.indices != nullptr))
    return fail(WAVEJIT_UNSUPPORTED, "bool_mask beside " + beside->text());
  if (auto kind = attention::check_kind(mask, WAVEJIT_INT8, 1); !kind) return kind;
  const bool packed = problem.packed_queries;
  auto step = attention::check_size(mask, 0, packed ? 1 : problem.batch, packed ? "packed queries" : "sequences", true);
  if (step) step = attention::check_size(mask, 1, problem.query_heads, "q.sizes[2]", true);
  if (step) step = attention::check_size(mask, 2, call.q.sizes[1], "q.sizes[1]", false);
  if (step) step = attention::check_size(mask, 3, problem.key_length, "the longest keys", false);
  if (!step) return step;
  for (int d = 0; d < 3; ++d)
    if (t.sizes[d] > 1 &&
        (t.strides[d] < 0 || t.strides[d] >= (d == 2 ? most_mask_stride : attention::max_batch_stride)))
      return refuse(attention::wrong_stride(
          mask, d, d == 2 ? refusal::up_to("bytes from 0", most_mask_stride - 1) : std::string("0 and more")));
  if (t.sizes[3] > 1 && t.strides[3] != 1) return refuse(attention::wrong_stride(mask, 3, "1"));
  if (problem.key_length > max_paged_length)
    return refuse_keys(problem.key_length, refusal::up_to("beside a bool mask 0", max_paged_length));
  problem.shape.bool_mask = true;
  if (auto lists = take_lists_of_mask(mask.name, t, problem); !lists) return lists;
  if (splits_bool_mask(problem.shape, problem.query_length, problem.lists.heads > 1)) problem.shape.block_lists = false;
  return {};
}

[[gnu::cold, gnu::noinline]] Result<void> take_bias_by_tile(const wavejit_attention_forward_arguments& call,
                                                            AttentionProblem& problem) {
  const char* name = "flags = WAVEJIT_BIAS_BY_TILE";
  const AttentionShape& shape = problem.shape;
  if (!shape.has(Modifier::bias))
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "flags", "WAVEJIT_BIAS_BY_TILE without a bias", "it beside a bias"));
  if (const auto beside = beside_bias_by_tile(shape, has_lists(call), call.key_list.indices != nullptr))
    return fail(WAVEJIT_UNSUPPORTED, std::string(name) + " beside " + beside->text());
  if (problem.key_length > max_paged_length)
    return refuse_keys(problem.key_length, refusal::up_to("beside a bias by tile 0", max_paged_length));
  if (!bias_goes_by_tile(problem.query_length)) {
    problem.shape.bias_by_tile = false;
    return {};
  }
  return take_lists_of_mask(name, call.modifiers.bias, problem);
}

std::string describe_mask_of_few_rows(const AttentionProblem& problem) {
  return "none: up to " + std::to_string(longest_packed_query) +
         " rows under one mask for all heads are walked as without it; "
         "attention_mask_lists leaves a bit for each row and key, and says of each tile of " +
         std::to_string(problem.lists.keys) + " keys whether it is hidden, open or mixed: hidden ones are not read";
}

MaskPlan plan_mask(const AttentionProblem& problem, const wavejit_attention_forward_arguments& call,
                   const Arguments& arguments, const void* memory) {
  const BlockLists& lists = problem.lists;
  const wavejit_tensor& mask = lists.bits ? call.modifiers.bool_mask : call.modifiers.bias;
  const auto bits = reinterpret_cast<std::uintptr_t>(memory);
  const std::uint64_t masked = bits + bits_bytes(lists);
  const std::uint64_t whole = masked + list_bytes(lists);
  const std::uint64_t of_block = lists.capacity * bits_of_block;
  const bool has_whole = lists.full_capacity != 0;
  const auto stride_of = [&](int dimension) {
    if (mask.sizes[dimension] < 2) return std::uint64_t{0};
    return static_cast<std::uint64_t>(mask.strides[dimension]) * attention::element_bytes_of(mask);
  };
  const auto list_of = [](std::uint64_t indices, std::uint64_t capacity) -> attention_block_lists::Lists {
    return {.indices = capacity == 0 ? 0 : indices, .capacity = static_cast<std::uint32_t>(capacity)};
  };
  MaskPlan plan = {.look = {.mask = reinterpret_cast<std::uintptr_t>(mask.data),
                            .mask_batch_stride = stride_of(0),
                            .mask_head_stride = stride_of(1),
                            .masked = masked,
                            .whole = has_whole ? whole : 0,
                            .bits = lists.bits ? bits : 0,
                            .query_starts = arguments.sequences.query_starts,
                            .query_rows = arguments.sequences.query_rows,
                            .query_length = arguments.query_length,
                            .key_length = arguments.key_length,
                            .mask_row_stride = static_cast<std::uint32_t>(stride_of(2)),
                            .heads = lists.heads,
                            .blocks = lists.row_blocks,
                            .tiles = static_cast<std::uint32_t>(lists.capacity)},
                   .masked = list_of(masked, lists.capacity),
                   .whole = list_of(whole, lists.full_capacity),
                   .bits = std::nullopt};
  if (lists.bits)
    plan.bits = {.bias = bits,
                 .bias_batch_stride = lists.batches == 1 ? 0 : lists.heads * lists.row_blocks * of_block,
                 .bias_head_stride = lists.heads == 1 ? 0 : lists.row_blocks * of_block,
                 .bias_row_stride = static_cast<std::uint32_t>(of_block)};
  return plan;
}

}  // namespace wavejit::attention_forward
