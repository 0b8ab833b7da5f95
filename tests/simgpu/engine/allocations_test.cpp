// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Allocations as HIP makes them: whole pages, of which a program asked for some bytes.
#include <format>

#include "assembled.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simgpu/process/check.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::uint64_t page = 4096;

Status run_under(Check check, const Assembled& kernel, const std::vector<std::uint64_t>& arguments) {
  const ScopedSettings scope;
  Settings settings = scope.before();
  settings.checks = static_cast<std::uint32_t>(check);
  scope.set(settings);
  return kernel.run(arguments);
}

// What is loaded from the first pointer, into s[12:15] or v[4:7], goes to the second one, by lane 0.
std::string scalar_load(unsigned dwords, unsigned offset = 0) {
  return std::format(R"(
  s_load_dwordx4 s[8:11], s[0:1], 0x0
  s_waitcnt lgkmcnt(0)
  s_load_dword{} s[12:{}], s[8:9], {}
  s_waitcnt lgkmcnt(0)
  v_mov_b32 v4, s12
  v_mov_b32 v1, 0
  global_store_dword v1, v4, s[10:11])",
                     dwords == 1 ? "" : std::format("x{}", dwords), 11 + dwords, offset);
}
std::string registers(std::string_view name) {
  return name.ends_with("x4") ? "v[4:7]" : (name.ends_with("x3") ? "v[4:6]" : "v4");
}
std::string vector_load(const char* name, unsigned offset = 0) {
  return std::format(R"(
  s_load_dwordx4 s[8:11], s[0:1], 0x0
  v_mov_b32 v1, 0
  v_mov_b32 v2, 0
  s_mov_b64 exec, 1
  s_waitcnt lgkmcnt(0)
  {} {}, v1, s[8:9] offset:{}
  s_waitcnt vmcnt(0)
  global_store_dword v1, v4, s[10:11])",
                     name, registers(name), offset);
}
std::string vector_store(const char* name, unsigned offset) {
  return std::format(R"(
  s_load_dwordx2 s[8:9], s[0:1], 0x0
  v_mov_b32 v1, 0
  s_mov_b64 exec, 1
  s_waitcnt lgkmcnt(0)
  {} v1, {}, s[8:9] offset:{})",
                     name, registers(name), offset);
}
Assembled assembled(const std::string& body) { return Assembled(KernelSource{.body = body, .kernarg_bytes = 16}); }

