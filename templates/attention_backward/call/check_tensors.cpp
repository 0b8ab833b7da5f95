// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tensors of a call: sizes against each other, types, strides, and that outputs are nobody's inputs.
#include <array>
#include <string>

#include "families/call/refusal.h"
#include "families/call/tensor_memory.h"
#include "templates/attention/call/data_type.h"
#include "templates/attention/call/limits.h"
#include "templates/attention/call/modifiers.h"
#include "templates/attention/call/sequences.h"
#include "templates/attention/call/tensors.h"
#include "templates/attention/call/workspace.h"
#include "templates/attention_backward/call/problem.h"

namespace wavejit::attention_backward {
namespace {

using families::refusal::bad;
using families::refusal::bad_size;
using families::refusal::dtype_text;
using families::refusal::field;
using families::refusal::Named;
using families::refusal::refuse;
using Call = wavejit_attention_backward_arguments;

struct Role {
  const char* name;
  wavejit_tensor Call::* tensor;
  bool of_keys;    // sizes as k, else as q
  bool of_values;  // the last size is v's
  bool gradient;   // written; its type may be fp32
  bool output;     // of the forward call: its type may be fp32, and a delta may stand in its place
};
constexpr std::array<Role, 8> roles = {{{"q", &Call::q, false, false, false, false},
                                        {"k", &Call::k, true, false, false, false},
                                        {"v", &Call::v, true, true, false, false},
                                        {"o", &Call::o, false, true, false, true},
                                        {"d_o", &Call::d_o, false, true, false, false},
                                        {"dq", &Call::dq, false, false, true, false},
                                        {"dk", &Call::dk, true, false, true, false},
                                        {"dv", &Call::dv, true, true, true, false}}};
const wavejit_tensor& tensor_of(const Role& role, const Call& call) { return call.*role.tensor; }
// Whether the call has it.
bool is_there(const Role& role, const Call& call) { return !role.output || call.delta.data == nullptr; }

// Numbers of a row or of a head beside those: read, or written.
struct Numbers {
  const char* name;
  wavejit_tensor Call::* own;  // null: one of the modifiers
  wavejit_tensor wavejit_modifiers::* modifier;
  bool of_rows;  // shaped as lse, else one a sequence and head
  bool optional;
  bool gradient;
};
// Tensors of elements of scores: the bias and its gradient.
constexpr std::array<Numbers, 2> biases = {{{"bias", nullptr, &wavejit_modifiers::bias, false, true, false},
                                            {"d_bias", &Call::d_bias, nullptr, false, true, true}}};
constexpr std::array<Numbers, 5> numbers = {{{"lse", &Call::lse, nullptr, true, false, false},
                                             {"d_lse", &Call::d_lse, nullptr, true, true, false},
                                             {"delta", &Call::delta, nullptr, true, true, false},
                                             {"sink", nullptr, &wavejit_modifiers::sink, false, true, false},
                                             {"d_sink", &Call::d_sink, nullptr, false, true, true}}};
const wavejit_tensor& tensor_of(const Numbers& of, const Call& call) {
  return of.own != nullptr ? call.*of.own : call.modifiers.*of.modifier;
}
bool is_there(const Numbers& of, const Call& call) { return !of.optional || tensor_of(of, call).data != nullptr; }

// Gradients are of one type: q's or f32, which check_tensor sees to.
Result<void> check_gradient_type(const Named& named, const Call& call) {
  if (named.tensor->dtype == call.dq.dtype) return {};
  return refuse(bad(WAVEJIT_INVALID_ARGUMENT, field(named, "dtype"), dtype_text(named.tensor->dtype),
                    dtype_text(call.dq.dtype) + ", the dtype of dq"));
}

// LSE and its gradient.
Result<void> check_row_numbers(const Named& named, const wavejit_tensor& q) {
  if (auto there = attention::check_memory(named, alignof(float)); !there) return there;
  return attention::check_row_numbers(named, q);
}

// The gradient of sinks: one number a sequence and head, anywhere.
Result<void> check_d_sink(const Call& call, const attention::Extents& extents) {
  const Named named = {"d_sink", &call.d_sink};
  if (call.modifiers.sink.data == nullptr)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "sink.data", "null", "the sinks of the forward call, beside d_sink"));
  Result<void> step = attention::check_kind(named, WAVEJIT_FP32, alignof(float));
  if (step) step = attention::check_size(named, 0, extents.sequences, extents.sequences_from, false);
  if (step) step = attention::check_size(named, 1, call.q.sizes[2], "q.sizes[2]", false);
  if (step) step = attention::check_size(named, 2, 1, "always", false);
  if (step) step = attention::check_size(named, 3, 1, "always", false);
  for (int d = 0; step && d < 2; ++d)
    if (named.tensor->sizes[d] > 1 &&
        (named.tensor->strides[d] < 1 || named.tensor->strides[d] >= attention::max_batch_stride))
      return refuse(attention::wrong_stride(named, d, "positive"));
  return step;
}

