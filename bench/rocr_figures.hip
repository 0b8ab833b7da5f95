// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What AMD's HIP costs on a simulated GPU, one "name value" a line (rocr_figures.py runs this under `wavejit sim`):
//   rocr_figures start          initialises one GPU; memory of the process before the first allocation
//   rocr_figures launch <n>     an empty kernel: the call alone, call and wait, one behind another
//   rocr_figures idle <seconds> processor time of a process that does nothing, and which threads took it
#include <dirent.h>
#include <hip/hip_runtime.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

__global__ void nothing() {}

namespace {

void check(hipError_t error, const char* what) {
  if (error == hipSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, hipGetErrorString(error));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

double microseconds() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// Memory of the process: all of it; what no other process shares; and the compiler that HIP opens when it is
// initialised.
struct Resident {
  double all_mb = 0;
  double private_mb = 0;
  double compiler_mb = 0;
};

Resident resident() {
  Resident sum;
  std::ifstream file("/proc/self/smaps");
  bool is_compiler = false;
  for (std::string line; std::getline(file, line);) {
    char field[64];
    double kilobytes = 0;
    if (std::sscanf(line.c_str(), "%63s %lf kB", field, &kilobytes) != 2 || line.back() != 'B') {
      // A mapping's first line has its file, its last one flags.
      if (line.find('-') < line.find(' '))
        is_compiler = line.find("libLLVM") != line.npos || line.find("libamd_comgr") != line.npos;
      continue;
    }
    const std::string name = field;
    const double megabytes = kilobytes * 1024 / 1e6;
    if (name == "Rss:") sum.all_mb += megabytes;
    if (name == "Rss:" && is_compiler) sum.compiler_mb += megabytes;
    if (name == "Private_Clean:" || name == "Private_Dirty:") sum.private_mb += megabytes;
  }
  return sum;
}

void initialise() {
  hipDeviceProp_t properties{};
  CHECK(hipSetDevice(0));
  CHECK(hipGetDeviceProperties(&properties, 0));
}

void launches(int count) {
  initialise();
  hipStream_t stream;
  CHECK(hipStreamCreate(&stream));
  for (int i = 0; i < 20; ++i) {
    nothing<<<1, 64, 0, stream>>>();
    CHECK(hipStreamSynchronize(stream));
  }
  std::vector<double> calls, waits;
  for (int i = 0; i < count; ++i) {
    const double start = microseconds();
    nothing<<<1, 64, 0, stream>>>();
    const double called = microseconds();
    CHECK(hipStreamSynchronize(stream));
    calls.push_back(called - start);
    waits.push_back(microseconds() - start);
  }
  const double start = microseconds();
  for (int i = 0; i < count; ++i) nothing<<<1, 64, 0, stream>>>();
  CHECK(hipStreamSynchronize(stream));
  std::printf("call_us %.2f\n", median(calls));
  std::printf("call_and_wait_us %.2f\n", median(waits));
  std::printf("one_behind_another_us %.2f\n", (microseconds() - start) / count);
}

// Processor seconds of each thread.
std::map<std::string, double> thread_seconds() {
  std::map<std::string, double> seconds;
  DIR* const folder = opendir("/proc/self/task");
  while (const dirent* entry = folder == nullptr ? nullptr : readdir(folder)) {
    std::ifstream file(std::string("/proc/self/task/") + entry->d_name + "/stat");
    std::string text;
    std::getline(file, text);
    const std::size_t behind_name = text.rfind(')');
    if (behind_name == std::string::npos) continue;
    long user = 0, system = 0;
    std::sscanf(text.c_str() + behind_name + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user, &system);
    seconds[entry->d_name] = static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }
  if (folder != nullptr) closedir(folder);
  return seconds;
}

void idle(double seconds) {
  initialise();
  nothing<<<1, 64>>>();
  CHECK(hipDeviceSynchronize());
  const auto before = thread_seconds();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  double sum = 0;
  for (const auto& [thread, after] : thread_seconds()) {
    const double used = after - (before.count(thread) != 0 ? before.at(thread) : 0);
    if (used > 0) std::fprintf(stderr, "thread %s: %.2f s of %.0f s\n", thread.c_str(), used, seconds);
    sum += used;
  }
  std::printf("idle_percent %.1f\n", 100 * sum / seconds);
}

}  // namespace

int main(int count, char** words) {
  const std::string what = count > 1 ? words[1] : "";
  if (what == "start") {
    initialise();
    const Resident memory = resident();
    std::printf("resident_mb %.1f\nprivate_mb %.1f\ncompiler_mb %.1f\n", memory.all_mb, memory.private_mb,
                memory.compiler_mb);
    return 0;
  }
  if (what == "launch" && count > 2) {
    launches(std::atoi(words[2]));
    return 0;
  }
  if (what == "idle" && count > 2) {
    idle(std::atof(words[2]));
    return 0;
  }
  std::fprintf(stderr, "rocr_figures start | launch <n> | idle <seconds>\n");
  return 2;
}