// LLVM widens a scalar load up to the next power of two where the address allows it: three dwords come as four.
TEST(AwkwardSizes, WidenedScalarLoadsAreNoFault) {
  Buffer<std::uint32_t> out(1);
  for (const unsigned dwords : {1U, 2U, 4U, 8U}) {
    const Assembled kernel = assembled(scalar_load(dwords));
    for (unsigned bytes = 1; bytes < 4 * dwords; ++bytes) {
      Buffer<std::uint8_t> in(bytes, 0x5a);
      for (const Check check : {Check{}, Check::bounds}) {
        const Status status = run_under(check, kernel, {in.address(), out.address()});
        ASSERT_TRUE(status.ok()) << bytes << ": " << status.text;
        const std::uint32_t mask = bytes >= 4 ? ~0U : (1U << (8 * bytes)) - 1;
        EXPECT_EQ(out[0] & mask, 0x5a5a'5a5a & mask) << bytes;
      }
    }
  }
}

TEST(AwkwardSizes, BehindTheSizeLiesNoise) {
  Buffer<std::uint8_t> in(12, 0);
  Buffer<std::uint32_t> out(1);
  ASSERT_TRUE(assembled(vector_load("global_load_dword", 12)).run({in.address(), out.address()}).ok());
  const std::uint32_t noise = out[0];
  EXPECT_NE(noise, 0U);
  // Up to the end of the page, whatever the width.
  ASSERT_TRUE(assembled(vector_load("global_load_dwordx4", 4080)).run({in.address(), out.address()}).ok());
  EXPECT_NE(out[0], 0U);
  EXPECT_NE(out[0], noise);
}

TEST(AwkwardSizes, BehindThePageIsNothing) {
  Buffer<std::uint32_t> out(1);
  for (const std::uint64_t bytes : {page, 2 * page}) {
    Buffer<std::uint8_t> in(bytes);
    const Assembled kernel = assembled(R"(
  s_load_dwordx4 s[8:11], s[0:1], 0x0
  s_waitcnt lgkmcnt(0)
  s_load_dword s12, s[8:9], s10)");
    EXPECT_TRUE(kernel.run({in.address(), bytes - 4}).ok());
    EXPECT_THAT(kernel.run({in.address(), bytes}).text, HasSubstr("0 bytes behind the end of the nearest allocation"));
  }
  Buffer<std::uint8_t> in(12);
  const Assembled across = assembled(vector_load("global_load_dwordx4", 4084));
  EXPECT_EQ(across.run({in.address(), out.address()}).code, hip_error_illegal_address);
}

TEST(AwkwardSizes, BoundsIsExact) {
  Buffer<std::uint32_t> out(1);
  for (unsigned bytes = 1; bytes <= 17; ++bytes) {
    Buffer<std::uint8_t> in(bytes, 1);
    const Assembled last = assembled(vector_load("global_load_ubyte", bytes - 1));
    EXPECT_TRUE(run_under(Check::bounds, last, {in.address(), out.address()}).ok()) << bytes;
    const Assembled behind = assembled(vector_load("global_load_ubyte", bytes));
    const Status status = run_under(Check::bounds, behind, {in.address(), out.address()});
    EXPECT_THAT(status.text, HasSubstr("0 bytes behind the end of the nearest allocation")) << bytes;
    EXPECT_TRUE(run_under(Check::races, behind, {in.address(), out.address()}).ok()) << bytes;
  }
  // Nothing that begins behind the end is a widened load, nor is what lies across a multiple of its width.
  Buffer<std::uint8_t> in(12);
  EXPECT_FALSE(run_under(Check::bounds, assembled(scalar_load(1, 12)), {in.address(), out.address()}).ok());
  EXPECT_FALSE(run_under(Check::bounds, assembled(scalar_load(2, 8 + 4)), {in.address(), out.address()}).ok());
  EXPECT_FALSE(run_under(Check::bounds, assembled(scalar_load(4, 8)), {in.address(), out.address()}).ok());
}

TEST(AwkwardSizes, StoresBehindTheSizeAreReported) {
  for (unsigned bytes = 1; bytes <= 17; ++bytes) {
    Buffer<std::uint8_t> memory(bytes, 1);
    for (const Check check : {Check{}, Check::bounds}) {
      EXPECT_TRUE(run_under(check, assembled(vector_store("global_store_byte", bytes - 1)), {memory.address()}).ok());
      EXPECT_THAT(run_under(check, assembled(vector_store("global_store_byte", bytes)), {memory.address()}).text,
                  HasSubstr("writes 1 bytes"));
      if (bytes >= 16) continue;
      EXPECT_THAT(run_under(check, assembled(vector_store("global_store_dwordx4", 0)), {memory.address()}).text,
                  AllOf(HasSubstr("writes 16 bytes"), HasSubstr(std::format("the last {} lie behind", 16 - bytes)),
                        HasSubstr(std::format("of {} bytes", bytes))));
    }
  }
}

// A descriptor that promises more than was asked for.
TEST(AwkwardSizes, BuffersReadOnToo) {
  const Assembled kernel = assembled(R"(
  s_load_dwordx4 s[8:11], s[0:1], 0x0
  v_lshlrev_b32 v1, 4, v0
  s_waitcnt lgkmcnt(0)
  buffer_load_dwordx4 v[4:7], v1, s[8:11], 0 offen)");
  Buffer<std::uint8_t> in(1000);
  const std::uint64_t upper = 1024 | (std::uint64_t{0x27000} << 32);
  EXPECT_TRUE(kernel.run({in.address(), upper}).ok());
  EXPECT_FALSE(run_under(Check::bounds, kernel, {in.address(), upper}).ok());
}

// A kernel that copies what lies behind is told of it where it matters.
TEST(AwkwardSizes, NoiseIsNothingThatWasWritten) {
  const ScopedSettings scope;
  Settings settings = scope.before();
  settings.checks = static_cast<std::uint32_t>(Check::uninitialised);
  scope.set(settings);
  Buffer<std::uint8_t> in(12, 1);
  Buffer<std::uint32_t> out(1);
  DeviceMemory::instance().define(&in[0], 12);
  EXPECT_TRUE(assembled(vector_load("global_load_dwordx3", 0)).run({in.address(), out.address()}).ok());
  EXPECT_THAT(assembled(vector_load("global_load_dword", 12)).run({in.address(), out.address()}).text,
              HasSubstr("what is stored comes from memory that was never written"));
}

// A long overrun must not land in a neighbour: addresses in vector registers say nothing of their allocation.
TEST(Spread, NeighboursLieMegabytesApart) {
  Buffer<std::uint8_t> first(100);
  Buffer<std::uint8_t> second(100);
  Buffer<std::uint8_t> third(std::uint64_t{1} << 20);
  const std::uint64_t addresses[] = {first.address(), second.address(), third.address()};
  for (const std::uint64_t a : addresses) {
    for (const std::uint64_t b : addresses) {
      if (a != b) EXPECT_GE(std::max(a, b) - std::min(a, b), std::uint64_t{8} << 20);
    }
  }
  const Assembled kernel = assembled(R"(
  s_load_dwordx4 s[8:11], s[0:1], 0x0
  s_waitcnt lgkmcnt(0)
  v_mov_b32 v2, s8
  v_mov_b32 v3, s9
  v_add_co_u32 v2, vcc, s10, v2
  v_addc_co_u32 v3, vcc, 0, v3, vcc
  global_store_dword v[2:3], v0, off)");
  for (const std::uint64_t distance : {std::uint64_t{12} << 10, std::uint64_t{1} << 20, std::uint64_t{7} << 20}) {
    EXPECT_THAT(kernel.run({first.address(), distance}).text, HasSubstr("behind the end of the nearest allocation"));
  }
}

}  // namespace
}  // namespace wavejit::simgpu::testing
