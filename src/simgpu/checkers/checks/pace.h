// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The schedule `timed`: which wave of a workgroup issues next, and when its results arrive, by the figures that the
// clock counts with (src/timing). Waves stay abreast as they do on a GPU that has room for all of them: each issues
// when it may and its SIMD's port and matrix pipe are free. It is what kernels written by hand rely on where they leave
// out a barrier; nobody should.
//
// Simpler than the clock: memory answers at one distance, that of the L2, and neither LDS nor memory is ever busy.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "simgpu/checkers/facts/effects.h"
#include "simgpu/machine/wave/wave.h"
#include "timing/timing.h"

namespace wavejit::simgpu::checks {

class Pace {
 public:
  void prepare(const targets::Target& target, std::span<Wave* const> waves);
  // Among waves that may run, the place of the one that issues next.
  std::size_t next(std::span<Wave* const> ready) const;
  std::uint64_t time_of(const Wave& wave) const { return times_[wave.index]; }
  // The instruction issues: the wave's time moves on. Returns when its result is there.
  std::uint64_t issue(const Wave& wave, const Instruction& instruction);
  // What the wave waited for was there then.
  void wait_until(const Wave& wave, std::uint64_t time);
  // Everybody stands at a barrier, and passes it now.
  void barrier(std::span<Wave* const> waves);

 private:
  static constexpr unsigned most_simds = 4;
  std::uint64_t starts_at(const Wave& wave) const;

  const isa::MatrixPipe* pipe_ = nullptr;
  const timing::Timing* timing_ = nullptr;
  std::vector<std::uint64_t> times_;  // per wave: when it may issue
  std::array<std::uint64_t, most_simds> port_free_{};
  std::array<std::uint64_t, most_simds> pipe_free_{};
};

}  // namespace wavejit::simgpu::checks
