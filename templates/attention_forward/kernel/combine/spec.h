// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What one compiled attention_combine kernel is, and its text (the cache key):
//
//   attention_combine fp16 d128 target=gfx950 lowering=llvm
//
// It merges the partial results of a split attention_forward kernel, whatever that kernel's mask, pipeline or modifiers
// were; LSE and sinks are arguments that may be null. No LLVM in this header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::attention_combine {

using attention::DataType;
using attention_forward::Lowering;

struct CombineKernel {
  static constexpr std::string_view kernel = "attention_combine";
  static constexpr std::string_view family = attention_forward::ForwardKernel::family;

  DataType dtype = DataType::fp16;               // of O
  int head_dim = 128;                            // of V and O
  bool first_keys = false;                       // of the split kernel's dense keys: they say how many a sequence has
  bool listed = false;                           // parts of listed keys
  bool scaled = false;                           // of a cache of 8 bits, which has scales
  attention::Mask kind = attention::Mask::none;  // of masks.def: which keys rows see
  bool causal_flags = false;                     // sequences say whether they have a diagonal
  bool trans_o = false;                          // dims of a row of O need not stand side by side
  attention_forward::QueriesOf rows = attention_forward::QueriesOf::all;  // the split kernel's: all, or few
  std::string target;                                                     // processor name: a row of the target table
  Lowering lowering = Lowering::llvm;

  bool of_few_rows() const { return rows == attention_forward::QueriesOf::few; }
  bool operator==(const CombineKernel&) const = default;
};

// Canonical text. parse_spec(to_text(spec)) == spec.
std::string to_text(const CombineKernel& spec);
// The error names the word, its position and what is accepted. Words may come in any order; none may be missing or
// twice.
std::expected<CombineKernel, std::string> parse_spec(std::string_view text);

// "attention_combine_fp16_d128_few_rows_gfx950"
std::string kernel_name(const CombineKernel& spec);

// The reason why there is no such kernel, in one sentence, or nothing.
std::optional<std::string> refusal_of(const CombineKernel& spec);
// Bytes of the argument struct that a launch hands over (arguments.h).
std::size_t argument_bytes(const CombineKernel& spec);

// The kernel that merges what a split kernel leaves, to an O of that kernel's data type or of another, whose dims
// stand side by side or not.
CombineKernel combine_of(const attention_forward::ForwardKernel& split,
                         attention::OutputType output = attention::OutputType::as_products, bool trans_o = false);

using attention::bytes_of;
using attention::is_narrow;

}  // namespace wavejit::attention_combine
