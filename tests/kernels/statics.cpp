// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/statics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <format>
#include <span>

#include "simgpu/machine/allocations/memory.h"
#include "targets/targets.h"
#include "templates/attention_forward/kernel/arguments.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "timing/timing.h"

namespace wavejit::tests {

using attention_forward::ForwardKernel;
using attention_forward::Mask;

namespace {

constexpr int rows_per_wave = 32;

class DeviceBytes {
 public:
  explicit DeviceBytes(std::size_t bytes)
      : data_(simgpu::DeviceMemory::instance().allocate(bytes, simgpu::MemoryKind::device, 0)) {
    if (data_ != nullptr) std::memset(data_, 0, bytes);
  }
  ~DeviceBytes() { simgpu::DeviceMemory::instance().free(data_); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(data_); }
  std::uint16_t* words() const { return static_cast<std::uint16_t*>(data_); }

 private:
  void* data_;
};

// A value that bf16 and fp16 hold exactly.
std::uint16_t stored(float value, attention_forward::DataType dtype) {
  if (dtype == attention_forward::DataType::bf16)
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16U);
  return std::bit_cast<std::uint16_t>(static_cast<_Float16>(value));
}

}  // namespace

std::vector<ForwardKernel> steady_state_specs() {
  std::vector<ForwardKernel> specs = all_kernel_specs();
  std::erase_if(specs, [](const ForwardKernel& spec) {
    return spec.lse || spec.modified() ||
           spec.output_store != attention_forward::default_output_store(*targets::find_target(spec.target));
  });
  return specs;
}

int matrix_instructions_per_tile(const ForwardKernel& spec) {
  const targets::Target& target = *targets::find_target(spec.target);
  // The kernels take 32x32, the widest k first in the table.
  const auto row = std::ranges::find_if(
      target.matrix, [](const targets::MatrixInstruction& matrix) { return matrix.m == 32 && matrix.n == 32; });
  const int scores = spec.tile_keys / row->m * (spec.head_dim_qk / row->k);
  const int outputs = spec.head_dim_v / row->m * (spec.tile_keys / row->k);
  return rows_per_wave / row->n * (scores + outputs);
}

std::string run_one_workgroup(const ForwardKernel& spec, const CompiledKernel& kernel, int tiles,
                              simgpu::Observer& observer, std::shared_ptr<simgpu::Module>* keep, Scores scores) {
  const auto ordinals = simgpu::Device::open(spec.target, 1);
  if (!ordinals) return ordinals.error().text;
  simgpu::Device& device = *simgpu::Device::find(ordinals->front());
  const auto module = device.load(kernel.code_object);
  if (!module) return module.error().text;
  if (keep != nullptr) *keep = *module;

  // Zeros throughout, unless they grow: all scores are 0, so the maximum of the first tile is that of all.
  const auto keys = static_cast<std::uint32_t>(tiles * spec.tile_keys);
  const auto queries = static_cast<std::uint32_t>(spec.tile_queries);
  const auto k_row = static_cast<std::uint32_t>(spec.head_dim_qk * 2);
  const auto v_row = static_cast<std::uint32_t>(spec.head_dim_v * 2);
  const DeviceBytes q(std::size_t{queries} * k_row);
  const DeviceBytes k(std::size_t{keys} * k_row);
  const DeviceBytes v(std::size_t{keys} * v_row);
  const DeviceBytes o(std::size_t{queries} * v_row);
  const DeviceBytes lse(std::size_t{queries} * sizeof(float));
  constexpr float scale_log2e = 0.125F;
  if (scores == Scores::growing) {
    // One dim of Q and K: a tile's scores stand 8 · 16 · 0.125 = 16 above the last one's, and 8 is what is let pass.
    for (std::uint32_t row = 0; row < queries; ++row) q.words()[row * k_row / 2] = stored(8, spec.dtype);
    for (std::uint32_t row = 0; row < keys; ++row) {
      const auto tile = static_cast<float>(row / static_cast<std::uint32_t>(spec.tile_keys));
      k.words()[row * k_row / 2] = stored(16 * tile, spec.dtype);
    }
  }
  attention_forward::Arguments arguments;
  arguments.q = q.address();
  arguments.k = k.address();
  arguments.v = v.address();
  arguments.o = o.address();
  arguments.lse = lse.address();
  arguments.q_row_stride = arguments.k_row_stride = k_row;
  arguments.v_row_stride = arguments.o_row_stride = v_row;
  arguments.query_length = queries;
  arguments.key_length = keys;
  arguments.causal_offset = static_cast<std::int32_t>(keys);  // every row sees every key
  arguments.window_left = arguments.window_right = attention_forward::unlimited_window;
  arguments.sequences.query_rows = queries;
  arguments.sequences.key_rows = keys;
  arguments.query_heads = 1;
  arguments.scale_log2e = scale_log2e;
  const auto geometry = attention_forward::launch_geometry(spec, *targets::find_target(spec.target), 1, 1, queries);
  const simgpu::Status status = device.launch({.kernel = (*module)->kernels().front(),
                                               .workgroups = {geometry.grid_x, geometry.grid_y, geometry.grid_z},
                                               .workgroup_size = {geometry.threads, 1, 1},
                                               .dynamic_lds_bytes = geometry.dynamic_lds_bytes,
                                               .kernarg = std::as_bytes(std::span(&arguments, 1)),
                                               .observer = &observer});
  return status.ok() ? "" : status.text;
}

