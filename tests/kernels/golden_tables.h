// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tables of golden facts, tests/kernels/golden/<name>.txt: what the compiler makes of each kernel of a family. Some
// facts are promises and are compared exactly, the others may move by two percent.
//
//   for (const GoldenTable& table : golden_tables()) for (const auto& [spec, line] : golden_lines(table)) …
//
// A change on purpose: ./dev run kernel_facts <name> > tests/kernels/golden/<name>.txt
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "families/kernel/kernel_spec.h"

namespace wavejit::tests {

struct GoldenTable {
  std::string_view name;
  std::function<std::vector<families::KernelSpec>()> specs;
};
// Each family has one: of the kernels that its tests choose, or else of those that `wavejit prebuild` makes without a list.
std::span<const GoldenTable> golden_tables();

// The table's lines by their specs.
std::map<std::string, std::string> golden_lines(const GoldenTable& table);

// Two lines of facts of one kernel.
struct ComparedFacts {
  std::vector<std::string> broken;   // promises that do not hold: "spills=0, was 2"
  std::vector<std::string> drifted;  // counts that differ by at most two percent
};
// Promises: spills, private memory, LDS, kernarg, matrix and exponential instructions, LDS DMA, barriers, threads, the
// waves that fit on a SIMD, and that no accumulation register is used. Counts: instructions and registers.
ComparedFacts compare_facts(std::string_view target, const std::string& golden, const std::string& now);

}  // namespace wavejit::tests
