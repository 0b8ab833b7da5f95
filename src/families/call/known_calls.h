// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a thread's last calls came to. Every layer of a step makes the same call with its tensors elsewhere: then
// nothing is checked or planned again, which was half of a hot call (bench/README.md).
//
//   constinit thread_local families::KnownCalls<wavejit_x_arguments, Plan> known;
//
//   if (const Plan* plan = known.find(engine.number(), call)) return run(call, *plan);
//   ...check, plan...
//   known.keep(engine.number(), call, bytes, plan);
//
// A call is known when its struct is, byte for byte, that of a call which was checked, but for pointers that may move.
// Of those it is asked what a check asks of an address: whether it is null, how it is aligned, and that no output
// shares memory with anything. What is not certain here is no fault: the call is checked as any other, which words its
// refusal.
//
// Thread-safe where each thread has its own. Nothing is allocated.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace wavejit::families {

// Whoever owns a struct says once where its pointers that may move stand, ascending, and which of them are outputs:
//
//   template <>
//   struct MovingPointers<wavejit_x_arguments> {
//     static constexpr std::array at = {offsetof(wavejit_x_arguments, q), offsetof(wavejit_x_arguments, o)};
//     static constexpr std::array<std::size_t, 1> outputs = {1};
//   };
//
// A tensor's data is the pointer at its begin. A pointer whose check depends on more than its address does not belong
// here.
template <typename Struct>
struct MovingPointers;

template <typename Struct, typename Plan, std::size_t capacity = 4>
class KnownCalls {
  static constexpr auto& at = MovingPointers<Struct>::at;
  static constexpr auto& outputs = MovingPointers<Struct>::outputs;
  static_assert(std::ranges::is_sorted(at));

 public:
  // How many bytes may be touched behind each moving pointer, as the call's check counts them. 0: nothing.
  using Bytes = std::array<std::uint64_t, at.size()>;

  // Null: this thread has not kept it, or not of late. What is found is there until the next `keep`.
  const Plan* find(std::uint64_t engine, const Struct& call) {
    for (std::size_t tried = 0; tried < capacity; ++tried) {
      const std::size_t place = (last_ + tried) % capacity;
      const Known& known = known_[place];
      if (known.engine != engine || !is_same(call, known)) continue;
      last_ = place;
      return &known.plan;
    }
    return nullptr;
  }

  // `engine`: a number that no other engine has or had; never 0.
  void keep(std::uint64_t engine, const Struct& call, const Bytes& bytes, const Plan& plan) {
    oldest_ = (oldest_ + 1) % capacity;
    last_ = oldest_;
    known_[oldest_] = {.engine = engine, .call = call, .bytes = bytes, .plan = plan};
  }

 private:
  struct Known {
    std::uint64_t engine = 0;
    Struct call{};
    Bytes bytes{};
    Plan plan{};
  };

  // The strictest that a tensor's check asks: what moves from one place of 16 bytes to another passes or fails as
  // before.
  static constexpr std::uint64_t alignment = 16;

  static const std::byte* bytes_of(const Struct& call) { return reinterpret_cast<const std::byte*>(&call); }
  static std::uint64_t pointer(const Struct& call, std::size_t i) {
    std::uint64_t address = 0;
    static_assert(sizeof address == sizeof(void*));
    std::memcpy(&address, bytes_of(call) + at[i], sizeof address);
    return address;
  }

  // Everything between moving pointers i - 1 and i, and behind the last.
  template <std::size_t i>
  static bool is_same_before(const Struct& call, const Struct& known) {
    constexpr std::size_t from = i == 0 ? 0 : at[i - 1] + sizeof(void*);
    constexpr std::size_t to = i == at.size() ? sizeof(Struct) : at[i];
    return std::memcmp(bytes_of(call) + from, bytes_of(known) + from, to - from) == 0;
  }

  // Hot. Branches that always go one way cost less than flags that are put together.
  static bool is_same(const Struct& call, const Known& known) {
    const bool same = [&]<std::size_t... i>(std::index_sequence<i...>) {
      return (is_same_before<i>(call, known.call) && ...);
    }(std::make_index_sequence<at.size() + 1>());
    if (!same) return false;
    for (std::size_t i = 0; i < at.size(); ++i) {
      const std::uint64_t now = pointer(call, i);
      const std::uint64_t before = pointer(known.call, i);
      if (((now ^ before) & (alignment - 1)) != 0 || (now == 0) != (before == 0)) return false;
    }
    for (const std::size_t output : outputs) {
      const std::uint64_t begin = pointer(call, output);
      const std::uint64_t end = begin + known.bytes[output];
      for (std::size_t i = 0; i < at.size(); ++i) {
        const std::uint64_t other = pointer(call, i);
        if (i != output && begin < other + known.bytes[i] && other < end) return false;
      }
    }
    return true;
  }

  std::array<Known, capacity> known_{};
  std::size_t last_ = 0;    // where the last was found or kept
  std::size_t oldest_ = 0;  // before the next that is kept
};

}  // namespace wavejit::families
