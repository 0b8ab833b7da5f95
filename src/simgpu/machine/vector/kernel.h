// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lane kernels as templates: a lambda for one lane and the types of its operands become a loop over 64 lanes that the
// host compiler vectorises. Only for the files compiled per host instruction set: everything here is internal to them.
#pragma once

#include "simgpu/machine/numerics/bits.h"
#include "simgpu/machine/numerics/small_floats.h"
#include "simgpu/machine/vector/operation.h"

#ifndef WAVEJIT_HOST_SET
#error "compile this file through simgpu/machine/vector/CMakeLists.txt, which names the host instruction set"
#endif

#if defined(__clang__)
// Registers of one instruction may be the same register, never shifted against each other by lanes.
#define WAVEJIT_LANE_LOOP _Pragma("clang loop vectorize(assume_safety) interleave(disable)")
#else
#define WAVEJIT_LANE_LOOP _Pragma("GCC ivdep")
#endif

namespace wavejit::simgpu::vector {

// Short for the rows of kernels_*.cpp alone: a row stays a row.
using u32 = std::uint32_t;
using i32 = std::int32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;
namespace {

using namespace numerics;

struct Pair16 {
  std::uint32_t lo;
  std::uint32_t hi;
};
struct Pair32 {
  float lo;
  float hi;
};
struct Quad {
  std::uint32_t word[4];
};

// Operand types: what a lane's lambda sees, and how it lies in the register block.
template <Kind K, typename Value>
struct Word {
  using value = Value;
  static constexpr Kind kind = K;
  static Value load(const std::uint32_t* block, unsigned lane) { return __builtin_bit_cast(Value, block[lane]); }
  static void store(std::uint32_t* block, unsigned lane, Value v) {
    block[lane] = __builtin_bit_cast(std::uint32_t, v);
  }
};
template <Kind K, typename Value>
struct DoubleWord {
  using value = Value;
  static constexpr Kind kind = K;
  static Value load(const std::uint32_t* block, unsigned lane) {
    const std::uint64_t bits = block[lane] | (static_cast<std::uint64_t>(block[lane + lane_places]) << 32);
    return __builtin_bit_cast(Value, bits);
  }
  static void store(std::uint32_t* block, unsigned lane, Value v) {
    const auto bits = __builtin_bit_cast(std::uint64_t, v);
    block[lane] = static_cast<std::uint32_t>(bits);
    block[lane + lane_places] = static_cast<std::uint32_t>(bits >> 32);
  }
};
template <Kind K, bool Signed>
struct HalfWord {
  using value = std::int32_t;
  static constexpr Kind kind = K;
  static std::int32_t load(const std::uint32_t* block, unsigned lane) {
    if constexpr (Signed) return static_cast<std::int16_t>(block[lane]);
    return static_cast<std::int32_t>(block[lane] & 0xffffu);
  }
  static void store(std::uint32_t* block, unsigned lane, std::int32_t v) {
    block[lane] = static_cast<std::uint32_t>(v) & 0xffffu;
  }
};

using U32 = Word<Kind::b32, std::uint32_t>;
using I32 = Word<Kind::b32, std::int32_t>;
using F32 = Word<Kind::f32, float>;
using Bits32 = Word<Kind::f32, std::uint32_t>;  // float32 for modifiers, bits for the lambda
using Raw = Word<Kind::raw, std::uint32_t>;
using Mixed = Word<Kind::mixed, float>;
using U64 = DoubleWord<Kind::b64, std::uint64_t>;
using I64 = DoubleWord<Kind::i64, std::int64_t>;
using F64 = DoubleWord<Kind::f64, double>;
using U16 = HalfWord<Kind::b16, false>;
using I16 = HalfWord<Kind::b16, true>;

// float16 as its 16 bits.
struct Half {
  using value = std::uint32_t;
  static constexpr Kind kind = Kind::f16;
  static std::uint32_t load(const std::uint32_t* block, unsigned lane) { return block[lane] & 0xffffu; }
  static void store(std::uint32_t* block, unsigned lane, std::uint32_t v) { block[lane] = v & 0xffffu; }
};
// float16 as the float32 of the same value; results are float32 values that round to float16 once.
struct F16 {
  using value = float;
  static constexpr Kind kind = Kind::f16;
  static float load(const std::uint32_t* block, unsigned lane) { return f16_to_f32(block[lane] & 0xffffu); }
};
struct Bf16 {
  using value = float;
  static constexpr Kind kind = Kind::bf16;
  static float load(const std::uint32_t* block, unsigned lane) { return bf16_to_f32(block[lane] & 0xffffu); }
};
template <Kind K>
struct Pair16Of {
  using value = Pair16;
  static constexpr Kind kind = K;
  static Pair16 load(const std::uint32_t* block, unsigned lane) { return {block[lane] & 0xffffu, block[lane] >> 16}; }
  static void store(std::uint32_t* block, unsigned lane, Pair16 v) { block[lane] = (v.lo & 0xffffu) | (v.hi << 16); }
};
using PairU16 = Pair16Of<Kind::pk_b16>;
using PairHalf = Pair16Of<Kind::pk_f16>;
using PairBf16 = Pair16Of<Kind::pk_bf16>;
// Two float16 values as float32, as F16.
struct PairF16 {
  using value = Pair32;
  static constexpr Kind kind = Kind::pk_f16;
  static Pair32 load(const std::uint32_t* block, unsigned lane) {
    return {f16_to_f32(block[lane] & 0xffffu), f16_to_f32(block[lane] >> 16)};
  }
};
struct PairF32 {
  using value = Pair32;
  static constexpr Kind kind = Kind::pk_f32;
  static Pair32 load(const std::uint32_t* block, unsigned lane) {
    return {float_of(block[lane]), float_of(block[lane + lane_places])};
  }
  static void store(std::uint32_t* block, unsigned lane, Pair32 v) {
    block[lane] = bits_of(v.lo);
    block[lane + lane_places] = bits_of(v.hi);
  }
};
struct B128 {
  using value = Quad;
  static constexpr Kind kind = Kind::b128;
  static Quad load(const std::uint32_t* block, unsigned lane) {
    Quad q{};
    for (unsigned i = 0; i < 4; ++i) q.word[i] = block[lane + i * lane_places];
    return q;
  }
  static void store(std::uint32_t* block, unsigned lane, Quad v) {
    for (unsigned i = 0; i < 4; ++i) block[lane + i * lane_places] = v.word[i];
  }
};
// A lane mask: bool for the lambda.
struct Mask {
  using value = bool;
  static constexpr Kind kind = Kind::mask;
  static bool load(const std::uint32_t* block, unsigned lane) { return block[lane] != 0; }
};
struct None {
  using value = int;
  static constexpr Kind kind = Kind::none;
  static int load(const std::uint32_t* /*block*/, unsigned /*lane*/) { return 0; }
};
// A result and one bit per lane beside it (carries).
template <typename Value>
struct Carrying {
  Value result;
  bool carry;
};
template <typename Base>
struct WithCarry {
  using value = Carrying<typename Base::value>;
  static constexpr Kind kind = Base::kind;
};

inline void expand_mask(std::uint64_t mask, std::uint32_t (&lanes)[lane_places]) {
  const auto low = static_cast<std::uint32_t>(mask);
  const auto high = static_cast<std::uint32_t>(mask >> 32);
  for (unsigned lane = 0; lane < 32; ++lane) {
    lanes[lane] = (low >> lane) & 1u;
    lanes[lane + 32] = (high >> lane) & 1u;
  }
}

inline std::uint64_t pack_mask(const std::uint8_t (&flags)[lane_places]) {
  std::uint64_t mask = 0;
  for (unsigned group = 0; group < 8; ++group) {
    std::uint64_t eight = 0;
    __builtin_memcpy(&eight, flags + group * 8, 8);
    // Each byte is 0 or 1: the product gathers byte i into bit 56 + i.
    mask |= ((eight * 0x0102040810204080u) >> 56) << (group * 8);
  }
  return mask;
}

template <typename Lambda, typename A, typename B, typename C, typename D>
auto apply(const Call& call, A a, B b, C c, D d) {
  constexpr Lambda body{};
  if constexpr (requires { body(call, a, b, c, d); }) {
    return body(call, a, b, c, d);
  } else if constexpr (requires { body(a, b, c, d); }) {
    return body(a, b, c, d);
  } else if constexpr (requires { body(call, a, b, c); }) {
    return body(call, a, b, c);
  } else if constexpr (requires { body(a, b, c); }) {
    return body(a, b, c);
  } else if constexpr (requires { body(call, a, b); }) {
    return body(call, a, b);
  } else if constexpr (requires { body(a, b); }) {
    return body(a, b);
  } else if constexpr (requires { body(call, a); }) {
    return body(call, a);
  } else {
    return body(a);
  }
}

template <typename T>
inline constexpr bool is_carrying = false;
template <typename T>
inline constexpr bool is_carrying<WithCarry<T>> = true;
template <typename A, typename B>
inline constexpr bool same = false;
template <typename A>
inline constexpr bool same<A, A> = true;

// The loop. `Result` bool: a compare.
template <typename Lambda, typename Result, typename A, typename B = None, typename C = None, typename D = None>
void run(Call& call) {
  std::uint32_t expanded[lane_places];
  const std::uint32_t* a = call.source[0];
  const std::uint32_t* b = call.source[1];
  const std::uint32_t* c = call.source[2];
  const std::uint32_t* d = call.source[3];
  if constexpr (same<A, Mask> || same<B, Mask> || same<C, Mask> || same<D, Mask>) {
    expand_mask(call.mask_in, expanded);
    (same<A, Mask> ? a : same<B, Mask> ? b : same<C, Mask> ? c : d) = expanded;
  }
  std::uint32_t* const result = call.result;
  const Call& context = call;
  [[maybe_unused]] const auto lane_value = [&](unsigned lane) {
    return apply<Lambda>(context, A::load(a, lane), B::load(b, lane), C::load(c, lane), D::load(d, lane));
  };
  if constexpr (same<Result, bool>) {
    std::uint8_t flags[lane_places];
    WAVEJIT_LANE_LOOP
    for (unsigned lane = 0; lane < lane_places; ++lane) flags[lane] = lane_value(lane) ? 1 : 0;
    call.mask_out = pack_mask(flags);
  } else if constexpr (is_carrying<Result>) {
    std::uint8_t flags[lane_places];
    WAVEJIT_LANE_LOOP
    for (unsigned lane = 0; lane < lane_places; ++lane) {
      const auto both = lane_value(lane);
      if constexpr (sizeof(both.result) == 8) {
        DoubleWord<Kind::b64, decltype(both.result)>::store(result, lane, both.result);
      } else {
        result[lane] = __builtin_bit_cast(std::uint32_t, both.result);
      }
      flags[lane] = both.carry ? 1 : 0;
    }
    call.mask_out = pack_mask(flags);
  } else if constexpr (same<Result, F16>) {
    if (call.rounding == 0) {
      WAVEJIT_LANE_LOOP
      for (unsigned lane = 0; lane < lane_places; ++lane) result[lane] = f32_to_f16(lane_value(lane));
    } else {
      const auto rounding = static_cast<Rounding>(call.rounding);
      for (unsigned lane = 0; lane < lane_places; ++lane) result[lane] = f32_to_f16(lane_value(lane), rounding);
    }
  } else if constexpr (same<Result, PairF16>) {
    if (call.rounding == 0) {
      WAVEJIT_LANE_LOOP
      for (unsigned lane = 0; lane < lane_places; ++lane) {
        const Pair32 pair = lane_value(lane);
        result[lane] = f32_to_f16(pair.lo) | (f32_to_f16(pair.hi) << 16);
      }
    } else {
      const auto rounding = static_cast<Rounding>(call.rounding);
      for (unsigned lane = 0; lane < lane_places; ++lane) {
        const Pair32 pair = lane_value(lane);
        result[lane] = f32_to_f16(pair.lo, rounding) | (f32_to_f16(pair.hi, rounding) << 16);
      }
    }
  } else {
    WAVEJIT_LANE_LOOP
    for (unsigned lane = 0; lane < lane_places; ++lane) Result::store(result, lane, lane_value(lane));
  }
}

// Runs `Nearest`, or `Permitted` if the launch asks for other results that the ISA permits: the ISA gives those for
// rounding to nearest only.
template <typename Nearest, typename Permitted, typename Result, typename A>
void run_transcendental(Call& call) {
  if (call.transcendentals_key == 0 || call.rounding != 0) return run<Nearest, Result, A>(call);
  // Waves without rows of their own have one operand in all lanes.
  if constexpr (same<A, F32> && same<Result, F32>) {
    const std::uint32_t* const a = call.source[0];
    std::uint32_t others = 0;
    for (unsigned lane = 1; lane < lane_places; ++lane) others |= a[lane] ^ a[0];
    if (others == 0) {
      const auto value = __builtin_bit_cast(std::uint32_t, apply<Permitted>(call, A::load(a, 0), 0, 0, 0));
      for (unsigned lane = 0; lane < lane_places; ++lane) call.result[lane] = value;
      return;
    }
  }
  run<Permitted, Result, A>(call);
}

template <typename T>
inline constexpr Kind kind_of = T::kind;
template <>
inline constexpr Kind kind_of<bool> = Kind::mask;

template <typename Signature>
struct Make;
template <typename R, typename... Sources>
struct Make<R(Sources...)> {
  template <typename Lambda>
  static constexpr Operation entry(const char* name, Lambda /*body*/, unsigned flags) {
    return {name,
            &run<Lambda, R, Sources...>,
            nullptr,
            kind_of<R>,
            {Sources::kind...},
            static_cast<std::uint8_t>(sizeof...(Sources)),
            flags | (same<R, bool> ? unsigned{flag_mask_result} : 0u) | (is_carrying<R> ? unsigned{flag_carries} : 0u)};
  }
  template <typename Lambda, typename Saturating>
  static constexpr Operation entry(const char* name, Lambda body, Saturating /*clamped*/, unsigned flags) {
    Operation operation = entry(name, body, flags);
    operation.saturating = &run<Saturating, R, Sources...>;
    return operation;
  }
};

// A row of the table: op<result(sources…)>("v_name", lambda [, lambda for clamp] [, flags]).
template <typename Signature, typename Lambda>
constexpr Operation op(const char* name, Lambda body, unsigned flags = 0) {
  return Make<Signature>::entry(name, body, flags);
}
template <typename Signature, typename Lambda, typename Saturating>
  requires(__is_class(Saturating))
constexpr Operation op(const char* name, Lambda body, Saturating clamped, unsigned flags = 0) {
  return Make<Signature>::entry(name, body, clamped, flags);
}
// A transcendental function of which the ISA promises no exact bits: the nearest result, and, of the launch's key and
// the operand, one that is permitted.
template <typename Type, typename Nearest, typename Permitted>
constexpr Operation transcendental(const char* name, Nearest nearest, Permitted /*permitted*/, unsigned flags = 0) {
  Operation operation = Make<Type(Type)>::entry(name, nearest, flags | flag_transcendental);
  operation.kernel = &run_transcendental<Nearest, Permitted, Type, Type>;
  return operation;
}
// A kernel written as a whole loop.
constexpr Operation whole(const char* name, Kernel kernel, Kind result, Kind a, Kind b, Kind c, std::uint8_t count,
                          unsigned flags) {
  return {name, kernel, nullptr, result, {a, b, c, Kind::none}, count, flags};
}

template <std::size_t Count>
constexpr OperationList list_of(const Operation (&table)[Count]) {
  return {table, Count};
}

}  // namespace
}  // namespace wavejit::simgpu::vector
