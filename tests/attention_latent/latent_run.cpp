// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attention_latent/latent_run.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <format>
#include <memory>
#include <span>
#include <stdexcept>

#include "support/noise_memory.h"
#include "support/test_device.h"

namespace wavejit::tests {
namespace {

using attention::program::Sequence;
using attention_latent::program::DevicePointers;

std::size_t lse_at(const LatentArrays& arrays, const Sequence& sequence, std::int64_t row, std::int64_t head) {
  const auto queries = attention::program::queries_of(arrays.experiment);
  const std::int64_t token = sequence.first_query + row;
  return static_cast<std::size_t>((((token / queries.length * queries.heads) + head) * queries.length) +
                                  (token % queries.length));
}

}  // namespace

LatentArrays latent_arrays(const std::string& words) {
  auto arrays = attention_latent::program::make_latent_arrays("attention_latent " + words);
  if (!arrays) throw std::runtime_error(arrays.error().what);
  return *std::move(arrays);
}

LatentOutput run_latent(wavejit_engine* engine, const LatentArrays& arrays, const ChangeLatentCall& change) {
  const auto q = filled(engine, arrays.q);
  const auto q_rope = filled(engine, arrays.q_rope);
  const bool in_bytes = arrays.experiment.has_bytes();
  const auto k = in_bytes ? filled(engine, arrays.k_bytes) : filled(engine, arrays.k);
  const auto k_rope = in_bytes ? filled(engine, arrays.k_rope_bytes) : filled(engine, arrays.k_rope);
  const auto k_scale = filled(engine, arrays.k_scales);
  const auto sinks = filled(engine, arrays.sinks);
  const auto query_starts = filled(engine, arrays.query_starts);
  const auto key_starts = filled(engine, arrays.key_starts);
  const auto key_lengths = filled(engine, arrays.key_lengths);
  const auto table = filled(engine, arrays.table);
  const auto table_starts = filled(engine, arrays.table_starts);
  const auto key_indices = filled(engine, arrays.lists.indices);
  const auto key_counts = filled(engine, arrays.lists.counts);
  const auto second_k = in_bytes ? filled(engine, arrays.second_k_bytes) : filled(engine, arrays.second_k);
  const auto second_indices = filled(engine, arrays.second_lists.indices);
  const auto second_counts = filled(engine, arrays.second_lists.counts);
  const auto rows = static_cast<std::size_t>(attention::program::queries_of(arrays.experiment).rows());
  NoiseMemory o(engine, rows * static_cast<std::size_t>(arrays.latent()) * sizeof(std::uint16_t));
  NoiseMemory lse(engine, rows * sizeof(float));
  const auto data = [](const auto& memory) { return memory ? memory->data() : nullptr; };
  const DevicePointers pointers = {.q = data(q),
                                   .q_rope = data(q_rope),
                                   .k = data(k),
                                   .k_rope = data(k_rope),
                                   .o = o.data(),
                                   .lse = arrays.experiment.lse ? lse.data() : nullptr,
                                   .k_scale = data(k_scale),
                                   .sinks = data(sinks),
                                   .query_starts = data(query_starts),
                                   .key_starts = data(key_starts),
                                   .key_lengths = data(key_lengths),
                                   .table = data(table),
                                   .table_starts = data(table_starts),
                                   .key_indices = data(key_indices),
                                   .key_counts = data(key_counts),
                                   .second_k = data(second_k),
                                   .second_indices = data(second_indices),
                                   .second_counts = data(second_counts)};
  wavejit_attention_latent_arguments call = attention_latent::program::call_of(arrays, pointers);
  std::size_t workspace_bytes = 0;
  wavejit_call_workspace(engine, &call.head, &workspace_bytes);
  NoiseMemory workspace(engine, workspace_bytes);
  for (NoiseMemory* memory : {&o, &lse, &workspace}) memory->in();
  if (workspace_bytes != 0) {
    call.split.workspace = workspace.data();
    call.split.workspace_bytes = workspace_bytes;
  }
  wavejit_call_report report{};
  report.size = sizeof report;
  call.head.report = &report;
  if (change) change(call);

  LatentOutput output;
  wavejit_simgpu_take_reports(nullptr, 0);
  output.status = wavejit_attention_latent(engine, &call, nullptr);
  const bool refused = output.status != WAVEJIT_OK;
  if (output.status == WAVEJIT_OK) output.status = wavejit_device_synchronize(engine);
  if (output.status != WAVEJIT_OK) output.detail = wavejit_last_detail();
  output.reports.resize(wavejit_simgpu_take_reports(nullptr, 0) + 1);
  output.reports.resize(wavejit_simgpu_take_reports(output.reports.data(), output.reports.size()));
  output.kernel_spec = report.kernel_spec;
  if (output.status != WAVEJIT_OK && !refused) return output;
  for (NoiseMemory* memory : {&o, &lse, &workspace}) {
    memory->out();
    output.fence_intact = output.fence_intact && memory->fence_intact();
    // A refused call launches nothing: no test finds in such a detail what it looks for.
    if (refused && !memory->is_noise()) output.detail = "refused, and yet something was written";
  }
  if (refused) return output;
  output.o = o.elements<std::uint16_t>();
  if (arrays.experiment.lse) output.lse = lse.elements<std::uint32_t>();
  return output;
}

LatentRowBits row_of(const LatentArrays& arrays, const LatentOutput& output, std::int64_t sequence, std::int64_t row,
                     std::int64_t head) {
  const Sequence at = attention::program::sequences_of(arrays.experiment)[static_cast<std::size_t>(sequence)];
  const auto dims = static_cast<std::size_t>(arrays.latent());
  const auto first = static_cast<std::size_t>(((at.first_query + row) * arrays.experiment.query_heads) + head) * dims;
  LatentRowBits bits;
  bits.o.assign(output.o.begin() + static_cast<std::ptrdiff_t>(first),
                output.o.begin() + static_cast<std::ptrdiff_t>(first + dims));
  if (!output.lse.empty()) bits.lse = output.lse[lse_at(arrays, at, row, head)];
  return bits;
}

std::string wrong_latent(const LatentArrays& arrays, const LatentOutput& output, std::int64_t step) {
  if (output.o.empty()) return "no O was written";
  const auto& of = arrays.experiment;
  const std::vector<Sequence> sequences = attention::program::sequences_of(of);
  std::int64_t number = 0;
  for (std::int64_t b = 0; b < of.batch; ++b)
    for (std::int64_t row = 0; row < sequences[static_cast<std::size_t>(b)].queries; ++row)
      for (std::int64_t head = 0; head < of.query_heads; ++head) {
        if (number++ % step != 0) continue;
        const auto exact = attention_latent::program::exact_row_of(arrays, b, head, row);
        const std::vector<double> bounds = attention_latent::program::bounds_of(arrays, exact);
        const LatentRowBits bits = row_of(arrays, output, b, row, head);
        for (std::size_t dim = 0; dim < bits.o.size(); ++dim) {
          const auto got = static_cast<double>(tools::decode(of.type, bits.o[dim]));
          if (!(std::abs(got - exact.o[dim]) <= bounds[dim]))
            return std::format("sequence {} row {} head {} dim {}: {} in place of {} ± {}", b, row, head, dim, got,
                               exact.o[dim], bounds[dim]);
        }
        if (output.lse.empty()) continue;
        const auto got = static_cast<double>(std::bit_cast<float>(bits.lse));
        const bool alike = std::isinf(exact.lse) ? got == exact.lse
                                                 : std::abs(got - exact.lse) <= attention_latent::program::lse_bound;
        if (!alike)
          return std::format("LSE of sequence {} row {} head {}: {} in place of {}", b, row, head, got, exact.lse);
      }
  return "";
}

}  // namespace wavejit::tests
