// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/queues/aql_queue.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <format>

#include "simgpu/front_ends/queues/code_map.h"
#include "simgpu/front_ends/queues/pm4.h"
#include "simgpu/process/ledger.h"

namespace wavejit::simgpu::queues {
namespace {

std::uint16_t header_of(std::uint64_t* place) {
  // The header is written last, and releases the rest of the packet.
  return std::atomic_ref(*reinterpret_cast<std::uint16_t*>(place)).load(std::memory_order_acquire);
}

// The kernel driver's codes for exceptions of a queue (HSA_DBG_TRAP_EXCEPTION_CODE of libhsakmt), as bits.
std::uint64_t exception_bit(QueueError error) {
  const auto bit = [](unsigned code) { return std::uint64_t{1} << (code - 1); };
  switch (error) {
    case QueueError::none:
      return 0;
    case QueueError::dimensions:
      return bit(16);
    case QueueError::group_memory:
      return bit(17);
    case QueueError::code:
      return bit(18);
    case QueueError::unsupported_packet:
      return bit(20);
    case QueueError::workgroup_size:
      return bit(21);
    case QueueError::registers:
      return bit(22);
    case QueueError::vendor_packet:
      return bit(23);
    case QueueError::memory_violation:
      // The error of the aperture. The one of memory (5) leaves it to the driver's fault event to end the program, and
      // no such event comes where interrupts are off.
      return bit(6);
    case QueueError::illegal_instruction:
      return bit(4);
    case QueueError::exception:
      return bit(2);
  }
  return bit(2);
}

}  // namespace

AqlQueue::AqlQueue(Device& device, const QueuePlace& place, RaiseEvent raise)
    : device_(device),
      place_(place),
      raise_(raise),
      time_(place.config.simulated_time, place.config.event_cost),
      thread_(place.config) {
  thread_.start([this] {
    const std::scoped_lock lock(taking_);
    return !failed_ && take_packets();
  });
}

QueueFields* AqlQueue::fields() const { return host_pointer<QueueFields>(place_.fields); }

std::uint64_t AqlQueue::written_packets() const {
  return std::atomic_ref(fields()->write_index).load(std::memory_order_acquire);
}

// Null when there is none.
RawPacket* AqlQueue::next_packet() const {
  const std::uint64_t read = std::atomic_ref(fields()->read_index).load(std::memory_order_relaxed);
  if (read >= written_packets()) return nullptr;
  auto* const place = host_pointer<std::uint64_t>(place_.ring + (read % place_.packets * packet_bytes));
  if (type_of(header_of(place)) == PacketType::invalid) return nullptr;  // claimed, not written yet
  return reinterpret_cast<RawPacket*>(place);
}

// The runtime's own kernels copy and fill small memory, a packet each, and a program waits for each of them without a
// pause. They are over sooner than a thread is awake, and so whoever rings the doorbell runs them. Those that wait for
// memory are not among them: whoever rings may be the one who would write it.
bool AqlQueue::is_soon_over(const RawPacket& packet) const {
  switch (type_of(static_cast<std::uint16_t>(packet[0]))) {
    case PacketType::kernel_dispatch: {
      const auto dispatch = std::bit_cast<DispatchPacket>(packet);
      constexpr std::uint64_t most_work_items = 1 << 15;
      if (std::uint64_t{dispatch.grid[0]} * dispatch.grid[1] * dispatch.grid[2] > most_work_items) return false;
      const std::uint64_t object = dispatch.kernel_object;
      const auto code = CodeMap::instance().find(object);
      const auto kernel = code ? (*code)->kernel_at(object) : std::unexpected(code.error());
      return kernel && (*kernel)->is_short;
    }
    case PacketType::barrier_and:
      return std::ranges::all_of(std::bit_cast<BarrierPacket>(packet).dependencies,
                                 [](std::uint64_t signal) { return signal == 0 || value_of(signal) == 0; });
    case PacketType::vendor:
      return static_cast<VendorFormat>(static_cast<std::uint8_t>(packet[0] >> 16)) != VendorFormat::barrier_value ||
             std::bit_cast<BarrierValuePacket>(packet).signal == 0;
    default:
      return false;
  }
}

void AqlQueue::ring_doorbell() {
  time_.rung(written_packets());
  if (const std::unique_lock taking(taking_, std::try_to_lock); taking) {
    const RawPacket* next = nullptr;
    while (!failed_ && (next = next_packet()) != nullptr && is_soon_over(*next) && take_packets()) {
    }
    if (next == nullptr) return;
  }
  thread_.ring();
}

// One packet; false when there is none. Called with the lock.
bool AqlQueue::take_packets() {
  RawPacket* const place = next_packet();
  if (place == nullptr) return false;
  const RawPacket packet = *place;
  const std::uint64_t read = std::atomic_ref(fields()->read_index).load(std::memory_order_relaxed);
  time_.begin(read);
  const Outcome outcome = execute(packet);
  if (thread_.stops()) return false;
  if (outcome.error != QueueError::none) {
    fail(outcome);
    return false;
  }
  std::atomic_ref(*reinterpret_cast<std::uint16_t*>(place))
      .store(static_cast<std::uint16_t>(PacketType::invalid), std::memory_order_relaxed);
  std::atomic_ref(fields()->read_index).store(read + 1, std::memory_order_release);
  return true;
}

AqlQueue::Outcome AqlQueue::execute(const RawPacket& packet) {
  Outcome outcome;
  switch (const auto type = type_of(static_cast<std::uint16_t>(packet[0]))) {
    case PacketType::kernel_dispatch:
      outcome = dispatch(std::bit_cast<DispatchPacket>(packet));
      break;
    case PacketType::barrier_and:
    case PacketType::barrier_or:
      outcome = barrier(std::bit_cast<BarrierPacket>(packet), type == PacketType::barrier_and);
      break;
    case PacketType::vendor:
      outcome = vendor(packet);
      break;
    case PacketType::agent_dispatch:
      return {.error = QueueError::unsupported_packet,
              .text = "an agent dispatch packet: a GPU runs kernel dispatches, no functions of the host"};
    default:
      return {.error = QueueError::unsupported_packet,
              .text = std::format("a packet of type {}; known are vendor (0), kernel dispatch (2), barrier-and (3) "
                                  "and barrier-or (5)",
                                  static_cast<unsigned>(type))};
  }
  if (outcome.error == QueueError::none && !thread_.stops()) {
    const Stamps stamps = time_.end(written_packets());
    complete(std::bit_cast<BarrierPacket>(packet).completion_signal, stamps.start, stamps.end, raise_);
  }
  return outcome;
}

AqlQueue::Outcome AqlQueue::dispatch(const DispatchPacket& packet) {
  const auto code = CodeMap::instance().find(packet.kernel_object);
  if (!code) return {.error = QueueError::code, .text = "a dispatch packet's kernel object " + code.error()};
  const auto kernel = (*code)->kernel_at(packet.kernel_object);
  if (!kernel) return {.error = QueueError::code, .text = kernel.error()};
  const DispatchResult result = device_.dispatch({.packet = packet,
                                                  .code = *code,
                                                  .kernel = *kernel,
                                                  .queue = place_.fields,
                                                  .queue_bytes = sizeof(QueueFields),
                                                  .cooperative = cooperative_,
                                                  .begin = time_.launch_begin(has_barrier_bit(packet.header)),
                                                  .stops = thread_.stop_flag()});
  if (!result.status.ok()) print(result.status);
  if (result.time) time_.ran(*result.time, device_.target().clock_khz, has_barrier_bit(packet.header));
  return {.error = result.error, .text = {}};
}

AqlQueue::Outcome AqlQueue::barrier(const BarrierPacket& packet, bool all) {
  if (all) {
    for (const std::uint64_t signal : packet.dependencies) {
      if (signal == 0) continue;
      const auto describe = [&] {
        return std::format("a barrier-and packet: signal {:#x} is {}; it must become 0", signal, value_of(signal));
      };
      if (!thread_.wait_until(describe, [&] { return value_of(signal) == 0; })) return {};
      time_.waited_for(signal);
    }
    return {};
  }
  const bool has_any = std::ranges::any_of(packet.dependencies, [](std::uint64_t signal) { return signal != 0; });
  if (!has_any) return {};
  const auto describe = [&] {
    std::string text = "a barrier-or packet:";
    for (const std::uint64_t signal : packet.dependencies)
      if (signal != 0) text += std::format(" signal {:#x} is {},", signal, value_of(signal));
    return text + " and one must become 0";
  };
  std::uint64_t met = 0;
  thread_.wait_until(describe, [&] {
    const auto* const found = std::ranges::find_if(
        packet.dependencies, [](std::uint64_t signal) { return signal != 0 && value_of(signal) == 0; });
    met = found == packet.dependencies.end() ? 0 : *found;
    return met != 0;
  });
  time_.waited_for(met);
  return {};
}

AqlQueue::Outcome AqlQueue::vendor(const RawPacket& packet) {
  const auto format = static_cast<std::uint8_t>(packet[0] >> 16);
  switch (static_cast<VendorFormat>(format)) {
    case VendorFormat::barrier_value: {
      const auto barrier = std::bit_cast<BarrierValuePacket>(packet);
      if (barrier.signal == 0) return {};
      if (barrier.condition > static_cast<std::uint32_t>(Condition::greater_or_equal)) {
        return {.error = QueueError::vendor_packet,
                .text = std::format("a barrier-value packet with condition {}; it takes 0 to 3", barrier.condition)};
      }
      const auto describe = [&] {
        constexpr std::array<const char*, 4> conditions = {"equal to", "other than", "less than", "at least"};
        return std::format("a barrier-value packet: signal {:#x} is {}; masked by {:#x} it must become {} {}",
                           barrier.signal, value_of(barrier.signal), static_cast<std::uint64_t>(barrier.mask),
                           conditions[barrier.condition], barrier.value);
      };
      thread_.wait_until(describe, [&] {
        return meets(value_of(barrier.signal) & barrier.mask, static_cast<Condition>(barrier.condition), barrier.value);
      });
      time_.waited_for(barrier.signal);
      return {};
    }
    case VendorFormat::pm4_indirect_buffer: {
      std::string problem = run_pm4(std::bit_cast<Pm4Packet>(packet).command);
      if (problem.empty()) return {};
      return {.error = QueueError::vendor_packet, .text = std::move(problem)};
    }
  }
  return {.error = QueueError::vendor_packet,
          .text = std::format("a vendor packet of format {}; known are 1 (PM4) and 2 (barrier-value)", format)};
}

// The queue stops for good; the runtime hears of it through one of two signals.
void AqlQueue::fail(const Outcome& outcome) {
  failed_ = true;
  time_.stop();
  if (!outcome.text.empty()) {
    const std::string line = "queue stopped: " + outcome.text;
    print({.code = 1, .text = line});
    Ledger::instance().found({}, "packet", line);
  }
  Ledger::instance().publish(false);
  if (place_.error_reason != 0) {
    std::atomic_ref(*host_pointer<std::uint64_t>(place_.error_reason))
        .fetch_or(exception_bit(outcome.error), std::memory_order_acq_rel);
    if (place_.error_event != 0 && raise_ != nullptr) raise_(place_.error_event);
    return;
  }
  const std::uint64_t signal = fields()->inactive_signal;
  if (signal == 0) return;
  set_value(signal, static_cast<std::int64_t>(outcome.error));
  const std::uint32_t event_id = host_pointer<Signal>(signal)->event_id;
  if (event_id != 0 && raise_ != nullptr) raise_(event_id);
}

}  // namespace wavejit::simgpu::queues
