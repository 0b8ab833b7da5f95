// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Facts that stand in two tables because one of them is in every cache key: what emission asks of a target, and what a
// board has or an instruction costs.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

#include "boards/board.h"
#include "isa/matrix.h"
#include "targets/matrix_mnemonic.h"
#include "targets/targets.h"
#include "targets/wave_shape.h"

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
    EXPECT_EQ(targets::known_targets().contains(target.id), target.complete) << target.id;
    for (const MatrixInstruction& row : target.matrix) EXPECT_FALSE(targets::mnemonic_of(row.id).empty()) << target.id;
    EXPECT_EQ(targets::wave_shape(target).registers() % target.row_block, 0) << target.id;
  }
}

TEST(MatrixFacts, PipesAreOfTargets) {
  for (const Target& target : targets::complete_targets()) EXPECT_EQ(isa::matrix_pipe(target).target, target.id);
}

TEST(Boards, EveryTargetThatRunsHasAProductInTheSameOrder) {
  const auto products = boards::all_products();
  const auto rows = targets::all_targets();
  EXPECT_EQ(boards::complete_products().size(), targets::complete_targets().size());
  ASSERT_LE(products.size(), rows.size());
  for (const Target& compiled : rows.subspan(products.size())) {
    EXPECT_FALSE(compiled.complete) << compiled.id;
    EXPECT_EQ(boards::find_product(compiled.id), nullptr);
    EXPECT_EQ(boards::why_no_board(compiled.id), "is compiled and inspected only: there is no board of it to run on");
  }
  EXPECT_EQ(boards::why_no_board("gfx1100"), "is not known");
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
