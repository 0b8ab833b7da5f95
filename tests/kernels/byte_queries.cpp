// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/byte_queries.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <tuple>

#include "codegen/codegen_api.h"
#include "hip_abi/hip_functions.h"
#include "kernels/facts.h"
#include "support/attention_run.h"
#include "support/fenced_tensor.h"
#include "support/noise_memory.h"
#include "templates/attention_forward/kernel/paged_arguments.h"
#include "templates/attention_forward/kernel/query_scale_arguments.h"

namespace wavejit::tests {
namespace {

using namespace hip_abi;

constexpr std::uint8_t nan_byte = 0x7F;  // of e4m3
constexpr std::size_t gap_bytes = 32;    // behind the heads of a row

// Device memory of launches that no engine makes.
wavejit_engine* device() {
  static const Engine engine("gfx950");
  return engine.get();
}

// Rows of [batch][rows][heads][dim] with a gap behind each.
class Rows {
 public:
  Rows(std::size_t rows, std::size_t heads, std::size_t head_bytes)
      : row_bytes_((heads * head_bytes) + gap_bytes), used_(heads * head_bytes), memory_(device(), rows * row_bytes_) {}

  std::uint8_t* row(std::size_t row) { return &memory_.inside()[row * row_bytes_]; }
  std::size_t row_bytes() const { return row_bytes_; }
  std::uint64_t upload() {
    memory_.in();
    return reinterpret_cast<std::uint64_t>(memory_.data());
  }
  void download() { memory_.out(); }
  // Takes a row out: its place is noise again.
  std::vector<std::uint8_t> take(std::size_t row) {
    std::uint8_t* const from = this->row(row);
    std::vector<std::uint8_t> bytes(from, from + used_);
    std::fill_n(from, used_, NoiseMemory::noise);
    return bytes;
  }
  bool is_noise() const { return memory_.is_noise(); }

 private:
  std::size_t row_bytes_;
  std::size_t used_;
  NoiseMemory memory_;
};

void fill(Rows& tensor, const std::vector<float>& values, std::size_t of_row) {
  for (std::size_t i = 0; i < values.size(); ++i) tensor.row(i / of_row)[i % of_row] = nearest_e4m3(values[i]);
}

// As Arguments::kv_head_multiplier divides.
std::uint32_t divisor(int by) {
  const auto wide = static_cast<std::uint64_t>(by);
  return by == 1 ? 0 : static_cast<std::uint32_t>(((std::uint64_t{1} << 32U) + wide - 1) / wide);
}

float number_of(const std::uint8_t* bytes, attention_forward::DataType type) {
  if (type == attention_forward::DataType::fp32) {
    float value = 0;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  std::uint16_t half = 0;
  std::memcpy(&half, bytes, sizeof half);
  return type == attention_forward::DataType::bf16 ? std::bit_cast<float>(std::uint32_t{half} << 16U)
                                                   : static_cast<float>(std::bit_cast<_Float16>(half));
}

void apply(wavejit_simgpu_schedule schedule, std::uint64_t seed, bool checked) {
  wavejit_simgpu_settings settings{};
  settings.size = sizeof settings;
  wavejit_simgpu_get_settings(&settings);
  settings.schedule = schedule;
  settings.seed = seed;
  settings.checks = checked ? WAVEJIT_SIMGPU_CHECK_ALL : 0;
  settings.arrival = checked ? WAVEJIT_SIMGPU_ARRIVES_LATE : WAVEJIT_SIMGPU_ARRIVES_EARLY;
  settings.rules = WAVEJIT_SIMGPU_RULES_STRICT;
  wavejit_simgpu_set_settings(&settings);
}

// The case's kernel as the compiler makes it, once for all schedules, or as it makes what the case changes in its IR.
CompiledKernel kernel_of(const ByteCase& which) {
  if (!which.changed) return known_kernel(which.spec);
  const struct wavejit_codegen_table* const table = ::wavejit_codegen_table(WAVEJIT_CODEGEN_ABI);
  wavejit_codegen_options options{};
  options.size = sizeof options;
  char error[256] = {};
  wavejit_codegen_service* const service = table->create(&options, error, sizeof error);
  wavejit_codegen_result ir{};
  ir.size = sizeof ir;
  table->emit_ir(service, attention_forward::to_text(which.spec).c_str(), &ir);
  const std::string text(reinterpret_cast<const char*>(ir.code_object), ir.code_object_bytes);
  table->release(&ir);
  wavejit_codegen_result result{};
  result.size = sizeof result;
  result.facts.size = sizeof result.facts;
  table->compile_ir(service, which.spec.target.c_str(), "llvm", which.changed(text).c_str(), &result);
  CompiledKernel kernel;
  if (result.status == WAVEJIT_CODEGEN_OK) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(result.code_object);
    kernel.code_object.assign(bytes, bytes + result.code_object_bytes);
    kernel.facts = result.facts;
  } else {
    kernel.error = result.detail;
  }
  table->release(&result);
  table->destroy(service);
  return kernel;
}

// Where key `key` of sequence `sequence` stands: pages from the cache's last to its first, the sequences' in turn.
struct PagePlan {
  int page = 0;
  int batch = 0;
  int pages = 0;  // of a sequence

