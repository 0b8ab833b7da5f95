// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/call/problem/device_lengths.h"

#include <algorithm>
#include <string>
#include <vector>

#include "templates/families/call/refusal.h"

namespace wavejit::attention_forward {
namespace {

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

}  // namespace

Result<void> check_device_lengths(families::DeviceMemory& memory, const AttentionProblem& problem,
                                  const wavejit_attention_forward_arguments& call) {
  const std::size_t batch = problem.batch;
  std::vector<std::int32_t> key_starts;
  if (call.query_starts != nullptr) {
    const auto starts = copy_out(memory, "query_starts", call.query_starts, batch + 1);
    if (!starts) return std::unexpected(starts.error());
    if (auto good = check_starts("query_starts", *starts, call.q.sizes[1], problem.query_length); !good) return good;
  }
  if (call.key_starts != nullptr) {
    auto starts = copy_out(memory, "key_starts", call.key_starts, batch + 1);
    if (!starts) return std::unexpected(starts.error());
    if (auto good = check_starts("key_starts", *starts, call.k.sizes[1], problem.key_length); !good) return good;
    key_starts = *std::move(starts);
  }
  if (call.key_lengths == nullptr) return {};
  const auto lengths = copy_out(memory, "key_lengths", call.key_lengths, batch);
  if (!lengths) return std::unexpected(lengths.error());
  for (std::size_t i = 0; i < batch; ++i) {
    const std::int64_t keys =
        key_starts.empty() ? std::int64_t{problem.key_length} : std::int64_t{key_starts[i + 1]} - key_starts[i];
    const std::int32_t length = (*lengths)[i];
    if (length >= 0 && length <= keys) continue;
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, element("key_lengths", i), std::to_string(length),
                      refusal::up_to("0", keys) + ", the keys of the sequence"));
  }
  return {};
}

}  // namespace wavejit::attention_forward
