// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <numeric>
#include <string>

#include "corpus.h"

namespace wavejit::hip_kernels {
namespace {

TEST_P(Corpus, reduce_lds) {
  constexpr std::uint32_t n = 5000;
  const auto in = random_floats(n, -1, 1);
  Buffer<float> from(in);
  Buffer<float> to(4);
  launch("collective", "reduce_lds", {4}, {256}, 0, from.get(), to.get(), n);
  std::vector<double> expected(4);
  for (std::uint32_t i = 0; i < n; ++i) expected[i % 1024 / 256] += in[i];
  // 1250 terms below 1 summed in f32: far below 1e-4.
  expect_close(to.read(), expected, 0, 1e-4, "sum");
}

TEST_P(Corpus, reduce_shuffle) {
  constexpr std::uint32_t n = 3000;
  const auto in = random_ints(n, -1000, 1000);
  Buffer<int> from(in);
  Buffer<int> total(1, 0);
  launch("collective", "reduce_shuffle", {12}, {256}, 0, from.get(), total.get(), n);
  EXPECT_EQ(total.read()[0], std::accumulate(in.begin(), in.end(), 0));
}

TEST_P(Corpus, reduce_dpp) {
  const auto in = random_ints(256, -100000, 100000);
  Buffer<int> from(in);
  Buffer<int> to(256);
  launch("collective", "reduce_dpp", {2}, {128}, 0, from.get(), to.get());
  // The four steps leave the prefix sums of each row, the two broadcasts those of the wave.
  std::vector<int> expected(256);
  for (std::size_t first = 0; first < in.size(); first += wave_size()) {
    const auto begin = in.begin() + static_cast<std::ptrdiff_t>(first);
    std::partial_sum(begin, begin + wave_size(), expected.begin() + static_cast<std::ptrdiff_t>(first));
  }
  expect_same(to.read(), expected, "prefix sum");
}

TEST_P(Corpus, scan_block) {
  const auto in = random_words(1024);
  Buffer<std::uint32_t> from(in);
  Buffer<std::uint32_t> to(1024);
  launch("collective", "scan_block", {2}, {512}, 0, from.get(), to.get());
  std::vector<std::uint32_t> expected(1024);
  std::partial_sum(in.begin(), in.begin() + 512, expected.begin());
  std::partial_sum(in.begin() + 512, in.end(), expected.begin() + 512);
  expect_same(to.read(), expected, "prefix sum");
}

TEST_P(Corpus, scan_tree) {
  const auto in = random_words(3 * 256);
  Buffer<std::uint32_t> from(in);
  Buffer<std::uint32_t> to(in.size());
  launch("collective", "scan_tree", {3}, {128}, 256 * sizeof(std::uint32_t), from.get(), to.get());
  std::vector<std::uint32_t> expected(in.size());
  for (std::size_t block = 0; block < 3; ++block) {
    std::exclusive_scan(in.begin() + block * 256, in.begin() + block * 256 + 256, expected.begin() + block * 256, 0U);
  }
  expect_same(to.read(), expected, "prefix sum");
}

TEST_P(Corpus, transpose) {
  constexpr std::uint32_t rows = 70;
  constexpr std::uint32_t columns = 45;
  const auto in = random_floats(rows * columns, -10, 10);
  Buffer<float> from(in);
  Buffer<float> to(in.size(), 0xff);
  launch("collective", "transpose", {2, 3}, {32, 8}, 0, from.get(), to.get(), rows, columns);
  std::vector<float> expected(in.size());
  for (std::uint32_t row = 0; row < rows; ++row) {
    for (std::uint32_t column = 0; column < columns; ++column)
      expected[column * rows + row] = in[row * columns + column];
  }
  expect_same(to.read(), expected, "transposed");
}

TEST_P(Corpus, histogram) {
  constexpr std::uint32_t n = 6001;
  std::vector<std::uint8_t> in(n);
  for (auto& byte : in) byte = static_cast<std::uint8_t>(random() % 7 == 0 ? random() : random() % 5);
  Buffer<std::uint8_t> from(in);
  Buffer<std::uint32_t> bins(256, 0);
  launch("collective", "histogram", {5}, {192}, 0, from.get(), bins.get(), n);
  std::vector<std::uint32_t> expected(256);
  for (const std::uint8_t byte : in) ++expected[byte];
  expect_same(bins.read(), expected, "bin");
}

TEST_P(Corpus, bitonic_sort) {
  auto keys = random_ints(1024, -50, 2000000000);
  Buffer<int> data(keys);
  launch("collective", "bitonic_sort", {2}, {256}, 0, data.get());
  std::sort(keys.begin(), keys.begin() + 512);
  std::sort(keys.begin() + 512, keys.end());
  expect_same(data.read(), keys, "key");
}

TEST_P(Corpus, radix_sort_wave) {
  auto keys = random_words(128);
  Buffer<std::uint32_t> data(keys);
  launch("collective", "radix_sort_wave", {128 / wave_size()}, {wave_size()}, 0, data.get());
  for (auto first = keys.begin(); first != keys.end(); first += wave_size()) std::sort(first, first + wave_size());
  expect_same(data.read(), keys, "key");
}

TEST_P(Corpus, wave_votes) {
  leave_out(WAVEJIT_SIMGPU_CHECK_UNIFORM);  // the first lane speaks for lanes that differ: what is tested
  auto in = random_ints(256, 0, 200);
  std::fill(in.begin() + 64, in.begin() + 128, 77);  // a wave in which all vote yes and none exceeds 100
  Buffer<int> from(in);
  const std::size_t lanes = wave_size();
  const std::size_t waves = in.size() / lanes;
  const std::uint64_t everyone = ~0ULL >> (64 - lanes);
  Buffer<std::uint64_t> ballots(waves);
  Buffer<int> first(256);
  Buffer<int> any_all(256);
  launch("collective", "wave_votes", {1}, {256}, 0, from.get(), ballots.get(), first.get(), any_all.get());
  std::vector<std::uint64_t> expected_ballots(waves);
  std::vector<int> expected_first(256);
  std::vector<int> expected_any_all(256);
  for (std::size_t wave = 0; wave < waves; ++wave) {
    const auto begin = in.begin() + static_cast<std::ptrdiff_t>(wave * lanes);
    for (std::size_t i = 0; i < lanes; ++i) expected_ballots[wave] |= static_cast<std::uint64_t>(begin[i] & 1) << i;
    const auto big = std::find_if(begin, begin + wave_size(), [](int value) { return value > 100; });
    for (std::size_t i = 0; i < lanes; ++i) {
      expected_first[wave * lanes + i] = begin[i] > 100 ? *big : -1;
      expected_any_all[wave * lanes + i] =
          (expected_ballots[wave] != 0 ? 1 : 0) | (expected_ballots[wave] == everyone ? 2 : 0) | begin[5] << 2;
    }
  }
  expect_same(ballots.read(), expected_ballots, "ballot");
  expect_same(first.read(), expected_first, "first");
  expect_same(any_all.read(), expected_any_all, "vote");
}

TEST_P(Corpus, stencil) {
  constexpr int width = 37;
  constexpr int height = 29;
  const auto in = random_floats(width * height, -4, 4);
  Buffer<float> from(in);
  Buffer<float> to(in.size(), 0xff);
  launch("collective", "stencil", {3, 2}, {16, 16}, 0, from.get(), to.get(), width, height);
  std::vector<float> expected(in.size());
  const auto at = [&](int x, int y) { return in[std::clamp(y, 0, height - 1) * width + std::clamp(x, 0, width - 1)]; };
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const float sum = at(x - 1, y) + at(x + 1, y) + at(x, y - 1) + at(x, y + 1);
      expected[y * width + x] = 0.5F * at(x, y) + 0.125F * sum;
    }
  }
  expect_same(to.read(), expected, "cell");
}

