// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A second list of each query over a second cache: against float64, and bit against bit with one list over both caches,
// in which the second one's entries begin a chunk of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "attention/schedules.h"
#include "attention_latent/latent_run.h"
#include "support/device_values.h"
#include "templates/attention/kernel/canon.h"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;

class LatentSecondList : public ::testing::TestWithParam<const char*> {
 protected:
  LatentOutput run(const LatentArrays& arrays, const ChangeLatentCall& change = {}) {
    LatentOutput output = run_latent(engine_.get(), arrays, change);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact) << "something outside O or LSE was written";
    return output;
  }

  // The arrays' one list is cut behind `first` entries: what stands before names slots of the cache, what follows those
  // of a second cache, which is the same keys in another order.
  void expect_same_as_one_list(const std::string& words, std::int64_t first, int splits) {
    SCOPED_TRACE(words + " cut behind " + std::to_string(first) + ", splits " + std::to_string(splits));
    const LatentArrays whole = latent_arrays(words);
    const auto columns = static_cast<std::size_t>(whole.latent() + whole.rope());
    const auto slots = static_cast<std::int64_t>(whole.k.size() / columns);
    std::vector<std::uint16_t> turned(whole.k.size());
    for (std::int64_t slot = 0; slot < slots; ++slot)
      std::copy_n(whole.k.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(slot) * columns), columns,
                  turned.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(slots - 1 - slot) * columns));
    const std::int64_t top_k = whole.lists.top_k;
    constexpr std::int64_t chunk = attention::list_chunk_keys;
    const std::int64_t before = (first + chunk - 1) / chunk * chunk;
    const std::int64_t tokens = std::ssize(whole.lists.indices) / top_k;
    // One list: the first, −1 up to the end of its chunk, the second. Counts would cut the second off.
    LatentArrays one = whole;
    one.lists.counts.clear();
    one.lists.top_k = before + (top_k - first);
    one.lists.indices.clear();
    std::vector<std::int32_t> of_first;
    std::vector<std::int32_t> of_second;
    for (std::int64_t token = 0; token < tokens; ++token) {
      const auto list = whole.lists.indices.begin() + (token * top_k);
      one.lists.indices.insert(one.lists.indices.end(), list, list + first);
      one.lists.indices.insert(one.lists.indices.end(), static_cast<std::size_t>(before - first), -1);
      one.lists.indices.insert(one.lists.indices.end(), list + first, list + top_k);
      of_first.insert(of_first.end(), list, list + first);
      std::transform(list + first, list + top_k, std::back_inserter(of_second), [&](std::int32_t slot) {
        return slot < 0 || slot >= slots ? slot : static_cast<std::int32_t>(slots - 1 - slot);
      });
    }
    const LatentOutput together = run(one);
    LatentArrays cut = whole;
    cut.lists.counts.clear();
    cut.lists.top_k = first;
    cut.lists.indices = of_first;
    const DeviceValues cache(engine_.get(), turned);
    const DeviceValues indices(engine_.get(), of_second);
    EXPECT_EQ(run(cut,
                  [&](wavejit_attention_latent_arguments& call) {
                    call.second_k = call.k;
                    call.second_k.data = cache.data();
                    call.second_list.indices = static_cast<const std::int32_t*>(indices.data());
                    call.second_list.top_k = top_k - first;
                    call.split.splits = splits;
                    // It is as large as one list asks for.
                    call.split.workspace = nullptr;
                    call.split.workspace_bytes = 0;
                  }),
              together);
  }

  Engine engine_{GetParam()};
};

TEST_P(LatentSecondList, MatchesFloat64) {
  for (const char* words : {"bf16 b2 q2 k200 h24 d576/512 lse sink top_k=70:slots:mixed second_top_k=130",
                            "fp16 b1 q1 k700 h9 d512 lse top_k=300:slots second_top_k=280 splits=2",
                            "bf16 b2 q1 k90 h40 d320/256 lse layout=paged:16 top_k=20:slots:mixed second_top_k=50"}) {
    const LatentArrays arrays = latent_arrays(words);
    constexpr std::int64_t some_rows = 3;
    EXPECT_EQ(wrong_latent(arrays, run(arrays), some_rows), "") << words;
  }
}

TEST_P(LatentSecondList, BeginsAChunk) {
  for (const int splits : {0, 1, 3}) {
    expect_same_as_one_list("bf16 b2 q1 k300 h16 d576/512 lse top_k=300:slots:mixed", 60, splits);
    expect_same_as_one_list("bf16 b1 q2 k900 h12 d576/512 lse top_k=900:slots:mixed layout=paged:64", 600, splits);
  }
  expect_same_as_one_list("fp16 b2 q2 k300 h40 d320/256 lse sink top_k=280:slots:mixed layout=paged:1", 256, 0);
  expect_same_as_one_list("bf16 b1 q1 k300 h9 d512 lse softcap=20 top_k=280:slots layout=paged:16", 1, 2);
}

