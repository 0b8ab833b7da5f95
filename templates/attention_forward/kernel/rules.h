// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which specs have no kernel, one row a reason, in the order in which reasons are told.
#pragma once

#include <string>
#include <string_view>

#include "targets/targets.h"
#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::attention_forward {

// A spec whose target is in the table.
struct AskedSpec {
  const ForwardKernel& spec;
  const targets::Target& target;

  HeadDims head_dims() const { return {.qk = spec.head_dim_qk, .v = spec.head_dim_v}; }
  std::string pipeline() const { return "pipeline=" + std::string(to_text(spec.pipeline)); }
  std::string target_name() const { return std::string(target.id); }
};

// The first reason; empty: none. with_room = false leaves out what registers refuse: `kernel_room` measures such specs.
std::string first_refusal(const AskedSpec& asked, bool with_room = true);

// One of its rules (combinations.cpp): words that have no kernel beside each other. A sentence names one word and what
// would do in its place.
std::string refused_combination(const AskedSpec& asked);

// Why AskedWords::moves_whole_rows is refused.
inline constexpr std::string_view trans_is_dense =
    "trans_q, trans_k, trans_v and trans_o need dense or packed tensors; "
    "accepted: no cache=, queries=e4m3, pages and lists beside them";

}  // namespace wavejit::attention_forward
