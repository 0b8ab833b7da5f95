// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/queues/sdma_queue.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <format>

#include "simgpu/front_ends/queues/sdma_packets.h"
#include "simgpu/front_ends/queues/sdma_run.h"
#include "simgpu/machine/allocations/memory.h"
#include "simgpu/process/ledger.h"

namespace wavejit::simgpu::queues {
namespace {

constexpr std::uint64_t dword = 4;

std::uint64_t pointer_at(std::uint64_t pointer) {
  return std::atomic_ref(*host_pointer<std::uint64_t>(pointer)).load(std::memory_order_acquire);
}

}  // namespace

SdmaQueue::SdmaQueue(const SdmaPlace& place, RaiseEvent raise)
    : place_(place), raise_(raise), thread_(place.config, Doorbell::is_silent) {
  thread_.start([this] { return !failed_ && take_packet(); });
}

// One packet; false when there is none.
bool SdmaQueue::take_packet() {
  const std::uint64_t read = pointer_at(place_.read_pointer);
  const std::uint64_t write = pointer_at(place_.write_pointer);
  if (read == write) return false;
  const std::uint64_t there = write - read;
  if (there > place_.bytes || write % dword != 0) {
    fail(std::format(
        "its write pointer is {:#x} and its read pointer {:#x}; they are whole dwords, at most {} bytes apart", write,
        read, place_.bytes));
    return false;
  }
  // Packets may lie around the ring's end.
  std::array<std::uint32_t, longest_sdma_packet> words{};
  const std::uint64_t dwords = std::min<std::uint64_t>(there / dword, words.size());
  for (std::uint64_t i = 0; i < dwords; ++i)
    std::memcpy(&words[i], host_pointer(place_.ring + ((read + (i * dword)) % place_.bytes)), dword);
  const auto packet = read_sdma(std::span(words).first(dwords), place_.layout);
  std::string problem = packet ? std::string() : packet.error();
  if (packet && packet->dwords * dword > there)
    problem = std::format("NOP (0): {} dwords, of which the queue holds {}", packet->dwords, there / dword);
  if (problem.empty()) {
    problem = run_sdma(packet->command, thread_, {.raise = raise_, .clock = place_.clock});
    if (!problem.empty()) problem = std::format("{}: {}", packet->name, problem);
  }
  if (!problem.empty()) {
    fail(std::format("the packet at byte {:#x} of the ring ({:#010x}): {}", read % place_.bytes, words[0], problem));
    return false;
  }
  if (thread_.stops()) return false;
  std::atomic_ref(*host_pointer<std::uint64_t>(place_.read_pointer))
      .store(read + (packet->dwords * dword), std::memory_order_release);
  return true;
}

// The queue stops for good.
void SdmaQueue::fail(const std::string& text) {
  failed_ = true;
  const std::string line = "a copy engine's queue stopped: " + text;
  print({.code = 1, .text = line});
  Ledger::instance().found({}, "packet", line);
  Ledger::instance().publish(false);
  if (place_.stopped) place_.stopped();
}

}  // namespace wavejit::simgpu::queues
