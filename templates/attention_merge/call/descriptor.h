// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// attention_merge bf16 b64 q1 h64 d128 parts=2 lse
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "templates/attention_merge/call/problem.h"

namespace wavejit::attention_merge {

struct ProblemDescriptor : AskedWords {
  std::int64_t batch = 0;
  std::int64_t tokens = 0;
  std::int64_t heads = 0;
  std::int64_t dims = 0;
  std::int64_t count = 0;  // of parts
  bool stacked = false;    // parts stand in one tensor
  bool lse = false;        // the result's is wanted
  bool empty = false;      // of the tools: some rows of some parts saw no key
  std::string seed;        // as it was said; empty: it was not

  MergeShape shape() const { return {static_cast<const AskedWords&>(*this)}; }
};

Result<ProblemDescriptor> parse_descriptor(std::string_view text);
// Canonical: words in the grammar's order, defaults left out.
std::string to_text(const ProblemDescriptor& descriptor);

}  // namespace wavejit::attention_merge
