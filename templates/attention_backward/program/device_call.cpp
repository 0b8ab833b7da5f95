// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/program/device_call.h"

#include <tuple>
#include <utility>

#include "templates/attention/program/described_call.h"
#include "tools/empty_call.h"
#include "tools/stored_numbers.h"

namespace wavejit::attention_backward::program {

using attention::Modifier;
using attention::program::Experiment;
using attention::program::Placement;
using attention::program::tensor_of;

wavejit_attention_backward_arguments call_of(const Arrays& arrays, const DevicePointers& memory) {
  const Experiment& of = arrays.experiment;
  const Placement queries = attention::program::queries_of(of);
  const Placement keys = attention::program::keys_of(of);
  const Placement values = attention::program::values_of(of);
  const Placement outputs = attention::program::outputs_of(of);
  const attention::program::BiasPlacement bias = attention::program::bias_of(of);
  const std::int32_t dtype = tools::type_of(of.type);
  const auto half_or_float = [&](bool fp32) { return fp32 ? std::int32_t{WAVEJIT_FP32} : dtype; };
  const std::int32_t gradient = half_or_float(of.output_fp32);
  const auto numbers = [&](void* data) {
    return wavejit_dense_tensor(data, WAVEJIT_FP32, queries.batch, queries.heads, queries.length, 1);
  };
  const auto heads = [&](void* data, std::int64_t batches) {
    return wavejit_dense_tensor(data, WAVEJIT_FP32, batches, of.query_heads, 1, 1);
  };
  auto call = tools::empty_call<wavejit_attention_backward_arguments>(WAVEJIT_ATTENTION_BACKWARD);
  call.q = tensor_of(queries, memory.q, dtype);
  call.k = tensor_of(keys, memory.k, dtype);
  call.v = tensor_of(values, memory.v, dtype);
  // With a delta there is no o.
  if (memory.delta == nullptr) call.o = tensor_of(outputs, memory.o, half_or_float(!arrays.o_fp32.empty()));
  call.d_o = tensor_of(outputs, memory.d_o, dtype);
  call.lse = numbers(memory.lse);
  if (memory.d_lse != nullptr) call.d_lse = numbers(memory.d_lse);
  if (memory.delta != nullptr) call.delta = numbers(memory.delta);
  call.dq = tensor_of(queries, memory.dq, gradient);
  call.dk = tensor_of(keys, memory.dk, gradient);
  call.dv = tensor_of(values, memory.dv, gradient);
  describe(of, memory, call);
  if (memory.sinks != nullptr) call.modifiers.sink = heads(memory.sinks, 1);
  if (memory.d_sink != nullptr) call.d_sink = heads(memory.d_sink, of.batch);
  if (memory.slopes != nullptr) call.modifiers.alibi = heads(memory.slopes, of.batches_of(Modifier::alibi));
  if (memory.bias != nullptr) call.modifiers.bias = tensor_of(bias, memory.bias, half_or_float(of.bias_fp32));
  if (memory.d_bias != nullptr) call.d_bias = tensor_of(bias, memory.d_bias, half_or_float(arrays.d_bias_fp32));
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
    if (experiment->says(word))
      return tools::failed(tools::ExitCode::unsupported, descriptor + ": a call without arrays has no " + word);
  Arrays arrays;
  arrays.experiment = *std::move(experiment);
  read_words(arrays);
  const Placement queries = attention::program::queries_of(arrays.experiment);
  const Placement keys = attention::program::keys_of(arrays.experiment);
  const std::int64_t values = attention::program::values_of(arrays.experiment).elements();
  const std::int64_t outputs = attention::program::outputs_of(arrays.experiment).elements();
  const std::int64_t bias = attention::program::bias_of(arrays.experiment).elements();
  constexpr std::size_t half = 2;
  const std::size_t gradient = arrays.experiment.output_bytes();
  UnfilledCall made(engine);
  DevicePointers pointers;
  for (const auto& [to, elements, bytes] :
       {std::tuple{&pointers.q, queries.elements(), half},
        {&pointers.k, keys.elements(), half},
        {&pointers.v, values, half},
        {&pointers.o, outputs, half},
        {&pointers.d_o, outputs, half},
        {&pointers.lse, queries.rows(), sizeof(float)},
        {&pointers.d_lse, arrays.with_d_lse ? queries.rows() : 0, sizeof(float)},
        {&pointers.bias, bias, arrays.experiment.bias_fp32 ? sizeof(float) : half},
        {&pointers.d_bias, arrays.with_d_bias ? bias : 0, arrays.d_bias_fp32 ? sizeof(float) : half},
        {&pointers.dq, queries.elements(), gradient},
        {&pointers.dk, keys.elements(), gradient},
        {&pointers.dv, values, gradient}})
    *to = made.memory_.hold(tools::DeviceArray::allocate(engine, static_cast<std::size_t>(elements) * bytes));
  if (!made.memory_.good()) return std::unexpected(made.memory_.good().error());
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
