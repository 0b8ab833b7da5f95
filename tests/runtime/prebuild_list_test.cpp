// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The default prebuild list against the calls that it is for: everything that `auto` can reach without modifiers, and
// nothing else.
#include <gmock/gmock.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "boards/board.h"
#include "families/call/family.h"
#include "runtime/offline/explain.h"
#include "runtime/offline/prebuild.h"
#include "runtime_fixture.h"
#include "targets/targets.h"

namespace wavejit::tests {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two sets of hundreds of specs are no message: the test prints what one of them has alone.
std::vector<std::string> only_in_first(const std::set<std::string>& first, const std::set<std::string>& second) {
  std::vector<std::string> only;
  std::ranges::set_difference(first, second, std::back_inserter(only));
  return only;
}

class PrebuildListTest : public RuntimeTest {
 protected:
  // Empty: nothing has such a kernel.
  static std::string spec_of(runtime::Engine& engine, wavejit_attention_forward_arguments& call) {
    wavejit_call_report report{};
    report.size = sizeof report;
    call.head.report = &report;
    const auto outcome = ForwardCalls::run(engine, &call, nullptr);
    if (outcome) return report.kernel_spec;
    EXPECT_EQ(outcome.error().status, WAVEJIT_UNSUPPORTED) << outcome.error().detail;
    return {};
  }

