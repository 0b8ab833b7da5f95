// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The promise of the hot path: a call whose kernel is loaded allocates nothing, takes no lock and makes no system call.
// Proven, not argued: every allocation and every lock of this program is counted, and the system calls of a child are
// forbidden by the kernel.
#include <dlfcn.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <fstream>
#include <mutex>
#include <shared_mutex>

#include "runtime_fixture.h"
#include "templates/attention_latent/api/calls.h"

namespace {

thread_local bool counting = false;
thread_local std::size_t allocations = 0;
thread_local std::size_t locks = 0;

// The next function of that name behind this program's own. Looked up in a call, since a lock may be taken before any
// constructor has run.
template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// glibc's own entry points, under the names that everybody (operator new too) calls.
extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): glibc's names
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

void* malloc(std::size_t bytes) {
  if (counting) ++allocations;
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  if (counting) ++allocations;
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  if (counting) ++allocations;
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  if (counting) ++allocations;
  return __libc_memalign(alignment, bytes);
}

// Every lock of C++'s library is one of these: std::mutex and the recursive ones, std::shared_mutex, and what waits.
#define WAVEJIT_COUNTED_LOCK(name, type)                       \
  int name(type* lock) {                                       \
    if (counting) ++locks;                                     \
    static int (*const real)(type*) = next<int(type*)>(#name); \
    return real(lock);                                         \
  }
WAVEJIT_COUNTED_LOCK(pthread_mutex_lock, pthread_mutex_t)
WAVEJIT_COUNTED_LOCK(pthread_mutex_trylock, pthread_mutex_t)
WAVEJIT_COUNTED_LOCK(pthread_rwlock_rdlock, pthread_rwlock_t)
WAVEJIT_COUNTED_LOCK(pthread_rwlock_wrlock, pthread_rwlock_t)
#undef WAVEJIT_COUNTED_LOCK
}

