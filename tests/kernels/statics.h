// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The static figures of a kernel: its steady state for one tile of keys, what its LDS accesses do to the banks, and
// what of that its waves confirmed. bench/static_table.md holds them for every kernel; statics_test.cpp holds them to
// bounds.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "analysis/kernel_code.h"
#include "analysis/observe.h"
#include "analysis/steady_state.h"
#include "kernels/facts.h"
#include "simgpu/machine/device/device.h"
#include "simgpu/machine/launch/observer.h"

namespace wavejit::tests {

// One kernel a pipeline, target, data type, head dim and mask: the O store and the LSE stand outside the loop.
std::vector<attention_forward::ForwardKernel> steady_state_specs();

// What the algorithm asks for: both products of a 32-row wave and a tile of keys.
int matrix_instructions_per_tile(const attention_forward::ForwardKernel& spec);

// zero: no row's maximum grows after the first tile. growing: every tile's is so far above the last one's that all
// rows are rescaled.
enum class Scores : std::uint8_t { zero, growing };

// Runs one workgroup over `tiles` whole tiles of keys, all of them visible: the steady state and nothing else. Empty,
// or what went wrong. `keep`: who holds on to instructions that the
// observer saw needs the module.
std::string run_one_workgroup(const attention_forward::ForwardKernel& spec, const CompiledKernel& kernel, int tiles,
                              simgpu::Observer& observer, std::shared_ptr<simgpu::Module>* keep = nullptr,
                              Scores scores = Scores::zero);

struct Statics {
  attention_forward::ForwardKernel spec;
  CompiledKernel kernel;
  std::shared_ptr<const analysis::KernelCode> code;  // `steady` points into it
  analysis::SteadyState steady;
  int tiles = 0;  // in one turn of the loop

  double port_cycles() const { return static_cast<double>(steady.counts.port_cycles) / tiles; }
  double matrix_cycles() const { return static_cast<double>(steady.counts.matrix_cycles) / tiles; }
};
std::expected<Statics, std::string> statics_of(const attention_forward::ForwardKernel& spec);

struct ObservedSteadyState {
  // Empty when every wave took the static path turn after turn; else the first difference.
  std::string difference;
  int turns = 0;  // compared, over all waves
  // LDS accesses on the path, by name.
  std::map<std::string, analysis::LdsUse> lds;
  std::string unknown;  // accesses that the table of timing says nothing about
};
std::expected<ObservedSteadyState, std::string> observe_steady_state(const Statics& statics);

}  // namespace wavejit::tests
