// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A second list of each query over a second cache: bit against bit with one list over both caches, and what is refused.
// Against float64 they are lines of list_problems.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <format>
#include <limits>
#include <string>
#include <vector>

#include "attention/line_runs.h"
#include "attention/modified.h"
#include "attention/schedules.h"
#include "support/device_values.h"
#include "templates/attention/kernel/canon.h"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;

class SecondKeyLists : public LineRuns {};

// What runs of both lists leave is merged by place, whoever was first.
TEST_P(SecondKeyLists, ShowNoSplitsNoPagesAndNoOrderOfWaves) {
  const std::string words = "bf16 b2 q2 k700 h12/4 d128 lse top_k=600:slots second_top_k=300";
  const RanLine dense = run(words + " splits=1");
  for (const char* rest : {"", " splits=2", " splits=3", " layout=paged:1", " layout=paged:64:hnd splits=2"})
    EXPECT_TRUE(run(words + rest).same_as(dense)) << rest;
  for (const Schedule& schedule : schedules) {
    set_schedule(schedule.order, schedule.seed);
    EXPECT_TRUE(run(words).same_as(dense));
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, SecondKeyLists, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& parameter) { return std::string(parameter.param); });

// ---- Calls with lists of the test's own -----------------------------------------------------------------------------

constexpr int kv_heads = 2;
constexpr int dims = 64;

// A cache of the test's own: pages side by side, or with a gap behind each, so that slots are not rows.
class Cache {
 public:
  Cache(wavejit_engine* engine, const std::vector<float>& rows, std::int64_t page_size, std::int64_t gap)
      : page_size_(page_size),
        pages_(std::ssize(rows) / (page_size * kv_heads * dims)),
        page_stride_((page_size + gap) * kv_heads * dims),
        memory_(engine, spread(rows)) {}
  wavejit_tensor tensor() const {
    wavejit_tensor made = wavejit_dense_tensor(memory_.data(), WAVEJIT_BF16, pages_, page_size_, kv_heads, dims);
    made.strides[0] = page_stride_;
    return made;
  }

 private:
  // The gaps are NaN.
  std::vector<std::uint16_t> spread(const std::vector<float>& rows) const {
    std::vector<std::uint16_t> bits(static_cast<std::size_t>(pages_ * page_stride_), 0xFFFF);
    const std::int64_t of_page = page_size_ * kv_heads * dims;
    for (std::int64_t page = 0; page < pages_; ++page)
      for (std::int64_t at = 0; at < of_page; ++at)
        bits[static_cast<std::size_t>((page * page_stride_) + at)] = static_cast<std::uint16_t>(
            std::bit_cast<std::uint32_t>(rows[static_cast<std::size_t>((page * of_page) + at)]) >> 16U);
    return bits;
  }
  std::int64_t page_size_;
  std::int64_t pages_;
  std::int64_t page_stride_;
  DeviceValues memory_;
};

class SecondKeyListCalls : public ::testing::TestWithParam<const char*> {
 protected:
  static constexpr int slots = 768;

  AttentionOutput run(const AttentionCase& which, const ChangeForwardCall& change) {
    AttentionOutput output = run_attention(engine_.get(), which, change);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact);
    return output;
  }
  static void expect_same(const AttentionOutput& one, const AttentionOutput& other) {
    EXPECT_EQ(one.o, other.o);
    EXPECT_EQ(bits_of(one.lse), bits_of(other.lse));
  }
  static AttentionCase case_of(int queries, int heads, std::uint64_t seed) {
    return make_case(Storage::bf16, 1, queries, slots, heads, kv_heads, dims, false, seed);
  }
  static std::vector<float> turned(const std::vector<float>& rows) {
    std::vector<float> other;
    constexpr std::ptrdiff_t row = std::ptrdiff_t{kv_heads} * dims;
    for (std::ptrdiff_t slot = slots; slot-- > 0;)
      other.insert(other.end(), rows.begin() + slot * row, rows.begin() + (slot + 1) * row);
    return other;
  }

  Engine engine_{GetParam()};
};

// Entries in no order, with holes, of queries of their own.
std::vector<std::int32_t> entries_of(int query, int count) {
  std::vector<std::int32_t> entries;
  for (int at = 0; at < count; ++at) entries.push_back(at % 11 == 5 ? -1 : (at * 397 + query * 61) % 768);
  return entries;
}

