// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cache_append/append_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "support/byte_floats.h"
#include "support/noise_memory.h"
#include "support/normal_numbers.h"
#include "support/test_device.h"

namespace wavejit::tests {
namespace {

using attention::program::Index;
using attention::program::RowLayout;
using cache_append::DataType;

Storage storage_of(DataType type) { return type == DataType::bf16 ? Storage::bf16 : Storage::fp16; }

wavejit_tensor tensor_of(const NoiseMemory& memory, const RowLayout& layout, DataType type) {
  return layout.tensor(memory.data(), type == DataType::bf16 ? WAVEJIT_BF16 : WAVEJIT_FP16);
}

// A number for each head of a slot, with a gap behind each page, as they stand behind its data.
struct SlotScales {
  std::int64_t page_size;
  std::int64_t heads;
  std::int64_t page_stride() const { return (page_size * heads) + 3; }
  std::size_t place_of(std::int64_t slot, std::int64_t head) const {
    return static_cast<std::size_t>((slot / page_size * page_stride()) + (slot % page_size * heads) + head);
  }
};

// Elements of a row of [token][head][dim] by their places in a layout.
template <typename Each>
void for_each_element(const AppendCase& which, std::int64_t heads, std::int64_t dims, Each each) {
  std::size_t at = 0;
  for (std::int64_t token = 0; token < which.batch * which.tokens; ++token)
    for (std::int64_t head = 0; head < heads; ++head)
      for (std::int64_t dim = 0; dim < dims; ++dim) each(at++, token, head, dim);
}

}  // namespace

AppendCase filled(AppendCase which, std::uint64_t seed) {
  NormalNumbers normal(seed);
  const std::int64_t tokens = which.batch * which.tokens;
  const auto fill = [&](std::vector<std::uint16_t>& rows, std::int64_t heads, std::int64_t dims) {
    rows.resize(static_cast<std::size_t>(tokens * heads * dims));
    for (std::uint16_t& bits : rows) bits = to_storage(storage_of(which.type), normal());
  };
  fill(which.k, which.heads, which.key_dims);
  fill(which.v, which.heads, which.value_dims);
  fill(which.q, which.query_heads, which.key_dims);
  const std::int64_t all = which.pages * which.page_size;
  for (std::int64_t token = std::ssize(which.slots); token < tokens; ++token)
    which.slots.push_back(token % 5 == 4 ? -1 : (token * 7 + 3) % all);
  if (which.rotary == WAVEJIT_ROTARY_NONE) return which;
  for (std::int64_t token = std::ssize(which.positions); token < tokens; ++token)
    which.positions.push_back((token * 11 + 2) % which.table_rows);
  for (std::int64_t at = 0; at < which.table_rows * which.rotary_dims / 2; ++at) {
    which.cosines.push_back(normal());
    which.sines.push_back(normal());
  }
  return which;
}

AppendOutput run_append(wavejit_engine* engine, const AppendCase& which) {
  const Index cache_k = {which.pages, which.page_size, which.heads, which.key_dims};
  const Index cache_v = {which.pages, which.page_size, which.heads, which.value_dims};
  const auto rows = [&](std::int64_t heads, std::int64_t dims) {
    return RowLayout(which.source, {which.batch, which.tokens, heads, dims});
  };
  const RowLayout k_rows = rows(which.heads, which.key_dims);
  const RowLayout v_rows = rows(which.heads, which.value_dims);
  const RowLayout q_rows = rows(std::max<std::int64_t>(which.query_heads, 1), which.key_dims);
  const RowLayout k_pages(which.keys, cache_k);
  const RowLayout v_pages(which.values, cache_v);
  const auto bytes = [](const RowLayout& layout) { return static_cast<std::size_t>(layout.count()) * 2; };
  const bool narrow = which.narrow != WAVEJIT_DTYPE_NONE;
  const auto cache_bytes = [&](const RowLayout& layout) { return narrow ? bytes(layout) / 2 : bytes(layout); };
  const SlotScales scales = {which.page_size, which.heads};
  const auto all_scales = static_cast<std::size_t>(which.pages * scales.page_stride());
  NoiseMemory k_scale(engine, all_scales * sizeof(float));
  NoiseMemory v_scale(engine, all_scales * sizeof(float));
  NoiseMemory k(engine, bytes(k_rows));
  NoiseMemory v(engine, bytes(v_rows));
  NoiseMemory q(engine, bytes(q_rows));
  NoiseMemory q_out(engine, bytes(q_rows));
  NoiseMemory k_cache(engine, cache_bytes(k_pages));
  NoiseMemory v_cache(engine, cache_bytes(v_pages));
  NoiseMemory slots(engine, which.slots.size() * 8);
  NoiseMemory positions(engine, which.positions.size() * 4 + 4);
  NoiseMemory cosines(engine, which.cosines.size() * 4 + 4);
  NoiseMemory sines(engine, which.sines.size() * 4 + 4);
  const auto token_index = [&](std::int64_t token, std::int64_t head, std::int64_t dim) {
    return Index{token / which.tokens, token % which.tokens, head, dim};
  };
  const auto put = [&](NoiseMemory& memory, const RowLayout& layout, const std::vector<std::uint16_t>& values,
                       std::int64_t heads, std::int64_t dims) {
    for_each_element(which, heads, dims, [&](std::size_t at, std::int64_t token, std::int64_t head, std::int64_t dim) {
      memory.put(2 * static_cast<std::size_t>(layout.place_of(token_index(token, head, dim))), values[at]);
    });
  };
  put(k, k_rows, which.k, which.heads, which.key_dims);
  put(v, v_rows, which.v, which.heads, which.value_dims);
  put(q, q_rows, which.q, which.query_heads, which.key_dims);
  for (std::size_t at = 0; at < which.slots.size(); ++at) {
    if (which.wide_slots) slots.put(8 * at, which.slots[at]);
    if (!which.wide_slots) slots.put(4 * at, static_cast<std::int32_t>(which.slots[at]));
  }
  for (std::size_t at = 0; at < which.positions.size(); ++at)
    positions.put(4 * at, static_cast<std::int32_t>(which.positions[at]));
  for (std::size_t at = 0; at < which.cosines.size(); ++at) {
    cosines.put(4 * at, which.cosines[at]);
    sines.put(4 * at, which.sines[at]);
  }
  for (std::size_t head = 0; head < which.k_scales.size(); ++head) k_scale.put(4 * head, which.k_scales[head]);
  for (std::size_t head = 0; head < which.v_scales.size(); ++head) v_scale.put(4 * head, which.v_scales[head]);
  for (NoiseMemory* memory :
       {&k, &v, &q, &q_out, &k_cache, &v_cache, &k_scale, &v_scale, &slots, &positions, &cosines, &sines})
    memory->in();

  wavejit_cache_append_arguments call{};
  call.head.size = sizeof call;
  call.head.family = WAVEJIT_CACHE_APPEND;
  call.k = tensor_of(k, k_rows, which.type);
  call.v = tensor_of(v, v_rows, which.type);
  call.k_cache = tensor_of(k_cache, k_pages, which.type);
  call.v_cache = tensor_of(v_cache, v_pages, which.type);
  if (which.query_heads != 0) {
    call.q = tensor_of(q, q_rows, which.type);
    call.q_out = tensor_of(which.in_place ? q : q_out, q_rows, which.type);
  }
  call.page_layout = which.page_layout;
  call.slots = slots.data();
  call.slot_bytes = which.wide_slots ? 8 : 4;
  call.rotary = which.rotary;
  call.rotary_dim = static_cast<std::int32_t>(which.rotary_dims);
  if (which.rotary != WAVEJIT_ROTARY_NONE) {
    call.positions = positions.data();
    if (which.base) {
      call.rotary_base = 10000;
    } else {
      call.cos = wavejit_dense_tensor(cosines.data(), WAVEJIT_FP32, 1, which.table_rows, 1, which.rotary_dims / 2);
      call.sin = wavejit_dense_tensor(sines.data(), WAVEJIT_FP32, 1, which.table_rows, 1, which.rotary_dims / 2);
    }
  }

  if (narrow) {
    call.k_cache.dtype = call.v_cache.dtype = which.narrow;
    call.scales.token_scales = which.token_scales ? 1 : 0;
    const auto scale = [&](const NoiseMemory& memory, const std::vector<float>& given) {
      if (!which.token_scales && given.empty()) return wavejit_tensor{};
      wavejit_tensor tensor = wavejit_dense_tensor(memory.data(), WAVEJIT_FP32, 1, 1, std::ssize(given), 1);
      if (!which.token_scales) return tensor;
      tensor = wavejit_dense_tensor(memory.data(), WAVEJIT_FP32, which.pages, which.page_size, which.heads, 1);
      tensor.strides[0] = scales.page_stride();
      return tensor;
    };
    call.scales.k_scale = scale(k_scale, which.k_scales);
    call.scales.v_scale = scale(v_scale, which.v_scales);
  }

  AppendOutput output;
  wavejit_call_report report{};
  report.size = sizeof report;
  call.head.report = &report;
  wavejit_simgpu_take_reports(nullptr, 0);
  output.status = wavejit_cache_append(engine, &call, nullptr);
  if (output.status == WAVEJIT_OK) output.status = wavejit_device_synchronize(engine);
  if (output.status != WAVEJIT_OK) output.detail = wavejit_last_detail();
  output.reports.resize(wavejit_simgpu_take_reports(nullptr, 0) + 1);
  output.reports.resize(wavejit_simgpu_take_reports(output.reports.data(), output.reports.size()));
  output.kernel_spec = report.kernel_spec;
  if (output.status != WAVEJIT_OK) return output;

  for (NoiseMemory* memory : {&q, &q_out, &k_cache, &v_cache, &k_scale, &v_scale}) memory->out();
  const auto take_cache = [&](NoiseMemory& memory, const RowLayout& layout, std::int64_t dims,
                              std::vector<std::uint16_t>& to) {
    for_each_element(which, which.heads, dims,
                     [&](std::size_t, std::int64_t token, std::int64_t head, std::int64_t dim) {
                       const std::int64_t slot = which.slots[static_cast<std::size_t>(token)];
                       const bool stored = slot >= 0 && slot < which.pages * which.page_size;
                       const Index index = {slot / which.page_size, slot % which.page_size, head, dim};
                       const auto place = static_cast<std::size_t>(layout.place_of(index));
                       to.push_back(!stored  ? append_noise
                                    : narrow ? memory.take<std::uint8_t>(place)
                                             : memory.take<std::uint16_t>(2 * place));
                     });
  };
  const auto take_scales = [&](NoiseMemory& memory, std::vector<float>& to) {
    for_each_element(which, which.heads, 1, [&](std::size_t, std::int64_t token, std::int64_t head, std::int64_t) {
      const std::int64_t slot = which.slots[static_cast<std::size_t>(token)];
      const bool stored = slot >= 0 && slot < which.pages * which.page_size;
      to.push_back(stored ? memory.take<float>(4 * scales.place_of(slot, head)) : 0.0F);
    });
  };
  if (narrow && which.token_scales) {
    take_scales(k_scale, output.k_scales);
    take_scales(v_scale, output.v_scales);
    output.rest_intact = k_scale.is_noise() && v_scale.is_noise();
  }
  take_cache(k_cache, k_pages, which.key_dims, output.k);
  take_cache(v_cache, v_pages, which.value_dims, output.v);
  for_each_element(which, which.query_heads, which.key_dims,
                   [&](std::size_t, std::int64_t token, std::int64_t head, std::int64_t dim) {
                     NoiseMemory& written = which.in_place ? q : q_out;
                     output.q.push_back(written.take<std::uint16_t>(
                         2 * static_cast<std::size_t>(q_rows.place_of(token_index(token, head, dim)))));
                   });
  output.rest_intact =
      output.rest_intact && k_cache.is_noise() && v_cache.is_noise() && (which.in_place ? q : q_out).is_noise();
  Outputs noted(output.status);
  noted.add(output.k);
  noted.add(output.v);
  noted.add(output.q);
  return output;
}

std::vector<std::uint16_t> turned_bits(const AppendCase& which, const std::vector<std::uint16_t>& rows,
                                       std::int64_t heads, std::int64_t dims) {
  std::vector<std::uint16_t> turned = rows;
  const Storage storage = storage_of(which.type);
  const bool interleaved = which.rotary == WAVEJIT_ROTARY_INTERLEAVED;
  for_each_element(
      which, heads, dims, [&](std::size_t at, std::int64_t token, std::int64_t /*head*/, std::int64_t dim) {
        if (dim >= which.rotary_dims) return;
        const std::int64_t half = which.rotary_dims / 2;
        const bool first = interleaved ? dim % 2 == 0 : dim < half;
        const std::int64_t step = interleaved ? 1 : half;
        const std::int64_t pair = interleaved ? dim / 2 : dim % half;
        const auto other_at = static_cast<std::size_t>(static_cast<std::int64_t>(at) + (first ? step : -step));
        const std::int64_t position = which.positions[static_cast<std::size_t>(token)];
        const bool in_table = position >= 0 && position < which.table_rows;
        const auto place = static_cast<std::size_t>(position * half + pair);
        const float cosine = in_table ? which.cosines[place] : 0;
        const float sine = in_table ? which.sines[place] : 0;
        const float own = from_storage(storage, rows[at]);
        const float product = from_storage(storage, rows[other_at]) * sine;
        turned[at] = to_storage(storage, std::fma(own, cosine, first ? -product : product));
      });
  return turned;
}

namespace {

float greatest_of(const ByteFormat& format) {
  float greatest = 0;
  for (int byte = 0; byte < 0x80; ++byte)
    if (const float value = value_of_byte(format, static_cast<std::uint8_t>(byte)); std::isfinite(value))
      greatest = std::max(greatest, value);
  return greatest;
}

// Beyond the range the greatest finite number, also of infinities.
std::uint8_t byte_of(const ByteFormat& format, float greatest, float quotient) {
  const float least = format.dtype == WAVEJIT_INT8 ? -128.0F : -greatest;
  return nearest_byte(format, std::isnan(quotient) ? quotient : std::clamp(quotient, least, greatest));
}

// One side: what its slots hold, and the scales that were found.
void expect_side(const AppendCase& which, const std::vector<std::uint16_t>& rows, std::int64_t dims,
                 const std::vector<float>& given, std::vector<std::uint16_t>& elements, std::vector<float>& scales) {
  const bool narrow = which.narrow != WAVEJIT_DTYPE_NONE;
  const ByteFormat& format = byte_format(which.narrow);
  const Storage storage = storage_of(which.type);
  const float greatest_byte = narrow ? greatest_of(format) : 0;
  const auto heads = static_cast<std::size_t>(which.heads);
  const auto width = static_cast<std::size_t>(dims);
  for (std::size_t row = 0; row < rows.size() / width; ++row) {
    const std::int64_t slot = which.slots[row / heads];
    const bool stored = slot >= 0 && slot < which.pages * which.page_size;
    const auto number = [&](std::size_t dim) { return from_storage(storage, rows[(row * width) + dim]); };
    float scale = given.empty() ? 1.0F : given[given.size() == 1 ? 0 : row % heads];
    if (which.token_scales) {
      float greatest = 0;
      for (std::size_t dim = 0; dim < width; ++dim) greatest = std::fmax(greatest, std::fabs(number(dim)));
      scale = std::max(greatest / greatest_byte, 1e-6F);
      scales.push_back(stored ? scale : 0.0F);
    }
    for (std::size_t dim = 0; dim < width; ++dim)
      elements.push_back(!stored  ? append_noise
                         : narrow ? byte_of(format, greatest_byte, number(dim) / scale)
                                  : rows[(row * width) + dim]);
  }
}

}  // namespace

AppendOutput expected_append(const AppendCase& which) {
  AppendOutput all;
  expect_side(which, turned_bits(which, which.k, which.heads, which.key_dims), which.key_dims, which.k_scales, all.k,
              all.k_scales);
  expect_side(which, which.v, which.value_dims, which.v_scales, all.v, all.v_scales);
  all.q = turned_bits(which, which.q, which.query_heads, which.key_dims);
  return all;
}

}  // namespace wavejit::tests
