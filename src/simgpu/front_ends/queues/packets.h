// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What AMD's runtime and a GPU's packet processor write for each other: packets, signals, queues. Layouts: HSA runtime
// specification 1.2, sections 2.8 and 2.9; amd_hsa_queue.h, amd_hsa_signal.h and hsa_ext_amd.h of ROCm 7.2.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace wavejit::simgpu::queues {

inline constexpr std::size_t packet_bytes = 64;
using RawPacket = std::array<std::uint64_t, packet_bytes / 8>;

enum class PacketType : std::uint8_t {
  vendor = 0,
  invalid = 1,
  kernel_dispatch = 2,
  barrier_and = 3,
  agent_dispatch = 4,
  barrier_or = 5,
};

// Bits 7..0 of a packet's header.
constexpr PacketType type_of(std::uint16_t header) { return static_cast<PacketType>(header & 0xff); }

// Bit 8: the packet waits for all before it in its queue.
constexpr bool has_barrier_bit(std::uint16_t header) { return (header & 0x100) != 0; }

// Bits 23..16 of a vendor packet's first word.
enum class VendorFormat : std::uint8_t { pm4_indirect_buffer = 1, barrier_value = 2 };

struct BarrierPacket {
  std::uint16_t header = 0;
  std::array<std::uint16_t, 3> reserved0{};
  std::array<std::uint64_t, 5> dependencies{};  // signals; 0: none
  std::uint64_t reserved1 = 0;
  std::uint64_t completion_signal = 0;
};
static_assert(sizeof(BarrierPacket) == packet_bytes);

// hsa_amd_barrier_value_packet_t
struct BarrierValuePacket {
  std::uint16_t header = 0;
  std::uint8_t format = 0;
  std::uint8_t reserved0 = 0;
  std::uint32_t reserved1 = 0;
  std::uint64_t signal = 0;
  std::int64_t value = 0;
  std::int64_t mask = 0;
  std::uint32_t condition = 0;
  std::uint32_t reserved2 = 0;
  std::array<std::uint64_t, 2> reserved3{};
  std::uint64_t completion_signal = 0;
};
static_assert(sizeof(BarrierValuePacket) == packet_bytes);

// A vendor packet that holds PM4: an INDIRECT_BUFFER command with the address and length of more of them.
struct Pm4Packet {
  std::uint16_t header = 0;
  std::uint8_t format = 0;
  std::uint8_t reserved0 = 0;
  std::array<std::uint32_t, 4> command{};
  std::uint32_t dwords_left = 0;
  std::array<std::uint32_t, 8> reserved1{};
  std::uint64_t completion_signal = 0;
};
static_assert(sizeof(Pm4Packet) == packet_bytes);

// amd_signal_t
struct Signal {
  std::int64_t kind = 0;
  std::int64_t value = 0;
  std::uint64_t event_mailbox = 0;
  std::uint32_t event_id = 0;
  std::uint32_t reserved0 = 0;
  std::uint64_t start = 0;  // ticks of the GPU's clock
  std::uint64_t end = 0;
  std::uint64_t queue = 0;
  std::uint64_t reserved1 = 0;
};
static_assert(sizeof(Signal) == 64);

// amd_queue_t, as far as a packet processor looks at it.
struct QueueFields {
  std::uint32_t type = 0;
  std::uint32_t features = 0;
  std::uint64_t ring = 0;
  std::uint64_t doorbell = 0;
  std::uint32_t packets = 0;
  std::uint32_t reserved0 = 0;
  std::uint64_t id = 0;
  std::uint32_t capabilities = 0;
  std::array<std::uint32_t, 3> reserved1{};
  std::uint64_t write_index = 0;
  std::uint32_t group_aperture_high = 0;
  std::uint32_t private_aperture_high = 0;
  std::array<std::uint32_t, 14> reserved2{};
  std::uint64_t read_index = 0;
  std::array<std::uint32_t, 14> reserved3{};
  std::uint64_t inactive_signal = 0;
  std::array<std::uint32_t, 14> reserved4{};
};
static_assert(sizeof(QueueFields) == 256);
static_assert(offsetof(QueueFields, write_index) == 0x38);
static_assert(offsetof(QueueFields, read_index) == 0x80);
static_assert(offsetof(QueueFields, inactive_signal) == 0xc0);

}  // namespace wavejit::simgpu::queues
