// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// All host instruction sets give the same bits, and none leaks code into another.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "simgpu/machine/matrix/matrix.h"
#include "simgpu/machine/vector/vector.h"

namespace wavejit::simgpu::test {
namespace {

using vector::Call;
using vector::Operation;

constexpr unsigned wide_dwords = 32;
using Block = std::array<std::uint32_t, wide_dwords * 64>;

// Noise, with plenty of the values that are special in some format.
void fill(Block& block, std::mt19937_64& random) {
  constexpr std::array<std::uint32_t, 24> special = {
      0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001,
      0xffc12345, 0x00000001, 0x807fffff, 0x00800000, 0x7f7fffff, 0x42fe0000, 0xc3160000, 0x3c003c00,
      0x7c00fc00, 0x7e017c01, 0x00018001, 0x7bff0400, 0x7ff00000, 0xfff80001, 0x0000ffff, 0x7fffffff};
  for (std::uint32_t& word : block) {
    const std::uint64_t bits = random();
    switch (bits & 7) {
      case 0:
      case 1:
        word = special[(bits >> 8) % special.size()];
        break;
      case 2:
        word = static_cast<std::uint32_t>(bits >> 40) & 63;
        break;
      // Floats near one, where most of the arithmetic is.
      case 3:
        word = (static_cast<std::uint32_t>(bits >> 32) & 0x81ffffffu) | 0x3e000000u;
        break;
      default:
        word = static_cast<std::uint32_t>(bits >> 32);
        break;
    }
  }
}

TEST(HostSets, GiveTheSameBits) {
  const auto reference = vector::operation_lists(HostSet::x86_64_v2);
  ASSERT_TRUE(host_supports(HostSet::x86_64_v2));
  for (const HostSet set : {HostSet::x86_64_v3, HostSet::x86_64_v4}) {
    if (!host_supports(set)) continue;
    SCOPED_TRACE(std::string(name_of(set)));
    const auto lists = vector::operation_lists(set);
    ASSERT_EQ(lists.size(), reference.size());
    auto sources = std::make_unique<std::array<Block, 4>>();
    auto results = std::make_unique<std::array<Block, 2>>();
    for (std::size_t l = 0; l < lists.size(); ++l) {
      ASSERT_EQ(lists[l].count, reference[l].count);
      for (std::size_t i = 0; i < lists[l].count; ++i) {
        const Operation& one = reference[l].first[i];
        const Operation& other = lists[l].first[i];
        ASSERT_STREQ(one.name, other.name);
        std::mt19937_64 random(l * 1000 + i);
        for (int round = 0; round < 24; ++round) {
          for (Block& block : *sources) fill(block, random);
          const std::uint64_t mask = random();
          const auto op_sel = static_cast<std::uint8_t>(random() & 15);
          const auto table = static_cast<std::uint8_t>(random());
          for (const bool saturating : {false, true}) {
            if (saturating && one.saturating == nullptr) continue;
            std::uint64_t masks[2] = {};
            for (int which = 0; which < 2; ++which) {
              Call call;
              for (int s = 0; s < 4; ++s) call.source[s] = (*sources)[s].data();
              (*results)[which].fill(0);
              call.result = (*results)[which].data();
              call.mask_in = mask;
              call.op_sel = op_sel;
              call.truth_table = table;
              call.mode = round % 2 == 0 ? 0x2f0 : 0xf0;
              call.transcendentals_key = round % 3 == 0 ? 77 : 0;
              call.rounding = static_cast<std::uint8_t>(round % 4 == 3 ? random() & 3 : 0);
              const Operation& operation = which == 0 ? one : other;
              (saturating ? operation.saturating : operation.kernel)(call);
              masks[which] = call.mask_out;
              if (call.rounding != 0) break;
            }
            if (round % 4 == 3) continue;
            ASSERT_EQ(masks[0], masks[1]) << one.name;
            for (std::size_t at = 0; at < (*results)[0].size(); ++at) {
              ASSERT_EQ((*results)[0][at], (*results)[1][at])
                  << one.name << " at " << at << " of " << (*sources)[0][at % 64] << " " << (*sources)[1][at % 64]
                  << " " << (*sources)[2][at % 64];
            }
          }
        }
      }
    }
  }
}

using Multiply = void (*)(const matrix::MatrixCall&);

// Noise to multiply, in the formats of a shape.
struct Operands {
  explicit Operands(std::mt19937_64& random) {
    for (Block* block : {&a, &b, &c}) fill(*block, random);
  }
  matrix::MatrixCall call(const matrix::Shape& shape, Block& result) const {
    matrix::MatrixCall call;
    call.shape = &shape;
    call.a = shape.a;
    call.b = shape.b;
    call.a_registers = a.data();
    call.b_registers = b.data();
    call.c_registers = c.data();
    call.d_registers = result.data();
    return call;
  }
  Block a{};
  Block b{};
  Block c{};
};

TEST(HostSets, MultiplyMatricesToTheSameBits) {
  struct Other {
    HostSet set;
    Multiply reference;
    Multiply multiply;
  };
  const std::array<Other, 4> others = {{
      {HostSet::x86_64_v3, &matrix::x86_64_v2::multiply, &matrix::x86_64_v3::multiply},
      {HostSet::x86_64_v4, &matrix::x86_64_v2::multiply, &matrix::x86_64_v4::multiply},
      {HostSet::x86_64_v3, &matrix::x86_64_v2::multiply_in_groups, &matrix::x86_64_v3::multiply_in_groups},
      {HostSet::x86_64_v4, &matrix::x86_64_v2::multiply_in_groups, &matrix::x86_64_v4::multiply_in_groups},
  }};
  for (const auto& [set, reference, multiply] : others) {
    if (!host_supports(set)) continue;
    for (const matrix::Shape& shape : matrix::shapes()) {
      std::mt19937_64 random(shape.k * 100u + shape.m);
      const Operands operands(random);
      Block results[2] = {};
      for (int which = 0; which < 2; ++which) {
        (which == 0 ? reference : multiply)(operands.call(shape, results[which]));
      }
      EXPECT_EQ(results[0], results[1]) << shape.name << " on " << name_of(set);
    }
  }
}

// Operands that nothing is done to but widening take a short way, everything else the long one. An order that is the
// usual one, said aloud, asks for the long way and changes nothing else.
TEST(HostSets, TheShortWayThroughOperandsChangesNothing) {
  const std::array<std::pair<HostSet, Multiply>, 3> all = {{{HostSet::x86_64_v2, &matrix::x86_64_v2::multiply},
                                                            {HostSet::x86_64_v3, &matrix::x86_64_v3::multiply},
                                                            {HostSet::x86_64_v4, &matrix::x86_64_v4::multiply}}};
  std::array<std::uint8_t, matrix::largest_k> ascending{};
  std::iota(ascending.begin(), ascending.end(), std::uint8_t{0});
  for (const auto& [set, multiply] : all) {
    if (!host_supports(set)) continue;
    for (const matrix::Shape& shape : matrix::shapes()) {
      std::mt19937_64 random(shape.k * 100u + shape.m);
      for (unsigned round = 0; round < 4; ++round) {
        const Operands operands(random);
        Block results[2] = {};
        for (int which = 0; which < 2; ++which) {
          matrix::MatrixCall call = operands.call(shape, results[which]);
          call.order = which == 0 ? nullptr : ascending.data();
          if (shape.blocks > 1) {
            call.cbsz = static_cast<std::uint8_t>(round % 2);
            call.abid = static_cast<std::uint8_t>(round / 2);
          }
          multiply(call);
        }
        ASSERT_EQ(results[0], results[1]) << shape.name << " on " << name_of(set);
      }
    }
  }
}

// A function that another file compiles, too, could be taken by the linker from the copy for the widest host set.
TEST(HostSets, ExportOnlyTheirOwnNamespaces) {
  int symbols = 0;
  for (const char* list : {WAVEJIT_KERNEL_OBJECTS}) {
    const std::string command = std::string(WAVEJIT_NM) + " -C --defined-only --extern-only " + list + " 2>&1";
    // The words of the command are the build's own.
    // NOLINTNEXTLINE(bugprone-command-processor)
    std::FILE* pipe = popen(command.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    std::array<char, 4096> line{};
    while (std::fgets(line.data(), line.size(), pipe) != nullptr) {
      const std::string text(line.data());
      if (text.size() < 20 || !text.contains(' ') || text.ends_with(":\n")) continue;
      ++symbols;
      EXPECT_TRUE(text.contains("wavejit::simgpu::vector::x86_64_v") ||
                  text.contains("wavejit::simgpu::matrix::x86_64_v") ||
                  text.contains("wavejit::simgpu::lanes::x86_64_v"))
          << text;
    }
    EXPECT_EQ(pclose(pipe), 0) << command;
  }
  EXPECT_GE(symbols, 3 * 11);
}

}  // namespace
}  // namespace wavejit::simgpu::test
