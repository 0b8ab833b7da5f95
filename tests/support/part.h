// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How much of a long list a test does: always the same part in ./dev test, and all of it in ./dev soak
// (wavejit_add_whole_tests).
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

namespace wavejit::tests {

inline bool whole_lists() {
  const char* const said = std::getenv("WAVEJIT_TEST_WHOLE");
  return said != nullptr && std::string(said) == "1";
}

// Whether ./dev test runs this program: what it checks may be a sample, which ./dev check <word> and ./dev soak do not
// take (SAMPLED in tests/CMakeLists.txt).
inline bool sampled() {
  const char* const said = std::getenv("WAVEJIT_TEST_SAMPLE");
  return said != nullptr && std::string(said) == "1" && !whole_lists();
}

// Whether this test does case `index` of its list: one of `step` cases. Tests with other parameters do others, by their
// names, so that between them a list is covered.
//
//   for (int index = 0; index < count; ++index) {
//     if (!in_part(index, 4)) continue;
inline bool in_part(int index, int step) {
  if (whole_lists()) return true;
  const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  unsigned begin = 0;
  for (const char letter : name) begin = (begin * 31) + static_cast<unsigned char>(letter);
  return (static_cast<unsigned>(index) + begin) % static_cast<unsigned>(step) == 0;
}

// Half of the combinations of values, all of them in ./dev soak: the odd ones, by the sum of their places in the lists.
// Any two values of different lists still meet when a third list has two.
//
//   INSTANTIATE_TEST_SUITE_P(All, Pipelines, ::testing::ValuesIn(half_of_combinations(routes, storages, head_dims)),
//   name_of);
template <typename... T>
std::vector<std::tuple<T...>> half_of_combinations(const std::vector<T>&... values) {
  std::vector<std::tuple<T...>> combinations;
  const auto extend = [&](auto&& self, unsigned sum, auto chosen, const auto& list, const auto&... rest) -> void {
    for (std::size_t place = 0; place < list.size(); ++place) {
      auto longer = std::tuple_cat(chosen, std::make_tuple(list[place]));
      const unsigned its_sum = sum + static_cast<unsigned>(place);
      if constexpr (sizeof...(rest) == 0) {
        if (whole_lists() || its_sum % 2 == 1) combinations.push_back(longer);
      } else {
        self(self, its_sum, longer, rest...);
      }
    }
  };
  extend(extend, 0, std::tuple<>(), values...);
  return combinations;
}

}  // namespace wavejit::tests