TEST_P(LatentSecondList, ShowsNoOrderOfWaves) {
  for (const Schedule& schedule : schedules) {
    set_schedule(schedule.order, schedule.seed);
    expect_same_as_one_list("bf16 b1 q2 k200 h24 d576/512 lse top_k=150:slots:mixed layout=paged:64", 70, 1);
  }
}

// Counts of both lists: a row whose lists are empty sees nothing, and a row of one of them that one.
TEST_P(LatentSecondList, HasCountsOfItsOwn) {
  const LatentArrays arrays = latent_arrays("bf16 b4 q1 k100 h12 d576/512 lse top_k=70:slots");
  const DeviceValues cache(engine_.get(), arrays.k);
  const DeviceValues indices(engine_.get(), arrays.lists.indices);
  const auto with_counts = [&](const std::vector<std::int32_t>& first, const std::vector<std::int32_t>& second) {
    LatentArrays counted = arrays;
    counted.lists.counts = first;
    const DeviceValues counts(engine_.get(), second);
    return run(counted, [&](wavejit_attention_latent_arguments& call) {
      call.second_k = call.k;
      call.second_k.data = cache.data();
      call.second_list.indices = static_cast<const std::int32_t*>(indices.data());
      call.second_list.counts = static_cast<const std::int32_t*>(counts.data());
      call.second_list.top_k = 70;
    });
  };
  const LatentOutput both = with_counts({0, 30, 0, 70}, {0, 0, 30, 5});
  LatentArrays one = arrays;
  one.lists.counts = {0, 30, 30, 70};
  const LatentOutput only = run(one);
  for (std::int64_t head = 0; head < 12; ++head)
    for (const std::int64_t sequence : {0, 1, 2})
      EXPECT_EQ(row_of(arrays, both, sequence, 0, head), row_of(arrays, only, sequence, 0, head)) << sequence;
  EXPECT_NE(row_of(arrays, both, 3, 0, 0), row_of(arrays, only, 3, 0, 0));
}

INSTANTIATE_TEST_SUITE_P(Targets, LatentSecondList, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& parameter) { return std::string(parameter.param); });

struct Refused {
  const char* words;
  void (*change)(wavejit_attention_latent_arguments& call);
  const char* detail;  // a part of it
};
constexpr const char* slots = "bf16 b2 q1 k64 h16 d576/512 top_k=40:slots layout=paged:32";
void give_second(wavejit_attention_latent_arguments& call) {
  call.second_k = call.k;
  call.second_list.indices = call.key_list.indices;
  call.second_list.top_k = 40;
}
const Refused refusals[] = {
    {"bf16 b2 q1 k64 h16 d576/512 top_k=40", give_second, "second_indices = "},
    {slots,
     [](auto& call) {
       give_second(call);
       call.second_k.sizes[1] = 16;
     },
     "second_k.sizes[1]"},
    {slots,
     [](auto& call) {
       give_second(call);
       call.second_list.top_k = 0;
     },
     "second_top_k = 0; accepted: the entries of a list, 1 to 1048576"},
    {slots,
     [](auto& call) {
       give_second(call);
       call.second_list.row_stride = 39;
     },
     "second_indices_row_stride = 39"},
    {slots, [](auto& call) { call.second_k = call.k; }, "second_k.data = "},
    {slots, [](auto& call) { call.second_list.top_k = 4; }, "second_top_k = 4; accepted: 0 without second_indices"},
    {slots,
     [](auto& call) {
       give_second(call);
       call.second_k.dtype = WAVEJIT_FP16;
     },
     "second_k.dtype"},
};

TEST(LatentSecondListInterface, RefusesByField) {
  Engine engine{"gfx950"};
  for (const Refused& refused : refusals) {
    const LatentOutput output = run_latent(engine.get(), latent_arrays(refused.words), refused.change);
    EXPECT_EQ(output.status, WAVEJIT_INVALID_ARGUMENT) << refused.detail << ": " << output.detail;
    EXPECT_THAT(output.detail, HasSubstr(refused.detail));
  }
}

TEST(LatentSecondListInterface, DescribesACall) {
  Engine engine{"gfx950"};
  std::string line;
  run_latent(engine.get(), latent_arrays(slots), [&](wavejit_attention_latent_arguments& call) {
    give_second(call);
    const auto keep = [](void* context, const char* text) { *static_cast<std::string*>(context) = text; };
    EXPECT_EQ(wavejit_call_describe(engine.get(), &call.head, keep, &line), WAVEJIT_OK) << wavejit_last_detail();
    EXPECT_EQ(wavejit_call_supported(engine.get(), &call.head), WAVEJIT_OK) << wavejit_last_detail();
    std::size_t bytes = 0;
    EXPECT_EQ(wavejit_call_workspace(engine.get(), &call.head, &bytes), WAVEJIT_OK);
    EXPECT_GT(bytes, 0U);
    call.split.splits = -1;  // not launched
  });
  EXPECT_THAT(line, HasSubstr(" top_k=40:slots second_top_k=40"));
  EXPECT_EQ(wavejit_describe(line.c_str(), [](void*, const char*) {}, nullptr), WAVEJIT_OK) << line;
}

}  // namespace
}  // namespace wavejit::tests