// An output shares memory with no input and no other output.
Result<void> check_outputs(const Call& call) {
  struct Part {
    Named named;
    bool written;
    families::Range range;
  };
  std::array<Part, roles.size() + numbers.size() + biases.size()> parts{};
  std::size_t count = 0;
  const auto add = [&](const auto& of) {
    if (!is_there(of, call)) return;
    const wavejit_tensor& tensor = tensor_of(of, call);
    parts[count++] = {{of.name, &tensor}, of.gradient, families::range_of(tensor, attention::element_bytes_of(tensor))};
  };
  for (const Role& role : roles) add(role);
  for (const Numbers& of : numbers) add(of);
  for (const Numbers& of : biases) add(of);
  for (std::size_t output = 0; output < count; ++output) {
    const auto& [named, written, range] = parts[output];
    if (!written) continue;
    if (auto apart = attention::check_no_overlap(named, 3, static_cast<std::uint64_t>(named.tensor->sizes[3])); !apart)
      return apart;
    for (std::size_t other = 0; other < count; ++other) {
      if (other == output) continue;
      if (auto apart = attention::check_apart(named, range, parts[other].named.name, parts[other].range); !apart)
        return apart;
    }
  }
  return {};
}

}  // namespace

Result<void> check_workspace(const Call& call, std::uint32_t sequences, std::uint64_t bytes) {
  if (call.split.workspace == nullptr || bytes == 0) return {};
  std::array<Named, roles.size() + numbers.size() + biases.size()> tensors{};
  std::size_t count = 0;
  const auto add = [&](const auto& of) { tensors[count++] = {of.name, &tensor_of(of, call)}; };
  for (const Role& role : roles) add(role);
  for (const Numbers& of : numbers) add(of);
  for (const Numbers& of : biases) add(of);
  return attention::check_workspace(call.split, bytes, tensors,
                                    attention::numbers_of(call.sequences, attention::no_pages, sequences));
}

// Shaped and laid out as a bias, with strides of its own; what the checks of a bias say, they say of it.
Result<void> check_d_bias(const Call& call, const attention::Extents& extents) {
  if (call.d_bias.data == nullptr) return {};
  const Named named = {"d_bias", &call.d_bias};
  if (call.modifiers.bias.data == nullptr)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "bias.data", "null", "the bias of the forward call, beside d_bias"));
  static constexpr std::array<const char*, 4> of_bias = {"bias.sizes[0]", "bias.sizes[1]", "bias.sizes[2]",
                                                         "bias.sizes[3]"};
  for (int d = 0; d < 4; ++d)
    if (auto size =
            attention::check_size(named, d, call.modifiers.bias.sizes[d], of_bias[static_cast<std::size_t>(d)], false);
        !size)
      return size;
  const attention::ModifierCall as_bias = {.q = call.q,
                                           .extents = extents,
                                           .packed_queries = call.sequences.query_starts != nullptr,
                                           .packed_keys = call.sequences.key_starts != nullptr,
                                           .scale_log2e = 0};
  if (auto good = attention::check_modifier(Modifier::bias, as_bias, call.d_bias, 0); !good) {
    good.error().detail = "d_" + good.error().detail;
    return good;
  }
  return attention::check_no_overlap(named, 3, static_cast<std::uint64_t>(named.tensor->sizes[3]));
}

