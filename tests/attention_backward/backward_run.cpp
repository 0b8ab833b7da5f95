// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attention_backward/backward_run.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <format>
#include <span>
#include <stdexcept>
#include <tuple>

#include "support/noise_memory.h"
#include "support/test_device.h"

namespace wavejit::tests {
namespace {

using attention_backward::program::DevicePointers;
using attention_backward::program::Gradient;

std::vector<std::uint32_t> bits_of(std::span<const std::uint8_t> bytes, std::size_t element_bytes) {
  std::vector<std::uint32_t> bits(bytes.size() / element_bytes);
  for (std::size_t i = 0; i < bits.size(); ++i)
    std::memcpy(&bits[i], bytes.data() + (i * element_bytes), element_bytes);
  return bits;
}

}  // namespace

Arrays backward_arrays(const std::string& words) {
  auto arrays = attention_backward::program::make_arrays("attention_backward " + words);
  if (!arrays) throw std::runtime_error(arrays.error().what);
  return *std::move(arrays);
}

BackwardOutput run_backward(wavejit_engine* engine, const Arrays& arrays, const ChangeCall& change,
                            const Before& before) {
  const auto q = filled(engine, arrays.q);
  const auto k = filled(engine, arrays.k);
  const auto v = filled(engine, arrays.v);
  const auto o = arrays.o_fp32.empty() ? filled(engine, arrays.o) : filled(engine, arrays.o_fp32);
  const auto d_o = filled(engine, arrays.d_o);
  const auto lse = filled(engine, arrays.lse);
  const auto d_lse = filled(engine, arrays.d_lse);
  const auto delta = filled(engine, arrays.delta);
  const auto sinks = filled(engine, arrays.sinks);
  const auto bias = filled(engine, attention_backward::program::bias_bytes(arrays));
  const auto slopes = filled(engine, arrays.slopes);
  const auto query_starts = filled(engine, arrays.query_starts);
  const auto key_starts = filled(engine, arrays.key_starts);
  const auto key_lengths = filled(engine, arrays.key_lengths);
  const std::size_t bytes = arrays.experiment.output_bytes();
  NoiseMemory dq(engine, arrays.q.size() * bytes);
  NoiseMemory dk(engine, arrays.k.size() * bytes);
  NoiseMemory dv(engine, arrays.v.size() * bytes);
  NoiseMemory d_sink(engine, arrays.sinks.size() * static_cast<std::size_t>(arrays.experiment.batch) * sizeof(float));
  const std::size_t bias_element = arrays.d_bias_fp32 ? 4 : 2;
  NoiseMemory d_bias(engine, arrays.with_d_bias ? arrays.bias.size() * bias_element : 0);
  for (const auto& [memory, bits, sums] : {std::tuple{&dq, &before.dq, &arrays.dq_before},
                                           {&dk, &before.dk, &arrays.dk_before},
                                           {&dv, &before.dv, &arrays.dv_before}}) {
    if (!sums->empty()) std::memcpy(memory->inside().data(), sums->data(), sums->size() * sizeof sums->front());
    if (!bits->empty()) std::memcpy(memory->inside().data(), bits->data(), bits->size() * sizeof bits->front());
  }
  const auto data = [](const auto& memory) { return memory ? memory->data() : nullptr; };
  const DevicePointers pointers = {.q = data(q),
                                   .k = data(k),
                                   .v = data(v),
                                   .o = data(o),
                                   .d_o = data(d_o),
                                   .lse = data(lse),
                                   .d_lse = data(d_lse),
                                   .delta = data(delta),
                                   .sinks = data(sinks),
                                   .slopes = data(slopes),
                                   .bias = data(bias),
                                   .query_starts = data(query_starts),
                                   .key_starts = data(key_starts),
                                   .key_lengths = data(key_lengths),
                                   .dq = dq.data(),
                                   .dk = dk.data(),
                                   .dv = dv.data(),
                                   .d_sink = arrays.sinks.empty() ? nullptr : d_sink.data(),
                                   .d_bias = arrays.with_d_bias ? d_bias.data() : nullptr};
  wavejit_attention_backward_arguments call = attention_backward::program::call_of(arrays, pointers);
  std::size_t workspace_bytes = 0;
  wavejit_call_workspace(engine, &call.head, &workspace_bytes);  // 0 where no kernel does the call
  NoiseMemory workspace(engine, workspace_bytes);
  for (NoiseMemory* memory : {&dq, &dk, &dv, &d_sink, &d_bias, &workspace}) memory->in();
  call.split.workspace = workspace_bytes == 0 ? nullptr : workspace.data();
  call.split.workspace_bytes = workspace_bytes;
  wavejit_call_report report{};
  report.size = sizeof report;
  call.head.report = &report;
  if (change) change(call);

  BackwardOutput output;
  wavejit_simgpu_take_reports(nullptr, 0);
  output.status = wavejit_attention_backward(engine, &call, nullptr);
  if (output.status == WAVEJIT_OK) output.status = wavejit_device_synchronize(engine);
  if (output.status != WAVEJIT_OK) output.detail = wavejit_last_detail();
  output.reports.resize(wavejit_simgpu_take_reports(nullptr, 0) + 1);
  output.reports.resize(wavejit_simgpu_take_reports(output.reports.data(), output.reports.size()));
  output.kernel_spec = report.kernel_spec;
  if (output.status != WAVEJIT_OK) return output;
  for (NoiseMemory* memory : {&dq, &dk, &dv, &d_sink, &d_bias, &workspace}) {
    memory->out();
    output.fence_intact = output.fence_intact && memory->fence_intact();
  }
  output.dq = bits_of(dq.inside(), bytes);
  output.dk = bits_of(dk.inside(), bytes);
  output.dv = bits_of(dv.inside(), bytes);
  for (const std::uint32_t bits : bits_of(d_sink.inside(), sizeof(float)))
    output.d_sink.push_back(std::bit_cast<float>(bits));
  output.d_bias = bits_of(d_bias.inside(), bias_element);
  Outputs noted(output.status);
  noted.add(output.dq);
  noted.add(output.dk);
  noted.add(output.dv);
  return output;
}

double gradient_of(const Arrays& arrays, std::uint32_t bits) {
  if (arrays.experiment.output_fp32) return static_cast<double>(std::bit_cast<float>(bits));
  return static_cast<double>(tools::decode(arrays.experiment.type, static_cast<std::uint16_t>(bits)));
}

std::string wrong_gradients(const Arrays& arrays, const BackwardOutput& output) {
  const bool bf16 = arrays.experiment.type == tools::HalfType::bf16;
  const double unit = bf16 ? 1.0 / 256 : 1.0 / 2048;
  const double smallest = bf16 ? 1e-30 : 1e-7;
  struct Named {
    const char* name;
    const Gradient& exact;
    const std::vector<std::uint32_t>& bits;
  };
  for (const auto& [name, exact, bits] :
       {Named{"dq", arrays.exact.dq, output.dq}, Named{"dk", arrays.exact.dk, output.dk},
        Named{"dv", arrays.exact.dv, output.dv}}) {
    if (bits.size() != exact.values.size()) return std::format("{} has {} elements", name, bits.size());
    for (std::size_t i = 0; i < bits.size(); ++i) {
      const double got = gradient_of(arrays, bits[i]);
      // Roundings of P and dS, of o (in the magnitude) and of the gradient; f32 costs far less.
      const double of_output = arrays.experiment.output_fp32 ? 0 : unit * std::fabs(exact.values[i]);
      const double sums = 2e-6 * (exact.magnitudes[i] + std::fabs(exact.values[i]));
      const double bound = (1.1 * unit * exact.magnitudes[i]) + of_output + sums + smallest;
      if (!(std::fabs(got - exact.values[i]) <= bound))
        return std::format("{}[{}] (row {}, dim {}) is {} instead of {} ± {}", name, i,
                           i / static_cast<std::size_t>(arrays.experiment.head_dim_qk),
                           i % static_cast<std::size_t>(arrays.experiment.head_dim_qk), got, exact.values[i], bound);
    }
  }
  if (output.d_bias.size() != arrays.exact.d_bias.values.size())
    return std::format("d_bias has {} elements", output.d_bias.size());
  for (std::size_t i = 0; i < output.d_bias.size(); ++i) {
    const double exact = arrays.exact.d_bias.values[i];
    if (std::isnan(exact)) {  // behind a row: nobody writes it
      if (output.d_bias[i] != (arrays.d_bias_fp32 ? 0xFFFFFFFF : 0xFFFF))
        return std::format("d_bias[{}] was written", i);
      continue;
    }
    const double got =
        arrays.d_bias_fp32
            ? static_cast<double>(std::bit_cast<float>(output.d_bias[i]))
            : static_cast<double>(tools::decode(arrays.experiment.type, static_cast<std::uint16_t>(output.d_bias[i])));
    // O's rounding stands in the magnitude.
    const double of_output = arrays.d_bias_fp32 ? 0 : unit * std::fabs(exact);
    const double bound = ((unit + 2e-6) * arrays.exact.d_bias.magnitudes[i]) + of_output + smallest;
    if (!(std::fabs(got - exact) <= bound))
      return std::format("d_bias[{}] is {} instead of {} ± {}", i, got, exact, bound);
  }
  if (output.d_sink.size() != arrays.exact.d_sink.values.size())
    return std::format("d_sink has {} elements", output.d_sink.size());
  for (std::size_t i = 0; i < output.d_sink.size(); ++i) {
    // The error of o's rounding, where it is rounded; all else is f32.
    const double of_rounding = arrays.delta.empty() && arrays.o_fp32.empty() ? unit : 0;
    const double exact = arrays.exact.d_sink.values[i];
    const double bound = ((of_rounding + 2e-6) * arrays.exact.d_sink.magnitudes[i]) + smallest;
    if (!(std::fabs(static_cast<double>(output.d_sink[i]) - exact) <= bound))
      return std::format("d_sink[{}] is {} instead of {} ± {}", i, output.d_sink[i], exact, bound);
  }
  return {};
}

double signal_to_noise(const Arrays& arrays, const Gradient& exact, const std::vector<std::uint32_t>& bits) {
  double signal = 0;
  double error = 0;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    const double difference = gradient_of(arrays, bits[i]) - exact.values[i];
    signal += exact.values[i] * exact.values[i];
    error += difference * difference;
  }
  return 10 * std::log10(signal / error);
}

}  // namespace wavejit::tests
