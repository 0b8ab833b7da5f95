// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Size 0, and other numbers that no size is, in every place of every call's struct, through every function that takes
// it: an answer comes, and all of them give the same one. Sizes that must agree become 0 together, since a check that
// compares them would refuse one alone before any other check sees it.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "good_calls.h"
#include "wavejit/wavejit.h"

namespace wavejit::tests {
namespace {

// ---- Every function that takes a call -------------------------------------------------------------------------------

template <typename Arguments>
using CallFunction = wavejit_status (*)(wavejit_engine*, const Arguments*, ihipStream_t*);

class ZeroSizes : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string device = std::string("sim:") + GetParam();
    wavejit_engine_options options{};
    options.size = sizeof options;
    options.device = device.c_str();
    options.cache_mode = "off";
    options.log_level = "off";
    ASSERT_EQ(wavejit_engine_create(&options, &engine_), WAVEJIT_OK) << wavejit_last_detail();
  }
  void TearDown() override { wavejit_engine_destroy(engine_); }

  static wavejit_dtype e4m3() { return GetParam() == std::string_view("gfx942") ? WAVEJIT_E4M3_FNUZ : WAVEJIT_E4M3; }

  // "" or what two functions say differently. WAVEJIT_NO_COMPILE: a call that is good ends before its launch.
  template <typename Arguments>
  std::string asked(CallFunction<Arguments> run, const Arguments& call) {
    const wavejit_status supported = wavejit_call_supported(engine_, &call.head);
    const std::string reason = supported == WAVEJIT_OK ? "" : wavejit_last_detail();
    ++(supported == WAVEJIT_OK ? good_ : refused_);
    if (supported != WAVEJIT_OK && supported != WAVEJIT_INVALID_ARGUMENT && supported != WAVEJIT_UNSUPPORTED)
      return "supported answers " + std::to_string(supported) + ": " + reason;
    const auto differs = [&](const char* who, wavejit_status status, wavejit_status when_good) -> std::string {
      const std::string said = status == WAVEJIT_OK ? "" : wavejit_last_detail();
      if (supported == WAVEJIT_OK ? status == when_good : status == supported && said == reason) return {};
      return std::string(who) + " answers " + std::to_string(status) + " (" + said + "), supported " +
             std::to_string(supported) + " (" + reason + ")";
    };
    if (auto said = differs("the call", run(engine_, &call, nullptr), WAVEJIT_NOT_READY); !said.empty()) return said;
    if (auto said = differs("ready", wavejit_call_ready(engine_, &call.head), WAVEJIT_NOT_READY); !said.empty())
      return said;
    // A caller that asks for the size of a workspace has none yet.
    std::size_t bytes = 0;
    if (!reason.starts_with("workspace"))
      if (auto said = differs("workspace", wavejit_call_workspace(engine_, &call.head, &bytes), WAVEJIT_OK);
          !said.empty())
        return said;
    if (supported != WAVEJIT_OK) return {};
    std::string line;
    const auto keep = [](void* context, const char* text) { *static_cast<std::string*>(context) = text; };
    if (wavejit_call_describe(engine_, &call.head, keep, &line) != WAVEJIT_OK)
      return std::string("describe answers ") + wavejit_last_detail();
    if (wavejit_describe(line.c_str(), [](void*, const char*) {}, nullptr) != WAVEJIT_OK)
      return "describe says \"" + line + "\": " + wavejit_last_detail();
    return {};
  }

  // Every word alone, every two equal ones, and all equal ones.
  template <typename Arguments>
  void every_place(CallFunction<Arguments> run, std::vector<Arguments> calls) {
    for (std::size_t number = 0; number < calls.size(); ++number) {
      Arguments& base = calls[number];
      base.head.flags |= WAVEJIT_NO_COMPILE;
      std::vector<std::uint64_t> words(sizeof base / sizeof(std::uint64_t));
      std::memcpy(words.data(), &base, sizeof base);
      const auto ask = [&](const std::vector<std::size_t>& places, std::uint64_t value) {
        std::vector<std::uint64_t> changed = words;
        for (const std::size_t at : places) changed[at] = value;
        Arguments call;
        std::memcpy(&call, changed.data(), sizeof call);
        call.head.size = sizeof call;
        call.head.family = base.head.family;  // of another the two have words of their own
        call.head.flags |= WAVEJIT_NO_COMPILE;
        call.head.flags &= ~std::uint32_t{WAVEJIT_CHECK_LENGTHS | WAVEJIT_COMPILE_BEHIND};
        call.head.report = nullptr;
        const std::string said = asked(run, call);
        std::string where;
        for (const std::size_t at : places) where += " " + std::to_string(at * sizeof(std::uint64_t));
        EXPECT_EQ(said, "") << "call " << number << ", " << value << " in place of " << words[places.front()]
                            << " at bytes" << where;
        return said.empty();
      };
      const int good_before = good_;
      ask({1}, words[1]);
      const bool has_kernel = std::string_view(GetParam()) != "gfx1201";  // of every kind of call
      EXPECT_TRUE(!has_kernel || good_ > good_before) << "call " << number << ": " << wavejit_last_detail();
      std::set<std::uint64_t> seen;
      for (std::size_t first = 1; first < words.size(); ++first) {
        if (words[first] == 0) continue;
        std::vector<std::size_t> alike;
        for (std::size_t other = first; other < words.size(); ++other)
          if (words[other] == words[first]) alike.push_back(other);
        const bool is_first = seen.insert(words[first]).second;
        for (const std::uint64_t value : {std::uint64_t{0}, ~std::uint64_t{0}}) {
          for (const std::size_t other : alike)
            if (!ask(other == first ? std::vector{first} : std::vector{first, other}, value)) return;
          if (is_first && alike.size() > 2 && !ask(alike, value)) return;
        }
      }
    }
    EXPECT_GT(refused_, 100);
  }

  wavejit_engine* engine_ = nullptr;
  int good_ = 0;
  int refused_ = 0;
};

TEST_P(ZeroSizes, OfAttentionForward) { every_place<Forward>(wavejit_attention_forward, forward_calls(e4m3())); }

TEST_P(ZeroSizes, OfAttentionLatent) { every_place<Latent>(wavejit_attention_latent, latent_calls(e4m3())); }

TEST_P(ZeroSizes, OfAttentionBackward) { every_place<Backward>(wavejit_attention_backward, backward_calls()); }

TEST_P(ZeroSizes, OfSoftmaxLse) { every_place<Softmax>(wavejit_softmax_lse, softmax_calls()); }

TEST_P(ZeroSizes, OfSparseIndexer) { every_place<Indexer>(wavejit_sparse_indexer, indexer_calls()); }

TEST_P(ZeroSizes, OfCacheAppend) { every_place<Append>(wavejit_cache_append, append_calls(e4m3())); }

TEST_P(ZeroSizes, OfAttentionMerge) { every_place<Merge>(wavejit_attention_merge, merge_calls()); }

INSTANTIATE_TEST_SUITE_P(Targets, ZeroSizes, ::testing::Values("gfx942", "gfx950", "gfx1201"),
                         [](const auto& parameter) { return std::string(parameter.param); });

}  // namespace
}  // namespace wavejit::tests
