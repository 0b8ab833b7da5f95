// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/thunk/child.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <string_view>

#include "simgpu/machine/allocations/memory.h"

namespace wavejit::simgpu::thunk {
namespace {

constexpr std::size_t doorbell_page = 4096;
constexpr std::string_view line =
    "wavejit simulated GPU: this process was forked from one that uses GPUs, and they belong to that one: fork before "
    "the first call of HIP, or use GPUs after exec\n";

std::atomic<bool> is_child = false;
std::atomic<bool> has_said = false;
std::atomic<std::uint64_t> doorbells = 0;
struct sigaction earlier = {};

// Only what a signal handler may call.
void say() {
  if (has_said.exchange(true)) return;
  static_cast<void>(!::write(STDERR_FILENO, line.data(), line.size()));
}

void at_fault(int /*signal*/, siginfo_t* info, void* /*context*/) {
  if (reinterpret_cast<std::uint64_t>(info->si_addr) - doorbells < doorbell_page) end_child();
  ::sigaction(SIGSEGV, &earlier, nullptr);  // and the instruction faults again
}

void after_fork() {
  is_child = true;
  if (doorbells == 0) return;
  ::mprotect(host_pointer<void>(doorbells), doorbell_page, PROT_NONE);
  struct sigaction ours = {};
  ours.sa_sigaction = at_fault;
  ours.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &ours, &earlier);
}

}  // namespace

void watch_for_forks() {
  static const int watches = ::pthread_atfork(nullptr, nullptr, after_fork);
  static_cast<void>(watches);
}

bool in_child() { return is_child; }

KmtStatus refuse_in_child() {
  say();
  return KmtStatus::not_opened;
}

void end_child() {
  say();
  std::abort();
}

std::uint64_t doorbell_place() {
  static const std::uint64_t place = [] {
    void* const memory = ::mmap(nullptr, doorbell_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    doorbells = memory == MAP_FAILED ? 0 : reinterpret_cast<std::uint64_t>(memory);
    return doorbells.load();
  }();
  return place;
}

}  // namespace wavejit::simgpu::thunk
