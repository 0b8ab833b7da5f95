// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cache_append/append_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "support/normal_numbers.h"
#include "support/test_device.h"

namespace wavejit::tests {
namespace {

using cache_append::DataType;
using cache_append::program::Index;
using cache_append::program::RowLayout;

Storage storage_of(DataType type) { return type == DataType::bf16 ? Storage::bf16 : Storage::fp16; }

void require(wavejit_status status) {
  if (status != WAVEJIT_OK) throw std::runtime_error(wavejit_last_detail());
}

// Device memory of noise, with some of it on either side of what is asked for.
class Memory {
 public:
  static constexpr std::size_t margin = 256;
  Memory(wavejit_engine* engine, std::size_t bytes) : engine_(engine), host_(bytes + 2 * margin, 0xFF) {
    require(wavejit_device_allocate(engine, host_.size(), &data_));
  }
  ~Memory() { wavejit_device_free(engine_, data_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* data() const { return static_cast<std::uint8_t*>(data_) + margin; }
  template <typename T>
  void put(std::size_t at, T value) {
    std::memcpy(host_.data() + margin + at * sizeof value, &value, sizeof value);
  }
  // What stands there, and noise in its place.
  std::uint16_t take(std::size_t at) {
    std::uint16_t value = 0;
    std::memcpy(&value, host_.data() + margin + at * 2, 2);
    put(at, append_noise);
    return value;
  }
  void in() { require(wavejit_device_copy_in(engine_, data_, host_.data(), host_.size())); }
  void out() { require(wavejit_device_copy_out(engine_, host_.data(), data_, host_.size())); }
  bool intact() const {
    return std::ranges::all_of(host_, [](std::uint8_t byte) { return byte == 0xFF; });
  }

 private:
  wavejit_engine* engine_;
  std::vector<std::uint8_t> host_;
  void* data_ = nullptr;
};

wavejit_tensor tensor_of(const Memory& memory, const RowLayout& layout, DataType type) {
  wavejit_tensor tensor{};
  tensor.data = memory.data();
  tensor.dtype = type == DataType::bf16 ? WAVEJIT_BF16 : WAVEJIT_FP16;
  std::ranges::copy(layout.sizes(), tensor.sizes);
  std::ranges::copy(layout.strides(), tensor.strides);
  return tensor;
}

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
  Memory k(engine, bytes(k_rows));
  Memory v(engine, bytes(v_rows));
  Memory q(engine, bytes(q_rows));
  Memory q_out(engine, bytes(q_rows));
  Memory k_cache(engine, bytes(k_pages));
  Memory v_cache(engine, bytes(v_pages));
  Memory slots(engine, which.slots.size() * 8);
  Memory positions(engine, which.positions.size() * 4 + 4);
  Memory cosines(engine, which.cosines.size() * 4 + 4);
  Memory sines(engine, which.sines.size() * 4 + 4);
  const auto token_index = [&](std::int64_t token, std::int64_t head, std::int64_t dim) {
    return Index{token / which.tokens, token % which.tokens, head, dim};
  };
  const auto put = [&](Memory& memory, const RowLayout& layout, const std::vector<std::uint16_t>& values,
                       std::int64_t heads, std::int64_t dims) {
    for_each_element(which, heads, dims, [&](std::size_t at, std::int64_t token, std::int64_t head, std::int64_t dim) {
      memory.put(static_cast<std::size_t>(layout.place_of(token_index(token, head, dim))), values[at]);
    });
  };
  put(k, k_rows, which.k, which.heads, which.key_dims);
  put(v, v_rows, which.v, which.heads, which.value_dims);
  put(q, q_rows, which.q, which.query_heads, which.key_dims);
  for (std::size_t at = 0; at < which.slots.size(); ++at) {
    if (which.wide_slots) slots.put(at, which.slots[at]);
    if (!which.wide_slots) slots.put(at, static_cast<std::int32_t>(which.slots[at]));
  }
  for (std::size_t at = 0; at < which.positions.size(); ++at)
    positions.put(at, static_cast<std::int32_t>(which.positions[at]));
  for (std::size_t at = 0; at < which.cosines.size(); ++at) {
    cosines.put(at, which.cosines[at]);
    sines.put(at, which.sines[at]);
  }
  for (Memory* memory : {&k, &v, &q, &q_out, &k_cache, &v_cache, &slots, &positions, &cosines, &sines}) memory->in();

  wavejit_cache_append_arguments call{};
  call.size = sizeof call;
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

  AppendOutput output;
  wavejit_call_report report{};
  report.size = sizeof report;
  call.report = &report;
  wavejit_simgpu_take_reports(nullptr, 0);
  output.status = wavejit_cache_append(engine, &call, nullptr);
  if (output.status == WAVEJIT_OK) output.status = wavejit_device_synchronize(engine);
  if (output.status != WAVEJIT_OK) output.detail = wavejit_last_detail();
  output.reports.resize(wavejit_simgpu_take_reports(nullptr, 0) + 1);
  output.reports.resize(wavejit_simgpu_take_reports(output.reports.data(), output.reports.size()));
  output.kernel_spec = report.kernel_spec;
  if (output.status != WAVEJIT_OK) return output;

  for (Memory* memory : {&q, &q_out, &k_cache, &v_cache}) memory->out();
  const auto take_cache = [&](Memory& memory, const RowLayout& layout, std::int64_t dims,
                              std::vector<std::uint16_t>& to) {
    for_each_element(
        which, which.heads, dims, [&](std::size_t, std::int64_t token, std::int64_t head, std::int64_t dim) {
          const std::int64_t slot = which.slots[static_cast<std::size_t>(token)];
          const bool stored = slot >= 0 && slot < which.pages * which.page_size;
          const Index index = {slot / which.page_size, slot % which.page_size, head, dim};
          to.push_back(stored ? memory.take(static_cast<std::size_t>(layout.place_of(index))) : append_noise);
        });
  };
  take_cache(k_cache, k_pages, which.key_dims, output.k);
  take_cache(v_cache, v_pages, which.value_dims, output.v);
  for_each_element(
      which, which.query_heads, which.key_dims,
      [&](std::size_t, std::int64_t token, std::int64_t head, std::int64_t dim) {
        Memory& written = which.in_place ? q : q_out;
        output.q.push_back(written.take(static_cast<std::size_t>(q_rows.place_of(token_index(token, head, dim)))));
      });
  output.rest_intact = k_cache.intact() && v_cache.intact() && (which.in_place ? q : q_out).intact();
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

}  // namespace wavejit::tests
