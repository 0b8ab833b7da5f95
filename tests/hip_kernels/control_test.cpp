// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cstdint>

#include "corpus.h"
#include "targets/targets.h"

namespace wavejit::hip_kernels {
namespace {

std::uint32_t mix(std::uint32_t a, std::uint32_t b) { return (a ^ b >> 3) * 0x85ebca6bU + (b << 7); }

TEST_P(Corpus, noinline_calls) {
  constexpr std::uint32_t n = 500;
  const auto in = random_words(n);
  const auto table = random_words(8);
  Buffer<std::uint32_t> from(in);
  Buffer<std::uint32_t> words(table);
  Buffer<std::uint32_t> to(n);
  launch("control", "noinline_calls", {2}, {256}, 0, from.get(), words.get(), to.get(), n);
  std::vector<std::uint32_t> expected(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    std::uint32_t hash = in[i];
    for (std::uint32_t round = 0; round < 3 + i % 3; ++round) {
      hash = mix(hash, table[(i + round) % 8]) + mix(round, hash >> 5);
    }
    expected[i] = hash;
  }
  expect_same(to.read(), expected, "hash");
}

TEST_P(Corpus, scratch_array) {
  constexpr std::uint32_t n = 300;
  const auto in = random_words(n);
  Buffer<std::uint32_t> from(in);
  Buffer<std::uint32_t> to(n);
  launch("control", "scratch_array", {3}, {128}, 0, from.get(), to.get(), n);
  std::vector<std::uint32_t> expected(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    std::uint32_t values[48];
    for (std::uint32_t j = 0; j < 48; ++j) values[j] = in[i] * (j + 1);
    std::uint32_t at = in[i] % 48;
    for (std::uint32_t step = 0; step < 40; ++step) {
      values[(at * 7 + step) % 48] ^= values[at] + step;
      at = (at + values[at]) % 48;
    }
    expected[i] = values[at] + values[(at + 13) % 48];
  }
  expect_same(to.read(), expected, "word");
}

TEST_P(Corpus, scratch_sort) {
  std::vector<std::int16_t> keys(64 * 16);
  for (auto& key : keys) key = static_cast<std::int16_t>(random());
  Buffer<std::int16_t> from(keys);
  Buffer<std::int16_t> to(keys.size());
  launch("control", "scratch_sort", {1}, {64}, 0, from.get(), to.get());
  for (std::size_t i = 0; i < keys.size(); i += 16) std::sort(keys.begin() + i, keys.begin() + i + 16);
  expect_same(to.read(), keys, "key");
}

TEST_P(Corpus, switch_table) {
  constexpr std::uint32_t n = 600;
  const auto in = random_words(n);
  Buffer<std::uint32_t> from(in);
  Buffer<int> to(n, 0x5a);
  launch("control", "switch_table", {3}, {256}, 0, from.get(), to.get(), n);
  std::vector<int> expected(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    int value = static_cast<int>(in[i] >> 8);
    switch (in[i] % 13) {
      case 0:
        value += 17;
        break;
      case 1:
        value *= 3;
        break;
      case 2:
        value = (value ^ 0x1234) - 99;
        break;
      case 3:
        value -= 99;
        break;
      case 4:
        value /= 5;
        break;
      case 5:
        value = -value;
        break;
      case 6:
        value <<= 2;
        break;
      case 7:
        value %= 101;
        break;
      case 8:
        value |= 0x800000;
        break;
      case 9:
        value = std::max(value, 5000);
        break;
      case 10:
        value = 0x5a5a5a5a;
        break;
      default:
        value = ~value;
        break;
    }
    expected[i] = value;
  }
  expect_same(to.read(), expected, "case");
}

TEST_P(Corpus, uniform_switch) {
  for (std::uint32_t selector = 0; selector < 7; ++selector) {
    Buffer<int> to(128);
    launch("control", "uniform_switch", {2}, {64}, 0, to.get(), selector);
    std::vector<int> expected(128);
    for (int i = 0; i < 128; ++i) {
      const int t = i % 64;
      const int values[7] = {t + 1000, t * t, 7 - t, t << 5 | 3, t % 9, t ^ 0xff, -1};
      expected[static_cast<std::size_t>(i)] = values[selector];
    }
    expect_same(to.read(), expected, "value");
  }
}

TEST_P(Corpus, collatz) {
  constexpr std::uint32_t n = 200;
  std::vector<std::uint32_t> in(n);
  for (std::uint32_t i = 0; i < n; ++i) in[i] = i * i + 1;
  Buffer<std::uint32_t> from(in);
  Buffer<std::uint32_t> to(n);
  launch("control", "collatz", {1}, {256}, 0, from.get(), to.get(), n);
  std::vector<std::uint32_t> expected(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    std::uint64_t value = in[i];
    while (value > 1 && expected[i] < 400) {
      value = value % 2 == 0 ? value / 2 : 3 * value + 1;
      ++expected[i];
    }
  }
  expect_same(to.read(), expected, "steps");
}

struct Totals {
  std::uint64_t sum;
  std::uint64_t most;
  std::uint64_t least;
  std::uint64_t bits_or;
  std::uint64_t bits_xor;
  std::uint64_t exchanged;
  std::int64_t signed_least;
};

TEST_P(Corpus, atomics_64) {
  constexpr std::uint32_t n = 300;
  std::vector<std::uint64_t> in(n);
  for (auto& word : in) word = static_cast<std::uint64_t>(random()) << 32 | random();
  Buffer<std::uint64_t> from(in);
  Totals totals = {.sum = 5, .most = 0, .least = ~0ULL, .bits_or = 0, .bits_xor = 0, .exchanged = 0, .signed_least = 0};
  Buffer<Totals> to(std::vector<Totals>{totals});
  launch("control", "atomics_64", {2}, {192}, 0, from.get(), to.get(), n);
  for (const std::uint64_t word : in) {
    totals.sum += word;
    totals.most = std::max(totals.most, word);
    totals.least = std::min(totals.least, word);
    totals.bits_or |= word;
    totals.bits_xor ^= word;
    totals.exchanged = std::max<std::uint64_t>(totals.exchanged, word % 1000003);
    totals.signed_least = std::min(totals.signed_least, static_cast<std::int64_t>(word));
  }
  const Totals got = to.read()[0];
  EXPECT_EQ(got.sum, totals.sum);
  EXPECT_EQ(got.most, totals.most);
  EXPECT_EQ(got.least, totals.least);
  EXPECT_EQ(got.bits_or, totals.bits_or);
  EXPECT_EQ(got.bits_xor, totals.bits_xor);
  EXPECT_EQ(got.exchanged, totals.exchanged);
  EXPECT_EQ(got.signed_least, totals.signed_least);
}

TEST_P(Corpus, describes_its_device) {
  int ordinal = -1;
  ASSERT_EQ(hipGetDevice(&ordinal), hipSuccess);
  hipDeviceProp_tR0600 properties;
  ASSERT_EQ(hipGetDevicePropertiesR0600(&properties, ordinal), hipSuccess);
  EXPECT_EQ(properties.warpSize, targets::find_target(GetParam().target)->wave_size);
  const std::string features = has_mfma() ? ":sramecc+:xnack-" : "";
  EXPECT_EQ(properties.gcnArchName, GetParam().target + features);
}

TEST_P(Corpus, atomics_32) {
  constexpr std::uint32_t n = 400;
  const auto in = random_ints(n, -5000, 5000);
  Buffer<int> from(in);
  std::vector<int> words = {0, 0, 0x7fffffff, 0, -1, 0};
  Buffer<int> to(words);
  Buffer<float> sums(1, 0);
  Buffer<double> wide(1, 0);
  launch("control", "atomics_32", {4}, {128}, 0, to.get(), sums.get(), wide.get(), from.get(), n);
  float sum = 0;
  for (const int value : in) {
    words[0] += value;
    words[1] = std::max(words[1], value);
    words[2] = std::min(words[2], value);
    words[3] ^= value;
    words[4] &= value | 0x0f0f0f0f;
    words[5] -= 3;
    sum += static_cast<float>(value % 16);  // small integers: exact in any order
  }
  expect_same(to.read(), words, "word");
  EXPECT_EQ(sums.read()[0], sum);
  EXPECT_EQ(wide.read()[0], 0.25 * n);
}

TEST_P(Corpus, sum_through_memory) {
  constexpr int n = 256;
  Buffer<int> values(n, -1);
  Buffer<int> seen(2 * n, -1);
  launch("control", "sum_through_memory", {1}, {n}, 0, values.get(), seen.get());
  std::vector<int> expected(2 * n, n * (n - 1) / 2);
  for (int i = 0; i < n; ++i) expected[static_cast<std::size_t>(i)] = 3 * ((i + 64) % n);
  expect_same(seen.read(), expected, "seen");
}

TEST_P(Corpus, raise_flags) {
  constexpr std::uint32_t n = 900;
  Buffer<int> in(std::vector<int>(n, 2));
  Buffer<int> flags(3, 0);
  launch("control", "raise_flags", {4}, {256}, 0, flags.get(), in.get(), n);
  expect_same(flags.read(), {0, 0, 1}, "flag");
}

TEST_P(Corpus, greatest_float) {
  constexpr std::uint32_t n = 300;
  std::vector<float> in;
  for (const int value : random_ints(n, -5000, 5000)) in.push_back(static_cast<float>(value) / 8);
  Buffer<float> from(in);
  Buffer<float> most(3, -1000);
  launch("control", "greatest_float", {3}, {128}, 0, most.get(), from.get(), n);
  std::vector<float> expected(3, -1000);
  for (std::size_t i = 0; i < n; ++i) expected[i % 3] = std::max(expected[i % 3], in[i]);
  expect_same(most.read(), expected, "greatest");
}

#pragma pack(push, 1)
struct Record {
  std::uint8_t tag;
  std::uint32_t word;
  std::uint16_t half_word;
  std::uint64_t wide;
};
#pragma pack(pop)

TEST_P(Corpus, packed_records) {
  constexpr std::uint32_t n = 300;
  std::vector<Record> in(n);
  for (Record& record : in) {
    record = {static_cast<std::uint8_t>(random()), static_cast<std::uint32_t>(random()),
              static_cast<std::uint16_t>(random()), static_cast<std::uint64_t>(random()) << 32 | random()};
  }
  Buffer<Record> from(in);
  Buffer<std::uint64_t> to(n);
  launch("control", "packed_records", {2}, {256}, 0, from.get(), to.get(), n);
  std::vector<std::uint64_t> expected(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    expected[i] = in[i].wide + in[i].word * 3ULL + static_cast<std::uint64_t>(in[i].half_word) * in[i].tag;
  }
  expect_same(to.read(), expected, "record");
}

TEST_P(Corpus, grid_geometry) {
  Buffer<std::uint32_t> to(10 * 6 * 8);
  launch("control", "grid_geometry", {2, 3, 4}, {5, 2, 2}, 0, to.get());
  std::vector<std::uint32_t> expected;
  for (std::uint32_t z = 0; z < 8; ++z) {
    for (std::uint32_t y = 0; y < 6; ++y) {
      for (std::uint32_t x = 0; x < 10; ++x) expected.push_back(x + 1000 * y + 1000000 * z + 4);
    }
  }
  expect_same(to.read(), expected, "place");
}

TEST_P(Corpus, volatile_steps) {
  auto words = random_words(256);
  Buffer<std::uint32_t> data(words);
  launch("control", "volatile_steps", {2}, {128}, 0, data.get());
  for (std::uint32_t& word : words) {
    for (std::uint32_t i = 0; i < 5; ++i) word = word * 3 + i;
  }
  expect_same(data.read(), words, "word");
}

TEST_P(Corpus, module_globals) {
  Buffer<std::uint32_t> to(128, 0);
  launch("control", "module_globals", {2}, {64}, 0, to.get());
  auto squares = to.read();
  std::ranges::sort(squares);
  std::vector<std::uint32_t> expected;
  for (std::uint32_t root = 1; root <= 16; ++root) expected.insert(expected.end(), 8, root * root);
  expect_same(squares, expected, "square");

  using namespace hip_abi;
  hipDeviceptr_t counter = nullptr;
  std::size_t bytes = 0;
  ASSERT_EQ(hipModuleGetGlobal(&counter, &bytes, module("control"), "device_counter"), hipSuccess);
  EXPECT_EQ(bytes, sizeof(std::uint32_t));
  std::uint32_t count = 0;
  ASSERT_EQ(hipMemcpyDtoH(&count, counter, sizeof count), hipSuccess);
  EXPECT_EQ(count, 128U);
  EXPECT_EQ(hipModuleGetGlobal(&counter, &bytes, module("control"), "no_such_variable"), hipErrorNotFound);
}

struct Parameters {
  float scale;
  std::uint8_t flag;
  std::uint64_t offset;
  std::uint16_t counts[5];
};

TEST_P(Corpus, many_arguments) {
  Buffer<std::int64_t> to(64);
  const Parameters parameters = {2.5F, 9, 123456789012345ULL, {1, 20, 300, 4000, 50000}};
  launch("control", "many_arguments", {1}, {64}, 0, std::uint8_t{200}, std::uint64_t{1} << 40, std::uint16_t{65000},
         parameters, 4.0F, to.get(), 1e9);
  std::vector<std::int64_t> expected(64);
  for (std::int64_t i = 0; i < 64; ++i) {
    expected[static_cast<std::size_t>(i)] =
        200 + (std::int64_t{1} << 40) + 65000 + 10 + 1000000000 + 123456789012345 + 9 + 54321 + i;
  }
  expect_same(to.read(), expected, "sum");
}

TEST_P(Corpus, generic_pointers) {
  const auto in = random_words(512);
  Buffer<std::uint32_t> from(in);
  Buffer<std::uint32_t> to(512);
  launch("control", "generic_pointers", {2}, {256}, 0, from.get(), to.get());
  std::vector<std::uint32_t> expected(512);
  for (std::uint32_t i = 0; i < 512; ++i) {
    const std::uint32_t other = in[i / 256 * 256 + (i % 256 + 17) % 256];
    expected[i] = in[i] % 3 == 0 ? other * 2 + 1 : other;
  }
  expect_same(to.read(), expected, "word");
}

TEST_P(Corpus, ring) {
  auto data = random_words(1024);
  Buffer<std::uint32_t> buffer(data);
  launch("control", "ring", {1}, {1024}, 0, buffer.get(), 9U);
  for (std::uint32_t round = 0; round < 9; ++round) {
    std::vector<std::uint32_t> next(1024);
    for (std::uint32_t i = 0; i < 1024; ++i) next[i] = data[(i + 61) % 1024] + round;
    data = next;
  }
  expect_same(buffer.read(), data, "slot");
}

}  // namespace
}  // namespace wavejit::hip_kernels
