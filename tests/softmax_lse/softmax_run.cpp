// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "softmax_lse/softmax_run.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <format>
#include <limits>
#include <stdexcept>

#include "support/noise_memory.h"
#include "support/normal_numbers.h"
#include "support/test_device.h"
#include "templates/softmax_lse/program/reference.h"

namespace wavejit::tests {
namespace {

using softmax_lse::DataType;

Storage storage_of(DataType type) { return type == DataType::bf16 ? Storage::bf16 : Storage::fp16; }

std::uint32_t bits_of(DataType type, float value) {
  return type == DataType::fp32 ? std::bit_cast<std::uint32_t>(value) : to_storage(storage_of(type), value);
}

std::int32_t told(DataType type) {
  return type == DataType::fp32 ? WAVEJIT_FP32 : type == DataType::bf16 ? WAVEJIT_BF16 : WAVEJIT_FP16;
}

// Where the elements of a tensor stand: rows `gap` apart, behind `lead`.
struct Place {
  const SoftmaxCase& which;
  std::int64_t keys;
  std::size_t bytes;
  std::int64_t stride() const { return keys + which.gap; }
  std::size_t at(std::size_t row, std::int64_t key) const {
    return (static_cast<std::size_t>(which.lead) + (row * static_cast<std::size_t>(stride())) +
            static_cast<std::size_t>(key)) *
           bytes;
  }
  std::size_t total() const { return at(which.count(), 16); }
  wavejit_tensor tensor(void* memory, std::int32_t dtype) const {
    const std::int64_t head = which.rows * stride();
    return {.data = static_cast<std::uint8_t*>(memory) + at(0, 0),
            .dtype = dtype,
            .reserved = 0,
            .sizes = {which.batch, which.heads, which.rows, keys},
            .strides = {which.heads * head, head, stride(), 1}};
  }
};

}  // namespace

std::pair<std::int64_t, std::int64_t> SoftmaxCase::seen(std::int64_t of_batch, std::int64_t row) const {
  const std::int64_t length = key_lengths.empty() ? keys : std::clamp<std::int64_t>(key_lengths[of_batch], 0, keys);
  const std::int64_t diagonal = row + (prefix ? *prefix : length - rows);
  std::int64_t begin = 0;
  std::int64_t end = length;
  if (causal) end = std::min(end, diagonal + 1);
  if (window && window->first >= 0) begin = std::max(begin, diagonal - window->first);
  if (window && window->second >= 0) end = std::min(end, diagonal + window->second + 1);
  return {begin, std::max(begin, end)};
}

SoftmaxCase softmax_case(DataType type, DataType weights, std::int64_t rows, std::int64_t keys, std::uint64_t seed,
                         double spread, std::int64_t batch, std::int64_t heads) {
  SoftmaxCase which = {.type = type, .weights = weights, .batch = batch, .heads = heads, .rows = rows, .keys = keys};
  NormalNumbers normal(seed);
  which.scores.resize(which.count() * static_cast<std::size_t>(keys));
  for (float& score : which.scores)
    score = static_cast<float>(number_of(type, bits_of(type, normal() * static_cast<float>(spread))));
  return which;
}

double number_of(DataType type, std::uint32_t bits) {
  if (type == DataType::fp32) return static_cast<double>(std::bit_cast<float>(bits));
  return static_cast<double>(from_storage(storage_of(type), static_cast<std::uint16_t>(bits)));
}

SoftmaxOutput run_softmax(wavejit_engine* engine, const SoftmaxCase& which) {
  const DataType type = which.type;
  const DataType written = which.weights.value_or(type);
  const auto bytes = [](DataType of) { return static_cast<std::size_t>(softmax_lse::bytes_of(of)); };
  const Place score_place = {which, which.keys, bytes(type)};
  const Place weight_place = {which, which.keys, bytes(written)};
  NoiseMemory scores(engine, score_place.total());
  NoiseMemory weights(engine, weight_place.total());
  NoiseMemory lse(engine, (which.count() + 32) * 4);
  NoiseMemory lengths(engine, (which.key_lengths.size() + 1) * 4);
  for (std::size_t row = 0; row < which.count(); ++row)
    for (std::int64_t key = 0; key < which.keys; ++key) {
      const std::uint32_t bits =
          bits_of(type, which.scores[(row * static_cast<std::size_t>(which.keys)) + static_cast<std::size_t>(key)]);
      scores.put_bits(score_place.at(row, key), bytes(type), bits);
    }
  if (!which.key_lengths.empty())
    std::memcpy(lengths.inside().data(), which.key_lengths.data(), which.key_lengths.size() * 4);
  for (NoiseMemory* memory : {&scores, &weights, &lse, &lengths}) memory->in();

  wavejit_softmax_lse_arguments call{};
  call.head.size = sizeof call;
  call.head.family = WAVEJIT_SOFTMAX_LSE;
  call.scores = score_place.tensor(scores.data(), told(type));
  if (which.weights) call.weights = weight_place.tensor(weights.data(), told(written));
  call.lse = {.data = static_cast<float*>(lse.data()) + 16,
              .dtype = WAVEJIT_FP32,
              .reserved = 0,
              .sizes = {which.batch, which.heads, which.rows, 1},
              .strides = {which.heads * which.rows, which.rows, 1, 1}};
  call.scale = which.scale;
  if (which.scale == 0) call.head.flags = WAVEJIT_SCALE_IS_ZERO;
  if (which.causal) call.mask.bits |= WAVEJIT_MASK_CAUSAL;
  if (which.window) {
    call.mask.bits |= WAVEJIT_MASK_WINDOW;
    call.mask.window_left = which.window->first;
    call.mask.window_right = which.window->second;
  }
  if (which.prefix) {
    call.mask.bits |= WAVEJIT_MASK_PREFIX;
    call.mask.causal_prefix = *which.prefix;
  }
  if (!which.key_lengths.empty()) call.key_lengths = static_cast<std::int32_t*>(lengths.data());

  SoftmaxOutput output;
  wavejit_call_report report{};
  report.size = sizeof report;
  call.head.report = &report;
  wavejit_simgpu_take_reports(nullptr, 0);
  output.status = wavejit_softmax_lse(engine, &call, nullptr);
  if (output.status == WAVEJIT_OK) output.status = wavejit_device_synchronize(engine);
  if (output.status != WAVEJIT_OK) output.detail = wavejit_last_detail();
  output.reports.resize(wavejit_simgpu_take_reports(nullptr, 0) + 1);
  output.reports.resize(wavejit_simgpu_take_reports(output.reports.data(), output.reports.size()));
  output.kernel_spec = report.kernel_spec;
  if (output.status != WAVEJIT_OK) return output;

  weights.out();
  lse.out();
  for (std::size_t row = 0; row < which.count(); ++row) {
    output.lse.push_back(lse.take<float>((row + 16) * sizeof(float)));
    for (std::int64_t key = 0; which.weights && key < which.keys; ++key) {
      output.weights.push_back(weights.take_bits(weight_place.at(row, key), bytes(written)));
    }
  }
  output.fence_intact = weights.is_noise() && lse.is_noise();
  Outputs noted(output.status);
  noted.add(output.weights);
  noted.add(output.lse);
  return output;
}

std::string wrong_softmax(const SoftmaxCase& which, const SoftmaxOutput& output) {
  // f32: the exponent is off by an ulp or two of itself, which is at most about 2⁶ here, and sums by far less.
  constexpr double of_f32 = 1e-5;
  const DataType written = which.weights.value_or(which.type);
  const double of_type = written == DataType::bf16 ? 1.0 / 256 : written == DataType::fp16 ? 1.0 / 2048 : 0;
  const double smallest = written == DataType::fp16 ? 1e-7 : 1e-37;
  for (std::size_t row = 0; row < which.count(); ++row) {
    const auto keys = static_cast<std::size_t>(which.keys);
    const auto batch = static_cast<std::int64_t>(row) / (which.heads * which.rows);
    const auto [begin, end] = which.seen(batch, static_cast<std::int64_t>(row) % which.rows);
    const auto exact = softmax_lse::program::exact_row(std::span(which.scores).subspan(row * keys, keys),
                                                       static_cast<double>(which.scale), begin, end);
    const auto lse = static_cast<double>(output.lse[row]);
    if (!(lse == exact.log_sum_exp || std::abs(lse - exact.log_sum_exp) <= of_f32 * (1 + std::abs(exact.log_sum_exp))))
      return std::format("row {}: LSE {} instead of {}", row, lse, exact.log_sum_exp);
    for (std::size_t key = 0; key < keys && which.weights; ++key) {
      const double weight = number_of(written, output.weights[(row * keys) + key]);
      const double bound = (exact.weights[key] * (of_f32 + of_type)) + (exact.weights[key] > 0 ? smallest : 0);
      if (!(std::abs(weight - exact.weights[key]) <= bound))
        return std::format("row {}, key {}: weight {} instead of {}", row, key, weight, exact.weights[key]);
    }
  }
  return {};
}

}  // namespace wavejit::tests
