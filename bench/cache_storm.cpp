// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The start of a service: many processes, each with its device open, prepare the same kernel at the same moment with a
// cold cache; then each computes with it. Prints one JSON line: compiles, answers, and the time from the barrier until
// the last one was prepared beside that of one process alone.
//
//   cache_storm <processes> <lock wait in ms> [descriptor's head dim]
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "measure.h"
#include "tests/support/scratch_directory.h"
#include "wavejit/wavejit.h"

namespace {

using wavejit::bench::now_ns;
using wavejit::tests::ScratchDirectory;

constexpr int most_processes = 256;
constexpr unsigned long long patience_ns = 120'000'000'000;  // with processes that are not there yet
constexpr long long length = 32;

struct Answer {
  unsigned long long called;
  unsigned long long prepared;
  unsigned long long lock_waits;
  unsigned long long digest;  // of O's bits
  unsigned long long compiled;
};

struct Shared {
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::atomic<int> prepared{0};
  Answer answers[most_processes];
};

void require(wavejit_status status, const char* what) {
  if (status == WAVEJIT_OK) return;
  std::fprintf(stderr, "%s: %s\n", what, wavejit_last_detail());
  _exit(1);
}

void one_process(Shared& shared, int processes, int index, const char* cache, const char* lock_wait, int head_dim) {
  wavejit_engine_options options{};
  options.size = sizeof options;
  options.device = "sim:gfx950";
  options.cache_directory = cache;
  options.cache_mode = "rw";
  options.cache_lock_wait = lock_wait;
  wavejit_engine* engine = nullptr;
  require(wavejit_engine_create(&options, &engine), "engine");
  const std::size_t bytes = static_cast<std::size_t>(length) * head_dim * 2;
  std::vector<unsigned short> values(bytes / 2);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<unsigned short>(0x3C00 + i % 512);
  void* memory[4];
  for (void*& block : memory) {
    require(wavejit_device_allocate(engine, bytes, &block), "allocate");
    require(wavejit_device_copy_in(engine, block, values.data(), bytes), "copy");
  }
  wavejit_attention_forward_arguments call{};
  call.head.size = sizeof call;
  call.head.family = WAVEJIT_ATTENTION_FORWARD;
  wavejit_tensor* tensors[4] = {&call.q, &call.k, &call.v, &call.o};
  for (int i = 0; i < 4; ++i) *tensors[i] = wavejit_dense_tensor(memory[i], WAVEJIT_FP16, 1, length, 1, head_dim);
  call.modifiers.scale = 0.1F;
  const std::string line = "attention_forward fp16 b1 q" + std::to_string(length) + " k" + std::to_string(length) +
                           " h1 d" + std::to_string(head_dim);
  const char* const lines[] = {line.c_str()};

  const auto until = [](const auto& reached) {
    const unsigned long long begun = now_ns();
    while (!reached()) {
      if (now_ns() - begun > patience_ns) _exit(1);  // one of the others has ended early
      const timespec moment = {0, 200'000};
      nanosleep(&moment, nullptr);
    }
  };
  ++shared.ready;
  until([&] { return shared.go.load(); });
  Answer& answer = shared.answers[index];
  answer.called = now_ns();
  require(wavejit_prepare(engine, lines, 1, 1, nullptr, nullptr, nullptr), "prepare");
  answer.prepared = now_ns();
  // The simulated GPU computes on the cores that others still prepare on; a real one would not.
  ++shared.prepared;
  until([&] { return shared.prepared == processes; });
  require(wavejit_engine_seal(engine, 1), "seal");  // the call uses what was prepared, or fails
  require(wavejit_attention_forward(engine, &call, nullptr), "attention_forward");
  require(wavejit_device_synchronize(engine), "synchronize");
  require(wavejit_device_copy_out(engine, values.data(), memory[3], bytes), "copy");
  answer.digest = 14695981039346656037ULL;
  for (const unsigned short value : values) answer.digest = (answer.digest ^ value) * 1099511628211ULL;
  wavejit_statistics statistics{};
  statistics.size = sizeof statistics;
  require(wavejit_engine_statistics(engine, &statistics), "statistics");
  answer.lock_waits = statistics.lock_waits;
  answer.compiled = statistics.compiled;
  wavejit_engine_destroy(engine);
}

struct Run {
  int compiles = 0;
  int different = 0;
  unsigned long long lock_waits = 0;
  double last_prepared_ms = 0;
};

[[noreturn]] void give_up(const std::vector<pid_t>& children, const char* why) {
  for (const pid_t child : children) {
    // Those that have been waited for are nobody's now; the others are ours, ended or not.
    if (waitpid(child, nullptr, WNOHANG) != 0) continue;
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  throw std::runtime_error(why);
}

Run run(int processes, const char* lock_wait, int head_dim) {
  const ScratchDirectory cache;
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* shared = new (memory) Shared;
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      one_process(*shared, processes, i, cache.path().c_str(), lock_wait, head_dim);
      _exit(0);
    }
    children.push_back(child);
  }
  const unsigned long long begun = now_ns();
  while (shared->ready < processes) {
    if (waitpid(-1, nullptr, WNOHANG) > 0) give_up(children, "a process ended before all were ready");
    if (now_ns() - begun > patience_ns) give_up(children, "not all processes got ready");
    usleep(1000);
  }
  const unsigned long long start = now_ns();
  shared->go = true;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) give_up(children, "a process failed");
  }
  Run result;
  for (int i = 0; i < processes; ++i) {
    const Answer& answer = shared->answers[i];
    result.compiles += static_cast<int>(answer.compiled);
    result.different += answer.digest != shared->answers[0].digest ? 1 : 0;
    result.lock_waits += answer.lock_waits;
    result.last_prepared_ms = std::max(result.last_prepared_ms, static_cast<double>(answer.prepared - start) * 1e-6);
  }
  munmap(memory, sizeof(Shared));
  return result;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) return std::fprintf(stderr, "cache_storm <processes> <lock wait in ms> [head dim]\n"), 2;
  const int processes = std::atoi(argv[1]);
  const int head_dim = argc > 3 ? std::atoi(argv[3]) : 128;
  if (processes < 1 || processes > most_processes) return 2;
  std::vector<double> alone;
  for (int i = 0; i < 3; ++i) alone.push_back(run(1, argv[2], head_dim).last_prepared_ms);
  std::ranges::sort(alone);
  const Run storm = run(processes, argv[2], head_dim);
  std::printf(
      "{\"processes\":%d,\"compiles\":%d,\"different_answers\":%d,\"lock_waits\":%llu,\"one_compile_ms\":%.1f,"
      "\"last_prepared_ms\":%.1f,\"ratio\":%.2f}\n",
      processes, storm.compiles, storm.different, storm.lock_waits, alone[1], storm.last_prepared_ms,
      storm.last_prepared_ms / alone[1]);
  return storm.different == 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