TEST_P(SecondKeyListCalls, BeginAChunk) {
  constexpr int chunk = attention::list_chunk_keys;
  constexpr int queries = 2;
  const AttentionCase of_all = case_of(queries, 12, 41);
  const auto& [k, v] = std::tie(of_all.inputs.k, of_all.inputs.v);
  for (const auto& [page, gap] : {std::pair{768, 0}, {64, 0}, {64, 16}, {1, 0}, {1, 3}, {48, 16}}) {
    const Cache first_k(engine_.get(), k, page, gap);
    const Cache first_v(engine_.get(), v, page, gap);
    for (const int second_gap : {0, 16}) {
      const Cache second_k(engine_.get(), turned(k), page, second_gap);
      const Cache second_v(engine_.get(), turned(v), page, second_gap);
      for (const auto& [first, second] : {std::pair{60, 240}, {256, 24}, {1, 600}, {520, 300}}) {
        SCOPED_TRACE(std::format("page {}, gaps {} and {}, {} and {} entries", page, gap, second_gap, first, second));
        const int before = (first + chunk - 1) / chunk * chunk;
        std::vector<std::int32_t> of_one;
        std::vector<std::int32_t> of_first;
        std::vector<std::int32_t> of_second;
        for (int query = 0; query < queries; ++query) {
          const std::vector<std::int32_t> list = entries_of(query, first + second);
          of_one.insert(of_one.end(), list.begin(), list.begin() + first);
          of_one.insert(of_one.end(), static_cast<std::size_t>(before - first), -1);
          of_one.insert(of_one.end(), list.begin() + first, list.end());
          of_first.insert(of_first.end(), list.begin(), list.begin() + first);
          for (int at = first; at < first + second; ++at)
            of_second.push_back(
                list[static_cast<std::size_t>(at)] < 0 ? -1 : slots - 1 - list[static_cast<std::size_t>(at)]);
        }
        AttentionCase which = of_all;
        which.key_lists =
            GivenKeyLists{.top_k = before + second, .heads = 1, .slots = true, .indices = of_one, .counts = {}};
        const auto over_first = [&](wavejit_attention_forward_arguments& call) {
          call.k = first_k.tensor();
          call.v = first_v.tensor();
        };
        const AttentionOutput together = run(which, over_first);
        which.key_lists->top_k = first;
        which.key_lists->indices = of_first;
        const DeviceValues indices(engine_.get(), of_second);
        for (const int splits : {0, 1, 2}) {
          which.splits = splits;
          which.engine_workspace = true;
          expect_same(run(which,
                          [&](wavejit_attention_forward_arguments& call) {
                            over_first(call);
                            call.second_k = second_k.tensor();
                            call.second_v = second_v.tensor();
                            call.second_list.indices = static_cast<const std::int32_t*>(indices.data());
                            call.second_list.top_k = second;
                          }),
                      together);
        }
      }
    }
  }
}

