// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/program/device_call.h"

#include <tuple>
#include <utility>

#include "tools/empty_call.h"

namespace wavejit::attention_backward::program {
namespace {

using attention::Modifier;
using attention::program::Experiment;
using attention::program::Placement;

wavejit_tensor tensor(const Placement& placement, void* data, std::int32_t dtype) {
  return {.data = data,
          .dtype = dtype,
          .reserved = 0,
          .sizes = {placement.batch, placement.length, placement.heads, placement.head_dim},
          .strides = {placement.stride_of_batch(), placement.stride_of_token(), placement.stride_of_head(), 1}};
}

}  // namespace

wavejit_attention_backward_arguments call_of(const Arrays& arrays, const DevicePointers& memory) {
  const Experiment& of = arrays.experiment;
  const Placement queries = attention::program::queries_of(of);
  const Placement keys = attention::program::keys_of(of);
  const Placement values = attention::program::values_of(of);
  const Placement outputs = attention::program::outputs_of(of);
  const std::int32_t dtype = of.type == tools::HalfType::bf16 ? WAVEJIT_BF16 : WAVEJIT_FP16;
  const std::int32_t gradient = of.output_fp32 ? WAVEJIT_FP32 : dtype;
  const auto numbers = [&](void* data) {
    return wavejit_tensor{.data = data,
                          .dtype = WAVEJIT_FP32,
                          .reserved = 0,
                          .sizes = {queries.batch, queries.heads, queries.length, 1},
                          .strides = {queries.heads * queries.length, queries.length, 1, 1}};
  };
  auto call = tools::empty_call<wavejit_attention_backward_arguments>(WAVEJIT_ATTENTION_BACKWARD);
  call.q = tensor(queries, memory.q, dtype);
  call.k = tensor(keys, memory.k, dtype);
  call.v = tensor(values, memory.v, dtype);
  // With a delta there is no o.
  if (memory.delta == nullptr) call.o = tensor(outputs, memory.o, arrays.o_fp32.empty() ? dtype : WAVEJIT_FP32);
  call.d_o = tensor(outputs, memory.d_o, dtype);
  call.lse = numbers(memory.lse);
  if (memory.d_lse != nullptr) call.d_lse = numbers(memory.d_lse);
  if (memory.delta != nullptr) call.delta = numbers(memory.delta);
  const auto heads = [&](void* data, std::int64_t batches) {
    return wavejit_tensor{.data = data,
                          .dtype = WAVEJIT_FP32,
                          .reserved = 0,
                          .sizes = {batches, of.query_heads, 1, 1},
                          .strides = {of.query_heads, 1, 1, 1}};
  };
  if (memory.sinks != nullptr) call.modifiers.sink = heads(memory.sinks, 1);
  if (memory.d_sink != nullptr) call.d_sink = heads(memory.d_sink, of.batch);
  call.dq = tensor(queries, memory.dq, gradient);
  call.dk = tensor(keys, memory.dk, gradient);
  call.dv = tensor(values, memory.dv, gradient);
  call.modifiers.scale = of.scale;
  if (of.scale == 0) call.head.flags = WAVEJIT_SCALE_IS_ZERO;
  call.mask = of.mask;
  call.sequences.query_starts = static_cast<const std::int32_t*>(memory.query_starts);
  call.sequences.key_starts = static_cast<const std::int32_t*>(memory.key_starts);
  call.sequences.key_lengths = static_cast<const std::int32_t*>(memory.key_lengths);
  if (of.packed_queries() || of.packed_keys()) call.sequences.count = of.batch;
  if (of.packed_queries()) call.sequences.max_query_length = of.query_length;
  if (of.packed_keys()) call.sequences.max_key_length = of.key_length;
  if (memory.slopes != nullptr)
    call.modifiers.alibi = {.data = memory.slopes,
                            .dtype = WAVEJIT_FP32,
                            .reserved = 0,
                            .sizes = {of.batches_of(Modifier::alibi), of.query_heads, 1, 1},
                            .strides = {of.query_heads, 1, 1, 1}};
  const attention::program::BiasPlacement placement = attention::program::bias_of(of);
  const auto bias = [&](void* data, std::int32_t type) {
    return wavejit_tensor{.data = data,
                          .dtype = type,
                          .reserved = 0,
                          .sizes = {placement.batches, placement.heads, placement.rows, placement.columns},
                          .strides = {placement.heads * placement.rows * placement.row_stride,
                                      placement.rows * placement.row_stride, placement.row_stride, 1}};
  };
  if (memory.bias != nullptr) call.modifiers.bias = bias(memory.bias, of.bias_fp32 ? WAVEJIT_FP32 : dtype);
  if (memory.d_bias != nullptr) call.d_bias = bias(memory.d_bias, arrays.d_bias_fp32 ? WAVEJIT_FP32 : dtype);
  call.modifiers.softcap = of.of(Modifier::softcap).number;
  call.sums_before = arrays.sums_before;
  call.sums_behind = arrays.sums_behind;
  return call;
}

tools::Result<UnfilledCall> UnfilledCall::prepare(wavejit_engine* engine, const std::string& descriptor) {
  auto experiment = parse_problem(descriptor);
  if (!experiment) return std::unexpected(experiment.error());
  if (experiment->packed_queries() || experiment->packed_keys() || !experiment->key_lengths.empty() ||
      experiment->has(Modifier::alibi))
    return tools::failed(tools::ExitCode::unsupported, descriptor + ": lengths and slopes must be filled in");
  for (const char* word : {"d_sink", "delta", "o=fp32"})
    if (says(*experiment, word))
      return tools::failed(tools::ExitCode::unsupported, descriptor + ": a call without arrays has no " + word);
  Arrays arrays;
  arrays.experiment = *std::move(experiment);
  read_words(arrays);
  const Placement queries = attention::program::queries_of(arrays.experiment);
  const Placement keys = attention::program::keys_of(arrays.experiment);
  UnfilledCall made;
  DevicePointers pointers;
  const auto allocate = [&](void*& to, std::int64_t elements, std::size_t bytes) -> tools::Result<void> {
    auto memory = tools::DeviceArray::allocate(engine, static_cast<std::size_t>(elements) * bytes);
    if (!memory) return std::unexpected(memory.error());
    to = memory->data();
    made.memory_.push_back(*std::move(memory));
    return {};
  };
  constexpr std::size_t half = 2;
  const std::size_t gradient = arrays.experiment.output_bytes();
  tools::Result<void> done;
  const std::int64_t values = attention::program::values_of(arrays.experiment).elements();
  const std::int64_t outputs = attention::program::outputs_of(arrays.experiment).elements();
  for (const auto& [to, elements, bytes] : {std::tuple{&pointers.q, queries.elements(), half},
                                            {&pointers.k, keys.elements(), half},
                                            {&pointers.v, values, half},
                                            {&pointers.o, outputs, half},
                                            {&pointers.d_o, outputs, half},
                                            {&pointers.lse, queries.rows(), sizeof(float)},
                                            {&pointers.dq, queries.elements(), gradient},
                                            {&pointers.dk, keys.elements(), gradient},
                                            {&pointers.dv, values, gradient}})
    if (done) done = allocate(*to, elements, bytes);
  if (done && arrays.with_d_lse) done = allocate(pointers.d_lse, queries.rows(), sizeof(float));
  if (const auto bias = attention::program::bias_of(arrays.experiment); bias.elements() > 0) {
    if (done) done = allocate(pointers.bias, bias.elements(), arrays.experiment.bias_fp32 ? sizeof(float) : half);
    if (done && arrays.with_d_bias)
      done = allocate(pointers.d_bias, bias.elements(), arrays.d_bias_fp32 ? sizeof(float) : half);
  }
  if (!done) return std::unexpected(done.error());
  made.call_ = call_of(arrays, pointers);
  return made;
}

tools::Result<void> UnfilledCall::run(wavejit_engine* engine, wavejit_call_report* report) {
  wavejit_attention_backward_arguments call = call_;  // the report is this run's, and gone after it
  call.head.report = report;
  if (auto launched = tools::checked(wavejit_attention_backward(engine, &call, nullptr)); !launched) return launched;
  return tools::checked(wavejit_device_synchronize(engine));
}

}  // namespace wavejit::attention_backward::program
