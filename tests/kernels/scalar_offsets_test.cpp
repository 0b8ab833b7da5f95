// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Buffer instructions of our kernels have a scalar offset that is 0 or inside the buffer. Whether the range check of
// gfx9 counts it is said in two ways (counted: ROCm/rocm-systems#10928, fitted to a gfx950; not counted:
// ROCm/aiter#4473); such kernels mean the same in both.
#include <gtest/gtest.h>

#include <algorithm>
#include <format>
#include <set>
#include <string>

#include "kernels/statics.h"
#include "simgpu/checkers/facts/effects.h"
#include "simgpu/machine/decode/function.h"
#include "simgpu/machine/launch/observer.h"
#include "simgpu/machine/wave/wave.h"
#include "support/part.h"

namespace wavejit::tests {
namespace {

class ScalarOffsets final : public simgpu::Observer {
 public:
  void before(const simgpu::Wave& wave, const simgpu::Instruction& instruction) override {
    if (!instruction.mnemonic.starts_with("buffer_")) return;
    const simgpu::checks::Effects effects = simgpu::checks::describe(instruction);
    if (effects.space != simgpu::Space::buffer) return;
    const simgpu::Operand& descriptor = instruction.source[effects.address_operand + 1];
    const std::uint32_t offset = wave.scalar(instruction.source[effects.address_operand + 2]);
    const std::uint32_t records = wave.sgpr[descriptor.index + 2];
    ++seen_;
    if (offset != 0) ++with_offset_;
    if (offset == 0 || offset < records) return;
    outside_.insert(std::format("{} at {:#x}: scalar offset {} of {} bytes", instruction.function->text(instruction),
                                instruction.offset_in_function, offset, records));
  }
  int seen() const { return seen_; }
  int with_offset() const { return with_offset_; }
  const std::set<std::string>& outside() const { return outside_; }

 private:
  int seen_ = 0;
  int with_offset_ = 0;
  std::set<std::string> outside_;
};

TEST(BufferAccesses, ScalarOffsetsStayInsideTheBuffer) {
  int with_offset = 0;
  int index = 0;
  for (const attention_forward::ForwardKernel& spec : steady_state_specs()) {
    if (!in_part(index++, 3)) continue;
    const CompiledKernel kernel = known_kernel(spec);
    ASSERT_EQ(kernel.error, "");
    for (const int tiles : {1, 4}) {
      ScalarOffsets observer;
      ASSERT_EQ(run_one_workgroup(spec, kernel, tiles, observer), "");
      EXPECT_GT(observer.seen(), 0);
      with_offset += observer.with_offset();
      for (const std::string& one : observer.outside()) {
        ADD_FAILURE() << attention_forward::to_text(spec) << ", " << tiles << " tiles: " << one;
      }
    }
  }
  EXPECT_GT(with_offset, 0);
}

}  // namespace
}  // namespace wavejit::tests
