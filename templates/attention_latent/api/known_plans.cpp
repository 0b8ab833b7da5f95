// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/api/known_plans.h"

#include <array>
#include <cstddef>

#include "families/call/known_calls.h"
#include "families/call/tensor_memory.h"
#include "templates/attention/call/tensors.h"

namespace wavejit::families {

template <>
struct MovingPointers<wavejit_attention_latent_arguments> {
  using Call = wavejit_attention_latent_arguments;
  static constexpr std::array at = {offsetof(Call, q),
                                    offsetof(Call, q_rope),
                                    offsetof(Call, k),
                                    offsetof(Call, k_rope),
                                    offsetof(Call, o),
                                    offsetof(Call, lse),
                                    offsetof(Call, second_k),
                                    offsetof(Call, modifiers.sink),
                                    offsetof(Call, key_list.indices),
                                    offsetof(Call, scales.k_scale)};
  static constexpr std::array<std::size_t, 2> outputs = {4, 5};
};

}  // namespace wavejit::families

namespace wavejit::attention_latent {
namespace {

using Known = families::KnownCalls<wavejit_attention_latent_arguments, CallPlan>;
constinit thread_local Known known;

std::uint64_t bytes_of(const wavejit_tensor& tensor) {
  if (tensor.data == nullptr) return 0;
  const families::Range range = families::range_of(tensor, attention::element_bytes_of(tensor));
  return range.end - range.begin;
}

}  // namespace

const CallPlan* known_plan(const runtime::Engine& engine, const wavejit_attention_latent_arguments& call) {
  return known.find(engine.number(), call);
}

void keep_plan(const runtime::Engine& engine, const wavejit_attention_latent_arguments& call, const CallPlan& plan) {
  if (call.head.size != sizeof call || call.head.report != nullptr) return;
  const Known::Bytes bytes = {bytes_of(call.q),
                              bytes_of(call.q_rope),
                              bytes_of(call.k),
                              bytes_of(call.k_rope),
                              bytes_of(call.o),
                              bytes_of(call.lse),
                              bytes_of(call.second_k),
                              bytes_of(call.modifiers.sink),
                              0,  // a list of keys: nobody asks what it shares
                              bytes_of(call.scales.k_scale)};
  known.keep(engine.number(), call, bytes, plan);
}

}  // namespace wavejit::attention_latent
