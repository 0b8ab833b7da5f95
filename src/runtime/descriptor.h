// Problem descriptors: one line of text says what a call is (docs/problem-descriptors.md). Logs print them, prebuild
// lists, benchmarks, bug reports and tests read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/failure.h"
#include "runtime/problem.h"

namespace wavejit::runtime {

enum class Layout : std::uint8_t { bshd, bhsd };

struct ProblemDescriptor {
  AttentionShape shape;
  std::int64_t batch = 1;
  std::int64_t query_length = 1;
  std::int64_t key_length = 1;
  std::int64_t query_heads = 1;
  std::int64_t kv_heads = 1;
  Layout layout = Layout::bshd;
  std::string scale;  // as written: one text, one problem; empty: 1 / sqrt(head dim)
  std::string seed;
  std::string inputs;      // "normal", "uniform", "adversarial:<name>"; empty: not said
  std::string invariance;  // "batch", "none"; empty: not said

  bool operator==(const ProblemDescriptor&) const = default;
};

// WAVEJIT_INVALID_ARGUMENT for what is no descriptor, WAVEJIT_UNSUPPORTED for words of the grammar that this version
// does not do; both with the word, its position and what is accepted.
Result<ProblemDescriptor> parse_descriptor(std::string_view text);
// Canonical: words in the grammar's order, defaults left out. parse(to_text(x)) == x.
std::string to_text(const ProblemDescriptor& descriptor);

}  // namespace wavejit::runtime