  // What calls of every kind lead to on one target. Lengths around every power of two and every multiple of 32 up to
  // 600: wherever a route draws a line, there is a call on both sides of it.
  std::set<std::string> specs_of_calls(const std::string& target) {
    std::vector<std::int64_t> query_lengths = {1024, 4096, 8191, 16'384, 131'072};
    for (std::int64_t length = 1; length <= 600; length += length < 66 ? 1 : 15) query_lengths.push_back(length);
    for (std::int64_t edge = 64; edge <= 512; edge += 32)
      query_lengths.insert(query_lengths.end(), {edge - 1, edge, edge + 1});

    std::set<std::string> specs;
    const auto engine = make_engine(target.c_str());
    for (const wavejit_dtype dtype : {WAVEJIT_FP16, WAVEJIT_BF16})
      for (const auto& [head_dim, head_dim_v] : {std::pair{64, 64}, {128, 128}, {192, 128}, {256, 256}, {264, 264}})
        for (const auto mask : {WAVEJIT_MASK_NONE, WAVEJIT_MASK_CAUSAL})
          for (const bool lse : {false, true})
            for (const std::int64_t query_length : query_lengths)
              // Small grids and large ones, few keys and many: what a number of splits may be chosen by.
              // Heads alone, and in groups that are packed.
              for (const auto& [batch, heads, kv_heads, key_length] :
                   {std::tuple{1, 1, 1, 0}, std::tuple{1, 1, 1, 1}, std::tuple{1, 1, 1, 131'072},
                    std::tuple{1, 8, 8, 131'072}, std::tuple{1, 8, 8, 4096}, std::tuple{1, 8, 8, 512},
                    std::tuple{32, 64, 64, 1024}, std::tuple{1, 8, 1, 131'072}, std::tuple{1, 8, 1, 4096},
                    std::tuple{64, 8, 1, 5120}, std::tuple{36, 8, 4, 3072}, std::tuple{48, 8, 4, 3072},
                    std::tuple{310, 8, 1, 3072}, std::tuple{310, 8, 1, 131'072}, std::tuple{310, 1, 1, 131'072},
                    std::tuple{1, 8, 4, 131'072}, std::tuple{1, 8, 2, 512}, std::tuple{32, 64, 8, 1024},
                    std::tuple{32, 64, 32, 1024}}) {
                if (heads > 8 && query_length > 16'384) continue;  // a batch slice would not fit a buffer descriptor
                auto call = good_call(batch, query_length, key_length, heads, kv_heads, head_dim);
                for (wavejit_tensor* tensor : {&call.v, &call.o}) {
                  *tensor = wavejit_dense_tensor(tensor->data, WAVEJIT_FP16, batch, tensor->sizes[1], tensor->sizes[2],
                                                 head_dim_v);
                }
                if (lse) call.lse = good_lse(call);
                std::uint64_t apart = 0;
                for (wavejit_tensor* tensor : {&call.q, &call.k, &call.v, &call.o, &call.lse})
                  if (tensor->data != nullptr) tensor->data = fake_address(++apart << 16U);
                call.q.dtype = call.k.dtype = call.v.dtype = call.o.dtype = dtype;
                call.mask.bits = mask;
                // Which way `auto` merges goes by fitted cycles, and both ways are listed: calls that say which way are
                // here so that no new fit moves a kernel off this list.
                for (const std::uint64_t launches :
                     std::initializer_list<std::uint64_t>{0, WAVEJIT_ONE_LAUNCH, WAVEJIT_TWO_LAUNCHES}) {
                  if (launches != 0 && (query_length != 1 || head_dim > 128)) continue;  // auto has no choice
                  call.head.flags = launches;
                  if (const std::string spec = spec_of(*engine, call); !spec.empty()) specs.insert(spec);
                }
              }
    return specs;
  }
};

TEST_F(PrebuildListTest, IsExactlyWhatCallsWithoutModifiersReach) {
  std::size_t count = 0;
  for (const targets::Target& target : targets::complete_targets()) {
    SCOPED_TRACE(target.id);
    std::set<std::string> listed;
    const runtime::PrebuildRequest everything{.descriptors = {}, .everything = true, .targets = target.id, .jobs = 1};
    ASSERT_TRUE(runtime::prebuild(config_, everything, *codegen_, [&](const runtime::PrebuildProgress& progress) {
      if (progress.kernel_spec == nullptr) return;
      ++count;
      // A call reports the kernel that walks the keys.
      if (progress.kernel_spec->starts_with("attention_forward ")) listed.insert(*progress.kernel_spec);
    }));
    const std::set<std::string> called = specs_of_calls(std::string(target.id));
    EXPECT_THAT(only_in_first(called, listed), IsEmpty()) << "that calls reach and no list has";
    EXPECT_THAT(only_in_first(listed, called), IsEmpty()) << "that the list has and no call here reaches";
  }
  // Nothing that calls found had to be compiled then.
  EXPECT_EQ(fake_codegen().compiles, count);
}

// A target for which some family has no kernel: explain, prebuild, a call and `supported` say the same sentence, which
// names family and target.
TEST_F(PrebuildListTest, FamiliesWithoutKernelsOnATargetSayWhy) {
  int lacking = 0;
  const std::vector<std::string> supported = runtime::supported();
  for (const boards::Board& target : boards::all_products())
    for (const families::Family* family : families::registered()) {
      const auto why = family->lacks(target);
      EXPECT_FALSE(why && target.complete) << target.id;
      if (!why) continue;
      ++lacking;
      EXPECT_THAT(*why, HasSubstr("no kernels for " + std::string(target.id)));
      EXPECT_THAT(supported, Contains(HasSubstr(": " + std::string(family->name()) + "; " + *why)));
      for (const families::Shape& shape : family->every_shape(*targets::find_target("gfx950"), {})) {
        const auto route = family->route(shape, target, {});
        ASSERT_FALSE(route) << family->name();
        EXPECT_EQ(route.error().status, WAVEJIT_UNSUPPORTED);
        EXPECT_THAT(route.error().detail, HasSubstr("no kernels for " + std::string(target.id)));
      }
    }
  EXPECT_GT(lacking, 0);
  const runtime::PrebuildRequest compiled_only{.descriptors = {}, .everything = true, .targets = "gfx90a", .jobs = 1};
  const auto refused = runtime::prebuild(config_, compiled_only, *codegen_, {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().detail, HasSubstr("compiled for and inspected only"));
}

}  // namespace
}  // namespace wavejit::tests
