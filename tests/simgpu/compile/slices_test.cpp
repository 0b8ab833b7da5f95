// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A wave's turns on both engines: they end at the same instruction, at faults too.
#include <gtest/gtest.h>

#include <memory>

#include "simgpu/machine/compile/slice.h"
#include "simgpu/machine/decode/disassembler.h"
#include "simgpu/machine/decode/function.h"
#include "simgpu/machine/device/rooms.h"
#include "targets/targets.h"
#include "tests/simgpu/semantics/machine.h"

namespace wavejit::simgpu::test {
namespace {

struct Program {
  explicit Program(std::string_view text) : registry(*targets::find_target("gfx950")) {
    std::string error;
    code = assemble("gfx950", text, error);
    EXPECT_EQ(error, "");
    register_rooms(registry);
    function = decode_function("loop", code, 0, *Disassembler::for_processor("gfx950"), registry);
  }
  std::unique_ptr<Wave> start() const {
    auto wave = std::make_unique<Wave>();
    wave->set_exec(every_place);
    wave->mode = 0xf0;
    wave->next = function->instructions.data();
    return wave;
  }
  Registry registry;
  std::vector<std::uint8_t> code;
  std::unique_ptr<Function> function;
};

constexpr std::string_view loop = R"(
  s_mov_b32 s0, 100
start:
  v_add_u32_e32 v0, 3, v0
  v_lshl_add_u32 v1, v0, 2, v1
  s_add_i32 s0, s0, -1
  s_cmp_lg_u32 s0, 0
  s_cbranch_scc1 start
  s_endpgm
)";

TEST(Slices, EndWhereTheInterpretersEnd) {
  const Program program(loop);
  for (const std::int64_t length : {1, 2, 3, 7, 50, 1000}) {
    const auto compiled = program.start();
    const auto interpreted = program.start();
    for (unsigned turn = 0; turn < 600 && interpreted->state != WaveState::ended; ++turn) {
      compile::run_slice(*compiled, length, 0);
      compile::run_slice(*interpreted, length, ~0U);
      ASSERT_EQ(compiled->next, interpreted->next) << "turn " << turn << " of " << length;
      ASSERT_EQ(compiled->executed, interpreted->executed);
      ASSERT_EQ(compiled->state, interpreted->state);
      ASSERT_EQ(compiled->sgpr[0], interpreted->sgpr[0]);
      ASSERT_EQ(compiled->vgpr[1][63], interpreted->vgpr[1][63]);
    }
    EXPECT_EQ(interpreted->state, WaveState::ended);
    EXPECT_EQ(compiled->executed, 502U);
  }
}

// The clock of a wave counts instructions, in the middle of a block too.
TEST(Slices, TimeIsCountedByInstruction) {
  const Program program(
      "v_mov_b32 v0, v1\nv_mov_b32 v2, v1\ns_memtime s[2:3]\nv_mov_b32 v3, v1\ns_memtime s[4:5]\ns_endpgm\n");
  const auto wave = program.start();
  compile::run_slice(*wave, 1000, 0);
  EXPECT_EQ(wave->state, WaveState::ended);
  EXPECT_EQ(wave->sgpr64(2), 12U);
  EXPECT_EQ(wave->sgpr64(4), 20U);
}

TEST(Slices, ASleepGivesWay) {
  const Program program("v_mov_b32 v0, v1\ns_sleep 1\nv_mov_b32 v2, v1\ns_endpgm\n");
  const auto wave = program.start();
  compile::run_slice(*wave, 1000, 0);
  EXPECT_EQ(wave->state, WaveState::sleeping);
  EXPECT_EQ(wave->executed, 2U);
  EXPECT_EQ(wave->next, &program.function->instructions[2]);
  compile::run_slice(*wave, 1000, 0);
  EXPECT_EQ(wave->state, WaveState::ended);
  EXPECT_EQ(wave->executed, 4U);
}

}  // namespace
}  // namespace wavejit::simgpu::test
