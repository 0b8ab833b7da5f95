// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// WAVEJIT_CHECK_LENGTHS: what stands in device memory is judged on the host, element by element, before anything runs.
#include "templates/attention_forward/call/problem/device_lengths.h"

#include <cstring>

#include "runtime_fixture.h"

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
    call.query_starts = arrays.query_starts.data();
    call.key_starts = arrays.key_starts.data();
    call.key_lengths = arrays.key_lengths.data();
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

}  // namespace
}  // namespace wavejit::tests