  PagePlan(const AttentionInputs& in, int keys_of_page)
      : page(keys_of_page), batch(in.batch), pages(page == 0 ? 0 : (in.key_length + page - 1) / page) {}
  int all() const { return (batch * pages) + 1; }
  int entry(int sequence, int of_sequence) const { return all() - 1 - (of_sequence * batch) - sequence; }
  std::size_t row(int sequence, int key) const {
    return (static_cast<std::size_t>(entry(sequence, key / page)) * static_cast<std::size_t>(page)) +
           static_cast<std::size_t>(key % page);
  }
  std::vector<std::int32_t> table() const {
    std::vector<std::int32_t> entries;
    for (int sequence = 0; sequence < batch; ++sequence)
      for (int i = 0; i < pages; ++i) entries.push_back(entry(sequence, i));
    return entries;
  }
};

}  // namespace

float value_of_e4m3(std::uint8_t byte) {
  const int exponent = byte % 0x80 / 8;
  const int mantissa = byte % 8;
  const float sign = byte >= 0x80 ? -1.0F : 1.0F;
  if (byte % 0x80 == nan_byte) return std::numeric_limits<float>::quiet_NaN();
  const int whole = exponent == 0 ? mantissa : 8 + mantissa;
  return sign * std::ldexp(static_cast<float>(whole), std::max(exponent, 1) - 10);
}

// Positive bytes ascend with their values: of the first that is not below and its neighbour the nearer, or the even
// one.
std::uint8_t nearest_e4m3(float value) {
  static const std::array<float, nan_byte> values = [] {
    std::array<float, nan_byte> all{};
    for (std::size_t byte = 0; byte < all.size(); ++byte) all[byte] = value_of_e4m3(static_cast<std::uint8_t>(byte));
    return all;
  }();
  const float magnitude = std::fabs(value);
  auto best = std::ranges::lower_bound(values, magnitude) - values.begin();
  best = std::min<std::ptrdiff_t>(best, nan_byte - 1);
  if (best > 0) {
    const float above = std::fabs(values[static_cast<std::size_t>(best)] - magnitude);
    const float below = magnitude - values[static_cast<std::size_t>(best - 1)];
    if (below < above || (below == above && best % 2 == 1)) --best;
  }
  return static_cast<std::uint8_t>(best + (std::signbit(value) ? 0x80 : 0));
}

ByteCase make_byte_case(int batch, int queries, int keys, int heads, int kv_heads, int dim, std::uint64_t seed,
                        double spread) {
  ByteCase which;
  which.spec = {{.dtype = attention_forward::DataType::bf16,
                 .head_dim_qk = dim,
                 .head_dim_v = dim,
                 .narrow_queries = true,
                 .lse = true},
                {.tile_queries = 128, .output_store = attention_forward::OutputStore::permlane, .target = "gfx950"}};
  AttentionInputs& inputs = which.inputs;
  inputs.batch = batch;
  inputs.query_length = queries;
  inputs.key_length = keys;
  inputs.query_heads = heads;
  inputs.kv_heads = kv_heads;
  inputs.head_dim = dim;
  inputs.scale = 1 / std::sqrt(static_cast<double>(dim));
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, static_cast<float>(spread));
  const auto fill_with = [&](std::vector<float>& values, int rows, int of_heads) {
    values.resize(static_cast<std::size_t>(batch) * rows * of_heads * dim);
    for (float& value : values) value = value_of_e4m3(nearest_e4m3(normal(random)));
  };
  fill_with(inputs.q, queries, heads);
  fill_with(inputs.k, keys, kv_heads);
  fill_with(inputs.v, keys, kv_heads);
  return which;
}

