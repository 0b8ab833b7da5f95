// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attention_merge/merge_run.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <format>
#include <limits>
#include <memory>
#include <stdexcept>

#include "support/noise_memory.h"
#include "support/normal_numbers.h"
#include "support/test_device.h"
#include "templates/attention_merge/program/reference.h"

namespace wavejit::tests {
namespace {

std::size_t bytes_of(wavejit_dtype type) { return type == WAVEJIT_FP32 ? 4 : 2; }
Storage storage_of(wavejit_dtype type) { return type == WAVEJIT_FP16 ? Storage::fp16 : Storage::bf16; }

std::uint32_t bits_of(wavejit_dtype type, float value) {
  return type == WAVEJIT_FP32 ? std::bit_cast<std::uint32_t>(value)
                              : to_storage(storage_of(type), static_cast<double>(value));
}
float value_of(wavejit_dtype type, std::uint32_t bits) {
  return type == WAVEJIT_FP32 ? std::bit_cast<float>(bits)
                              : from_storage(storage_of(type), static_cast<std::uint16_t>(bits));
}

// Strides in elements of batch, token and head, and from part to part.
struct Order {
  std::int64_t batch;
  std::int64_t token;
  std::int64_t head;
  std::int64_t part;
};
Order order_of_o(const MergeCase& which) {
  if (which.heads_outside) {
    const std::int64_t head = (which.tokens * which.dims) + 8;
    const std::int64_t batch = (which.heads * head) + 24;
    return {batch, which.dims, head, (which.batch * batch) + 16};
  }
  const std::int64_t token = which.heads * which.dims;
  return {which.tokens * token, token, which.dims, which.batch * which.tokens * token};
}
Order order_of_lse(const MergeCase& which) {
  const std::int64_t batch = which.tokens * which.heads;
  if (which.lse_by_token) return {batch, which.heads, 1, which.batch * batch};
  return {batch, 1, which.tokens, (which.batch * batch) + 3};
}

template <typename Each>
void for_each_row(const MergeCase& which, const Order& order, Each each) {
  std::size_t row = 0;
  for (std::int64_t batch = 0; batch < which.batch; ++batch)
    for (std::int64_t token = 0; token < which.tokens; ++token)
      for (std::int64_t head = 0; head < which.heads; ++head)
        each(row++, static_cast<std::size_t>((batch * order.batch) + (token * order.token) + (head * order.head)));
}

wavejit_tensor o_tensor(const MergeCase& which, const NoiseMemory& memory, wavejit_dtype type) {
  const Order order = order_of_o(which);
  wavejit_tensor tensor = wavejit_dense_tensor(memory.data(), type, which.batch, which.tokens, which.heads, which.dims);
  const std::int64_t strides[] = {order.batch, order.token, order.head, 1};
  std::ranges::copy(strides, tensor.strides);
  return tensor;
}
wavejit_tensor lse_tensor(const MergeCase& which, const NoiseMemory& memory) {
  const Order order = order_of_lse(which);
  wavejit_tensor tensor = wavejit_dense_tensor(memory.data(), WAVEJIT_FP32, which.batch, which.heads, which.tokens, 1);
  const std::int64_t strides[] = {order.batch, order.head, order.token, 1};
  std::ranges::copy(strides, tensor.strides);
  return tensor;
}

void put_part(const MergeCase& which, const MergePart& part, std::size_t number, NoiseMemory& o, NoiseMemory& lse) {
  const Order of_o = order_of_o(which);
  const Order of_lse = order_of_lse(which);
  for_each_row(which, of_o, [&](std::size_t row, std::size_t at) {
    for (std::size_t dim = 0; std::cmp_less(dim, which.dims); ++dim)
      o.put_bits((at + dim + (number * static_cast<std::size_t>(of_o.part))) * bytes_of(which.type),
                 bytes_of(which.type), bits_of(which.type, part.o[(row * static_cast<std::size_t>(which.dims)) + dim]));
  });
  for_each_row(which, of_lse, [&](std::size_t row, std::size_t at) {
    lse.put((at + (number * static_cast<std::size_t>(of_lse.part))) * sizeof(float), part.lse[row]);
  });
}

}  // namespace

float MergeOutput::value(std::size_t at, wavejit_dtype type) const { return value_of(type, o[at]); }

MergeCase filled(MergeCase which, std::size_t count, std::uint64_t seed, bool empty) {
  NormalNumbers normal(seed);
  for (std::size_t part = 0; part < count; ++part) {
    MergePart own;
    for (std::int64_t row = 0; row < which.rows(); ++row) {
      const bool none = empty && (row + static_cast<std::int64_t>(part) * 2) % 5 == 0;
      own.lse.push_back(none ? -std::numeric_limits<float>::infinity() : 4 * normal());
      for (std::int64_t dim = 0; dim < which.dims; ++dim)
        own.o.push_back(none ? std::numeric_limits<float>::quiet_NaN()
                             : value_of(which.type, bits_of(which.type, normal())));
    }
    which.parts.push_back(std::move(own));
  }
  return which;
}

MergeOutput run_merge(wavejit_engine* engine, const MergeCase& which) {
  std::vector<std::int64_t> stacks = which.stacks;
  if (stacks.empty()) stacks.assign(which.parts.size(), 1);
  const Order of_o = order_of_o(which);
  const Order of_lse = order_of_lse(which);
  wavejit_attention_merge_arguments call{};
  call.head.size = sizeof call;
  call.head.family = WAVEJIT_ATTENTION_MERGE;
  call.part_count = static_cast<std::int32_t>(stacks.size());
  std::vector<std::unique_ptr<NoiseMemory>> memories;
  memories.reserve(2 * stacks.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    const auto count = static_cast<std::size_t>(stacks[i]);
    auto o = std::make_unique<NoiseMemory>(engine, count * static_cast<std::size_t>(of_o.part) * bytes_of(which.type));
    auto lse = std::make_unique<NoiseMemory>(engine, count * static_cast<std::size_t>(of_lse.part) * sizeof(float));
    for (std::size_t number = 0; number < count; ++number) put_part(which, which.parts[next++], number, *o, *lse);
    o->in();
    lse->in();
    call.parts[i].o = o_tensor(which, *o, which.type);
    call.parts[i].lse = lse_tensor(which, *lse);
    if (count > 1) {
      call.parts[i].count = stacks[i];
      call.parts[i].o_stride = of_o.part;
      call.parts[i].lse_stride = of_lse.part;
    }
    memories.push_back(std::move(o));
    memories.push_back(std::move(lse));
  }
  NoiseMemory own_o(engine, static_cast<std::size_t>(of_o.part) * bytes_of(which.out));
  NoiseMemory own_lse(engine, static_cast<std::size_t>(of_lse.part) * sizeof(float));
  own_o.in();
  own_lse.in();
  const bool own = which.in_place < 0;
  NoiseMemory& o = own ? own_o : *memories[static_cast<std::size_t>(which.in_place) * 2];
  NoiseMemory& lse = own ? own_lse : *memories[(static_cast<std::size_t>(which.in_place) * 2) + 1];
  call.o = o_tensor(which, o, which.out);
  if (which.lse) call.lse = lse_tensor(which, lse);

  wavejit_call_report report{};
  report.size = sizeof report;
  call.head.report = &report;
  MergeOutput output;
  wavejit_simgpu_take_reports(nullptr, 0);
  output.status = wavejit_attention_merge(engine, &call, nullptr);
  if (output.status == WAVEJIT_OK) output.status = wavejit_device_synchronize(engine);
  if (output.status != WAVEJIT_OK) output.detail = wavejit_last_detail();
  output.reports.resize(wavejit_simgpu_take_reports(nullptr, 0) + 1);
  output.reports.resize(wavejit_simgpu_take_reports(output.reports.data(), output.reports.size()));
  output.kernel_spec = report.kernel_spec;
  o.out();
  lse.out();
  for_each_row(which, of_o, [&](std::size_t, std::size_t at) {
    for (std::size_t dim = 0; std::cmp_less(dim, which.dims); ++dim)
      output.o.push_back(o.take_bits((at + dim) * bytes_of(which.out), bytes_of(which.out)));
  });
  if (which.lse)
    for_each_row(which, of_lse,
                 [&](std::size_t, std::size_t at) { output.lse.push_back(lse.take<float>(at * sizeof(float))); });
  // A tensor of parts holds its other parts still; of those it is asked elsewhere.
  output.rest_intact = !own || (o.is_noise() && lse.is_noise());
  Outputs noted(output.status);
  noted.add(output.o);
  noted.add(output.lse);
  return output;
}

std::string difference_from_exact(const MergeCase& which, const MergeOutput& output) {
  const auto dims = static_cast<std::size_t>(which.dims);
  for (std::size_t row = 0; std::cmp_less(row, which.rows()); ++row) {
    std::vector<attention_merge::program::PartRow> parts;
    for (const MergePart& part : which.parts)
      parts.push_back({.o = std::span(part.o).subspan(row * dims, dims), .lse = static_cast<double>(part.lse[row])});
    const auto exact = attention_merge::program::merged(parts);
    double magnitude = 0;
    for (const auto& part : parts)
      for (const float value : part.o)
        if (std::isfinite(value)) magnitude = std::max(magnitude, std::fabs(static_cast<double>(value)));
    // Each part costs a few roundings of f32, weights an ulp of exp2 of a difference of some powers of two.
    const double of_sums = 2e-6 * magnitude * std::sqrt(static_cast<double>(parts.size()));
    for (std::size_t dim = 0; dim < dims; ++dim) {
      const double found = static_cast<double>(output.value((row * dims) + dim, which.out));
      const double rounding =
          which.out == WAVEJIT_FP32 ? 0 : half_ulp(storage_of(which.out), std::fabs(exact.o[dim]) + of_sums);
      if (!(std::fabs(found - exact.o[dim]) <= of_sums + rounding))
        return std::format("o, row {} dim {}: {} and not {}", row, dim, found, exact.o[dim]);
    }
    if (!which.lse) continue;
    const double found = static_cast<double>(output.lse[row]);
    if (std::isinf(exact.lse) ? found != exact.lse
                              : !(std::fabs(found - exact.lse) <= 2e-6 * std::max(1.0, std::fabs(exact.lse))))
      return std::format("lse, row {}: {} and not {}", row, found, exact.lse);
  }
  return {};
}

}  // namespace wavejit::tests
