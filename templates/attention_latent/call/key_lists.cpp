// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/call/key_lists.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "families/call/refusal.h"
#include "templates/attention/call/numbers.h"

namespace wavejit::attention_latent {
namespace {

using attention::address;
using families::refusal::bad;
using families::refusal::pointer_text;
using families::refusal::refuse;
using families::refusal::up_to;

using Call = wavejit_attention_latent_arguments;

constexpr std::int64_t max_row_stride = std::int64_t{1} << 40;
// A workgroup is 256 threads, and the threads of a row of workgroups are counted in 32 bits.
constexpr std::uint64_t most_queries = (std::uint64_t{1} << 24) - 1;
// Slots are 32 bits, of which one value says that there is none.
constexpr std::uint64_t most_slots = std::uint64_t{1} << 31;

std::unexpected<Failure> bad_number(const char* field, std::int64_t value, const std::string& accepted) {
  return refuse(bad(WAVEJIT_INVALID_ARGUMENT, field, std::to_string(value), accepted));
}

// Hot: without lists nothing is looked at twice, and no text is made.
bool says_nothing(const Call& call) {
  return call.key_counts == nullptr && call.top_k == 0 && call.key_indices_row_stride == 0 && call.key_slots == 0;
}

[[gnu::cold, gnu::noinline]] Result<void> refuse_rest(const Call& call) {
  const std::string without = " without key_indices";
  if (call.key_counts != nullptr)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "key_counts", pointer_text(call.key_counts), "null" + without));
  for (const auto& [field, value] : {std::pair{"top_k", call.top_k},
                                     {"key_indices_row_stride", call.key_indices_row_stride},
                                     {"key_slots", call.key_slots}})
    if (value != 0) return bad_number(field, value, "0" + without);
  return {};
}

// Slots stand where they stand, whatever sequence a query is of.
Result<void> check_slots(const Call& call) {
  for (const auto& [field, array] : {std::pair{"block_table", call.block_table},
                                     {"query_starts", call.query_starts},
                                     {"key_starts", call.key_starts},
                                     {"key_lengths", call.key_lengths}})
    if (array != nullptr)
      return refuse(bad(WAVEJIT_INVALID_ARGUMENT, field, pointer_text(array),
                        "null beside key_slots = 1: an entry is the slot of its key, whatever sequence that is of"));
  if (call.mask != 0)
    return bad_number("mask", call.mask,
                      "0 beside key_slots = 1: slots have no order, so that nothing is behind a row");
  return {};
}

// Whether pages follow each other without gaps, so that a slot is a row. Pages of one key are rows themselves.
bool is_one_piece(const wavejit_tensor& pages) {
  return pages.sizes[1] > 1 && (pages.sizes[0] == 1 || pages.strides[0] == pages.sizes[1] * pages.strides[1]);
}

}  // namespace

Result<void> check_list_fields(const Call& call) {
  if (!has_lists(call)) return says_nothing(call) ? Result<void>() : refuse_rest(call);
  for (const auto& [field, array] : {std::pair{"key_indices", call.key_indices}, {"key_counts", call.key_counts}})
    if (reinterpret_cast<std::uintptr_t>(array) % alignof(std::int32_t) != 0)
      return refuse(
          bad(WAVEJIT_INVALID_ARGUMENT, field, pointer_text(array), "int32 in device memory, aligned to 4 bytes"));
  if (call.top_k < 1 || call.top_k > max_top_k)
    return bad_number("top_k", call.top_k, up_to("the entries of a list, 1", max_top_k));
  if (call.key_indices_row_stride != 0 &&
      (call.key_indices_row_stride < call.top_k || call.key_indices_row_stride > max_row_stride))
    return bad_number(
        "key_indices_row_stride", call.key_indices_row_stride,
        "0, or top_k = " + std::to_string(call.top_k) + " to " + std::to_string(max_row_stride) + " entries");
  if (call.key_slots != 0 && call.key_slots != 1)
    return bad_number("key_slots", call.key_slots, "0 (numbers of keys), 1 (slots of the cache)");
  return names_slots(call) ? check_slots(call) : Result<void>();
}

