// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What libhsa-runtime64 calls when it was told to take libdtif.so for its kernel driver (HSA_ENABLE_DTIF=1): the
// functions of libhsakmt that work here. Signatures: libhsakmt's hsakmt.h of ROCm 7.2.
#include <cstdint>
#include <numeric>
#include <vector>

#include "simgpu/front_ends/queues/code_map.h"
#include "simgpu/front_ends/queues/signals.h"
#include "simgpu/front_ends/thunk/abi.h"
#include "simgpu/front_ends/thunk/address_space.h"
#include "simgpu/front_ends/thunk/child.h"
#include "simgpu/front_ends/thunk/events.h"
#include "simgpu/front_ends/thunk/images.h"
#include "simgpu/front_ends/thunk/interrupts.h"
#include "simgpu/front_ends/thunk/memory.h"
#include "simgpu/front_ends/thunk/queues.h"
#include "simgpu/front_ends/thunk/runtime_version.h"
#include "simgpu/front_ends/thunk/topology.h"
#include "simgpu/process/ledger.h"

namespace wavejit::simgpu::thunk {
namespace {

using simgpu::queues::clock_now;
using simgpu::queues::CodeMap;

KmtStatus found(bool yes) { return yes ? KmtStatus::success : KmtStatus::invalid_node; }
KmtStatus valid(bool yes) { return yes ? KmtStatus::success : KmtStatus::invalid_handle; }

// Before ROCr looks for its names: one that asks for a name that is not here ends in a call of nothing.
[[gnu::constructor]] void say_at_load() { say_when_unknown(); }

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

KmtStatus hsaKmtOpenKFD() {
  if (in_child()) return refuse_in_child();
  if (!has_address_space()) return KmtStatus::no_memory;
  watch_for_forks();
  CodeMap::instance().set_image_finder(find_image);
  Ledger::instance().set_front("rocr");
  return KmtStatus::success;
}
KmtStatus hsaKmtCloseKFD() { return KmtStatus::success; }

// The first with the virtual-memory interface.
KmtStatus hsaKmtGetVersion(VersionInfo* version) {
  *version = {.major = 1, .minor = 15};
  return KmtStatus::success;
}

KmtStatus hsaKmtAcquireSystemProperties(SystemProperties* properties) {
  *properties = {.nodes = node_count()};
  return KmtStatus::success;
}
KmtStatus hsaKmtReleaseSystemProperties() { return KmtStatus::success; }

KmtStatus hsaKmtGetNodeProperties(std::uint32_t node, NodeProperties* properties) {
  if (device_of(node) != nullptr) before_interrupts_are_cleared();
  return found(describe_node(node, *properties));
}
KmtStatus hsaKmtGetNodeMemoryProperties(std::uint32_t node, std::uint32_t count, MemoryProperties* banks) {
  set_interrupts_again();
  return found(describe_memory(node, {banks, count}));
}
KmtStatus hsaKmtGetNodeCacheProperties(std::uint32_t node, std::uint32_t /*processor*/, std::uint32_t count,
                                       CacheProperties* caches) {
  set_interrupts_again();
  return found(describe_caches(node, {caches, count}));
}
KmtStatus hsaKmtGetNodeIoLinkProperties(std::uint32_t node, std::uint32_t count, IoLinkProperties* links) {
  return found(describe_links(node, {links, count}));
}

KmtStatus hsaKmtCreateEvent(const EventDescriptor* descriptor, bool manual_reset, bool is_set, Event** event) {
  if (in_child()) return refuse_in_child();
  *event = Events::instance().create(*descriptor, manual_reset, is_set);
  return KmtStatus::success;
}
KmtStatus hsaKmtDestroyEvent(Event* event) { return valid(Events::instance().destroy(event)); }
KmtStatus hsaKmtSetEvent(Event* event) { return valid(event != nullptr && Events::instance().set(event->id)); }
KmtStatus hsaKmtResetEvent(Event* event) { return valid(event != nullptr && Events::instance().reset(event->id)); }
KmtStatus hsaKmtWaitOnEvent(Event* event, std::uint32_t milliseconds) {
  if (in_child()) return refuse_in_child();
  return Events::instance().wait({&event, 1}, false, milliseconds);
}
KmtStatus hsaKmtWaitOnEvent_Ext(Event* event, std::uint32_t milliseconds, std::uint64_t* age) {
  if (in_child()) return refuse_in_child();
  Queues::instance().wake_copies();
  return Events::instance().wait({&event, 1}, false, milliseconds, age);
}
KmtStatus hsaKmtWaitOnMultipleEvents(Event** events, std::uint32_t count, bool all, std::uint32_t milliseconds) {
  if (in_child()) return refuse_in_child();
  return Events::instance().wait({events, count}, all, milliseconds);
}
KmtStatus hsaKmtWaitOnMultipleEvents_Ext(Event** events, std::uint32_t count, bool all, std::uint32_t milliseconds,
                                         std::uint64_t* ages) {
  if (in_child()) return refuse_in_child();
  return Events::instance().wait({events, count}, all, milliseconds, ages);
}

KmtStatus hsaKmtCreateQueue(std::uint32_t node, QueueType type, std::uint32_t /*percentage*/, std::int32_t /*priority*/,
                            void* ring, std::uint64_t bytes, Event* event, QueueResource* resource) {
  if (in_child()) return refuse_in_child();
  return Queues::instance().create(node, type, ring, bytes, *resource, event);
}
KmtStatus hsaKmtCreateQueueExt(std::uint32_t node, QueueType type, std::uint32_t /*percentage*/,
                               std::int32_t /*priority*/, std::uint32_t /*engine*/, void* ring, std::uint64_t bytes,
                               Event* event, QueueResource* resource) {
  if (in_child()) return refuse_in_child();
  return Queues::instance().create(node, type, ring, bytes, *resource, event);
}
// Priorities and percentages change nothing here: every queue has a thread of its own.
KmtStatus hsaKmtUpdateQueue(std::uint64_t id) { return valid(Queues::instance().exists(id)); }
KmtStatus hsaKmtSetQueueCUMask(std::uint64_t id) { return valid(Queues::instance().exists(id)); }
// A child's queues have no threads to be waited for.
KmtStatus hsaKmtDestroyQueue(std::uint64_t id) {
  return in_child() ? KmtStatus::success : Queues::instance().destroy(id);
}
KmtStatus hsaKmtQueueRingDoorbell(std::uint64_t id, std::uint64_t /*value*/) {
  if (in_child()) end_child();
  return valid(Queues::instance().ring_doorbell(id));
}

// Hardware's barriers among workgroups, which nothing compiled for these targets uses: the queue becomes a cooperative
// one.
KmtStatus hsaKmtAllocQueueGWS(std::uint64_t id, std::uint32_t count, std::uint32_t* first) {
  if (first != nullptr) *first = 0;
  return count == 0 ? KmtStatus::success : valid(Queues::instance().make_cooperative(id));
}

KmtStatus hsaKmtSetMemoryPolicy() { return KmtStatus::success; }
KmtStatus hsaKmtAllocMemory(std::uint32_t node, std::uint64_t bytes, std::uint32_t flags, void** address) {
  if (in_child()) return refuse_in_child();
  return Memory::instance().allocate(node, bytes, 0, flags, address);
}
KmtStatus hsaKmtAllocMemoryAlign(std::uint32_t node, std::uint64_t bytes, std::uint64_t alignment, std::uint32_t flags,
                                 void** address) {
  if (in_child()) return refuse_in_child();
  return Memory::instance().allocate(node, bytes, alignment, flags, address);
}
KmtStatus hsaKmtFreeMemory(void* address, std::uint64_t /*bytes*/) { return Memory::instance().free(address); }
KmtStatus hsaKmtAvailableMemory(std::uint32_t node, std::uint64_t* bytes) {
  *bytes = Memory::instance().available(node);
  return KmtStatus::success;
}
KmtStatus hsaKmtRegisterMemory(void* address, std::uint64_t bytes) {
  if (in_child()) return refuse_in_child();
  Memory::instance().register_host(address, bytes);
  return KmtStatus::success;
}
KmtStatus hsaKmtRegisterMemoryToNodes(void* address, std::uint64_t bytes, std::uint64_t /*count*/,
                                      const std::uint32_t* /*nodes*/) {
  return hsaKmtRegisterMemory(address, bytes);
}
KmtStatus hsaKmtRegisterMemoryWithFlags(void* address, std::uint64_t bytes, std::uint32_t /*flags*/) {
  return hsaKmtRegisterMemory(address, bytes);
}
KmtStatus hsaKmtDeregisterMemory(void* address) {
  return Memory::instance().deregister_host(address) ? KmtStatus::success : KmtStatus::memory_not_registered;
}
// Device addresses are host addresses.
KmtStatus hsaKmtMapMemoryToGPUNodes(void* address, std::uint64_t /*bytes*/, std::uint64_t* device_address,
                                    std::uint32_t /*flags*/, std::uint64_t count, const std::uint32_t* nodes) {
  if (in_child()) return refuse_in_child();
  if (device_address != nullptr) *device_address = reinterpret_cast<std::uint64_t>(address);
  return valid(Memory::instance().map(address, {nodes, count}));
}
KmtStatus hsaKmtMapMemoryToGPU(void* address, std::uint64_t bytes, std::uint64_t* device_address) {
  std::vector<std::uint32_t> nodes(node_count() - 1);
  std::iota(nodes.begin(), nodes.end(), 1);
  return hsaKmtMapMemoryToGPUNodes(address, bytes, device_address, 0, nodes.size(), nodes.data());
}
KmtStatus hsaKmtUnmapMemoryToGPU(void* address) { return valid(Memory::instance().unmap(address)); }
KmtStatus hsaKmtQueryPointerInfo(const void* pointer, PointerInfo* info) {
  return Memory::instance().describe(pointer, *info) ? KmtStatus::success : KmtStatus::error;
}
KmtStatus hsaKmtSetMemoryUserData(const void* pointer, void* user_data) {
  return valid(Memory::instance().set_user_data(pointer, user_data));
}
// What a range of host memory is asked for, it gets: all of it is memory that every GPU reaches.
KmtStatus hsaKmtSVMSetAttr(void* start, std::uint64_t bytes, unsigned /*count*/, const SvmAttribute* /*attributes*/) {
  return hsaKmtRegisterMemory(start, bytes);
}
KmtStatus hsaKmtGetXNACKMode(std::int32_t* enabled) {
  *enabled = 0;
  return KmtStatus::success;
}
KmtStatus hsaKmtSetXNACKMode(std::int32_t enable) {
  return enable == 0 ? KmtStatus::success : KmtStatus::not_supported;
}

KmtStatus hsaKmtGetClockCounters(std::uint32_t /*node*/, ClockCounters* counters) {
  set_interrupts_again();
  const std::chrono::nanoseconds now = std::chrono::steady_clock::now().time_since_epoch();
  const auto host = static_cast<std::uint64_t>(now.count());
  *counters = {.gpu = clock_now(), .cpu = host, .system = host, .system_hz = 1'000'000'000};
  return KmtStatus::success;
}

// The list of loaded code objects that ROCr keeps for debuggers.
KmtStatus hsaKmtRuntimeEnable(const void* debug_list, bool /*set_up_traps*/) {
  set_debug_list(debug_list);
  return KmtStatus::success;
}
KmtStatus hsaKmtRuntimeDisable() {
  set_debug_list(nullptr);
  return KmtStatus::success;
}
KmtStatus hsaKmtGetRuntimeCapabilities(std::uint32_t* capabilities) {
  *capabilities = 0;
  return KmtStatus::success;
}
KmtStatus hsaKmtModelEnabled(bool* enabled) {
  *enabled = false;
  return KmtStatus::success;
}
// Handlers of traps are not run (docs/simulated-gpu.md); images are not simulated.
KmtStatus hsaKmtSetTrapHandler() { return KmtStatus::success; }
KmtStatus hsaKmtGetTileConfig() { return KmtStatus::success; }
// Something that is not null: ROCr asks for no more of it.
void* DtifCreate(const char* /*client*/) {
  static char instance = 0;
  forget_interrupts();
  return say_when_unknown() ? &instance : nullptr;
}
void DtifDestroy() {}

}  // extern "C"
#pragma GCC visibility pop

}  // namespace wavejit::simgpu::thunk
