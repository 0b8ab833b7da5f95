// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/call/device_lengths.h"

#include <algorithm>
#include <string>
#include <vector>

#include "families/call/refusal.h"
#include "templates/attention/call/limits.h"

namespace wavejit::attention {
namespace {

namespace refusal = families::refusal;
using families::fail;
using families::Result;
using refusal::bad;
using refusal::refuse;

std::string element(const char* name, std::size_t index) {
  return std::string(name) + "[" + std::to_string(index) + "]";
}

Result<std::vector<std::int32_t>> copy_out(families::DeviceMemory& memory, const char* name, const std::int32_t* array,
                                           std::size_t count) {
  std::vector<std::int32_t> host(count);
  const auto copied = memory.read(host.data(), array, count * sizeof(std::int32_t));
  if (copied) return host;
  return fail(WAVEJIT_INVALID_ARGUMENT, std::string(name) + " = " + refusal::pointer_text(array) + ", of which " +
                                            std::to_string(count) + " elements cannot be read (" + copied.error() +
                                            "); accepted: device memory of that many int32");
}

Result<void> check_starts(const char* name, const std::vector<std::int32_t>& starts, std::int64_t rows,
                          std::int64_t longest) {
  if (starts.front() != 0)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, element(name, 0), std::to_string(starts.front()), "0"));
  for (std::size_t i = 1; i < starts.size(); ++i) {
    const std::int64_t before = starts[i - 1];
    const std::int64_t most = std::min(before + longest, rows);
    if (starts[i] >= before && starts[i] <= most) continue;
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, element(name, i), std::to_string(starts[i]),
                      refusal::up_to(std::to_string(before).c_str(), most) + " (after " + std::to_string(before) +
                          ", sequences of up to " + std::to_string(longest) + ", " + std::to_string(rows) + " rows)"));
  }
  return {};
}

// Where the pages of each sequence begin in a list, and the end of the last one's.
Result<std::vector<std::int32_t>> list_starts(families::DeviceMemory& memory, std::size_t batch,
                                              const wavejit_pages& call) {
  auto starts = copy_out(memory, "table_starts", call.table_starts, batch + 1);
  if (!starts) return starts;
  std::int64_t before = 0;
  for (std::size_t i = 0; i <= batch; ++i) {
    const std::int64_t start = (*starts)[i];
    if (start < before || start > call.table_columns)
      return refuse(bad(WAVEJIT_INVALID_ARGUMENT, element("table_starts", i), std::to_string(start),
                        refusal::up_to(std::to_string(before).c_str(), call.table_columns)));
    before = start;
  }
  return starts;
}

Result<void> check_table(families::DeviceMemory& memory, const wavejit_tensor& k, const wavejit_pages& call,
                         const std::vector<std::int32_t>& lengths, const std::vector<std::int32_t>& firsts) {
  const bool is_list = call.table_starts != nullptr;
  std::vector<std::int32_t> starts;
  if (is_list) {
    auto read = list_starts(memory, lengths.size(), call);
    if (!read) return std::unexpected(std::move(read.error()));
    starts = *std::move(read);
  }
  const std::int64_t stride = call.table_row_stride != 0 ? call.table_row_stride : call.table_columns;
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    const std::int64_t padding = firsts.empty() || lengths[b] == 0 ? 0 : firsts[b];
    const std::int64_t pages = (padding + lengths[b] + k.sizes[1] - 1) / k.sizes[1];
    const std::int64_t first = is_list ? starts[b] : static_cast<std::int64_t>(b) * stride;
    const std::int64_t present = is_list ? starts[b + 1] - starts[b] : call.table_columns;
    if (pages > present) {
      return refuse(bad(WAVEJIT_INVALID_ARGUMENT, element("key_lengths", b), std::to_string(lengths[b]),
                        refusal::up_to("0", std::max<std::int64_t>(present * k.sizes[1] - padding, 0)) +
                            ", the keys of the sequence's " + std::to_string(present) + " pages" +
                            (padding == 0 ? "" : " behind first_keys = " + std::to_string(padding))));
    }
    if (pages == 0) continue;
    const auto entries = copy_out(memory, "block_table", call.block_table + first, static_cast<std::size_t>(pages));
    if (!entries) return std::unexpected(entries.error());
    for (std::size_t i = 0; i < entries->size(); ++i) {
      const std::int32_t page = (*entries)[i];
      if (page >= 0 && page < k.sizes[0]) continue;
      return refuse(bad(WAVEJIT_INVALID_ARGUMENT, element("block_table", static_cast<std::size_t>(first) + i),
                        std::to_string(page), refusal::up_to("0", k.sizes[0] - 1) + ", the pages of the cache"));
    }
  }
  return {};
}

