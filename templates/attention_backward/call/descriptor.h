// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// attention_backward bf16 b1 q1024 k1024 h8/2 d128 causal
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "templates/attention/call/mask_words.h"
#include "templates/attention/call/modifier_words.h"
#include "templates/attention_backward/call/problem.h"

namespace wavejit::attention_backward {

enum class Layout : std::uint8_t { bshd, bhsd, packed };
inline constexpr families::Names<Layout, 3> layouts = {
    {{Layout::bshd, "bshd"}, {Layout::bhsd, "bhsd"}, {Layout::packed, "packed"}}};

// Texts stay as they were said; empty: not said.
struct ProblemDescriptor {
  AskedWords asked = {};  // as the words say it: of masks and modifiers what they amount to is in shape()
  std::int64_t batch = 1;
  std::int64_t query_length = 1;
  std::int64_t key_length = 1;
  std::int64_t query_heads = 1;
  std::int64_t kv_heads = 1;
  attention::MaskWords mask = {};
  Layout layout = Layout::bshd;
  // One a sequence; empty: all alike. Of packed queries; of packed keys, or how many of dense keys count.
  std::vector<std::int64_t> query_lengths = {};
  std::vector<std::int64_t> key_lengths = {};
  std::string scale = {};
  std::array<attention::DescribedModifier, attention::modifier_count> modifiers = {};
  bool d_lse = false;
  bool delta = false;
  bool d_sink = false;
  bool d_bias = false;       // in the type of q
  bool d_bias_fp32 = false;  // in f32
  // Bits of enum wavejit_gradient_sums: what the call goes on with, and what a later call goes on with.
  std::uint32_t sums_before = 0;
  std::uint32_t sums_behind = 0;
  std::string seed = {};

  const attention::DescribedModifier& of(Modifier one) const { return modifiers[static_cast<std::size_t>(one)]; }
  void add(Modifier one, attention::Extent extent, std::string number = {}) {
    modifiers[static_cast<std::size_t>(one)] = {.there = true, .extent = extent, .number = std::move(number)};
  }
  BackwardShape shape() const;
};

Result<ProblemDescriptor> parse_descriptor(std::string_view text);
// Canonical: words in the grammar's order, defaults left out.
std::string to_text(const ProblemDescriptor& descriptor);

}  // namespace wavejit::attention_backward