ByteResult run_bytes(const ByteCase& which, wavejit_simgpu_schedule schedule, std::uint64_t seed, bool checked) {
  ByteResult result;
  int ordinal = 0;
  if (wavejit_simgpu_open_devices(which.spec.target.c_str(), 1, &ordinal) != 0 || hipSetDevice(ordinal) != hipSuccess) {
    result.fault = "no device";
    return result;
  }
  const CompiledKernel kernel = kernel_of(which);
  if (!kernel.error.empty()) {
    result.fault = kernel.error;
    return result;
  }
  result.spills = kernel.facts.vgpr_spills + kernel.facts.sgpr_spills;
  result.private_bytes = kernel.facts.private_bytes;

  const AttentionInputs& in = which.inputs;
  const auto size = [](int value) { return static_cast<std::size_t>(value); };
  const auto qk = size(in.head_dim);
  const auto dv = size(in.value_dim());
  const std::size_t element = bytes_of(which.spec.output_type());
  const std::size_t query_rows = size(in.query_batches()) * size(in.query_rows());
  const PagePlan pages(in, which.page);
  const std::size_t key_rows =
      which.page != 0 ? size(pages.all()) * size(which.page) : size(in.key_batches()) * size(in.key_rows());
  Rows q(query_rows, size(in.query_heads), qk);
  Rows k(key_rows, size(in.kv_heads), qk);
  Rows v(key_rows, size(in.kv_heads), dv);
  Rows o(query_rows, size(in.query_heads), dv * element);
  Rows lse(size(in.query_batches() * in.query_heads), size(in.query_rows()), sizeof(float));
  fill(q, in.q, size(in.query_heads) * qk);
  if (which.page == 0) {
    fill(k, in.k, size(in.kv_heads) * qk);
    fill(v, in.v, size(in.kv_heads) * dv);
  } else {
    for (int sequence = 0; sequence < in.batch; ++sequence)
      for (int key = 0; key < in.keys(sequence); ++key)
        for (const auto& [tensor, values, of_row] :
             {std::tuple{&k, &in.k, size(in.kv_heads) * qk}, {&v, &in.v, size(in.kv_heads) * dv}})
          for (std::size_t i = 0; i < of_row; ++i)
            tensor->row(pages.row(sequence, key))[i] =
                nearest_e4m3((*values)[((size(sequence) * size(in.key_length) + size(key)) * of_row) + i]);
  }
  const fenced::DeviceArray query_starts(device(), in.query_starts);
  const fenced::DeviceArray key_starts(device(), in.key_starts);
  const fenced::DeviceArray key_lengths(device(), in.key_lengths);

  attention_forward::PagedArguments all;
  attention_forward::Arguments& arguments = all.all;
  arguments.q = q.upload();
  arguments.k = k.upload();
  arguments.v = v.upload();
  arguments.o = o.upload();
  arguments.lse = lse.upload();
  arguments.q_row_stride = static_cast<std::uint32_t>(q.row_bytes());
  arguments.k_row_stride = static_cast<std::uint32_t>(k.row_bytes());
  arguments.v_row_stride = static_cast<std::uint32_t>(v.row_bytes());
  arguments.o_row_stride = static_cast<std::uint32_t>(o.row_bytes());
  arguments.q_head_stride = arguments.k_head_stride = qk;
  arguments.v_head_stride = dv;
  arguments.o_head_stride = dv * element;
  arguments.lse_head_stride = lse.row_bytes();
  if (!in.packed_queries()) {
    arguments.q_batch_stride = q.row_bytes() * size(in.query_length);
    arguments.o_batch_stride = o.row_bytes() * size(in.query_length);
    arguments.lse_batch_stride = lse.row_bytes() * size(in.query_heads);
  }
  const fenced::DeviceArray table(device(), pages.table());
  if (which.page != 0) {
    arguments.k_batch_stride = arguments.v_batch_stride = k.row_bytes() * size(which.page);
    const int granules = which.page / 16;
    all.pages = {.table = reinterpret_cast<std::uint64_t>(table.get()),
                 .table_row_stride = size(pages.pages) * sizeof(std::int32_t),
                 .table_columns = static_cast<std::uint32_t>(pages.pages),
                 .pages = static_cast<std::uint32_t>(pages.all()),
                 .granules_of_page = static_cast<std::uint32_t>(granules),
                 .page_multiplier = divisor(granules)};
  } else if (!in.packed_keys()) {
    arguments.k_batch_stride = k.row_bytes() * size(in.key_length);
    arguments.v_batch_stride = v.row_bytes() * size(in.key_length);
  }
  arguments.query_length = static_cast<std::uint32_t>(in.query_length);
  arguments.key_length = static_cast<std::uint32_t>(in.key_length);
  arguments.bottom_right_mask = ~0U;
  const int group = in.query_heads / in.kv_heads;
  arguments.kv_head_multiplier = divisor(group);
  arguments.kv_heads = static_cast<std::uint32_t>(in.kv_heads);
  arguments.group = static_cast<std::uint32_t>(group);
  arguments.query_heads = static_cast<std::uint32_t>(in.query_heads);
  arguments.scale_log2e = static_cast<float>(in.scale * 1.4426950408889634);
  arguments.window_left = in.window_left < 0 ? attention_forward::unlimited_window : in.window_left;
  arguments.window_right = in.window_right < 0 ? attention_forward::unlimited_window : in.window_right;
  arguments.sequences = {.query_starts = reinterpret_cast<std::uint64_t>(query_starts.get()),
                         .key_starts = reinterpret_cast<std::uint64_t>(key_starts.get()),
                         .key_lengths = reinterpret_cast<std::uint64_t>(key_lengths.get()),
                         .query_rows = static_cast<std::uint32_t>(in.query_rows()),
                         .key_rows = static_cast<std::uint32_t>(in.key_rows())};
  arguments.scores.rescale_threshold = which.rescale_threshold;

  hipModule_t module = nullptr;
  hipFunction_t function = nullptr;
  if (hipModuleLoadData(&module, kernel.code_object.data()) != hipSuccess ||
      hipModuleGetFunction(&function, module, kernel.facts.kernel_name) != hipSuccess) {
    result.fault = "the code object does not load";
    return result;
  }
  const auto grid = attention_forward::launch_geometry(
      which.spec, *targets::find_target(which.spec.target), static_cast<std::uint32_t>(in.batch),
      static_cast<std::uint32_t>(in.query_heads), static_cast<std::uint32_t>(in.query_length), 1,
      static_cast<std::uint32_t>(group));
  std::size_t bytes = attention_forward::argument_bytes(which.spec);
  // HIP's list: buffer pointer (1), buffer size (2), end (3).
  // Scales of 1.
  attention_forward::QueryScaleArguments handed;
  std::memcpy(handed.others.others.data(), &all, sizeof all);
  void* extra[] = {reinterpret_cast<void*>(1), &handed, reinterpret_cast<void*>(2), &bytes, reinterpret_cast<void*>(3)};
  apply(schedule, seed, checked);
  wavejit_simgpu_take_reports(nullptr, 0);
  const bool launched = hipModuleLaunchKernel(function, grid.grid_x, grid.grid_y, grid.grid_z, grid.threads, 1, 1,
                                              grid.dynamic_lds_bytes, nullptr, nullptr, extra) == hipSuccess &&
                        hipDeviceSynchronize() == hipSuccess;
  std::string text(wavejit_simgpu_take_reports(nullptr, 0) + 1, '\0');
  text.resize(wavejit_simgpu_take_reports(text.data(), text.size()));
  result.reports = text;
  static_cast<void>(hipModuleUnload(module));
  if (!launched) {
    result.fault = "the launch failed";
    return result;
  }
  o.download();
  lse.download();
  for (std::size_t row = 0; row < query_rows; ++row) {
    const std::vector<std::uint8_t> bytes = o.take(row);
    result.o.insert(result.o.end(), bytes.begin(), bytes.end());
    for (std::size_t at = 0; at < bytes.size(); at += element)
      result.values.push_back(number_of(&bytes[at], which.spec.output_type()));
  }
  for (std::size_t row = 0; row < size(in.query_batches() * in.query_heads); ++row) {
    const std::vector<std::uint8_t> bytes = lse.take(row);
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(float))
      result.lse.push_back(number_of(&bytes[at], attention_forward::DataType::fp32));
  }
  result.fence_intact = o.is_noise() && lse.is_noise();
  return result;
}

}  // namespace wavejit::tests
