// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "clocked.h"

#include <algorithm>
#include <format>
#include <numeric>

#include "simgpu/checkers/clock/trace.h"
#include "targets/targets.h"

namespace wavejit::simgpu::testing {
namespace {

KernelSource source_of(const Stream& stream, unsigned copies) {
  std::string text = "v_lshlrev_b32 v1, 4, v0\n";
  for (unsigned i = 2; i < stream.vgprs; ++i) text += std::format("v_mov_b32 v{}, 0\n", i);
  // Everybody starts the streams together, whatever came before.
  text += stream.before + "\ns_waitcnt vmcnt(0) lgkmcnt(0)\ns_barrier\n";
  if (stream.loop) {
    text += std::format("s_mov_b32 s60, {}\n7:\n{}\ns_sub_u32 s60, s60, 1\ns_cmp_lg_u32 s60, 0\ns_cbranch_scc1 7b\n",
                        copies, stream.body);
  } else {
    for (unsigned i = 0; i < copies; ++i) text += stream.body + "\n";
  }
  text += "s_waitcnt vmcnt(0) lgkmcnt(0)\n";
  return {.body = text,
          .target = stream.target,
          .kernarg_bytes = static_cast<unsigned>(8 * stream.arguments.size()),
          .lds_bytes = stream.lds_bytes,
          .vgprs = stream.vgprs};
}

std::uint64_t matrix_cycles(const clock::ComputeUnitResult& result) {
  std::uint64_t busy = 0;
  for (const clock::SimdResult& simd : result.simds) busy += simd.matrix_busy;
  return busy;
}

}  // namespace

Clocked run_clocked(const ClockedKernel& kernel) {
  const Assembled assembled(kernel.source);
  const timing::Timing* timing = timing::find_timing(assembled.device().target());
  if (timing == nullptr) return {.error = "no timing for the target", .result = {}};
  std::vector<std::uint64_t> ids(kernel.workgroups);
  std::iota(ids.begin(), ids.end(), 0);
  clock::TraceRecorder recorder(*timing, ids);
  const auto lanes = static_cast<unsigned>(assembled.device().target().wave_size);
  const Status status = assembled.device().launch({.kernel = &assembled.kernel(),
                                                   .workgroups = {kernel.workgroups, 1, 1},
                                                   .workgroup_size = {lanes * kernel.waves, 1, 1},
                                                   .kernarg = std::as_bytes(std::span(kernel.arguments)),
                                                   .observer = &recorder});
  if (!status.ok()) return {.error = status.text, .result = {}};
  clock::Program program(*timing, assembled.device().target());
  clock::ComputeUnitRequest request;
  request.resident = kernel.workgroups;
  request.timeline_last = kernel.timeline_last;
  for (const clock::WorkgroupTrace& trace : recorder.traces()) request.workgroups.push_back(&trace);
  auto result = clock::run_compute_unit(program, request);
  if (!result) return {.error = result.error(), .result = {}};
  return {.error = {}, .result = std::move(*result)};
}

StreamTime time_stream(const Stream& stream) {
  constexpr unsigned few = 32;
  constexpr unsigned many = 160;
  const auto run = [&](unsigned copies) {
    return run_clocked({.source = source_of(stream, copies),
                        .waves = stream.waves,
                        .workgroups = stream.workgroups,
                        .arguments = stream.arguments});
  };
  const Clocked one = run(few);
  Clocked two = run(many);
  if (!one.error.empty() || !two.error.empty()) return {.error = one.error + two.error, .result = {}};
  const double cycles = static_cast<double>(two.result.cycles) - static_cast<double>(one.result.cycles);
  const double busy = static_cast<double>(matrix_cycles(two.result)) - static_cast<double>(matrix_cycles(one.result));
  const auto used = std::min<double>(static_cast<double>(two.result.simds.size()), stream.waves * stream.workgroups);
  return {.error = {},
          .cycles = cycles / (many - few),
          .matrix_busy = busy / cycles / used,
          .result = std::move(two.result)};
}

std::string repeated(const std::string& text, unsigned count, unsigned first, unsigned stride) {
  std::string all;
  for (unsigned i = 0; i < count; ++i) {
    std::string line = text;
    const std::string number = std::to_string(first + (i * stride));
    for (std::size_t place = line.find("{}"); place != std::string::npos; place = line.find("{}", place)) {
      line.replace(place, 2, number);
    }
    all += line + "\n";
  }
  return all;
}

}  // namespace wavejit::simgpu::testing