namespace wavejit::tests {
namespace {

constexpr int calls = 1000;

// From here on this process may do nothing but end. False where the kernel has no seccomp.
bool forbid_system_calls() {
  const sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  const sock_fprog filter = {.len = std::size(program), .filter = const_cast<sock_filter*>(program)};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

constexpr int no_seccomp = 77;

// The wait status of a child that runs `work` with system calls forbidden and ends with 0 if it answers true.
template <typename Work>
int run_without_system_calls(Work work) {
  const pid_t child = fork();
  if (child == 0) {
    if (!forbid_system_calls()) _exit(no_seccomp);
    _exit(work() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

class HotPath : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    auto device = fake_device();
    device.hip = empty_hip_functions();
    auto engine = runtime::Engine::assemble(config_, device, *codegen_,
                                            std::make_unique<runtime::Logger>(runtime::LogLevel::warning));
    ASSERT_TRUE(engine);
    engine_ = *std::move(engine);
    call_ = good_call();
    call_.lse = good_lse(call_);
    set_current_device(1);
    ASSERT_TRUE(ForwardCalls::run(*engine_, &call_, nullptr));
  }

  bool make_calls() {
    bool good = true;
    for (int i = 0; i < calls; ++i) good = good && ForwardCalls::run(*engine_, &call_, nullptr).has_value();
    return good;
  }

  void expect_no_allocation_and_no_lock() {
    counting = true;
    allocations = locks = 0;
    const bool good = make_calls();
    counting = false;
    EXPECT_TRUE(good);
    EXPECT_EQ(allocations, 0U);
    EXPECT_EQ(locks, 0U);
  }

  void expect_no_system_call() {
    const int status = run_without_system_calls([&] { return make_calls(); });
    if (WIFEXITED(status) && WEXITSTATUS(status) == no_seccomp) GTEST_SKIP() << "this kernel has no seccomp";
    EXPECT_FALSE(WIFSIGNALED(status)) << "killed by signal " << WTERMSIG(status);
    EXPECT_EQ(status, 0);
  }

  std::unique_ptr<runtime::Engine> engine_;
  wavejit_attention_forward_arguments call_{};
};

TEST_F(HotPath, AllocatesNothing) {
  counting = true;
  allocations = 0;
  void* proof = std::malloc(1);
  const std::size_t counted = allocations;
  std::free(proof);
  counting = false;
  EXPECT_EQ(counted, 1U) << "the count itself works";
  expect_no_allocation_and_no_lock();
}

TEST_F(HotPath, TakesNoLock) {
  std::mutex exclusive;
  std::shared_mutex shared;
  counting = true;
  locks = 0;
  {
    const std::scoped_lock one(exclusive);
  }
  {
    const std::shared_lock two(shared);
  }
  {
    const std::unique_lock three(shared);
  }
  const std::size_t counted = locks;
  counting = false;
  EXPECT_EQ(counted, 3U) << "the count itself works";
  expect_no_allocation_and_no_lock();
}

TEST_F(HotPath, AReportCostsNoAllocationEither) {
  wavejit_call_report report{};
  report.size = sizeof report;
  call_.head.report = &report;
  expect_no_allocation_and_no_lock();
}

// Decode over pages, whole and in runs.
TEST_F(HotPath, LatentAttentionCostsNoAllocationEither) {
  wavejit_attention_latent_arguments call{};
  call.head.size = sizeof call;
  call.head.family = WAVEJIT_ATTENTION_LATENT;
  call.q = wavejit_dense_tensor(fake_address(1), WAVEJIT_BF16, 64, 1, 16, 576);
  call.o = wavejit_dense_tensor(fake_address(2), WAVEJIT_BF16, 64, 1, 16, 512);
  call.k = wavejit_dense_tensor(fake_address(3), WAVEJIT_BF16, 256, 64, 1, 576);
  call.pages.block_table = static_cast<const std::int32_t*>(fake_address(4));
  call.pages.table_columns = 128;
  call.sequences.key_lengths = static_cast<const std::int32_t*>(fake_address(5));
  call.sequences.max_key_length = 8192;
  call.modifiers.scale = 0.0721688F;
  const auto run = [&] { return runtime::Answers<attention_latent::Calls>::run(*engine_, &call, nullptr).has_value(); };
  struct Kind {
    std::int32_t splits;
    std::int64_t dims;
    std::int64_t value_dims;
    std::uint32_t flags = 0;
  };
  for (const auto& [splits, dims, value_dims, flags] : {Kind{1, 576, 512},
                                                        {4, 576, 512, WAVEJIT_ONE_LAUNCH},
                                                        {4, 576, 512, WAVEJIT_TWO_LAUNCHES},
                                                        {1, 512, 512},
                                                        {4, 320, 256}}) {
    call.split.splits = splits;
    call.head.flags = flags;
    call.q.sizes[3] = call.k.sizes[3] = dims;
    call.o.sizes[3] = value_dims;
    ASSERT_TRUE(run());
    counting = true;
    allocations = locks = 0;
    bool good = true;
    for (int i = 0; i < calls; ++i) good = good && run();
    counting = false;
    EXPECT_TRUE(good);
    EXPECT_EQ(allocations, 0U) << splits << ' ' << dims;
    EXPECT_EQ(locks, 0U) << splits << ' ' << dims;
  }
}

TEST_F(HotPath, SplittingKeysCostsNoAllocationEither) {
  call_.split.splits = 2;
  call_.k = wavejit_dense_tensor(call_.k.data, WAVEJIT_FP16, 2, 4096, 2, 128);
  call_.v = wavejit_dense_tensor(call_.v.data, WAVEJIT_FP16, 2, 4096, 2, 128);
  ASSERT_TRUE(make_calls());
  expect_no_allocation_and_no_lock();
  expect_no_system_call();
}

// What a serving engine's decode is: one row a sequence, keys in the pages of a cache, lengths on the device.
TEST_F(HotPath, KeysInPagesCostNoAllocationAndNoLockEither) {
  call_ = good_call(4, 1, 64);
  call_.k.sizes[0] = call_.v.sizes[0] = 256;
  call_.sequences.key_lengths = static_cast<const std::int32_t*>(fake_address(6));
  call_.pages.block_table = static_cast<const std::int32_t*>(fake_address(7));
  call_.pages.table_columns = 64;
  call_.sequences.max_key_length = 4096;
  wavejit_call_report report{};
  report.size = sizeof report;
  call_.head.report = &report;
  ASSERT_TRUE(make_calls());
  EXPECT_NE(std::string_view(report.kernel_spec).find(" paged "), std::string_view::npos) << report.kernel_spec;
  call_.head.report = nullptr;
  expect_no_allocation_and_no_lock();
  expect_no_system_call();
}

// Three launches: long queries, short ones, and the merge of their parts.
TEST_F(HotPath, MixingLongAndShortQueriesCostsNoAllocationEither) {
  call_ = good_call(1, 519, 4096);
  call_.k.sizes[0] = call_.v.sizes[0] = 8;
  call_.sequences.query_starts = static_cast<const std::int32_t*>(fake_address(6));
  call_.sequences.key_lengths = static_cast<const std::int32_t*>(fake_address(7));
  call_.sequences.count = 8;
  call_.sequences.max_query_length = 512;
  wavejit_call_report report{};
  report.size = sizeof report;
  call_.head.report = &report;
  ASSERT_TRUE(make_calls());
  EXPECT_NE(std::string_view(report.kernel_spec).find(" rows=many "), std::string_view::npos) << report.kernel_spec;
  call_.head.report = nullptr;
  expect_no_allocation_and_no_lock();
  expect_no_system_call();
}

// With everything that docs/serving.md offers switched on.
class ServingHotPath : public HotPath {
 protected:
  void SetUp() override {
    config_.miss_log.value = directory_.path() + "/misses";
    config_.hooks.on_compile = [](void*, const wavejit_compile_event*) {};
    HotPath::SetUp();
    engine_->seal(true);
  }
};

TEST_F(ServingHotPath, AllocatesNothing) { expect_no_allocation_and_no_lock(); }

TEST_F(ServingHotPath, MakesNoSystemCall) { expect_no_system_call(); }

// With a remote layer, which was asked for the kernel and does not answer.
class RemoteHotPath : public HotPath {
 protected:
  void SetUp() override {
    const std::string key = directory_.path() + "/key";
    std::ofstream(key) << std::string(64, 'a');
    ASSERT_EQ(chmod(key.c_str(), 0600), 0);
    config_.cache_remote.value = *cache::parse_remote("redis://127.0.0.1:1");
    config_.cache_remote_key_file.value = key;
    HotPath::SetUp();
    ASSERT_EQ(statistics_of(*engine_).remote_lookups, 1U);
  }
};

TEST_F(RemoteHotPath, AllocatesNothing) { expect_no_allocation_and_no_lock(); }

TEST_F(RemoteHotPath, MakesNoSystemCall) { expect_no_system_call(); }

TEST_F(HotPath, MakesNoSystemCall) {
  const int control = run_without_system_calls([] { return syscall(SYS_getppid) > 0; });
  if (WIFEXITED(control) && WEXITSTATUS(control) == no_seccomp) GTEST_SKIP() << "this kernel has no seccomp";
  ASSERT_TRUE(WIFSIGNALED(control)) << "a child that makes a system call is killed";
  EXPECT_EQ(WTERMSIG(control), SIGSYS);
  expect_no_system_call();
}

}  // namespace
}  // namespace wavejit::tests