Result<void> take_lists(const Call& call, LatentProblem& problem) {
  if (!has_lists(call)) return {};
  LatentShape& shape = problem.shape;
  shape.listed = true;
  shape.slots = names_slots(call);
  shape.mask = Mask::none;
  shape.rows = rows_for(problem.heads);
  problem.top_k = static_cast<std::uint32_t>(call.top_k);
  problem.uneven_lengths = false;
  const std::uint64_t queries = std::uint64_t{problem.batch} * problem.query_length;
  if (queries > most_queries)
    return bad_number("q.sizes[1] (length)", problem.query_length,
                      "up to " + std::to_string(most_queries / problem.batch) + " queries of each of " +
                          std::to_string(problem.batch) + " sequences with lists");
  if (call.block_table == nullptr && !shape.slots) return {};
  const auto page_size = static_cast<std::uint64_t>(call.k.sizes[1]);
  const std::uint64_t slots = page_size * static_cast<std::uint64_t>(call.k.sizes[0]);
  if (shape.slots) {
    if (page_size != 1 && page_size % attention::page_granule != 0 && !is_one_piece(call.k))
      return bad_number("k.sizes[1] (page size)", call.k.sizes[1],
                        "1, and multiples of " + std::to_string(attention::page_granule) +
                            "; with key_slots = 1 any, if pages follow each other without gaps");
    const bool in_rows = is_one_piece(call.k) && (call.k_rope.data == nullptr || is_one_piece(call.k_rope));
    shape.pages = in_rows ? Pages::dense : pages_for(call.k.sizes[1]);
    problem.slots = static_cast<std::uint32_t>(slots);
    problem.key_length = problem.slots;
  }
  // A slot's page is found by multiplication, which is exact so far.
  const std::uint64_t most = shape.pages == Pages::dense || shape.pages == Pages::keys
                                 ? most_slots
                                 : std::min(most_slots, (std::uint64_t{1} << 40U) / page_size);
  if (slots > most)
    return bad_number("k.sizes[0] (pages)", call.k.sizes[0],
                      up_to("with lists, 1", static_cast<std::int64_t>(most / page_size)));
  return {};
}

Result<void> check_device_counts(families::DeviceMemory& memory, const LatentProblem& problem, const Call& call) {
  if (!has_lists(call) || call.key_counts == nullptr) return {};
  std::vector<std::int32_t> counts(problem.query_rows);
  if (const auto read = memory.read(counts.data(), call.key_counts, counts.size() * sizeof(std::int32_t)); !read)
    return fail(WAVEJIT_INVALID_ARGUMENT, "key_counts = " + pointer_text(call.key_counts) + ", of which " +
                                              std::to_string(counts.size()) + " elements cannot be read (" +
                                              read.error() + "); accepted: device memory of that many int32");
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i] < 0 || counts[i] > call.top_k)
      return bad_number(("key_counts[" + std::to_string(i) + "]").c_str(), counts[i],
                        up_to("0", call.top_k) + ", the entries of a list");
  return {};
}

attention::KeyListArguments list_arguments(const Call& call, const LatentProblem& problem, std::uint64_t first) {
  if (!has_lists(call)) return {};
  const std::int64_t row = call.key_indices_row_stride != 0 ? call.key_indices_row_stride : call.top_k;
  const std::uint64_t row_stride = static_cast<std::uint64_t>(row) * sizeof(std::int32_t);
  return {.indices = address(call.key_indices) + (first * row_stride),
          .counts = call.key_counts != nullptr ? address(call.key_counts) + (first * sizeof(std::int32_t)) : 0,
          .row_stride = row_stride,
          .length = problem.top_k,
          .slots = problem.slots,
          .causal = problem.causal ? 1U : 0U,
          .parts = (problem.top_k + attention::list_chunk_keys - 1) / attention::list_chunk_keys};
}

}  // namespace wavejit::attention_latent
