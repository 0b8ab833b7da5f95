// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products of 16-bit floats from registers to registers, on every host instruction set there is, against the rule that
// the captures of an R9700 confirm (numerics/rdna4_dot.h), element by element.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>

#include "simgpu/machine/matrix/wmma.h"
#include "simgpu/machine/numerics/rdna4_dot.h"

namespace wavejit::simgpu::test {
namespace {

using matrix::wmma_size;
using matrix::WmmaRegisters;
using Kernel = bool (*)(const WmmaRegisters&);

struct WmmaOfSet {
  HostSet set;
  Kernel f16;
  Kernel bf16;
};
const std::array<WmmaOfSet, host_set_count> wmma_kernels = {{
    {HostSet::x86_64_v2, &matrix::x86_64_v2::multiply_f16, &matrix::x86_64_v2::multiply_bf16},
    {HostSet::x86_64_v3, &matrix::x86_64_v3::multiply_f16, &matrix::x86_64_v3::multiply_bf16},
    {HostSet::x86_64_v4, &matrix::x86_64_v4::multiply_f16, &matrix::x86_64_v4::multiply_bf16},
}};

// What the elements of a problem are: exponents between two bounds (fields), and one of this many is zero.
struct Kind {
  const char* name;
  bool is_f16;
  unsigned lowest;
  unsigned highest;
  unsigned c_lowest;
  unsigned c_highest;
  unsigned zeros;      // of A and B
  unsigned zero_rows;  // one of this many rows of A is zero, and of C
  bool always;         // never left to the general way
};
constexpr Kind kinds[] = {
    {"f16 near one", true, 12, 16, 120, 130, 50, 100, true},
    {"f16 of all exponents", true, 0, 30, 90, 150, 20, 10, true},
    {"f16 beside much larger sums", true, 0, 8, 140, 200, 20, 10, true},
    {"f16 beside tiny sums", true, 0, 12, 0, 60, 4, 3, false},
    {"f16 with infinities", true, 28, 31, 100, 254, 20, 10, false},
    {"bf16 near one", false, 120, 134, 120, 134, 50, 100, true},
    {"bf16 of many exponents", false, 90, 160, 60, 190, 20, 10, true},
    {"bf16 of all exponents", false, 0, 254, 0, 254, 8, 4, false},
    {"bf16 whose sums are subnormal", false, 50, 66, 0, 30, 8, 4, false},
    {"bf16 whose sums are nearly infinite", false, 185, 191, 240, 254, 8, 4, false},
    {"bf16, all products zero beside tiny sums", false, 0, 0, 0, 40, 1, 50, false},
};

constexpr unsigned words_of_operand = 4;
constexpr unsigned results = 8;
constexpr unsigned depth = 16;

class Problem {
 public:
  Problem(const Kind& kind, unsigned seed) : kind_(kind), random_(seed) {
    const unsigned fraction = kind.is_f16 ? 10 : 7;
    std::array<bool, wmma_size> row_is_zero{};
    for (bool& is_zero : row_is_zero) is_zero = one_of(kind.zero_rows);
    for (unsigned k = 0; k < depth; ++k) {
      for (unsigned i = 0; i < wmma_size; ++i) {
        a_[k][i] =
            row_is_zero.at(i) || one_of(kind.zeros) ? signed_zero(15) : number(kind.lowest, kind.highest, fraction, 15);
        b_[k][i] = one_of(kind.zeros) ? signed_zero(15) : number(kind.lowest, kind.highest, fraction, 15);
      }
    }
    for (unsigned row = 0; row < wmma_size; ++row) {
      for (unsigned column = 0; column < wmma_size; ++column) {
        c_[row][column] = row_is_zero.at(row) ? signed_zero(31) : number(kind.c_lowest, kind.c_highest, 23, 31);
      }
    }
    place();
  }