// Counts of both lists: a row whose lists are empty sees nothing, and a row of one of them that one. Behind them
// entries name NaN.
TEST_P(SecondKeyListCalls, HaveCountsOfTheirOwn) {
  constexpr int queries = 4;
  constexpr int top_k = 70;
  AttentionCase which = case_of(queries, 12, 42);
  std::vector<std::int32_t> entries;
  for (int query = 0; query < queries; ++query)
    for (int at = 0; at < top_k; ++at) entries.push_back(at < 30 || query == 3 ? 1 + ((at * 13) % 700) : 0);
  constexpr std::ptrdiff_t row = std::ptrdiff_t{kv_heads} * dims;
  for (std::vector<float>* rows : {&which.inputs.k, &which.inputs.v})
    std::fill_n(rows->begin(), row, std::numeric_limits<float>::quiet_NaN());
  const Cache k(engine_.get(), which.inputs.k, 64, 0);
  const Cache v(engine_.get(), which.inputs.v, 64, 0);
  const DeviceValues indices(engine_.get(), entries);
  const auto with_counts = [&](const std::vector<std::int32_t>& first, const std::vector<std::int32_t>& second) {
    AttentionCase counted = which;
    counted.key_lists = GivenKeyLists{.top_k = top_k, .heads = 1, .slots = true, .indices = entries, .counts = first};
    const DeviceValues counts(engine_.get(), second);
    return run(counted, [&](wavejit_attention_forward_arguments& call) {
      call.k = k.tensor();
      call.v = v.tensor();
      if (second.empty()) return;
      call.second_k = k.tensor();
      call.second_v = v.tensor();
      call.second_list.indices = static_cast<const std::int32_t*>(indices.data());
      call.second_list.counts = static_cast<const std::int32_t*>(counts.data());
      call.second_list.top_k = top_k;
    });
  };
  const AttentionOutput both = with_counts({0, 30, 0, 70}, {0, 0, 30, 5});
  const AttentionOutput only = with_counts({0, 30, 30, 70}, {});
  const auto of_query = [&](const AttentionOutput& output, int query) {
    const auto begin = output.o.begin() + std::ptrdiff_t{query} * 12 * dims;
    return std::vector(begin, begin + std::ptrdiff_t{12} * dims);
  };
  for (const int query : {0, 1, 2}) EXPECT_EQ(of_query(both, query), of_query(only, query)) << query;
  EXPECT_NE(of_query(both, 3), of_query(only, 3));
  for (int head = 0; head < 12; ++head) {
    EXPECT_EQ(both.lse[static_cast<std::size_t>(head) * queries], -std::numeric_limits<float>::infinity());
    EXPECT_EQ(both.lse[static_cast<std::size_t>(head) * queries + 1],
              only.lse[static_cast<std::size_t>(head) * queries + 1]);
    EXPECT_EQ(both.lse[static_cast<std::size_t>(head) * queries + 2],
              only.lse[static_cast<std::size_t>(head) * queries + 2]);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, SecondKeyListCalls, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& parameter) { return std::string(parameter.param); });

// ---- What bad input gets --------------------------------------------------------------------------------------------

void give_second(wavejit_attention_forward_arguments& call) {
  call.second_k = call.k;
  call.second_v = call.v;
  call.second_list.indices = call.key_list.indices;
  call.second_list.top_k = 40;
}

struct Refused {
  bool slots;
  void (*change)(wavejit_attention_forward_arguments& call);
  const char* detail;  // a part of it
};
const Refused refusals[] = {
    {false, give_second, "second_indices = "},
    {true,
     [](auto& call) {
       give_second(call);
       call.second_k.sizes[1] = 35;
     },
     "second_k.sizes[1]"},
    {true,
     [](auto& call) {
       give_second(call);
       call.second_v.sizes[2] = 1;
     },
     "second_v.sizes[2]"},
    {true,
     [](auto& call) {
       give_second(call);
       call.second_v.data = nullptr;
     },
     "second_v.data = null; accepted: the cache of second_indices"},
    {true,
     [](auto& call) {
       give_second(call);
       call.second_k.dtype = WAVEJIT_BF16;
     },
     "second_k.dtype"},
    {true,
     [](auto& call) {
       give_second(call);
       call.second_list.top_k = 0;
     },
     "second_top_k = 0; accepted: the entries of a list, 1 to 1048576"},
    {true,
     [](auto& call) {
       give_second(call);
       call.second_list.top_k = 1 << 20;
     },
     "second_top_k = 1048576; accepted: entries of which, with those of the first list, kernels can merge the parts: "
     "up to 2048 chunks of 256 in all"},
    {true,
     [](auto& call) {
       give_second(call);
       call.second_list.row_stride = 39;
     },
     "second_indices_row_stride = 39"},
    {true,
     [](auto& call) {
       give_second(call);
       call.o.data = call.second_v.data;
     },
     "o.data"},
    {true, [](auto& call) { call.second_k = call.k; }, "second_k.data = "},
    {true, [](auto& call) { call.second_list.counts = call.key_list.indices; }, "second_counts = "},
    {true, [](auto& call) { call.second_list.top_k = 4; }, "second_top_k = 4; accepted: 0 without second_indices"},
};

