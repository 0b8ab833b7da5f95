// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a launch keeps of what goes wrong in it: the fault that ends it, and the findings of the checks.
#include <algorithm>
#include <iterator>
#include <tuple>

#include "simgpu/machine/launch/launch.h"
#include "simgpu/machine/launch/seats.h"

namespace wavejit::simgpu {
namespace {

// Enough to see a pattern; a kernel that is wrong everywhere must not fill the memory.
constexpr std::size_t most_kept = 4096;
constexpr std::size_t most_reported = 64;

}  // namespace

bool wants_checker(const Settings& settings) { return settings.checks != 0 || settings.arrival != Arrival::early; }

const MemoryView& Launch::memory_now() {
  const DeviceMemory& device = DeviceMemory::instance();
  const MemoryView* latest = latest_memory.load(std::memory_order_acquire);
  if (latest == nullptr) latest = memory.get();
  if (latest->version() == device.version()) return *latest;
  std::shared_ptr<const MemoryView> now = device.view();
  const std::scoped_lock lock(mutex);
  later_memory.push_back(std::move(now));
  latest_memory.store(later_memory.back().get(), std::memory_order_release);
  return *later_memory.back();
}

const Allocation* Launch::find_later(std::uint64_t address, std::uint64_t bytes) {
  const Allocation* found = memory_now().find(address);
  return found != nullptr && found->holds(address, bytes) ? found : nullptr;
}

const Allocation* Launch::find_readable(std::uint64_t address) {
  const Allocation* known = memory->find_readable(address);
  return known != nullptr ? known : memory_now().find_readable(address);
}

const Allocation* Launch::find_host(std::uint64_t address) {
  const FindHostMemory find_host_memory = DeviceMemory::instance().host_finder();
  if (find_host_memory == nullptr) return nullptr;
  const std::scoped_lock lock(mutex);
  for (const Allocation& known : host_memory) {
    if (known.holds(address, 1)) return &known;
  }
  const Allocation found = find_host_memory(address);
  return found.bytes == 0 ? nullptr : &host_memory.emplace_back(found);
}

void Launch::fail(std::uint64_t workgroup, int code, std::string text, std::string json) {
  const std::scoped_lock lock(mutex);
  // Workgroups are handed out in order and all before this one run to their end: the lowest one that fails is the same
  // whatever the number of threads.
  if (workgroup >= failed_workgroup.load(std::memory_order_relaxed)) return;
  failed_workgroup.store(workgroup, std::memory_order_relaxed);
  failure_code = code;
  failure = std::move(text);
  failure_json = std::move(json);
}

bool Launch::wants(std::uint64_t workgroup, Check check, const Instruction* place, const Instruction* source) {
  if (includes(silent_checks, check)) return false;
  const std::scoped_lock lock(mutex);
  if (findings.size() >= most_kept) return false;
  return std::ranges::none_of(findings, [&](const Finding& finding) {
    return finding.place == place && finding.source == source && finding.check == name_of(check) &&
           finding.linear_workgroup <= workgroup;
  });
}

void Launch::add(Finding finding) {
  const std::scoped_lock lock(mutex);
  findings.push_back(std::move(finding));
}

std::vector<Finding> Launch::chosen_findings() {
  const std::scoped_lock lock(mutex);
  std::ranges::stable_sort(findings, {}, &Finding::linear_workgroup);
  std::vector<Finding> chosen;
  for (Finding& finding : findings) {
    if (chosen.size() >= most_reported) break;
    const bool known = std::ranges::any_of(chosen, [&](const Finding& other) {
      return other.place == finding.place && other.source == finding.source && other.check == finding.check;
    });
    if (!known) chosen.push_back(std::move(finding));
  }
  findings.clear();
  return chosen;
}

}  // namespace wavejit::simgpu