  // What the kernel answers; what it wrote is compared.
  bool check(Kernel kernel, bool negated) {
    WmmaRegisters call{.a = registers_[0],
                       .b = registers_[words_of_operand],
                       .c = registers_[2 * words_of_operand],
                       .c_stride = lane_places,
                       .d = registers_[2 * words_of_operand + results]};
    if (negated) {
      call.flips_a = 0x80000000U;  // odd k
      call.flips_b = 0x80008000U;
      call.keeps_c = 0x7fffffffU;
      call.flips_c = 0x80000000U;
    }
    for (unsigned r = 0; r < results; ++r) {
      for (unsigned lane = 0; lane < lane_places; ++lane) call.d[r * lane_places + lane] = untouched;
    }
    const bool done = kernel(call);
    for (unsigned r = 0; r < results; ++r) {
      for (unsigned lane = 0; lane < lane_places; ++lane) {
        const std::uint32_t got = call.d[r * lane_places + lane];
        const matrix::WmmaPlace place = matrix::wmma_place(lane % 32, 32, r);
        const std::uint32_t wanted = done && lane < 32 ? element(place, call, negated) : untouched;
        EXPECT_EQ(got, wanted) << kind_.name << ", register " << r << ", lane " << lane;
        if (got != wanted) return done;
      }
    }
    return done;
  }

 private:
  static constexpr std::uint32_t untouched = 0x5a5a5a5aU;

  bool one_of(unsigned count) { return random_() % count == 0; }
  std::uint32_t signed_zero(unsigned sign) { return (random_() & 1U) << sign; }
  std::uint32_t number(unsigned lowest, unsigned highest, unsigned fraction, unsigned sign) {
    const std::uint32_t field = lowest + (random_() % (highest - lowest + 1));
    // Few bits, now and then: ties are common then.
    const std::uint32_t mask = one_of(3) ? ~0U << (fraction - 2) : ~0U;
    return signed_zero(sign) | (field << fraction) | (random_() & mask & ((1U << fraction) - 1));
  }
  void place() {
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (unsigned i = 0; i < 2 * words_of_operand; ++i) {
        const unsigned k = matrix::wmma_k(lane, 32, i, depth);
        const unsigned shift = 16 * (i % 2);
        registers_[i / 2][lane] |= a_[k][lane % wmma_size] << shift;
        registers_[words_of_operand + (i / 2)][lane] |= b_[k][lane % wmma_size] << shift;
      }
      for (unsigned r = 0; r < results; ++r) {
        const matrix::WmmaPlace place = matrix::wmma_place(lane, 32, r);
        registers_[2 * words_of_operand + r][lane] = c_[place.row][place.column];
      }
    }
  }
  std::uint32_t element(matrix::WmmaPlace place, const WmmaRegisters& call, bool negated) const {
    std::uint32_t sum = (c_[place.row][place.column] & call.keeps_c) ^ call.flips_c;
    for (const unsigned first : {0U, 8U, 4U, 12U}) {
      numerics::Factor a[4];
      numerics::Factor b[4];
      for (unsigned i = 0; i < 4; ++i) {
        const unsigned k = first + i;
        const std::uint32_t x = a_[k][place.row] ^ (negated && k % 2 == 1 ? 0x8000U : 0U);
        const std::uint32_t y = b_[k][place.column] ^ (negated ? 0x8000U : 0U);
        a[i] = kind_.is_f16 ? numerics::factor_of_f16(x) : numerics::factor_of_bf16(x);
        b[i] = kind_.is_f16 ? numerics::factor_of_f16(y) : numerics::factor_of_bf16(y);
      }
      sum = kind_.is_f16 ? numerics::dot_step<10>(a, b, sum) : numerics::dot_step<7>(a, b, sum);
    }
    return sum;
  }

  const Kind& kind_;
  std::mt19937 random_;
  std::uint32_t a_[depth][wmma_size];
  std::uint32_t b_[depth][wmma_size];
  std::uint32_t c_[wmma_size][wmma_size];
  std::uint32_t registers_[2 * words_of_operand + 2 * results][lane_places] = {};
};

TEST(WmmaRegisters, EveryElementIsTheRulesOnEveryHostSet) {
  constexpr unsigned problems = 60;
  for (const auto& [set, f16, bf16] : wmma_kernels) {
    if (!host_supports(set)) continue;
    SCOPED_TRACE(std::string(name_of(set)));
    for (const Kind& kind : kinds) {
      unsigned done = 0;
      for (unsigned seed = 0; seed < problems; ++seed) {
        Problem problem(kind, seed);
        done += problem.check(kind.is_f16 ? f16 : bf16, seed % 4 == 3) ? 1 : 0;
      }
      if (kind.always) {
        EXPECT_EQ(done, problems) << kind.name;
      } else {
        EXPECT_LT(done, problems) << kind.name;
      }
    }
  }
}

}  // namespace
}  // namespace wavejit::simgpu::test
