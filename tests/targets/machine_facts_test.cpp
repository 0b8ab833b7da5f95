// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Facts that stand in two tables because one of them is in every cache key: what emission asks of a target, and what a
// board has or an instruction costs.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <format>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

#include "boards/board.h"
#include "isa/matrix.h"
#include "targets/matrix_mnemonic.h"
#include "targets/targets.h"
#include "targets/wave_shape.h"
#include "vocabulary/gpus.h"

namespace wavejit {
namespace {

using targets::MatrixId;
using targets::MatrixInstruction;
using targets::Target;

isa::Element element_of(targets::Element element) {
  return element == targets::Element::bf16 ? isa::Element::bf16 : isa::Element::f16;
}

TEST(MatrixFacts, BothHalvesOfAnInstructionSayTheSame) {
  for (const Target& target : targets::complete_targets()) {
    ASSERT_FALSE(target.matrix.empty()) << target.id;
    for (const MatrixInstruction& used : target.matrix) {
      SCOPED_TRACE(std::string(target.id) + " " + std::string(used.intrinsic));
      const isa::MatrixInstruction* cost = isa::find_matrix_instruction(used.id);
      ASSERT_NE(cost, nullptr);
      EXPECT_EQ(targets::mnemonic_of(used.id), cost->name);
      EXPECT_EQ(used.m, cost->m);
      EXPECT_EQ(used.n, cost->m);
      EXPECT_EQ(used.k, cost->k);
      EXPECT_EQ(cost->blocks, 1);
      EXPECT_EQ(element_of(used.element), cost->a);
      EXPECT_EQ(element_of(used.element), cost->b);
      EXPECT_EQ(static_cast<unsigned>(used.k_per_lane(target.wave_size)), cost->k_per_lane());
      // v_mfma_f32_32x32x8_bf16 and llvm.amdgcn.mfma.f32.32x32x8bf16.1k: both name the shape.
      const std::string shape = std::to_string(used.m) + "x" + std::to_string(used.n) + "x" + std::to_string(used.k);
      EXPECT_NE(used.intrinsic.find(shape), std::string_view::npos);
      EXPECT_NE(std::string_view(cost->name).find(shape), std::string_view::npos);
    }
  }
}

TEST(MatrixFacts, AnIdIsOfOneInstruction) {
  std::set<MatrixId> seen;
  for (const isa::MatrixInstruction& cost : isa::matrix_instructions())
    if (cost.id != MatrixId::none) EXPECT_TRUE(seen.insert(cost.id).second) << cost.name;
  std::set<MatrixId> used;
  for (const Target& target : targets::complete_targets())
    for (const MatrixInstruction& row : target.matrix) used.insert(row.id);
  EXPECT_EQ(seen, used);
  EXPECT_EQ(isa::find_matrix_instruction(MatrixId::none), nullptr);
}

TEST(MatrixFacts, TheWidestComesFirst) {
  for (const Target& target : targets::complete_targets()) {
    const MatrixInstruction& first = target.matrix.front();
    for (const MatrixInstruction& row : target.matrix)
      if (row.m == first.m) EXPECT_LE(row.k, first.k) << target.id;
  }
}

// Published for dense 16-bit inputs: 1,307.4 TFLOPS of an MI300X, 2.5 PFLOPS of an MI355X (AMD's data sheets).
TEST(MatrixFacts, PassesGiveThePublishedRate) {
  const auto tflops = [](const char* name) {
    const boards::Board& board = *boards::find_product(name);
    const MatrixInstruction& widest = board.matrix.front();
    const double of_simd = 2.0 * widest.m * widest.n * widest.k / (4 * isa::find_matrix_instruction(widest.id)->passes);
    return of_simd * board.simds_per_compute_unit * board.compute_units * board.clock_khz / 1e9;
  };
  EXPECT_NEAR(tflops("gfx942"), 1307.4, 1);
  EXPECT_NEAR(tflops("gfx950"), 2516.6, 1);
}

// Published for an R9700 at its boost clock: 191 TFLOPS of dense 16-bit inputs (AMD's data sheet). An instruction takes
// the port of its SIMD for 16 cycles.
TEST(MatrixFacts, TheRateOfWavesOf32IsThePublishedOne) {
  const boards::Board& board = *boards::find_product("gfx1201");
  const MatrixInstruction& widest = board.matrix.front();
  constexpr double cycles = 16;
  const double of_simd = 2.0 * widest.m * widest.n * widest.k / cycles;
  EXPECT_NEAR(of_simd * board.simds_per_compute_unit * board.compute_units * board.clock_khz / 1e9, 191, 1);
}

TEST(Targets, CompleteOnesComeFirstAndNamesAreOfOneRow) {
  std::set<std::string_view> names;
  std::set<std::uint32_t> machines;
  bool complete = true;
  for (const Target& target : targets::all_targets()) {
    EXPECT_TRUE(complete || !target.complete) << target.id;
    complete = target.complete;
    EXPECT_TRUE(names.insert(target.id).second) << target.id;
    EXPECT_TRUE(machines.insert(target.elf_machine_flags).second) << target.id;
    EXPECT_EQ(targets::find_target_by_machine(target.elf_machine_flags), &target);
    EXPECT_TRUE(targets::known_targets().contains(target.id)) << target.id;
    for (const MatrixInstruction& row : target.matrix) EXPECT_FALSE(targets::mnemonic_of(row.id).empty()) << target.id;
    EXPECT_EQ(targets::wave_shape(target).registers() % target.row_block, 0) << target.id;
  }
}

// For each column, an instruction that the assembler must accept where the row has the feature and refuse where it does
// not. MFMA is tested by an instruction for the accumulation registers, because the names of MFMA instructions differ
// by target.
struct Promised {
  const char* column;
  bool (*of)(const Target&);
  const char* instruction;
};
constexpr Promised promised[] = {
    {"lds_dma_bytes 4", [](const Target& row) { return row.lds_dma_bytes >= 4; },
     "buffer_load_dword v1, s[8:11], 0 offen lds"},
    {"lds_dma_bytes 16", [](const Target& row) { return row.lds_dma_bytes >= 16; },
     "buffer_load_dwordx4 v1, s[8:11], 0 offen lds"},
    {"transpose_read", [](const Target& row) { return row.transpose_read; }, "ds_read_b64_tr_b16 v[0:1], v2"},
    {"permlane32_swap", [](const Target& row) { return row.permlane32_swap; }, "v_permlane32_swap_b32 v0, v1"},
    {"packed_bf16_convert", [](const Target& row) { return row.packed_bf16_convert; }, "v_cvt_pk_bf16_f32 v0, v1, v2"},
    {"packed_f16_convert_rne", [](const Target& row) { return row.packed_f16_convert_rne; },
     "v_cvt_pk_f16_f32 v0, v1, v2"},
    {"byte_matrix", [](const Target& row) { return row.byte_matrix; },
     "v_mfma_f32_32x32x64_f8f6f4 v[64:79], v[0:7], v[16:23], v[64:79]"},
    {"byte_convert_16", [](const Target& row) { return row.byte_convert_16; }, "v_cvt_scalef32_pk_bf16_fp8 v0, v1, v2"},
    {"permlanex16", [](const Target& row) { return row.permlanex16; }, "v_permlanex16_b32 v0, v1, s2, s3"},
    {"transposing_load", [](const Target& row) { return row.transposing_load; },
     "global_load_tr_b128 v[0:3], v4, s[2:3]"},
    {"split_wait_counters", [](const Target& row) { return row.split_wait_counters; }, "s_wait_loadcnt 0x0"},
    {"split_barriers", [](const Target& row) { return row.split_barriers; }, "s_barrier_signal -1"},
    {"paired_issue", [](const Target& row) { return row.paired_issue; },
     "v_dual_mov_b32 v0, v1 :: v_dual_add_f32 v3, v2, v5"},
    {"matrix_form wmma", [](const Target& row) { return row.matrix_form == targets::MatrixForm::wmma; },
     "v_wmma_f32_16x16x16_f16 v[16:23], v[0:3], v[8:11], v[16:23]"},
    {"matrix_form mfma", [](const Target& row) { return row.matrix_form == targets::MatrixForm::mfma; },
     "v_accvgpr_read_b32 v0, a1"},
    {"fp8", [](const Target& row) { return row.fp8 != targets::Fp8::none; }, "v_cvt_pk_f32_fp8 v[0:1], v2"},
};

// Lines of which the assembler made an instruction, by their numbers from 0.
std::set<std::size_t> taken_by_the_assembler(const Target& row) {
  const std::filesystem::path file = std::filesystem::path(::testing::TempDir()) / std::format("promised_{}.s", row.id);
  {
    std::ofstream lines(file);
    for (const Promised& each : promised) lines << each.instruction << '\n';
  }
  const std::string command =
      std::format("{} -triple=amdgcn-amd-amdhsa -mcpu={} {} -filetype=null 2>&1 | grep -o '[.]s:[0-9]*:[0-9]*: error'",
                  WAVEJIT_TEST_LLVM_MC, row.id, file.string());
  std::set<std::size_t> taken;
  for (std::size_t i = 0; i < std::size(promised); ++i) taken.insert(i);
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  char line[256];
  // ".s:7:1: error"
  while (std::fgets(line, sizeof line, pipe) != nullptr) taken.erase(std::stoul(std::string(line).substr(3)) - 1);
  pclose(pipe);
  std::filesystem::remove(file);
  return taken;
}

TEST(Targets, ColumnsSayWhatTheAssemblerTakes) {
  for (const Target& row : targets::all_targets()) {
    const std::set<std::size_t> taken = taken_by_the_assembler(row);
    EXPECT_FALSE(taken.empty()) << row.id;
    EXPECT_LT(taken.size(), std::size(promised)) << row.id << ": was " << WAVEJIT_TEST_LLVM_MC << " there?";
    for (std::size_t i = 0; i < std::size(promised); ++i)
      EXPECT_EQ(taken.contains(i), promised[i].of(row)) << row.id << ", " << promised[i].column;
  }
}

TEST(MatrixFacts, PipesAreOfTargets) {
  for (const Target& target : targets::complete_targets()) EXPECT_EQ(isa::matrix_pipe(target).target, target.id);
}

TEST(Boards, GpusAreRefusedUnlessTheirTargetRuns) {
  std::set<std::string_view> targets;
  for (const vocabulary::GpusOfTarget& gpus : vocabulary::gpus_by_target()) {
    EXPECT_TRUE(targets.insert(gpus.target).second) << gpus.target << " has two rows";
    EXPECT_EQ(boards::find_product(gpus.target) == nullptr, !gpus.refused.empty()) << gpus.target;
    EXPECT_EQ(boards::why_no_kernels(gpus.target).has_value(), !gpus.refused.empty()) << gpus.target;
  }
  for (const boards::Board& product : boards::all_products())
    EXPECT_TRUE(targets.contains(product.id)) << product.id << " is sold under no name";
}

TEST(Boards, EveryTargetThatRunsHasAProductInTheSameOrder) {
  const auto products = boards::all_products();
  const auto rows = targets::all_targets();
  EXPECT_EQ(boards::complete_products().size(), targets::complete_targets().size());
  ASSERT_LE(products.size(), rows.size());
  for (const Target& compiled : rows.subspan(products.size())) {
    EXPECT_FALSE(compiled.complete) << compiled.id;
    EXPECT_EQ(boards::find_product(compiled.id), nullptr);
    EXPECT_TRUE(boards::why_no_board(compiled.id).ends_with("compiled for and inspected only")) << compiled.id;
  }
  EXPECT_EQ(
      boards::why_no_board("gfx1100"),
      "(Radeon RX 7900 XTX, RX 7900 XT and PRO W7900) has no kernels: it is RDNA 3, and they are written for CDNA 3, "
      "CDNA 4 and RDNA 4");
  EXPECT_EQ(boards::why_no_board("gfx1151:xnack-"), boards::why_no_board("gfx1151@1x20"));
  EXPECT_EQ(boards::why_no_board("gfx9999"), "is not known");
  EXPECT_EQ(boards::why_no_kernels("gfx1100"), boards::why_no_board("gfx1100"));
  EXPECT_EQ(boards::why_no_kernels("gfx9999"), std::nullopt);
  for (const boards::Board& product : products) EXPECT_EQ(boards::why_no_kernels(product.id), std::nullopt);
  for (std::size_t i = 0; i < products.size(); ++i) {
    EXPECT_EQ(products[i].id, rows[i].id);
    EXPECT_EQ(products[i].lds_bytes, rows[i].lds_bytes);
    EXPECT_EQ(products[i].matrix.data(), rows[i].matrix.data());
    EXPECT_GT(products[i].compute_units, 0);
    EXPECT_FALSE(products[i].product.empty());
    EXPECT_EQ(products[i].vgpr_granule, products[i].vgprs_handed_out);
  }
}

TEST(Boards, AreFoundByTheirNames) {
  EXPECT_EQ(boards::find_product("gfx942:sramecc+:xnack-"), boards::find_product("gfx942"));
  EXPECT_EQ(boards::find_product("gfx1100"), nullptr);
  const auto board = boards::find_board("gfx942@6x38");
  ASSERT_TRUE(board);
  EXPECT_EQ(board->compute_units, 228);
  EXPECT_EQ(boards::board_name(*board), "gfx942@6x38");
  EXPECT_FALSE(boards::find_board("gfx942:xnack-"));
  EXPECT_FALSE(boards::find_board("gfx942@0x38"));
}

}  // namespace
}  // namespace wavejit
