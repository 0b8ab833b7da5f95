// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/api/known_plans.h"

#include <array>
#include <cstddef>

#include "families/call/known_calls.h"
#include "families/call/tensor_memory.h"
#include "templates/attention/call/tensors.h"
#include "templates/attention_forward/call/lists.h"

namespace wavejit::families {

template <>
struct MovingPointers<wavejit_attention_forward_arguments> {
  using Call = wavejit_attention_forward_arguments;
  static constexpr std::array at = {offsetof(Call, q),
                                    offsetof(Call, k),
                                    offsetof(Call, v),
                                    offsetof(Call, o),
                                    offsetof(Call, lse),
                                    offsetof(Call, modifiers.sink),
                                    offsetof(Call, scales.k_scale),
                                    offsetof(Call, scales.v_scale),
                                    offsetof(Call, scales.q_scale)};
  static constexpr std::array<std::size_t, 2> outputs = {3, 4};
};

}  // namespace wavejit::families

namespace wavejit::attention_forward {
namespace {

using Known = families::KnownCalls<wavejit_attention_forward_arguments, CallPlan>;
constinit thread_local Known known;

std::uint64_t bytes_of(const wavejit_tensor& tensor) {
  if (tensor.data == nullptr) return 0;
  const families::Range range = families::range_of(tensor, attention::element_bytes_of(tensor));
  return range.end - range.begin;
}

bool hangs_on_more(const wavejit_attention_forward_arguments& call) {
  return call.head.size != sizeof call || call.head.report != nullptr || call.modifiers.bias.data != nullptr ||
         call.modifiers.bool_mask.data != nullptr || has_lists(call) || call.key_list.indices != nullptr ||
         call.page_layout != WAVEJIT_PAGES_OF_ROWS;
}

}  // namespace

const CallPlan* known_plan(const runtime::Engine& engine, const wavejit_attention_forward_arguments& call) {
  return known.find(engine.number(), call);
}

void keep_plan(const runtime::Engine& engine, const wavejit_attention_forward_arguments& call, const CallPlan& plan) {
  if (hangs_on_more(call)) return;
  const Known::Bytes bytes = {bytes_of(call.q),
                              bytes_of(call.k),
                              bytes_of(call.v),
                              bytes_of(call.o),
                              bytes_of(call.lse),
                              bytes_of(call.modifiers.sink),
                              bytes_of(call.scales.k_scale),
                              bytes_of(call.scales.v_scale),
                              bytes_of(call.scales.q_scale)};
  known.keep(engine.number(), call, bytes, plan);
}

}  // namespace wavejit::attention_forward
