// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Waves that share each chunk of keys against a wave that walks it alone, bit by bit: scores by tiles, maxima and
// weights through LDS, O by dims. Every case under wave schedules in which one wave runs as far ahead as barriers
// allow, one of them with every check of the simulated GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <format>
#include <string>
#include <vector>

#include "attention/modified.h"
#include "attention/schedules.h"
#include "support/part.h"

namespace wavejit::tests {
namespace {

wavejit_engine_options pinned(const char* pipeline) {
  wavejit_engine_options options{};
  options.pipeline = pipeline;
  return options;
}

struct Dims {
  int qk;
  int v;
  int waves;
};

void PrintTo(const Dims& dims, std::ostream* out) { *out << dims.qk << '/' << dims.v; }

class SharedWaves : public ::testing::TestWithParam<std::tuple<const char*, Storage, Dims>> {
 protected:
  const char* target() const { return std::get<0>(GetParam()); }
  Storage storage() const { return std::get<1>(GetParam()); }
  Dims dims() const { return std::get<2>(GetParam()); }
  AttentionCase make(int batch, int queries, int keys, int heads, int kv_heads, bool causal, std::uint64_t seed,
                     double spread = 1.0) const {
    return make_case(storage(), batch, queries, keys, heads, kv_heads, dims().qk, causal, seed, spread, dims().v);
  }

  void expect_bits_of_one_wave(const AttentionCase& which) {
    set_schedule(WAVEJIT_SIMGPU_IN_ORDER, 1);
    const AttentionOutput wanted = run_attention(alone_.get(), which);
    ASSERT_EQ(wanted.status, WAVEJIT_OK) << wanted.detail;
    ASSERT_FALSE(wanted.kernel_spec.contains("chunk_waves=")) << wanted.kernel_spec;
    for (const Schedule& schedule : schedules) {
      set_schedule(schedule.order, schedule.seed);
      const AttentionOutput output = run_attention(shared_.get(), which);
      // What registers do not hold is refused with the reason, and alone: dense keys without a bias never are.
      if (output.status == WAVEJIT_UNSUPPORTED && (which.pages || !which.inputs.bias.empty())) {
        EXPECT_THAT(output.detail, ::testing::HasSubstr("has no kernel beside chunk_waves= on gfx942"));
        return;
      }
      ASSERT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
      ASSERT_THAT(output.kernel_spec, ::testing::HasSubstr(std::format(" chunk_waves={} ", dims().waves)));
      EXPECT_EQ(output.reports, "");
      EXPECT_TRUE(output.fence_intact) << "something outside O, LSE or the workspace was written";
      EXPECT_TRUE(output.o == wanted.o) << "O differs";
      EXPECT_TRUE(bits_of(output.lse) == bits_of(wanted.lse)) << "LSE differs";
    }
  }