TEST(SecondKeyListRefusals, NameTheField) {
  Engine engine{"gfx950"};
  for (const Refused& refused : refusals) {
    AttentionCase which = make_case(Storage::fp16, 1, 3, 70, 4, 2, 64, false, 43);
    which.key_lists = GivenKeyLists{.top_k = 40,
                                    .heads = 1,
                                    .slots = refused.slots,
                                    .indices = std::vector<std::int32_t>(std::size_t{3} * 40, 1),
                                    .counts = {}};
    const AttentionOutput output = run_attention(engine.get(), which, refused.change);
    EXPECT_EQ(output.status, WAVEJIT_INVALID_ARGUMENT) << refused.detail << ": " << output.detail;
    EXPECT_THAT(output.detail, HasSubstr(refused.detail));
  }
}

TEST(SecondKeyListRefusals, OfTheDeviceWhereTheFlagAsks) {
  Engine engine{"gfx950"};
  AttentionCase which = make_case(Storage::fp16, 1, 3, 70, 4, 2, 64, false, 44);
  which.key_lists = GivenKeyLists{.top_k = 40,
                                  .heads = 1,
                                  .slots = true,
                                  .indices = std::vector<std::int32_t>(std::size_t{3} * 40, 1),
                                  .counts = {}};
  const DeviceValues counts(engine.get(), std::vector<std::int32_t>{40, 41, -1});
  const auto change = [&](wavejit_attention_forward_arguments& call) {
    give_second(call);
    call.second_list.counts = static_cast<const std::int32_t*>(counts.data());
  };
  EXPECT_EQ(run_attention(engine.get(), which, change).status, WAVEJIT_OK);
  which.flags = WAVEJIT_CHECK_LENGTHS;
  const AttentionOutput told = run_attention(engine.get(), which, change);
  EXPECT_EQ(told.status, WAVEJIT_INVALID_ARGUMENT);
  EXPECT_THAT(told.detail, HasSubstr("second_counts[1] = 41; accepted: 0 to 40"));
}

// A line says it, its workspace is that of the parts, and lines that cannot be are refused by their word.
TEST(SecondKeyListRefusals, AndWhatALineSays) {
  Engine engine{"gfx950"};
  AttentionCase which = make_case(Storage::fp16, 1, 3, 70, 4, 2, 64, false, 45);
  which.key_lists = GivenKeyLists{.top_k = 40,
                                  .heads = 1,
                                  .slots = true,
                                  .indices = std::vector<std::int32_t>(std::size_t{3} * 40, 1),
                                  .counts = {}};
  std::string line;
  run_attention(engine.get(), which, [&](wavejit_attention_forward_arguments& call) {
    give_second(call);
    const auto keep = [](void* context, const char* text) { *static_cast<std::string*>(context) = text; };
    EXPECT_EQ(wavejit_call_describe(engine.get(), &call.head, keep, &line), WAVEJIT_OK) << wavejit_last_detail();
    EXPECT_EQ(wavejit_call_supported(engine.get(), &call.head), WAVEJIT_OK) << wavejit_last_detail();
    std::size_t bytes = 0;
    EXPECT_EQ(wavejit_call_workspace(engine.get(), &call.head, &bytes), WAVEJIT_OK);
    EXPECT_EQ(bytes, std::size_t{3 * 4 * 2} * (64 + 4) * 4);
    call.split.workspace_bytes = bytes;  // without a workspace: not launched
  });
  EXPECT_THAT(line, HasSubstr(" top_k=40:slots second_top_k=40"));
  EXPECT_EQ(wavejit_describe(line.c_str(), [](void*, const char*) {}, nullptr), WAVEJIT_OK) << line;
  for (const auto& [words, detail] : {std::pair{"top_k=5:slots second_top_k=0", "is no length of lists"},
                                      {"top_k=5 second_top_k=5", "second_top_k=5; accepted: top_k=<n>:slots beside it"},
                                      {"second_top_k=5", "second_top_k=5; accepted: top_k=<n>:slots beside it"},
                                      {"top_k=1048576:slots second_top_k=5", "up to 2048 chunks of 256 entries"}}) {
    const std::string wrong = std::string("attention_forward bf16 b1 q1 k70 h4/2 d64 ") + words;
    EXPECT_NE(wavejit_describe(wrong.c_str(), [](void*, const char*) {}, nullptr), WAVEJIT_OK) << wrong;
    EXPECT_THAT(wavejit_last_detail(), HasSubstr(detail));
  }
}

}  // namespace
}  // namespace wavejit::tests
