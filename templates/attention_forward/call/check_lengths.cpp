// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether the lengths that a descriptor lists go with its other words.
#include <algorithm>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "templates/attention_forward/call/descriptor_words.h"

namespace wavejit::attention_forward {
namespace {

// Those of the longest sequence are among them. More than the lengths add up to may stand behind the last.
Result<void> check_query_rows(const ProblemDescriptor& descriptor) {
  if (!descriptor.query_rows) return {};
  std::int64_t least = descriptor.query_length;
  if (!descriptor.query_lengths.empty())
    least = std::reduce(descriptor.query_lengths.begin(), descriptor.query_lengths.end());
  if (descriptor.has_range())
    return fail(WAVEJIT_INVALID_ARGUMENT, "descriptor: q_rows: beside a range of lengths; accepted: one length");
  if (*descriptor.query_rows >= least) return {};
  return fail(WAVEJIT_INVALID_ARGUMENT, "descriptor: q_rows=" + std::to_string(*descriptor.query_rows) +
                                            "; accepted: " + std::to_string(least) +
                                            " and more, the rows of its sequences");
}

// With dense keys the padding and the keys behind it share the tensor's rows.
Result<void> check_first_keys(const ProblemDescriptor& descriptor) {
  const auto refuse_list = [](const std::string& value, const std::string& accepted) {
    return fail(WAVEJIT_INVALID_ARGUMENT, "descriptor: first_keys: " + value + "; accepted: " + accepted);
  };
  if (!descriptor.shape.first_keys) return {};
  if (descriptor.layout == Layout::packed) return refuse_list("layout=packed", "other layouts");
  if (descriptor.shape.vectorised) return refuse_list("beside vectorised pages", "layout=paged:<n>[:nhd|hnd]");
  const std::vector<std::int64_t>& firsts = descriptor.first_keys;
  if (firsts.empty()) return {};
  if (descriptor.has_range()) return refuse_list("numbers beside a range of lengths", "first_keys without numbers");
  if (std::ssize(firsts) != descriptor.batch) {
    return refuse_list(
        std::to_string(firsts.size()) + " numbers",
        std::to_string(descriptor.batch) + ", one for each sequence of b" + std::to_string(descriptor.batch));
  }
  for (std::size_t i = 0; i < firsts.size(); ++i) {
    const bool paged = descriptor.layout == Layout::paged;
    const std::int64_t keys = i < descriptor.key_lengths.size() ? descriptor.key_lengths[i] : 0;
    const std::int64_t most = paged ? max_paged_length : descriptor.key_length - keys;
    if (firsts[i] <= most) continue;
    return refuse_list(std::to_string(firsts[i]) + ", of sequence " + std::to_string(i),
                       "0 to " + std::to_string(most) + (paged ? "" : ", what the rows leave beside its keys"));
  }
  return {};
}

}  // namespace

Result<void> check_lengths(const ProblemDescriptor& descriptor) {
  const bool packed = descriptor.layout == Layout::packed;
  const bool paged = descriptor.layout == Layout::paged;
  const auto refuse_list = [](const std::string& name, const std::string& value, const std::string& accepted) {
    return fail(WAVEJIT_INVALID_ARGUMENT, "descriptor: " + name + ": " + value + "; accepted: " + accepted);
  };
  if (!descriptor.query_lengths.empty() && !packed && !paged)
    return refuse_list("q_lengths", "layout is not packed", "layout=packed, layout=paged:<n>, or one length, q<n>");
  if (paged && descriptor.key_length > max_paged_length)
    return refuse_list("k" + std::to_string(descriptor.key_length), "more keys than pages can have",
                       "k0 to k" + std::to_string(max_paged_length) + " with layout=paged");
  if (auto firsts = check_first_keys(descriptor); !firsts) return firsts;
  if (auto rows = check_query_rows(descriptor); !rows) return rows;
  for (const auto& [name, list, longest, exact] :
       {std::tuple{"q_lengths", &descriptor.query_lengths, descriptor.query_length, true},
        {"k_lengths", &descriptor.key_lengths, descriptor.key_length, packed}}) {
    if (list->empty()) continue;
    if (descriptor.has_range())
      return refuse_list(name, "beside a range of lengths", "one length, or a range without lists of lengths");
    if (std::ssize(*list) != descriptor.batch) {
      return refuse_list(
          name, std::to_string(list->size()) + " lengths",
          std::to_string(descriptor.batch) + ", one for each sequence of b" + std::to_string(descriptor.batch));
    }
    const std::int64_t most = std::ranges::max(*list);
    if (exact ? most != longest : most > longest) {
      return refuse_list(
          name, "the longest is " + std::to_string(most),
          (exact ? "" : "up to ") + std::to_string(longest) + ", as " + name[0] + std::to_string(longest) + " says");
    }
  }
  return {};
}

}  // namespace wavejit::attention_forward
