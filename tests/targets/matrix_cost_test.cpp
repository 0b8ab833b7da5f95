// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Passes of matrix instructions from two sources other than src/isa's table: LLVM's scheduling model, as llvm-mca
// prints it, and published rates where that model does not distinguish instructions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <format>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "boards/board.h"
#include "isa/matrix.h"
#include "targets/targets.h"

namespace wavejit {
namespace {

using targets::Target;

// Formats of f8f6f4 instructions, as CBSZ and BLGP number them.
struct Formats {
  unsigned a, b;
};
constexpr Formats bytes{.a = 0, .b = 0};
constexpr Formats nibbles{.a = 4, .b = 4};

std::string registers(unsigned first, unsigned count) {
  return count == 1 ? std::format("v{}", first) : std::format("v[{}:{}]", first, first + count - 1);
}

// As the assembler takes it, f8f6f4 instructions with elements of four bits.
std::string line_of(const isa::MatrixInstruction& row) {
  constexpr unsigned dword_bits = 32;
  constexpr unsigned fp4_bits = 4;
  const auto dwords = [&](isa::Element element) {
    const unsigned bits = row.formats_in_modifiers ? fp4_bits : isa::bits_of(element);
    return std::max(row.k_per_lane() * bits / dword_bits, 1u);
  };
  const unsigned results = row.results_per_lane() * (row.a == isa::Element::f64 ? 2 : 1);
  return std::format("{} {}, {}, {}, {}{}", row.name, registers(64, results), registers(0, dwords(row.a)),
                     registers(16, dwords(row.b)), registers(64, results),
                     row.formats_in_modifiers ? std::format(" cbsz:{} blgp:{}", nibbles.a, nibbles.b) : "");
}

// Mnemonic → cycles for which the pipe takes no other one. Instructions that the target has not are left out.
std::map<std::string, double> reciprocal_throughputs(const Target& target) {
  const std::filesystem::path file =
      std::filesystem::path(::testing::TempDir()) / std::format("matrix_cost_{}.s", target.id);
  {
    std::ofstream lines(file);
    for (const isa::MatrixInstruction& row : isa::matrix_instructions()) lines << line_of(row) << '\n';
  }
  const std::string command = std::format(
      "{} -mtriple=amdgcn-amd-amdhsa -mcpu={} --instruction-info --resource-pressure=false --summary-view=false "
      "-skip-unsupported-instructions=parse-failure {} 2>/dev/null",
      WAVEJIT_TEST_LLVM_MCA, target.id, file.string());
  std::map<std::string, double> found;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return found;
  char line[512];
  // " 1      12    8.00                  U     v_mfma_f32_32x32x8_f16 v[64:79], …": the third number.
  while (std::fgets(line, sizeof line, pipe) != nullptr) {
    const std::string text(line);
    const std::size_t at = text.find("v_mfma_");
    if (at == std::string::npos) continue;
    std::istringstream numbers(text);
    double operations = 0;
    double latency = 0;
    double throughput = 0;
    if (numbers >> operations >> latency >> throughput) found[text.substr(at, text.find(' ', at) - at)] = throughput;
  }
  pclose(pipe);
  std::filesystem::remove(file);
  return found;
}

TEST(MatrixCost, PassesAreThoseOfLlvmsSchedulingModel) {
  std::set<std::string> compared;
  for (const Target& target : targets::complete_targets()) {
    const auto model = reciprocal_throughputs(target);
    ASSERT_FALSE(model.empty()) << target.id << ": " << WAVEJIT_TEST_LLVM_MCA << " printed nothing";
    const isa::MatrixPipe& pipe = isa::matrix_pipe(target);
    for (const isa::MatrixInstruction& row : isa::matrix_instructions()) {
      const auto found = model.find(row.name);
      if (found == model.end()) continue;
      compared.insert(row.name);
      EXPECT_EQ(isa::matrix_passes(row, pipe, nibbles.a, nibbles.b), found->second) << target.id << ' ' << row.name;
    }
    for (const targets::MatrixInstruction& used : target.matrix)
      EXPECT_TRUE(model.contains(isa::find_matrix_instruction(used.id)->name)) << target.id << ' ' << used.intrinsic;
  }
  for (const isa::MatrixInstruction& row : isa::matrix_instructions())
    EXPECT_TRUE(compared.contains(row.name)) << row.name << " is on no target";
}

// LLVM's model gives f8f6f4 instructions the passes of small formats throughout. Published for an MI355X: 10.1 PFLOPS
// of FP4 and FP6, 5.0 of FP8 (AMD's data sheet, dense).
TEST(MatrixCost, PassesOfFormatsGiveThePublishedRates) {
  const boards::Board& board = *boards::find_product("gfx950");
  const isa::MatrixPipe& pipe = isa::matrix_pipe(*targets::find_target("gfx950"));
  const auto petaflops = [&](const isa::MatrixInstruction& row, Formats formats) {
    constexpr double clocks_of_pass = 4;
    const double of_simd =
        2.0 * row.m * row.m * row.k / (clocks_of_pass * isa::matrix_passes(row, pipe, formats.a, formats.b));
    return of_simd * board.simds_per_compute_unit * board.compute_units * board.clock_khz / 1e12;
  };
  int rows = 0;
  for (const isa::MatrixInstruction& row : isa::matrix_instructions()) {
    if (!row.formats_in_modifiers) continue;
    ++rows;
    EXPECT_NEAR(petaflops(row, nibbles), 10.1, 0.05) << row.name;
    EXPECT_NEAR(petaflops(row, bytes), 5.0, 0.05) << row.name;
  }
  EXPECT_EQ(rows, 2);
}

// Hardware's traces show this of WMMA: bytes take half of 16-bit inputs' clocks, and i4 no less at either depth.
TEST(MatrixCost, WmmaTakesWhatTracesShow) {
  for (const isa::MatrixInstruction& row : isa::wmma_instructions()) {
    const std::string_view name = row.name;
    const bool bytes = name.contains("iu8") || name.contains("fp8") || name.contains("bf8") || name.contains("iu4");
    EXPECT_EQ(row.passes, bytes ? 2 : 4) << name;
  }
}

}  // namespace
}  // namespace wavejit
