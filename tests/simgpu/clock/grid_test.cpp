// A launch as a whole, from the traces of some of its workgroups.
#include "simgpu/clock/grid.h"

#include <cmath>

#include "clocked.h"
#include "gtest/gtest.h"

namespace wavejit::simgpu::testing {
namespace {

struct Sampled {
  clock::GridResult grid;
  std::string error;
};

// Runs the kernel in so many workgroups of one wave and times those of `sample`.
Sampled time_sample(const KernelSource& source, uint32_t workgroups, const std::vector<uint64_t>& sample,
                    const std::vector<uint64_t>& arguments) {
  const Assembled assembled(source);
  const targets::Target& target = assembled.device().target();
  const timing::Timing* timing = timing::find_timing(target);
  if (timing == nullptr) return {.grid = {}, .error = "no timing for the target"};
  clock::TraceRecorder recorder(*timing, sample);
  const Status status = assembled.device().launch({.kernel = &assembled.kernel(),
                                                   .workgroups = {workgroups, 1, 1},
                                                   .workgroup_size = {64, 1, 1},
                                                   .kernarg = std::as_bytes(std::span(arguments)),
                                                   .observer = &recorder});
  if (!status.ok()) return {.grid = {}, .error = status.text};
  clock::Program program(*timing, target);
  auto grid = clock::time_grid(program, {.workgroups = {workgroups, 1, 1}, .vgprs = source.vgprs}, recorder.traces());
  if (!grid) return {.grid = {}, .error = grid.error()};
  return {.grid = std::move(*grid), .error = {}};
}

TEST(Grid, NeighboursOfADieAreFoundWithOthersBetweenThem) {
  // 24 workgroups on eight dies: pairs eight apart, which do not stand side by side in the sample.
  Buffer<uint32_t> memory(64);
  const Sampled sampled = time_sample({.body = R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  global_load_dword v2, v1, s[6:7]
  s_waitcnt vmcnt(0))"},
                                      24, {3, 9, 11, 15, 17, 21, 23}, {memory.address()});
  ASSERT_EQ(sampled.error, "");
  std::vector<uint64_t> timed;
  for (const clock::SampledTime& time : sampled.grid.sample) timed.push_back(time.workgroup);
  EXPECT_EQ(timed, (std::vector<uint64_t>{3, 9, 15, 21}));
  EXPECT_EQ(sampled.grid.units.size(), 4U);
  EXPECT_EQ(sampled.grid.shared_lines, 1);  // all read the same
}

TEST(Grid, KernelsThatDoNothing) {
  const Sampled sampled = time_sample({.body = ""}, 3, {1}, {0});
  ASSERT_EQ(sampled.error, "");
  EXPECT_EQ(sampled.grid.matrix_busy, 0);
  EXPECT_EQ(sampled.grid.steady_matrix_busy, 0);
  EXPECT_TRUE(std::isfinite(sampled.grid.busy));
}

}  // namespace
}  // namespace wavejit::simgpu::testing