TEST_P(Corpus, string_search) {
  std::string text;
  for (int i = 0; i < 900; ++i) text += static_cast<char>('a' + random() % 3);
  const std::string pattern = "abca";
  Buffer<char> text_buffer(std::vector<char>(text.begin(), text.end()));
  Buffer<char> pattern_buffer(std::vector<char>(pattern.begin(), pattern.end()));
  Buffer<std::uint32_t> found(900);
  Buffer<std::uint32_t> count(1, 0);
  launch("collective", "string_search", {4}, {256}, 0, text_buffer.get(), static_cast<std::uint32_t>(text.size()),
         pattern_buffer.get(), static_cast<std::uint32_t>(pattern.size()), found.get(), count.get());
  std::vector<std::uint32_t> expected;
  for (std::size_t at = text.find(pattern); at != text.npos; at = text.find(pattern, at + 1)) {
    expected.push_back(static_cast<std::uint32_t>(at));
  }
  ASSERT_GT(expected.size(), 3U);
  ASSERT_EQ(count.read()[0], expected.size());
  auto places = found.read();
  places.resize(expected.size());
  std::ranges::sort(places);
  expect_same(places, expected, "place");
}

TEST_P(Corpus, last_block_adds) {
  constexpr std::uint32_t blocks = 5;
  constexpr std::uint32_t threads = 256;
  const auto in = random_ints(3001, -1000, 1000);
  Buffer<int> from(in);
  Buffer<std::uint32_t> arrived(1, 0);
  std::vector<int> expected(threads);
  for (std::size_t i = 0; i < in.size(); ++i) expected[(i % threads) ^ 64U] += in[i];
  for (const std::uint32_t each_thread : {0U, 1U}) {
    for (int again = 0; again < 2; ++again) {
      Buffer<int> parts(blocks * threads, 0xff);
      Buffer<int> out(threads, 0xff);
      launch("collective", "last_block_adds", {blocks}, {threads}, 0, from.get(), static_cast<std::uint32_t>(in.size()),
             parts.get(), arrived.get(), out.get(), each_thread);
      expect_same(out.read(), expected, "sum");
      EXPECT_EQ(arrived.read()[0], 0U);
    }
  }
}

TEST_P(Corpus, sums_in_turn) {
  constexpr std::uint32_t blocks = 9;
  constexpr std::uint32_t threads = 64;
  const auto in = random_ints(blocks * threads, -1000, 1000);
  Buffer<int> from(in);
  Buffer<int> sums(blocks, 0xff);
  Buffer<std::uint32_t> done(blocks, 0);
  launch("collective", "sums_in_turn", {blocks}, {threads}, 0, from.get(), sums.get(), done.get());
  std::vector<int> expected;
  int sum = 0;
  for (std::uint32_t i = 0; i < blocks * threads; ++i) {
    sum += in[i];
    if (i % threads == threads - 1) expected.push_back(sum);
  }
  expect_same(sums.read(), expected, "sum");
}

}  // namespace
}  // namespace wavejit::hip_kernels
