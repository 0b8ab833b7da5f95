// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/queues/sdma_run.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <format>
#include <string_view>
#include <variant>

#include "simgpu/machine/allocations/memory.h"

namespace wavejit::simgpu::queues {
namespace {

// "writes 64 bytes at 0x…: 0 bytes behind …". Empty: all of it is memory that the GPU reaches; several allocations may
// follow each other without a gap.
std::string problem_of(std::string_view does, std::uint64_t address, std::uint64_t bytes) {
  const DeviceMemory& memory = DeviceMemory::instance();
  std::uint64_t at = address;
  for (std::uint64_t left = bytes; left != 0;) {
    const Allocation holder = memory.reachable(host_pointer(at));
    if (!holder.holds(at, 1))
      return std::format("{} {} bytes at {:#x}, of which {:#x} is no memory of the GPU: {}", does, bytes, address, at,
                         memory.view()->describe(at));
    if (does == "writes" && !holder.writable)
      return std::format("{} {} bytes at {:#x}, of which {:#x} may only be read", does, bytes, address, at);
    const std::uint64_t here = std::min(left, holder.end() - at);
    at += here;
    left -= here;
  }
  return {};
}

std::string copy(const SdmaCopy& command) {
  if (auto problem = problem_of("reads", command.from, command.bytes); !problem.empty()) return problem;
  if (auto problem = problem_of("writes", command.to, command.bytes); !problem.empty()) return problem;
  auto* const to = host_pointer(command.to);
  const auto* const from = host_pointer(command.from);
  std::memmove(to, from, command.bytes);
  DeviceMemory::instance().define_copy(to, from, command.bytes);
  return {};
}

std::uint64_t row_address(const SdmaSurface& side, std::uint64_t row, std::uint64_t plane, std::uint64_t element) {
  return side.address + ((side.x + ((side.y + row) * side.pitch) + ((side.z + plane) * side.slice)) * element);
}

std::string copy_rectangle(const SdmaRectangle& command) {
  const std::uint64_t element = command.element_bytes;
  const std::uint64_t row_bytes = command.width * element;
  const auto for_each_row = [&](auto function) -> std::string {
    for (std::uint64_t plane = 0; plane < command.depth; ++plane) {
      for (std::uint64_t row = 0; row < command.height; ++row) {
        const SdmaCopy one{.from = row_address(command.from, row, plane, element),
                           .to = row_address(command.to, row, plane, element),
                           .bytes = row_bytes};
        if (std::string problem = function(one); !problem.empty()) return problem;
      }
    }
    return {};
  };
  std::string problem = for_each_row([](const SdmaCopy& one) {
    std::string reads = problem_of("reads", one.from, one.bytes);
    return reads.empty() ? problem_of("writes", one.to, one.bytes) : reads;
  });
  return problem.empty() ? for_each_row(copy) : problem;
}

std::string fill(const SdmaFill& command) {
  if (auto problem = problem_of("writes", command.to, command.bytes); !problem.empty()) return problem;
  auto* const to = host_pointer(command.to);
  if (command.element_bytes == 1) {
    std::memset(to, static_cast<int>(command.value & 0xff), command.bytes);
  } else {
    for (std::uint64_t at = 0; at < command.bytes; at += command.element_bytes)
      std::memcpy(to + at, &command.value, command.element_bytes);
  }
  DeviceMemory::instance().define(to, command.bytes);
  return {};
}

template <typename Value>
void store(std::uint64_t address, Value value) {
  std::atomic_ref(*host_pointer<Value>(address)).store(value, std::memory_order_release);
}
template <typename Value>
Value load(std::uint64_t address) {
  return std::atomic_ref(*host_pointer<Value>(address)).load(std::memory_order_acquire);
}

std::string fence(const SdmaFence& command) {
  if (auto problem = problem_of("writes", command.to, sizeof command.value); !problem.empty()) return problem;
  store(command.to, command.value);
  return {};
}

std::string stamp(const SdmaTimestamp& command, std::uint64_t ticks) {
  if (auto problem = problem_of("writes", command.to, sizeof(std::uint64_t)); !problem.empty()) return problem;
  store(command.to, ticks);
  return {};
}

bool compares(std::uint32_t value, SdmaCompare compare, std::uint32_t reference) {
  switch (compare) {
    case SdmaCompare::always:
      return true;
    case SdmaCompare::less:
      return value < reference;
    case SdmaCompare::less_or_equal:
      return value <= reference;
    case SdmaCompare::equal:
      return value == reference;
    case SdmaCompare::not_equal:
      return value != reference;
    case SdmaCompare::greater_or_equal:
      return value >= reference;
    case SdmaCompare::greater:
      return value > reference;
  }
  return false;
}

// Polls that count their tries wait as those that do not: how long a try takes is not simulated.
std::string poll(const SdmaPoll& command, QueueThread& thread) {
  if (auto problem = problem_of("polls", command.at, sizeof command.mask); !problem.empty()) return problem;
  const auto describe = [&] {
    constexpr std::array<std::string_view, 7> words = {"",           "less than", "at most",  "equal to",
                                                       "other than", "at least",  "more than"};
    return std::format("a copy engine's poll: {:#x} holds {:#x}; masked by {:#x} it must become {} {:#x}", command.at,
                       load<std::uint32_t>(command.at), command.mask, words[static_cast<std::size_t>(command.compare)],
                       command.reference);
  };
  thread.wait_until(describe, [&] {
    return compares(load<std::uint32_t>(command.at) & command.mask, command.compare, command.reference);
  });
  return {};
}

template <typename Value>
Value combine(SdmaAtomicKind kind, Value old, Value operand, Value compare) {
  using Signed = std::make_signed_t<Value>;
  const auto is_less = [](Value a, Value b) { return static_cast<Signed>(a) < static_cast<Signed>(b); };
  switch (kind) {
    case SdmaAtomicKind::swap:
      return operand;
    case SdmaAtomicKind::compare_swap:
      return old == compare ? operand : old;
    case SdmaAtomicKind::add:
      return static_cast<Value>(old + operand);
    case SdmaAtomicKind::subtract:
      return static_cast<Value>(old - operand);
    case SdmaAtomicKind::signed_minimum:
      return is_less(operand, old) ? operand : old;
    case SdmaAtomicKind::unsigned_minimum:
      return std::min(old, operand);
    case SdmaAtomicKind::signed_maximum:
      return is_less(old, operand) ? operand : old;
    case SdmaAtomicKind::unsigned_maximum:
      return std::max(old, operand);
    case SdmaAtomicKind::bits_and:
      return old & operand;
    case SdmaAtomicKind::bits_or:
      return old | operand;
    case SdmaAtomicKind::bits_xor:
      return old ^ operand;
    case SdmaAtomicKind::increment:
      return old >= operand ? Value{0} : static_cast<Value>(old + 1);
    case SdmaAtomicKind::decrement:
      return old == 0 || old > operand ? operand : static_cast<Value>(old - 1);
  }
  return old;
}

template <typename Value>
void change(const SdmaAtomic& command, QueueThread& thread) {
  const auto operand = static_cast<Value>(command.operand);
  const auto compare = static_cast<Value>(command.compare);
  const std::atomic_ref place(*host_pointer<Value>(command.at));
  const auto change_once = [&] {
    Value old = place.load(std::memory_order_acquire);
    while (!place.compare_exchange_weak(old, combine(command.kind, old, operand, compare), std::memory_order_acq_rel)) {
    }
    return old;
  };
  if (command.kind != SdmaAtomicKind::compare_swap || !command.until_equal) {
    change_once();
    return;
  }
  const auto describe = [&] {
    return std::format("a copy engine's compare-and-swap: {:#x} holds {:#x}; it must become {:#x}", command.at,
                       place.load(std::memory_order_acquire), compare);
  };
  thread.wait_until(describe, [&] { return change_once() == compare; });
}

std::string change(const SdmaAtomic& command, QueueThread& thread) {
  if (auto problem = problem_of("changes", command.at, command.bytes); !problem.empty()) return problem;
  if (command.bytes == sizeof(std::uint64_t)) {
    change<std::uint64_t>(command, thread);
  } else {
    change<std::uint32_t>(command, thread);
  }
  return {};
}

template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

}  // namespace

std::string run_sdma(const SdmaCommand& command, QueueThread& thread, const SdmaSurroundings& gpu) {
  return std::visit(Overloaded{
                        [](const SdmaNothing&) { return std::string(); },
                        [](const SdmaCopy& it) { return copy(it); },
                        [](const SdmaRectangle& it) { return copy_rectangle(it); },
                        [](const SdmaFill& it) { return fill(it); },
                        [](const SdmaFence& it) { return fence(it); },
                        [&](const SdmaTrap& it) {
                          if (gpu.raise != nullptr && it.event_id != 0) gpu.raise(it.event_id);
                          return std::string();
                        },
                        [&](const SdmaPoll& it) { return poll(it, thread); },
                        [&](const SdmaAtomic& it) { return change(it, thread); },
                        [&](const SdmaTimestamp& it) { return stamp(it, gpu.clock()); },
                    },
                    command);
}

}  // namespace wavejit::simgpu::queues
