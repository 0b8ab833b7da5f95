// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a HIP program gets that asks for what simulated GPUs do not do: never a hang, never a crash without a line.
//
//   limits fork launch|copy|allocate|leave     a child of a process that uses GPUs
//   limits share                               handles for other processes
//   limits memory <bytes>                      where the address space is limited
#include <hip/hip_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

void check(hipError_t status, const char* call, int line) {
  if (status == hipSuccess) return;
  static_cast<void>(std::fprintf(stderr, "%d: %s: %s\n", line, call, hipGetErrorName(status)));
  std::exit(1);
}
#define CHECK(call) check((call), #call, __LINE__)

void expect(bool is_true, const std::string& what) {
  if (is_true) return;
  static_cast<void>(std::fprintf(stderr, "not true: %s\n", what.c_str()));
  std::exit(1);
}

constexpr std::size_t bytes = 100'000;

struct Buffers {
  std::uint8_t* device = nullptr;
  std::uint8_t* host = nullptr;
};

// A copy by an engine and a fill by a kernel, both ways.
void work(const Buffers& buffers) {
  std::memset(buffers.host, 3, bytes);
  CHECK(hipMemcpy(buffers.device, buffers.host, bytes, hipMemcpyHostToDevice));
  CHECK(hipMemset(buffers.device, 7, bytes / 2));
  CHECK(hipMemcpy(buffers.host, buffers.device, bytes, hipMemcpyDeviceToHost));
  expect(buffers.host[0] == 7 && buffers.host[bytes - 1] == 3, "the bytes that came back");
}

int in_child(const std::string& what, const Buffers& buffers) {
  if (what == "leave") return 0;
  void* fresh = nullptr;
  if (what == "allocate") return hipMalloc(&fresh, std::size_t{64} << 20) == hipSuccess ? 2 : 3;
  if (what == "copy")
    return hipMemcpy(buffers.host, buffers.device, bytes, hipMemcpyDeviceToHost) == hipSuccess ? 2 : 3;
  const bool done = hipMemset(buffers.device, 1, bytes) == hipSuccess && hipDeviceSynchronize() == hipSuccess;
  return done ? 2 : 3;
}

int fork_a_child(const std::string& what) {
  Buffers buffers;
  CHECK(hipMalloc(reinterpret_cast<void**>(&buffers.device), bytes));
  CHECK(hipHostMalloc(reinterpret_cast<void**>(&buffers.host), bytes));
  work(buffers);
  const pid_t child = ::fork();
  if (child == 0) std::exit(in_child(what, buffers));
  int status = 0;
  expect(::waitpid(child, &status, 0) == child, "waitpid");
  static_cast<void>(std::printf("child: %s %d\n", WIFEXITED(status) ? "left with" : "ended by signal",
                                WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status)));
  work(buffers);
  static_cast<void>(std::printf("the parent goes on\n"));
  return 0;
}

// Memory without an address may be exported as a file, which names it in this process alone.
int share_file() {
  hipMemAllocationProp properties{};
  properties.type = hipMemAllocationTypePinned;
  properties.requestedHandleType = hipMemHandleTypePosixFileDescriptor;
  properties.location = {hipMemLocationTypeDevice, 0};
  std::size_t granule = 0;
  CHECK(hipMemGetAllocationGranularity(&granule, &properties, hipMemAllocationGranularityMinimum));
  hipMemGenericAllocationHandle_t memory{};
  CHECK(hipMemCreate(&memory, granule, &properties, 0));
  int file = -1;
  const hipError_t exported = hipMemExportToShareableHandle(&file, memory, hipMemHandleTypePosixFileDescriptor, 0);
  static_cast<void>(std::printf("hipMemExportToShareableHandle: %s\n", hipGetErrorName(exported)));
  hipMemGenericAllocationHandle_t again{};
  const hipError_t imported = hipMemImportFromShareableHandle(
      &again, std::bit_cast<void*>(static_cast<std::intptr_t>(file)), hipMemHandleTypePosixFileDescriptor);
  static_cast<void>(std::printf("hipMemImportFromShareableHandle: %s\n", hipGetErrorName(imported)));
  CHECK(hipMemRelease(memory));
  return 0;
}

int share() {
  std::uint8_t* device = nullptr;
  CHECK(hipMalloc(reinterpret_cast<void**>(&device), bytes));
  hipIpcMemHandle_t memory{};
  const hipError_t got = hipIpcGetMemHandle(&memory, device);
  static_cast<void>(std::printf("hipIpcGetMemHandle: %s\n", hipGetErrorName(got)));
  std::memset(&memory, 0x5a, sizeof memory);
  void* opened = nullptr;
  const hipError_t open = hipIpcOpenMemHandle(&opened, memory, hipIpcMemLazyEnablePeerAccess);
  static_cast<void>(std::printf("hipIpcOpenMemHandle: %s\n", hipGetErrorName(open)));
  hipEvent_t event = nullptr;
  CHECK(hipEventCreateWithFlags(&event, hipEventInterprocess | hipEventDisableTiming));
  hipIpcEventHandle_t handle{};
  static_cast<void>(std::printf("hipIpcGetEventHandle: %s\n", hipGetErrorName(hipIpcGetEventHandle(&handle, event))));
  expect(got != hipSuccess && open != hipSuccess, "handles of memory are refused");
  return share_file();
}

int fill_memory(std::size_t wanted) {
  void* device = nullptr;
  const hipError_t status = hipMalloc(&device, wanted);
  static_cast<void>(std::printf("hipMalloc of %zu bytes: %s\n", wanted, hipGetErrorName(status)));
  if (status != hipSuccess) return 3;
  CHECK(hipMemset(device, 1, 4096));
  CHECK(hipDeviceSynchronize());
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + count);
  if (words.size() == 2 && words[0] == "fork") return fork_a_child(words[1]);
  if (words.size() == 1 && words[0] == "share") return share();
  if (words.size() == 2 && words[0] == "memory") return fill_memory(std::stoull(words[1]));
  static_cast<void>(std::fprintf(stderr, "limits fork launch|copy|allocate|leave, share, memory <bytes>\n"));
  return 2;
}
