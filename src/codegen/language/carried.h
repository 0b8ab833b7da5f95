// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a loop or a branch carries: the values of a state as one list, and the state that a list stands for. A state names its
// values once, so that both directions have one order:
//
//   struct State {
//     Value* place = nullptr;
//     SoftmaxState softmax;
//     std::vector<Accumulator> outputs;
//     Values in_flight;
//     void each(this auto& state, auto visit) {
//       visit(state.place);
//       visit(state.softmax);
//       visit(state.outputs);
//       visit(state.in_flight);
//     }
//   };
//   const Values end = loop_in_phases(kernel, 1, carried(start), [&](int, const Values& values) {
//     State state = state_of(start, values);
//     …
//     return carried(state);
//   }, …);
//
// A value that is null is not carried, and stays null in the state that is made.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <ranges>
#include <span>
#include <type_traits>

#include "codegen/language/kernel.h"

namespace wavejit::language {
namespace detail {

template <typename Part, typename Visit>
void visit_values(Part& part, Visit& visit) {
  if constexpr (std::is_pointer_v<std::remove_const_t<Part>>) {
    if (part != nullptr) visit(part);
  } else if constexpr (requires { part.each([](auto&) {}); }) {
    part.each([&](auto& inner) { visit_values(inner, visit); });
  } else if constexpr (requires { part.value; }) {  // an accumulator
    visit_values(part.value, visit);
  } else {
    static_assert(std::ranges::range<Part>, "a state's part is a value, a range of parts, or has each()");
    for (auto& inner : part) visit_values(inner, visit);
  }
}

}  // namespace detail

template <typename State>
Values carried(const State& state) {
  Values values;
  const auto add = [&](Value* value) { values.push_back(value); };
  detail::visit_values(state, add);
  return values;
}

// `like`: a state with as many values, null where the other's are null.
template <typename State>
State state_of(State like, std::span<Value* const> values) {
  std::size_t next = 0;
  // Another number of values is a fault of the emitter: each would be taken for its neighbour.
  const auto take = [&](Value*& value) {
    if (next == values.size()) [[unlikely]]
      std::abort();
    value = values[next++];
  };
  detail::visit_values(like, take);
  if (next != values.size()) [[unlikely]]
    std::abort();
  return like;
}

}  // namespace wavejit::language
