// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
// Normal numbers by the million. libstdc++'s distribution takes logarithms of long doubles for each, which was an
// eighth of a test's time; here it is asked once for as many as 16 bits can choose among.

#include <array>
#include <cstdint>
#include <memory>
#include <random>

namespace wavejit::tests {

class NormalNumbers {
 public:
  explicit NormalNumbers(std::uint64_t seed) : random_(seed) {}

  float operator()() {
    if (left_ == 0) {
      bits_ = random_();
      left_ = 4;
    }
    const float number = (*known())[bits_ & 0xffff];
    bits_ >>= 16;
    --left_;
    return number;
  }

 private:
  using Known = std::array<float, 1 << 16>;
  static const std::unique_ptr<Known>& known() {
    static const std::unique_ptr<Known> numbers = [] {
      auto made = std::make_unique<Known>();
      std::mt19937 random(1);  // NOLINT(bugprone-random-generator-seed): the same numbers in every run
      std::normal_distribution<float> normal;
      for (float& number : *made) number = normal(random);
      return made;
    }();
    return numbers;
  }

  std::mt19937_64 random_;
  std::uint64_t bits_ = 0;
  unsigned left_ = 0;
};

}  // namespace wavejit::tests
