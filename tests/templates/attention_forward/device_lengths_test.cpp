// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// WAVEJIT_CHECK_LENGTHS: what stands in device memory is judged on the host, element by element, before anything runs.
#include <cstring>

#include "runtime_fixture.h"
#include "templates/attention_forward/call/checks.h"

namespace wavejit::tests {
namespace {

using Call = wavejit_attention_forward_arguments;

class HostMemory final : public families::DeviceMemory {
 public:
  std::expected<void, std::string> read(void* host, const void* device, std::size_t bytes) override {
    std::memcpy(host, device, bytes);
    return {};
  }
};

// Arrays in host memory.
struct Arrays {
  std::vector<std::int32_t> query_starts = {0, 3, 3, 10};
  std::vector<std::int32_t> key_starts = {0, 0, 8, 12};
  std::vector<std::int32_t> key_lengths = {0, 8, 2};
};

class DeviceLengths : public RuntimeTest {
 protected:
  runtime::Result<void> check(const Arrays& arrays) {
    Call call = good_call(1, 10, 12);
    call.sequences.query_starts = arrays.query_starts.data();
    call.sequences.key_starts = arrays.key_starts.data();
    call.sequences.key_lengths = arrays.key_lengths.data();
    attention_forward::AttentionProblem problem;
    problem.batch = 3;
    problem.query_length = 7;
    problem.key_length = 8;
    HostMemory memory;
    return attention_forward::check_device_lengths(memory, problem, call);
  }
};

TEST_F(DeviceLengths, RightOnesPass) {
  const auto outcome = check({});
  EXPECT_TRUE(outcome) << outcome.error().detail;
}

TEST_F(DeviceLengths, TheFirstWrongElementIsNamed) {
  struct Wrong {
    std::vector<std::int32_t> Arrays::* array;
    std::size_t index;
    std::int32_t value;
    const char* detail;
  };
  for (const Wrong& wrong : {Wrong{&Arrays::query_starts, 0, 1, "query_starts[0] = 1; accepted: 0"},
                             Wrong{&Arrays::query_starts, 2, 2, "query_starts[2] = 2; accepted: 3 to 10"},
                             Wrong{&Arrays::query_starts, 3, 11, "query_starts[3] = 11; accepted: 3 to 10"},
                             Wrong{&Arrays::query_starts, 1, 8, "query_starts[1] = 8; accepted: 0 to 7"},
                             Wrong{&Arrays::query_starts, 1, -1, "query_starts[1] = -1"},
                             Wrong{&Arrays::key_starts, 3, 13, "key_starts[3] = 13; accepted: 8 to 12"},
                             Wrong{&Arrays::key_starts, 2, 9, "key_starts[2] = 9; accepted: 0 to 8"},
                             Wrong{&Arrays::key_lengths, 0, 1, "key_lengths[0] = 1; accepted: 0 to 0"},
                             Wrong{&Arrays::key_lengths, 1, -1, "key_lengths[1] = -1; accepted: 0 to 8"},
                             Wrong{&Arrays::key_lengths, 2, 5, "key_lengths[2] = 5; accepted: 0 to 4"}}) {
    Arrays arrays;
    (arrays.*wrong.array)[wrong.index] = wrong.value;
    const auto outcome = check(arrays);
    ASSERT_FALSE(outcome) << wrong.detail;
    EXPECT_EQ(outcome.error().status, WAVEJIT_INVALID_ARGUMENT);
    EXPECT_THAT(outcome.error().detail, ::testing::HasSubstr(wrong.detail));
  }
}

// Two sequences in pages of 16 keys of a cache of five.
class TableEntries : public RuntimeTest {
 protected:
  runtime::Result<void> check() {
    Call call = good_call(2, 1, 16);
    call.k.sizes[0] = call.v.sizes[0] = 5;
    call.sequences.key_lengths = lengths_.data();
    call.pages.block_table = table_.data();
    call.pages.table_starts = starts_.empty() ? nullptr : starts_.data();
    call.sequences.first_keys = first_keys_.empty() ? nullptr : first_keys_.data();
    call.pages.table_columns = starts_.empty() ? 3 : std::ssize(table_);
    attention_forward::AttentionProblem problem;
    problem.batch = 2;
    problem.query_length = 1;
    problem.key_length = 48;
    HostMemory memory;
    return attention_forward::check_device_lengths(memory, problem, call);
  }
  void expect_refusal(const char* detail) {
    const auto outcome = check();
    ASSERT_FALSE(outcome) << detail;
    EXPECT_EQ(outcome.error().status, WAVEJIT_INVALID_ARGUMENT);
    EXPECT_THAT(outcome.error().detail, ::testing::HasSubstr(detail));
  }

