// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// AQL packets: what runs, in which order, what is completed, and how a queue stops.
#include <chrono>
#include <cstring>
#include <format>
#include <thread>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ring.h"
#include "simgpu/front_ends/queues/code_map.h"
#include "simgpu/machine/loader/code_object.h"
#include "simgpu/process/check.h"
#include "simgpu/process/process.h"
#include "support/idle_cost.h"

namespace wavejit::simgpu::testing {
namespace {

using queues::PacketType;
using ::testing::HasSubstr;

// out[work-item] = 7 + work-item, for workgroups of 64 in x.
constexpr const char* number_work_items = R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  s_lshl_b32 s8, s2, 6
  v_add_u32 v1, s8, v0
  v_lshlrev_b32 v2, 2, v1
  v_add_u32 v1, 7, v1
  s_waitcnt lgkmcnt(0)
  global_store_dword v2, v1, s[6:7])";

class Aql : public ::testing::Test {
 protected:
  static const CodeInMemory& numbering() {
    static const CodeInMemory code(KernelSource{.body = number_work_items});
    return code;
  }
};

TEST_F(Aql, ADispatchRunsItsKernelAndCompletesItsSignal) {
  Ring ring(numbering().device());
  Buffer<std::uint32_t> out(128, 0);
  Buffer<std::uint64_t> kernarg(1, out.address());
  TestSignal done(1);
  const std::uint64_t before = queues::clock_now();
  ring.push(dispatch_of(numbering(), kernarg.address(), done.address(), 128));
  done.wait_for(0);
  for (std::uint32_t i = 0; i < 128; ++i) EXPECT_EQ(out[i], 7 + i);
  EXPECT_GE(done.fields().start, before);
  EXPECT_GE(done.fields().end, done.fields().start);
}

// AMD's conformance tests destroy a queue whose kernel waits for what nobody does.
TEST_F(Aql, AQueueThatGoesEndsItsKernel) {
  const CodeInMemory endless(KernelSource{.body = "again:\n  s_sleep 1\n  s_branch again"});
  Buffer<std::uint64_t> kernarg(1, 0);
  TestSignal done(1);
  {
    Ring ring(endless.device());
    ring.push(dispatch_of(endless, kernarg.address(), done.address(), 64));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it runs by now
  }
  EXPECT_EQ(done.fields().value, 1);
}

TEST_F(Aql, TheLastWorkgroupMayBeSmaller) {
  Ring ring(numbering().device());
  Buffer<std::uint32_t> out(128, 0);
  Buffer<std::uint64_t> kernarg(1, out.address());
  TestSignal done(1);
  ring.push(dispatch_of(numbering(), kernarg.address(), done.address(), 100));
  done.wait_for(0);
  for (std::uint32_t i = 0; i < 128; ++i) EXPECT_EQ(out[i], i < 100 ? 7 + i : 0) << i;
}

TEST_F(Aql, PacketsAreTakenInOrderAroundTheRing) {
  Ring ring(numbering().device(), 4);
  Buffer<std::uint32_t> out(64, 0);
  Buffer<std::uint64_t> kernarg(1, out.address());
  for (int i = 0; i < 9; ++i) {
    TestSignal done(1);
    out[0] = 0;
    ring.push(dispatch_of(numbering(), kernarg.address(), done.address()));
    done.wait_for(0);
    EXPECT_EQ(out[0], 7U);
  }
  TestSignal last(1);
  ring.push(barrier_of(PacketType::barrier_and, {}, last.address()));
  last.wait_for(0);
  EXPECT_EQ(ring.header(0), static_cast<std::uint16_t>(PacketType::invalid));
  EXPECT_GE(ring.read_index(), 9U);
}

TEST_F(Aql, ABarrierWaitsForTheHostWhileAnotherQueueGoesOn) {
  Ring blocked(numbering().device());
  Ring free_queue(numbering().device());
  Buffer<std::uint32_t> out(64, 0);
  Buffer<std::uint64_t> kernarg(1, out.address());
  TestSignal first(1);
  TestSignal second(1);
  TestSignal behind(1);
  TestSignal other(1);
  blocked.push(barrier_of(PacketType::barrier_and, {first.address(), second.address()}, 0));
  blocked.push(dispatch_of(numbering(), kernarg.address(), behind.address()));
  // What the first queue waits for comes from the second, and from the host.
  free_queue.push(barrier_of(PacketType::barrier_and, {}, first.address()));
  free_queue.push(barrier_of(PacketType::barrier_and, {}, other.address()));
  other.wait_for(0);
  first.wait_for(0);
  EXPECT_EQ(behind.value(), 1);
  EXPECT_EQ(out[0], 0U);
  second.set(0);
  behind.wait_for(0);
  EXPECT_EQ(out[0], 7U);
}

TEST_F(Aql, ABarrierOrNeedsOneSignal) {
  Ring ring(numbering().device());
  TestSignal never(1);
  TestSignal soon(1);
  TestSignal done(1);
  ring.push(barrier_of(PacketType::barrier_or, {never.address(), soon.address()}, done.address()));
  EXPECT_EQ(done.value(), 1);
  soon.set(0);
  done.wait_for(0);
}

TEST_F(Aql, ABarrierValueComparesWhatItsMaskLeaves) {
  Ring ring(numbering().device());
  TestSignal watched(0x10);
  TestSignal done(1);
  queues::BarrierValuePacket packet{.format = static_cast<std::uint8_t>(queues::VendorFormat::barrier_value),
                                    .signal = watched.address(),
                                    .value = 3,
                                    .mask = 0xf,
                                    .condition = static_cast<std::uint32_t>(queues::Condition::greater_or_equal),
                                    .completion_signal = done.address()};
  ring.push(packet);
  watched.set(0xf2);
  EXPECT_EQ(done.value(), 1);
  watched.set(0x13);
  done.wait_for(0);
  // No signal: nothing to wait for.
  TestSignal at_once(1);
  packet.signal = 0;
  packet.completion_signal = at_once.address();
  ring.push(packet);
  at_once.wait_for(0);
}

TEST_F(Aql, AQueueEndsWhileItWaits) {
  TestSignal never(1);
  TestSignal done(1);
  {
    Ring ring(numbering().device());
    ring.push(barrier_of(PacketType::barrier_and, {never.address()}, done.address()));
    while (ring.queue().waits_for().empty()) std::this_thread::yield();
    EXPECT_THAT(ring.queue().waits_for(), HasSubstr("a barrier-and packet: signal"));
  }
  EXPECT_EQ(done.value(), 1);
}

// Nobody completes what it waits for: one line says so, one only, and the queue goes on when somebody does.
TEST_F(Aql, AQueueThatCannotAdvanceSaysWhatItWaitsFor) {
  struct Wait {
    PacketType type;
    const char* said;
  };
  for (const Wait& wait : {Wait{PacketType::barrier_and, "a barrier-and packet: signal {:#x} is 1; it must become 0"},
                           Wait{PacketType::barrier_or, "a barrier-or packet: signal {:#x} is 1, and one must"}}) {
    TestSignal late(1);
    TestSignal done(1);
    ::testing::internal::CaptureStderr();
    {
      Ring ring(numbering().device(), 64, 0, {.patience = std::chrono::milliseconds(20)});
      ring.push(barrier_of(wait.type, {late.address()}, done.address()));
      while (ring.queue().waits_for().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      late.set(0);
      done.wait_for(0);
    }
    const std::string said = ::testing::internal::GetCapturedStderr();
    const std::uint64_t address = late.address();
    EXPECT_THAT(said, HasSubstr("a queue has waited for 0.02 s and waits on: "));
    EXPECT_THAT(said, HasSubstr(std::vformat(wait.said, std::make_format_args(address))));
    EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
  }
}

TEST_F(Aql, AQueueWithoutPatienceWaitsInSilence) {
  TestSignal late(1);
  TestSignal done(1);
  ::testing::internal::CaptureStderr();
  {
    Ring ring(numbering().device(), 64, 0, {.patience = std::chrono::milliseconds(0)});
    ring.push(barrier_of(PacketType::barrier_and, {late.address()}, done.address()));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    late.set(0);
    done.wait_for(0);
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

// A wait keeps no core busy: what it costs is a few looks a millisecond.
TEST_F(Aql, AQueueThatWaitsCostsLittle) {
  TestSignal late(1);
  TestSignal done(1);
  Ring ring(numbering().device());
  ring.push(barrier_of(PacketType::barrier_and, {late.address()}, done.address()));
  while (ring.queue().waits_for().empty()) std::this_thread::yield();
  EXPECT_LT(tests::idle_cost(0.2), 0.2);
  late.set(0);
  done.wait_for(0);
}

struct Fault {
  const char* name;
  queues::RawPacket packet;
  QueueError error;
  const char* said;
};

queues::RawPacket changed(const DispatchPacket& packet) { return std::bit_cast<queues::RawPacket>(packet); }

// Each stops its queue: the inactive signal says why, stderr says it in words, and nothing behind it runs.
TEST_F(Aql, WhatIsWrongStopsTheQueue) {
  const CodeInMemory& code = numbering();
  Buffer<std::uint32_t> out(64, 0);
  Buffer<std::uint64_t> kernarg(1, out.address());
  Buffer<std::uint64_t> wild(1, 0x1000);
  const auto with = [&](auto change) {
    DispatchPacket packet = dispatch_of(code, kernarg.address(), 0);
    change(packet);
    return changed(packet);
  };
  const std::array faults = {
      Fault{"dimensions", with([](auto& packet) { packet.setup = 0; }), QueueError::dimensions, "0 dimensions"},
      Fault{"empty", with([](auto& packet) { packet.grid[0] = 0; }), QueueError::dimensions, "neither may be 0"},
      Fault{"group", with([](auto& packet) { packet.workgroup_size = {512, 4, 1}; }), QueueError::workgroup_size,
            "2048 work-items a workgroup; gfx950 has up to 1024"},
      Fault{"lds", with([](auto& packet) { packet.group_bytes = 170000; }), QueueError::group_memory,
            "170000 bytes of LDS"},
      Fault{"code", with([](auto& packet) { packet.kernel_object = 64; }), QueueError::code,
            "0x40 lies in none of the"},
      Fault{"unaligned", with([](auto& packet) { packet.kernel_object += 8; }), QueueError::code, "64 aligned bytes"},
      Fault{"kernarg", with([](auto& packet) { packet.kernarg = 0x10; }), QueueError::memory_violation,
            "kernarg segment of 8 bytes at 0x10"},
      Fault{"address", with([&](auto& packet) { packet.kernarg = wild.address(); }), QueueError::memory_violation,
            "writes 4 bytes at 0x1000"},
      Fault{"agent", with([](auto& packet) { packet.header = 4; }), QueueError::unsupported_packet, "agent dispatch"},
      Fault{"type", with([](auto& packet) { packet.header = 9; }), QueueError::unsupported_packet,
            "a packet of type 9"},
      Fault{"vendor", {std::uint64_t{0x50000}}, QueueError::vendor_packet, "a vendor packet of format 5"},
      Fault{"pm4",
            {std::uint64_t{0x10000} | (std::uint64_t{0xc0001000} << 32)},
            QueueError::vendor_packet,
            "begins with 0xc0001000"},
  };
  for (const Fault& fault : faults) {
    SCOPED_TRACE(fault.name);
    Ring ring(code.device());
    TestSignal behind(1);
    ::testing::internal::CaptureStderr();
    ring.push(fault.packet);
    ring.push(barrier_of(PacketType::barrier_and, {}, behind.address()));
    ring.inactive().wait_for(static_cast<std::int64_t>(fault.error));
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr(fault.said));
    EXPECT_EQ(behind.value(), 1);
    EXPECT_EQ(ring.read_index(), 0U);
  }
  Process::instance().take_reports(1 << 20);
}

// A runtime that knows exceptions gave an address for the reason.
TEST_F(Aql, TheReasonIsAnExceptionsBitWhereOneIsAskedFor) {
  TestSignal reason(0);
  Ring ring(numbering().device(), 64, reason.address() + offsetof(queues::Signal, value));
  ::testing::internal::CaptureStderr();
  DispatchPacket packet = dispatch_of(numbering(), 0, 0);
  packet.kernel_object = 64;
  ring.push(packet);
  constexpr int code_invalid = 18;  // HSA_DBG_EC_QUEUE_PACKET_DISPATCH_CODE_INVALID
  reason.wait_for(std::int64_t{1} << (code_invalid - 1));
  EXPECT_EQ(ring.inactive().value(), 0);
  ::testing::internal::GetCapturedStderr();
}

// An INDIRECT_BUFFER of NOP and ACQUIRE_MEM, as the runtime sends after it loaded a module.
TEST_F(Aql, Pm4InvalidatesWhatWasDecoded) {
  const CodeInMemory code(KernelSource{.body = number_work_items});
  Ring ring(code.device());
  Buffer<std::uint32_t> out(64, 0);
  Buffer<std::uint64_t> kernarg(1, out.address());
  TestSignal first(1);
  ring.push(dispatch_of(code, kernarg.address(), first.address()));
  first.wait_for(0);
  ASSERT_EQ(out[0], 7U);

  // "v_add_u32 v1, 7, v1" becomes "v_add_u32 v1, 9, v1".
  constexpr std::uint32_t add_seven = 0x68020287;
  auto* words = host_pointer<std::uint32_t>(code.entry());
  const auto* const end = words + 32;
  words = std::find(words, host_pointer<std::uint32_t>(code.entry()) + 32, add_seven);
  ASSERT_NE(words, end);
  *words += 2;
  Buffer<std::uint32_t> commands(9, 0);
  commands[0] = 0xc0001000;  // NOP of one dword
  commands[2] = 0xc0055800;  // ACQUIRE_MEM of six
  queues::Pm4Packet packet{.format = 1,
                           .command = {0xc0023f00, static_cast<std::uint32_t>(commands.address()),
                                       static_cast<std::uint32_t>(commands.address() >> 32), 9}};
  ring.push(packet);
  TestSignal second(1);
  ring.push(dispatch_of(code, kernarg.address(), second.address()));
  second.wait_for(0);
  EXPECT_EQ(out[0], 9U);
}

// out[work-item] = in[work-item], as ROCr's copy kernels do it: of the flat load they await one counter of two.
constexpr const char* copy_as_rocr = R"(
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v0, 2, v0
  s_waitcnt lgkmcnt(0)
  v_mov_b32 v3, s5
  v_add_co_u32 v2, vcc, s4, v0
  v_addc_co_u32 v3, vcc, 0, v3, vcc
  v_mov_b32 v5, s7
  v_add_co_u32 v4, vcc, s6, v0
  v_addc_co_u32 v5, vcc, 0, v5, vcc
  flat_load_dword v1, v[2:3]
  s_waitcnt vmcnt(0)
  flat_store_dword v[4:5], v1)";

// Executable memory with a kernel's code 256 bytes behind a descriptor of the same registers, which tells no sizes.
class KernelOfRuntime {
 public:
  // A kernel of ROCm 7.2, or with the header of ROCr's kernels for earlier targets.
  KernelOfRuntime(const CodeInMemory& code, bool old_header)
      : memory_(DeviceMemory::instance().allocate(bytes, MemoryKind::code, 0)) {
    constexpr std::uint32_t code_offset = 256;
    std::array<std::uint32_t, 16> header{};
    std::memcpy(header.data(), host_pointer(code.descriptor()), sizeof header);
    for (std::size_t i = 0; i < 11; ++i) header[i] = 0;
    header[4] = code_offset;
    if (old_header) {
      header[0] = header[1] = 1;
      header[2] = 0x00090001;
    }
    std::memcpy(memory_, header.data(), sizeof header);
    std::memcpy(static_cast<std::byte*>(memory_) + code_offset, host_pointer(code.entry()), code_offset);
    queues::CodeMap::instance().add(address(), bytes, code.device());
  }
  ~KernelOfRuntime() {
    queues::CodeMap::instance().remove(address());
    DeviceMemory::instance().free(memory_);
  }
  KernelOfRuntime(const KernelOfRuntime&) = delete;
  KernelOfRuntime& operator=(const KernelOfRuntime&) = delete;
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(memory_); }

 private:
  static constexpr std::size_t bytes = 4096;
  void* memory_;
};

// Checks and late arrivals are for the program's kernels.
TEST_F(Aql, TheRuntimesOwnKernelsAreNotChecked) {
  const CodeInMemory code(KernelSource{.body = copy_as_rocr});
  const Settings usual = Process::instance().settings();
  Settings strict = usual;
  strict.checks = all_checks;
  strict.arrival = Arrival::late;
  Process::instance().set_settings(strict);
  Buffer<std::uint32_t> in(64, 5);
  Buffer<std::uint32_t> out(64, 0);
  Buffer<std::uint64_t> kernarg(2, in.address());
  kernarg[1] = out.address();
  const auto completes = [&](std::uint64_t kernel_object) {
    Ring ring(code.device());
    TestSignal done(1);
    DispatchPacket packet = dispatch_of(code, kernarg.address(), done.address());
    packet.kernel_object = kernel_object;
    ring.push(packet);
    for (int i = 0; i < 10'000 && done.value() != 0 && ring.inactive().value() == 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return done.value() == 0;
  };
  for (const bool old_header : {false, true}) {
    for (std::uint32_t i = 0; i < 64; ++i) out[i] = 0;
    const KernelOfRuntime kernel(code, old_header);
    EXPECT_TRUE(completes(kernel.address()));
    for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], 5U) << i;
    EXPECT_EQ(Process::instance().take_reports(1 << 20), "");
  }
  // The same code in a program's kernel.
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(completes(code.descriptor()));
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("no s_waitcnt vmcnt(0) lgkmcnt(0) since"));
  EXPECT_THAT(said, HasSubstr("hazards: 0 wait states after 'v_add_co_u32"));
  Process::instance().set_settings(usual);
  Process::instance().take_reports(1 << 20);
}

TEST_F(Aql, FreedCodeIsForgotten) {
  const CodeInMemory code(KernelSource{.body = number_work_items});
  queues::CodeMap::instance().remove(code.base());
  Ring ring(code.device());
  ::testing::internal::CaptureStderr();
  ring.push(dispatch_of(code, 0, 0));
  ring.inactive().wait_for(static_cast<std::int64_t>(QueueError::code));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("pieces of executable memory"));
}

}  // namespace
}  // namespace wavejit::simgpu::testing
