// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Packed sequences whose tensors span more than 4 GiB, while each of them spans less: an offset that wraps in 32 bits
// would read or write something else.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "support/attention_run.h"

namespace wavejit::tests {
namespace {

constexpr std::int64_t bytes_of_element = 2;
// Elements: a sequence of 100 rows with 256 of tile overrun ends below 4 GiB.
constexpr std::int64_t far_stride = 6'000'000;
static_assert((100 + 255) * far_stride * bytes_of_element < std::int64_t{1} << 32U);

// Rows of a packed tensor, moved far apart. Memory that nobody touches is none of the host's.
class MovedRows {
 public:
  MovedRows(wavejit_engine* engine, const wavejit_tensor& from) : engine_(engine), from_(from), to_(from) {
    good(wavejit_device_allocate(engine, static_cast<std::size_t>(from.sizes[1] * far_stride * bytes_of_element),
                                 &to_.data));
    to_.strides[1] = far_stride;
    to_.strides[2] = from.sizes[3];
    each_row([&](const auto& place, std::vector<std::uint16_t>& row, std::size_t bytes) {
      good(wavejit_device_copy_out(engine_, row.data(), place(from_), bytes));
      good(wavejit_device_copy_in(engine_, place(to_), row.data(), bytes));
    });
  }
  ~MovedRows() { wavejit_device_free(engine_, to_.data); }
  MovedRows(const MovedRows&) = delete;
  MovedRows& operator=(const MovedRows&) = delete;

  const wavejit_tensor& tensor() const { return to_; }
  std::vector<std::uint16_t> read() const {
    std::vector<std::uint16_t> all;
    each_row([&](const auto& place, std::vector<std::uint16_t>& row, std::size_t bytes) {
      good(wavejit_device_copy_out(engine_, row.data(), place(to_), bytes));
      all.insert(all.end(), row.begin(), row.end());
    });
    return all;
  }

 private:
  static void good(wavejit_status status) {
    if (status != WAVEJIT_OK) throw std::runtime_error(wavejit_last_detail());
  }
  template <typename Work>
  void each_row(const Work& work) const {
    std::vector<std::uint16_t> row(static_cast<std::size_t>(from_.sizes[3]));
    for (std::int64_t at = 0; at < from_.sizes[1]; ++at)
      for (std::int64_t head = 0; head < from_.sizes[2]; ++head)
        work(
            [&](const wavejit_tensor& of) {
              return static_cast<std::uint16_t*>(of.data) + (at * of.strides[1]) + (head * of.strides[2]);
            },
            row, row.size() * sizeof row.front());
  }
  wavejit_engine* engine_;
  wavejit_tensor from_;
  wavejit_tensor to_;
};

class PackedBeyond4GiB : public ::testing::TestWithParam<std::tuple<const char*, int>> {
 protected:
  static AttentionCase make(const std::vector<std::int32_t>& queries, const std::vector<std::int32_t>& keys,
                            int head_dim) {
    AttentionCase which = make_case(Storage::bf16, 1, std::accumulate(queries.begin(), queries.end(), 0),
                                    std::accumulate(keys.begin(), keys.end(), 0), 2, 1, head_dim, true, 97);
    which.inputs.batch = static_cast<int>(queries.size());
    which.inputs.query_length = *std::ranges::max_element(queries);
    which.inputs.key_length = *std::ranges::max_element(keys);
    const auto starts = [](const std::vector<std::int32_t>& lengths) {
      std::vector<std::int32_t> all = {0};
      std::partial_sum(lengths.begin(), lengths.end(), std::back_inserter(all));
      return all;
    };
    which.inputs.query_starts = starts(queries);
    which.inputs.key_starts = starts(keys);
    return which;
  }
  Engine engine_{std::get<0>(GetParam())};
};

TEST_P(PackedBeyond4GiB, HasTheBitsOfRowsThatLieTogether) {
  const AttentionCase which =
      make({100, 1, 100, 64, 0, 100, 30}, {100, 100, 3, 80, 7, 100, 90}, std::get<1>(GetParam()));
  const AttentionOutput together = run_attention(engine_.get(), which);
  ASSERT_EQ(together.status, WAVEJIT_OK) << together.detail << together.reports;
  for (const char* pipeline : {"generic", "interleaved", "dualwave"}) {
    SCOPED_TRACE(pipeline);
    wavejit_engine_options options{};
    options.size = sizeof options;
    options.pipeline = pipeline;
    const Engine engine(std::get<0>(GetParam()), options);
    std::vector<std::unique_ptr<MovedRows>> moved;
    const AttentionOutput far = run_attention(engine.get(), which, [&](wavejit_attention_forward_arguments& call) {
      for (wavejit_tensor* tensor : {&call.q, &call.k, &call.v, &call.o}) {
        EXPECT_GT(tensor->sizes[1] * far_stride * bytes_of_element, std::int64_t{1} << 32U);
        *tensor = moved.emplace_back(std::make_unique<MovedRows>(engine.get(), *tensor))->tensor();
      }
    });
    if (far.status == WAVEJIT_UNSUPPORTED && std::string_view(pipeline) != "generic") continue;
    ASSERT_EQ(far.status, WAVEJIT_OK) << far.detail << far.reports;
    EXPECT_EQ(far.reports, "");
    EXPECT_EQ(far.lse, together.lse);
    EXPECT_TRUE(moved.back()->read() == together.o);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, PackedBeyond4GiB,
                         ::testing::Combine(::testing::Values("gfx942", "gfx950", "gfx1201"),
                                            ::testing::Values(64, 128)),
                         [](const auto& parameter) {
                           return std::string(std::get<0>(parameter.param)) + "_d" +
                                  std::to_string(std::get<1>(parameter.param));
                         });

}  // namespace
}  // namespace wavejit::tests
