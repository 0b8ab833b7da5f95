#include "runtime/call_descriptor.h"

#include <array>
#include <charconv>
#include <string>

namespace wavejit::runtime {

[[gnu::cold]] ProblemDescriptor describe_call(const AttentionProblem& problem,
                                              const wavejit_attention_forward_arguments& call) {
  const auto number = [](float value) {
    std::array<char, 32> text{};
    const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} ? std::string(text.data(), end) : std::string();
  };
  const bool heads_outside = call.q.sizes[1] > 1 && call.q.sizes[2] > 1 && call.q.strides[2] > call.q.strides[1];
  ProblemDescriptor descriptor;
  descriptor.shape = problem.shape;
  descriptor.batch = problem.batch;
  descriptor.query_length = problem.query_length;
  descriptor.key_length = problem.key_length;
  descriptor.query_heads = problem.query_heads;
  descriptor.kv_heads = problem.kv_heads;
  descriptor.layout = heads_outside ? Layout::bhsd : Layout::bshd;
  descriptor.scale = number(call.scale);
  if (call.query_starts != nullptr && call.key_starts != nullptr) descriptor.layout = Layout::packed;
  descriptor.causal = (call.mask & WAVEJIT_MASK_CAUSAL) != 0;
  if ((call.mask & WAVEJIT_MASK_PREFIX) != 0) descriptor.causal_prefix = call.causal_prefix;
  if ((call.mask & WAVEJIT_MASK_WINDOW) != 0) descriptor.window = {call.window_left, call.window_right};
  if (problem.shape.bias) {
    const bool by_batch = call.bias.sizes[0] > 1;
    const bool by_head = call.bias.sizes[1] > 1;
    descriptor.bias = by_batch && by_head ? BiasExtent::batch_and_head
                      : by_batch          ? BiasExtent::batch
                      : by_head           ? BiasExtent::head
                                          : BiasExtent::one;
  }
  if (problem.shape.alibi) descriptor.alibi = call.alibi.sizes[0] > 1 ? AlibiExtent::batch_and_head : AlibiExtent::head;
  descriptor.sink = call.sink.data != nullptr;
  if (problem.shape.softcap) descriptor.softcap = number(call.softcap);
  if (call.splits > 0) descriptor.splits = call.splits;
  return descriptor;
}

}  // namespace wavejit::runtime