Result<void> check_tensors(const Call& call) {
  if (call.q.dtype != WAVEJIT_FP16 && call.q.dtype != WAVEJIT_BF16)
    return refuse(bad(call.q.dtype == WAVEJIT_FP32 ? WAVEJIT_UNSUPPORTED : WAVEJIT_INVALID_ARGUMENT, "q.dtype",
                      dtype_text(call.q.dtype), "1 (fp16), 2 (bf16)"));
  for (const Named& named : {Named{"q", &call.q}, Named{"k", &call.k}, Named{"v", &call.v}})
    if (auto sizes = attention::check_sizes(named, named.tensor != &call.q, max_batch); !sizes) return sizes;
  return {};
}

Result<void> check_tensor_sizes(const Call& call, const attention::Extents& extents) {
  const std::int64_t kv_batch = call.sequences.key_starts != nullptr ? 1 : extents.sequences;
  const Named k = {"k", &call.k};
  if (auto batch = attention::check_size(
          k, 0, kv_batch, call.sequences.key_starts != nullptr ? "packed keys" : extents.sequences_from, false);
      !batch)
    return batch;
  if (call.q.sizes[2] % call.k.sizes[2] != 0)
    return refuse(bad_size(k, 2, "divisors of q.sizes[2] = " + std::to_string(call.q.sizes[2])));
  if (call.delta.data != nullptr && call.o.data != nullptr)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "o.data", families::refusal::pointer_text(call.o.data),
                      "null beside a delta, which stands in its place"));
  for (const Role& role : roles) {
    if (!is_there(role, call)) continue;
    const Named named = {role.name, &tensor_of(role, call)};
    const wavejit_tensor& like = role.of_keys ? call.k : call.q;
    static constexpr std::array<const char*, 3> of_q = {"q.sizes[0]", "q.sizes[1]", "q.sizes[2]"};
    static constexpr std::array<const char*, 3> of_k = {"k.sizes[0]", "k.sizes[1]", "k.sizes[2]"};
    for (int d = 0; d < 3; ++d)
      if (auto size = attention::check_size(named, d, like.sizes[d],
                                            (role.of_keys ? of_k : of_q)[static_cast<std::size_t>(d)], false);
          !size)
        return size;
    const wavejit_tensor& dims = role.of_values ? call.v : call.q;
    if (auto size = attention::check_size(named, 3, dims.sizes[3], role.of_values ? "v.sizes[3]" : "q.sizes[3]", false);
        !size)
      return size;
    if (role.gradient)
      if (auto type = check_gradient_type(named, call); !type) return type;
    const attention::TensorRules rules = {
        .dtype = call.q.dtype,
        .may_be_fp32 = role.gradient || role.output,
        .by_head = true,
        .longest = attention::longest_of_packed(
            extents, role.of_keys ? call.sequences.key_starts : call.sequences.query_starts, role.of_keys),
        .read_only = !role.gradient};
    if (auto layout = attention::check_tensor(named, rules); !layout) return layout;
  }
  for (const Numbers& of : numbers)
    if (of.of_rows && is_there(of, call))
      if (auto rows = check_row_numbers({of.name, &tensor_of(of, call)}, call.q); !rows) return rows;
  if (call.d_sink.data != nullptr)
    if (auto d_sink = check_d_sink(call, extents); !d_sink) return d_sink;
  return check_outputs(call);
}

}  // namespace wavejit::attention_backward
