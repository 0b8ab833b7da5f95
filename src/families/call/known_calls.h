// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a thread's last calls came to. Every layer of a step makes the same call with its tensors elsewhere: then
// nothing is checked or planned again, which was half of a hot call (bench/README.md).
//
//   constinit thread_local families::KnownCalls<wavejit_x_arguments, Plan> known;
//
//   if (const Plan* plan = known.find(engine.number(), call)) return run(call, *plan);
//   ...check, plan...
//   known.keep(engine.number(), call, bytes_of, plan);
//
// A call is known if its struct equals, byte for byte, that of a call that was checked before. Pointers listed in
// moving_pointers may differ; what a check asks of an address is asked of them: whether it is null, how it is aligned, and
// that no output shares memory with anything. A call that is not known gets the full check, which words its refusal.
//
// Thread-safe where each thread has its own. Nothing is allocated.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "wavejit/wavejit.h"

namespace wavejit::families {

// A pointer of a struct: that of a tensor's elements, which stands at the tensor's begin, that of one fp32, or another.
struct MovingPointer {
  std::size_t at = 0;
  enum class Of : std::uint8_t { input, output, number, memory } of = Of::input;
};

// Whoever owns a struct says once which of its pointers may move, ascending. A tensor is an input or an output, a
// number is an input of one fp32, and nothing asks what memory shares. A pointer whose check depends on more than its
// address does not belong here.
//
//   template <>
//   inline constexpr std::array moving_pointers<wavejit_x_arguments> = {
//       MovingPointer{offsetof(wavejit_x_arguments, q)},
//       MovingPointer{offsetof(wavejit_x_arguments, o), MovingPointer::Of::output}};
template <typename Struct>
inline constexpr std::array<MovingPointer, 0> moving_pointers = {};

template <typename Struct, typename Plan, std::size_t capacity = 4>
class KnownCalls {
  static constexpr auto& moving = moving_pointers<Struct>;
  static_assert(std::ranges::is_sorted(moving, {}, &MovingPointer::at));

 public:
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

  // `engine`: a number that no other engine has or had; never 0. `bytes_of(tensor)`: how many bytes of memory a tensor
  // touches, as the call's check counts them.
  template <typename BytesOf>
  void keep(std::uint64_t engine, const Struct& call, BytesOf bytes_of, const Plan& plan) {
    oldest_ = (oldest_ + 1) % capacity;
    last_ = oldest_;
    Known& known = known_[oldest_];
    known = {.engine = engine, .call = call, .plan = plan};
    for (std::size_t i = 0; i < moving.size(); ++i) {
      if (pointer(call, i) == 0 || moving[i].of == MovingPointer::Of::memory) continue;
      if (moving[i].of == MovingPointer::Of::number) {
        known.bytes[i] = sizeof(float);
        continue;
      }
      wavejit_tensor tensor;
      std::memcpy(&tensor, begin_of(call) + moving[i].at, sizeof tensor);
      known.bytes[i] = bytes_of(tensor);
    }
  }

 private:
  struct Known {
    std::uint64_t engine = 0;
    Struct call{};
    std::array<std::uint64_t, moving.size()> bytes{};  // behind each moving pointer; 0: nobody asks
    Plan plan{};
  };

  static constexpr std::size_t output_count = std::ranges::count(moving, MovingPointer::Of::output, &MovingPointer::of);
  static constexpr std::array outputs = [] {
    std::array<std::size_t, output_count> places{};
    std::size_t count = 0;
    for (std::size_t i = 0; i < moving.size(); ++i)
      if (moving[i].of == MovingPointer::Of::output) places[count++] = i;
    return places;
  }();

  // The strictest that a tensor's check asks: what moves from one place of 16 bytes to another passes or fails as
  // before.
  static constexpr std::uint64_t alignment = 16;

  static const std::byte* begin_of(const Struct& call) { return reinterpret_cast<const std::byte*>(&call); }
  static std::uint64_t pointer(const Struct& call, std::size_t i) {
    std::uint64_t address = 0;
    static_assert(sizeof address == sizeof(void*));
    std::memcpy(&address, begin_of(call) + moving[i].at, sizeof address);
    return address;
  }

  // Everything between moving pointers i - 1 and i, and behind the last.
  template <std::size_t i>
  static bool is_same_before(const Struct& call, const Struct& known) {
    constexpr std::size_t from = i == 0 ? 0 : moving[i - 1].at + sizeof(void*);
    constexpr std::size_t to = i == moving.size() ? sizeof(Struct) : moving[i].at;
    return std::memcmp(begin_of(call) + from, begin_of(known) + from, to - from) == 0;
  }

  // Hot. Branches that always go one way cost less than flags that are put together.
  static bool is_same(const Struct& call, const Known& known) {
    const bool same = [&]<std::size_t... i>(std::index_sequence<i...>) {
      return (is_same_before<i>(call, known.call) && ...);
    }(std::make_index_sequence<moving.size() + 1>());
    if (!same) return false;
    for (std::size_t i = 0; i < moving.size(); ++i) {
      const std::uint64_t now = pointer(call, i);
      const std::uint64_t before = pointer(known.call, i);
      if (((now ^ before) & (alignment - 1)) != 0 || (now == 0) != (before == 0)) return false;
    }
    for (const std::size_t output : outputs) {
      if (known.bytes[output] == 0) continue;  // such as LSE, which few calls want
      const std::uint64_t begin = pointer(call, output);
      const std::uint64_t end = begin + known.bytes[output];
      for (std::size_t i = 0; i < moving.size(); ++i) {
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