std::expected<Statics, std::string> statics_of(const ForwardKernel& spec) {
  const timing::Timing* timing = timing::find_timing(*targets::find_target(spec.target));
  if (timing == nullptr) return std::unexpected("no timing for " + spec.target);
  Statics statics{.spec = spec, .kernel = known_kernel(spec), .code = {}, .steady = {}};
  if (!statics.kernel.error.empty()) return std::unexpected(statics.kernel.error);
  auto code = analysis::KernelCode::read(statics.kernel.code_object);
  if (!code) return std::unexpected(code.error());
  statics.code = std::make_shared<const analysis::KernelCode>(std::move(*code));
  auto steady = analysis::find_steady_state(*statics.code, *timing);
  if (!steady) return std::unexpected(steady.error());
  statics.steady = std::move(*steady);
  const int matrix = statics.steady.counts.count(analysis::Kind::matrix);
  const int a_tile = matrix_instructions_per_tile(spec);
  if (matrix % a_tile != 0)
    return std::unexpected(std::format("{} matrix instructions in a turn; a tile needs {}", matrix, a_tile));
  statics.tiles = matrix / a_tile;
  return statics;
}

std::expected<ObservedSteadyState, std::string> observe_steady_state(const Statics& statics) {
  constexpr int turns = 8;
  analysis::Recorder recorder(*timing::find_timing(statics.code->target()));
  if (std::string error = run_one_workgroup(statics.spec, statics.kernel, turns * statics.tiles, recorder);
      !error.empty())
    return std::unexpected(std::move(error));

  ObservedSteadyState observed;
  for (const std::string& name : recorder.unknown()) observed.unknown += (observed.unknown.empty() ? "" : ", ") + name;
  std::vector<std::uint32_t> expected;
  for (const simgpu::Instruction* instruction : statics.steady.path) {
    expected.push_back(instruction->offset_in_function);
    const auto use = recorder.lds().find(instruction->offset_in_function);
    if (use == recorder.lds().end()) continue;
    analysis::LdsUse& total = observed.lds[use->second.name];
    total.name = use->second.name;
    total.visits += use->second.visits;
    total.phases += use->second.phases;
    total.extra += use->second.extra;
  }
  // The first and the last turns are those of the ends; what stands between must be the path and nothing else.
  constexpr int at_the_ends = 2;
  for (const auto& [wave, path] : recorder.paths()) {
    std::vector<std::size_t> heads;
    for (std::size_t i = 0; i < path.size(); ++i)
      if (path[i] == expected.front()) heads.push_back(i);
    for (std::size_t turn = at_the_ends; turn + at_the_ends < heads.size(); ++turn) {
      ++observed.turns;
      const std::span<const std::uint32_t> taken(path.data() + heads[turn], heads[turn + 1] - heads[turn]);
      const auto [here, there] = std::ranges::mismatch(taken, expected);
      if (here == taken.end() && there == expected.end()) continue;
      if (observed.difference.empty())
        observed.difference =
            std::format("wave {}, turn {}: after {} instructions it is at offset {:#x}, the path at {:#x}", wave, turn,
                        here - taken.begin(), here == taken.end() ? 0 : *here, there == expected.end() ? 0 : *there);
    }
  }
  return observed;
}

}  // namespace wavejit::tests