  std::vector<std::int32_t> lengths_ = {17, 48};
  std::vector<std::int32_t> table_ = {4, 0, -7, 1, 2, 3};  // one is past the first sequence's keys
  std::vector<std::int32_t> starts_;
  std::vector<std::int32_t> first_keys_;
};

TEST_F(TableEntries, ThoseOfLiveKeysAreJudged) {
  const auto right = check();
  EXPECT_TRUE(right) << right.error().detail;
  table_[1] = 5;
  expect_refusal("block_table[1] = 5; accepted: 0 to 4, the pages of the cache");
  table_ = {4, 0, -7, 1, 2, -1};
  expect_refusal("block_table[5] = -1; accepted: 0 to 4");
}

TEST_F(TableEntries, PaddingTakesPagesToo) {
  lengths_ = {17, 40};
  first_keys_ = {15, 8};
  const auto right = check();
  EXPECT_TRUE(right) << right.error().detail;
  first_keys_ = {16, 8};  // now the third entry is live
  expect_refusal("block_table[2] = -7");
  table_[2] = 0;
  first_keys_ = {16, 9};
  expect_refusal("key_lengths[1] = 40; accepted: 0 to 39, the keys of the sequence's 3 pages behind first_keys = 9");
  first_keys_ = {-1, 0};
  expect_refusal("first_keys[0] = -1; accepted: 0 to 67108864, the slots of its pages");
}

TEST_F(DeviceLengths, FirstKeysShareTheRowsWithKeys) {
  Call call = good_call(2, 1, 12);
  const std::vector<std::int32_t> lengths = {4, 12};
  std::vector<std::int32_t> first_keys = {8, 0};
  call.sequences.key_lengths = lengths.data();
  call.sequences.first_keys = first_keys.data();
  attention_forward::AttentionProblem problem;
  problem.batch = 2;
  problem.query_length = 1;
  problem.key_length = 12;
  HostMemory memory;
  const auto check_them = [&] { return attention_forward::check_device_lengths(memory, problem, call); };
  EXPECT_TRUE(check_them());
  first_keys[1] = 1;
  ASSERT_FALSE(check_them());
  EXPECT_THAT(check_them().error().detail, ::testing::HasSubstr("key_lengths[1] = 12; accepted: 0 to 11"));
  first_keys[1] = 13;
  EXPECT_THAT(check_them().error().detail,
              ::testing::HasSubstr("first_keys[1] = 13; accepted: 0 to 12, the rows of k and v"));
}

TEST_F(TableEntries, AListsStartsToo) {
  table_ = {4, 0, 1, 2, 3};
  starts_ = {0, 2, 5};
  const auto right = check();
  EXPECT_TRUE(right) << right.error().detail;
  starts_ = {0, 3, 2};
  expect_refusal("table_starts[2] = 2; accepted: 3 to 5");
  starts_ = {0, 2, 6};
  expect_refusal("table_starts[2] = 6; accepted: 2 to 5");
  starts_ = {0, 1, 5};
  expect_refusal("key_lengths[0] = 17; accepted: 0 to 16, the keys of the sequence's 1 pages");
}

}  // namespace
}  // namespace wavejit::tests