  Engine alone_{target(), pinned("generic chunk_waves=1")};
  Engine shared_{target(), pinned(std::format("generic chunk_waves={}", dims().waves).c_str())};
};

// Tiles that a step has none of; a chunk, one key more, several; rows that see no key; a few rows and a tile's worth.
TEST_P(SharedWaves, HaveTheBitsOfOneWave) {
  struct Case {
    int queries, keys, heads, kv_heads;
    bool causal;
  };
  constexpr std::array cases = {Case{1, 1, 8, 1, false},    Case{1, 64, 4, 4, false},   Case{2, 65, 8, 2, true},
                                Case{1, 255, 8, 1, false},  Case{3, 300, 2, 1, true},   Case{1, 512, 8, 2, false},
                                Case{4, 1023, 8, 1, true},  Case{1, 1024, 2, 1, false}, Case{1, 1025, 16, 2, false},
                                Case{33, 1300, 1, 1, true}, Case{2, 2200, 8, 2, true},  Case{5, 0, 2, 1, false}};
  for (int index = 0; index < static_cast<int>(cases.size()); ++index) {
    if (!in_part(index, 3)) continue;
    const Case& one = cases[index];
    for (const int splits : {1, 3}) {
      if (splits > 1 && one.keys <= 1024) continue;
      SCOPED_TRACE(std::format("q{} k{} h{}/{} splits {}", one.queries, one.keys, one.heads, one.kv_heads, splits));
      AttentionCase which =
          make(1 + index % 2, one.queries, one.keys, one.heads, one.kv_heads, one.causal, 100 + index, 1 + index % 4);
      which.splits = splits;
      which.lse = index % 4 != 1;
      which.layout = index % 2 == 0 ? Layout::bshd : Layout::padded;
      expect_bits_of_one_wave(which);
      if (HasFatalFailure()) return;
    }
  }
}

// Maxima that grow from tile to tile by more than the threshold, in some rows and not in others, and such that no
// later tile reaches: what of O and l is rescaled, and when, depends on the order of the tiles.
TEST_P(SharedWaves, RaiseMaximaTileByTile) {
  for (const bool ascending : {true, false}) {
    AttentionCase which = make(1, 2, 1200, 8, 1, false, 200, 1.0);
    const std::size_t row = static_cast<std::size_t>(dims().qk);
    for (int tile = 0; tile * 64 < 1200; ++tile) {
      const auto step = static_cast<float>(ascending ? tile : 19 - tile);
      const float factor = 0.25F + (0.75F * step) + (tile % 3 == 0 ? 4.0F : 0.0F);
      const auto first = static_cast<std::size_t>(tile) * 64 * row;
      const std::size_t end = std::min(first + (64 * row), which.inputs.k.size());
      for (std::size_t i = first; i < end; ++i) which.inputs.k[i] *= factor;
    }
    for (float& x : which.inputs.k) x = from_storage(storage(), to_storage(storage(), x));
    expect_bits_of_one_wave(which);
    which.splits = 2;
    expect_bits_of_one_wave(which);
  }
}

TEST_P(SharedWaves, MatchFloat64) {
  for (const int splits : {1, 2}) {
    AttentionCase which = make(2, 3, 1500, 8, 2, true, 300);
    which.splits = splits;
    check_under_all_schedules(shared_, which);
  }
}

// A window begins inside a step, and whole steps and chunks are outside of it; modifiers and sinks.
TEST_P(SharedWaves, MasksAndModifiers) {
  int index = 0;
  const auto compare = [&](const AttentionCase& which) {
    if (in_part(index++, 2)) expect_bits_of_one_wave(which);
  };
  AttentionCase window = make(1, 5, 2500, 4, 2, false, 400);
  window.inputs.window = true;
  for (const int left : {40, 700, 1600}) {
    window.inputs.window_left = left;
    window.inputs.window_right = left == 700 ? 0 : 3;
    window.splits = left == 1600 ? 3 : 1;
    compare(window);
  }
  AttentionCase modified = make(1, 4, 1200, 4, 2, true, 401);
  add_bias(modified, 1, 4, 1.0, 7);
  add_alibi(modified, 1);
  add_sink(modified, 0.5);
  modified.inputs.softcap = 5;
  compare(modified);
  modified.splits = 2;
  compare(modified);
  AttentionCase wide = make(1, 2, 700, 2, 1, false, 402);
  add_bias(wide, 1, 2, 1.0, 8);
  wide.bias_fp32 = true;
  wide.output_fp32 = true;
  compare(wide);
}

// Every page size, order and form of the table; packed queries; left padding, dense and in pages.
TEST_P(SharedWaves, Pages) {
  AttentionCase which = make(3, 2, 1500, 8, 2, true, 500);
  which.inputs.key_lengths = {1500, 0, 531};
  std::uint64_t seed = 10;
  int index = 0;
  for (const int size : {1, 16, 48, 64, 528, 1024}) {
    if (!in_part(index++, 2)) continue;
    SCOPED_TRACE(std::format("pages of {}", size));
    which.pages = Pages{
        .size = size, .heads_first = size % 32 == 0, .in_turn = size % 48 == 0, .list = size % 64 != 0, .seed = seed++};
    which.splits = size % 48 == 0 ? 2 : 1;
    expect_bits_of_one_wave(which);
    if (HasFatalFailure()) return;
  }
}

TEST_P(SharedWaves, LeftPadding) {
  int index = 0;
  const auto compare = [&](const AttentionCase& each) {
    if (in_part(index++, 2)) expect_bits_of_one_wave(each);
  };
  AttentionCase which = make(2, 1, 1300, 4, 1, false, 600);
  which.inputs.key_lengths = {1300, 700};
  which.first_keys = {37, 600};
  compare(which);
  which.pages = Pages{.size = 16, .seed = 5};
  compare(which);
  which.splits = 2;
  which.pages = Pages{.size = 1, .seed = 6};
  compare(which);
}

std::string name_of(const ::testing::TestParamInfo<SharedWaves::ParamType>& info) {
  const auto [target, storage, dims] = info.param;
  return std::format("{}_{}_d{}_{}", target, storage == Storage::fp16 ? "fp16" : "bf16", dims.qk, dims.v);
}

INSTANTIATE_TEST_SUITE_P(
    ByLdsDma, SharedWaves,
    ::testing::Combine(::testing::Values("gfx950"), ::testing::Values(Storage::bf16, Storage::fp16),
                       ::testing::Values(Dims{128, 128, 4}, Dims{64, 64, 4}, Dims{192, 128, 2}, Dims{256, 256, 2})),
    name_of);
// fp16 differs in conversions and products alone, which one of them shows.
INSTANTIATE_TEST_SUITE_P(ByRegisters, SharedWaves,
                         ::testing::Combine(::testing::Values("gfx942"), ::testing::Values(Storage::bf16),
                                            ::testing::Values(Dims{128, 128, 4}, Dims{64, 64, 4}, Dims{192, 128, 2})),
                         name_of);
INSTANTIATE_TEST_SUITE_P(HalvesByRegisters, SharedWaves,
                         ::testing::Combine(::testing::Values("gfx942"), ::testing::Values(Storage::fp16),
                                            ::testing::Values(Dims{128, 128, 4})),
                         name_of);

}  // namespace
}  // namespace wavejit::tests
