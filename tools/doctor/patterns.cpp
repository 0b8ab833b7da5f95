// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/doctor/patterns.h"

#include <array>
#include <bit>
#include <cmath>
#include <span>

namespace wavejit::tools::doctor {
namespace {

// splitmix64: a stream of its own, so that a report can be read again in ten years.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint32_t next() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111eb;
    return static_cast<std::uint32_t>((z ^ (z >> 31U)) >> 32U);
  }
  // From `low` to below `high`.
  float between(float low, float high) { return low + ((high - low) * static_cast<float>(next() >> 8U) * 0x1p-24F); }

 private:
  std::uint64_t state_;
};

struct Format {
  int bits;
  int fraction_bits;
  int exponent_bias;
};
constexpr Format f16 = {.bits = 16, .fraction_bits = 10, .exponent_bias = 15};
constexpr Format bf16 = {.bits = 16, .fraction_bits = 7, .exponent_bias = 127};
// Both formats of 8 bits have such numbers; which ones they are does not matter to a comparison.
constexpr Format eight_bits = {.bits = 8, .fraction_bits = 3, .exponent_bias = 7};

// How factors and addends of a workgroup are spread.
struct Spread {
  int exponents = 3;      // below 2⁰
  int addend = 0;         // exponent of the addend
  bool negative = false;  // the addend is below zero
  bool denormal = false;
};
constexpr std::array<Spread, 4> spreads = {{
    {.exponents = 3, .addend = 1},
    {.exponents = 6, .addend = 3},
    {.exponents = 4, .addend = 14, .negative = true},
    {.exponents = 3, .addend = -20, .negative = true, .denormal = true},
}};

std::uint32_t factor(Random& random, const Format& format, const Spread& spread) {
  const std::uint32_t sign = random.next() & 1U;
  const std::uint32_t fraction = random.next() & ((1U << static_cast<unsigned>(format.fraction_bits)) - 1);
  const bool is_denormal = spread.denormal && random.next() % 4 == 0;
  const auto below = static_cast<int>(random.next() % static_cast<unsigned>(spread.exponents + 1));
  const auto exponent = static_cast<std::uint32_t>(is_denormal ? 0 : format.exponent_bias - below);
  return (sign << static_cast<unsigned>(format.bits - 1)) | (exponent << static_cast<unsigned>(format.fraction_bits)) |
         fraction;
}

std::uint32_t addend(Random& random, const Spread& spread) {
  const float size = std::ldexp(random.between(1, 2), spread.addend);
  const bool below = spread.negative || random.next() % 2 == 0;
  return std::bit_cast<std::uint32_t>(below ? -size : size);
}

void fill_products(const Probe& probe, const Format& format, std::vector<std::uint32_t>& words) {
  Random random(17);
  // Factors fill whole words in front; what is left is the addend, as long as the answer.
  const unsigned factor_words = probe.input_words - probe.output_words;
  const auto of_word = static_cast<unsigned>(32 / format.bits);
  for (std::size_t lane = 0; lane < words.size() / probe.input_words; ++lane) {
    const Spread& spread = spreads[(lane / 64) % spreads.size()];
    const std::span<std::uint32_t> own(words.data() + (lane * probe.input_words), probe.input_words);
    for (unsigned word = 0; word < own.size(); ++word) {
      if (word >= factor_words) {
        own[word] = addend(random, spread);
        continue;
      }
      for (unsigned i = 0; i < of_word; ++i)
        own[word] |= factor(random, format, spread) << (i * static_cast<unsigned>(format.bits));
    }
  }
}

void fill_floats(std::vector<std::uint32_t>& words) {
  constexpr std::array<std::uint32_t, 14> odd = {0x00000000, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000,
                                                 0x7f800001, 0x00000001, 0x807fffff, 0x7f7fffff, 0x3f808000,
                                                 0x3f818000, 0x3f801000, 0x3f803000, 0x477ff000};
  Random random(3);
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = i < odd.size() ? odd[i] : random.next();
    // Every fourth: a number that 16 or 8 bits have, or one between two of them.
    if (i >= odd.size() && i % 4 == 0) words[i] = 0x38000000 + (words[i] & 0x8fffffffU & ~0xfffU);
  }
}

}  // namespace

std::vector<std::uint32_t> words_of(const Probe& probe) {
  std::vector<std::uint32_t> words(std::size_t{64} * probe.workgroups * probe.input_words);
  if (probe.pattern == "numbers") {
    for (std::size_t i = 0; i < words.size(); ++i)
      words[i] = static_cast<std::uint32_t>((2 * i) | (((2 * i) + 1) << 16U));
  } else if (probe.pattern == "floats") {
    fill_floats(words);
  } else if (probe.pattern == "positive") {
    Random random(5);
    for (std::uint32_t& word : words) word = random.next() % 0x7f800000U;
  } else if (probe.pattern == "exponents") {
    Random random(7);
    for (std::uint32_t& word : words) word = std::bit_cast<std::uint32_t>(random.between(-150, 130));
  } else if (probe.pattern == "products_f16") {
    fill_products(probe, f16, words);
  } else if (probe.pattern == "products_bf16") {
    fill_products(probe, bf16, words);
  } else if (probe.pattern == "products_8_bits") {
    fill_products(probe, eight_bits, words);
  } else {
    return {};
  }
  return words;
}

}  // namespace wavejit::tools::doctor