Result<std::vector<std::int32_t>> check_first_keys(families::DeviceMemory& memory, std::size_t batch,
                                                   const wavejit_tensor& k, const wavejit_sequences& call, bool paged) {
  auto firsts = copy_out(memory, "first_keys", call.first_keys, batch);
  if (!firsts) return firsts;
  const std::int64_t most = paged ? max_paged_length : k.sizes[1];
  for (std::size_t b = 0; b < firsts->size(); ++b) {
    const std::int32_t first = (*firsts)[b];
    if (first >= 0 && first <= most) continue;
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, element("first_keys", b), std::to_string(first),
                      refusal::up_to("0", most) + (paged ? ", the slots of its pages" : ", the rows of k and v")));
  }
  return firsts;
}

}  // namespace

families::Result<void> check_device_lengths(families::DeviceMemory& memory, const Extents& extents,
                                            const wavejit_tensor& q, const wavejit_tensor& k,
                                            const wavejit_sequences& call, const wavejit_pages& pages) {
  const bool paged = pages.block_table != nullptr;
  const auto batch = static_cast<std::size_t>(extents.sequences);
  std::vector<std::int32_t> key_starts;
  if (call.query_starts != nullptr) {
    const auto starts = copy_out(memory, "query_starts", call.query_starts, batch + 1);
    if (!starts) return std::unexpected(starts.error());
    if (auto good = check_starts("query_starts", *starts, q.sizes[1], extents.query_length); !good) return good;
  }
  if (call.key_starts != nullptr) {
    auto starts = copy_out(memory, "key_starts", call.key_starts, batch + 1);
    if (!starts) return std::unexpected(starts.error());
    if (auto good = check_starts("key_starts", *starts, k.sizes[1], extents.key_length); !good) return good;
    key_starts = *std::move(starts);
  }
  std::vector<std::int32_t> first_keys;
  if (call.first_keys != nullptr) {
    auto firsts = check_first_keys(memory, batch, k, call, paged);
    if (!firsts) return std::unexpected(std::move(firsts.error()));
    first_keys = *std::move(firsts);
  }
  if (call.key_lengths == nullptr) return {};
  const auto lengths = copy_out(memory, "key_lengths", call.key_lengths, batch);
  if (!lengths) return std::unexpected(lengths.error());
  for (std::size_t i = 0; i < batch; ++i) {
    std::int64_t keys = key_starts.empty() ? extents.key_length : std::int64_t{key_starts[i + 1]} - key_starts[i];
    if (!first_keys.empty() && !paged) keys -= first_keys[i];
    const std::int32_t length = (*lengths)[i];
    if (length >= 0 && length <= keys) continue;
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, element("key_lengths", i), std::to_string(length),
                      refusal::up_to("0", keys) + ", the keys of the sequence"));
  }
  if (paged) return check_table(memory, k, pages, *lengths, first_keys);
  return {};
}

families::Result<void> check_key_lengths(families::DeviceMemory& memory, const std::int32_t* key_lengths,
                                         std::size_t sequences, std::int64_t most, const char* what) {
  const auto lengths = copy_out(memory, "key_lengths", key_lengths, sequences);
  if (!lengths) return std::unexpected(lengths.error());
  for (std::size_t i = 0; i < lengths->size(); ++i) {
    const std::int32_t length = (*lengths)[i];
    if (length >= 0 && length <= most) continue;
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, element("key_lengths", i), std::to_string(length),
                      refusal::up_to("0", most) + ", " + what));
  }
  return {};
}

}  // namespace wavejit::attention
