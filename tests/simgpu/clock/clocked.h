// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One kernel assembled on the spot and timed: what a compute unit makes of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assembled.h"
#include "simgpu/checkers/clock/compute_unit.h"

namespace wavejit::simgpu::testing {

// Matrix instructions of loops, by shape and target.
inline constexpr const char* matrix16_gfx942 = "v_mfma_f32_16x16x16_f16 v[8:11], v[2:3], v[4:5], v[8:11]\n";
inline constexpr const char* matrix16_gfx950 = "v_mfma_f32_16x16x32_f16 v[8:11], v[2:5], v[4:7], v[8:11]\n";
inline constexpr const char* matrix32_gfx950 = "v_mfma_f32_32x32x16_f16 v[8:23], v[2:5], v[4:7], v[8:23]\n";
inline constexpr const char* matrix32_gfx942 = "v_mfma_f32_32x32x8_f16 v[8:23], v[2:3], v[4:5], v[8:23]\n";

struct ClockedKernel {
  KernelSource source;
  unsigned waves = 1;       // of a workgroup
  unsigned workgroups = 1;  // all at once on one compute unit
  std::vector<std::uint64_t> arguments = {0};
  std::uint64_t timeline_last = 0;  // timeline events of cycles before it
};

struct Clocked {
  std::string error;
  clock::ComputeUnitResult result;
};

// Runs the kernel on the simulated GPU and its traces through the clock.
Clocked run_clocked(const ClockedKernel& kernel);

// Instructions that stand one after the other many times.
struct Stream {
  std::string target = "gfx950";
  std::string before = {};  // once, at the start
  std::string body;
  unsigned waves = 1;
  unsigned workgroups = 1;
  unsigned lds_bytes = 0;
  unsigned vgprs = 128;  // v2 … are zeros; v1 is 16 times the lane's number
  std::vector<std::uint64_t> arguments = {0};
  // Copies are turns of a loop, as a kernel's are, and not longer code: for bodies that the instruction cache could
  // not hold many of. s60 counts.
  bool loop = false;
};
struct StreamTime {
  std::string error;
  double cycles = 0;       // that one copy of the body takes: the difference of two runs that differ in copies only
  double matrix_busy = 0;  // of the difference, over the SIMDs that have waves
  clock::ComputeUnitResult result;  // of the longer run
};
StreamTime time_stream(const Stream& stream);

// `text`, this many times, a line each; every "{}" is replaced by the number of the copy times `stride` plus `first`.
std::string repeated(const std::string& text, unsigned count, unsigned first = 0, unsigned stride = 1);

}  // namespace wavejit::simgpu::testing
