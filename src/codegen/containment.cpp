// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/containment.h"

#include <llvm/Support/ErrorHandling.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "system/blocked_signals.h"

namespace wavejit::codegen {

struct ContainedThread {
  std::function<void()> work;
  std::function<void(const std::string&)> abandoned;
  OnAbandon* duties = nullptr;

  static ContainedThread*& current() {
    static thread_local ContainedThread* thread = nullptr;
    return thread;
  }

  void tell(const std::string& reason) {
    current() = nullptr;  // whatever happens from here on happens to the process
    for (OnAbandon* duty = duties; duty; duty = duty->outer_) duty->duty_(reason);
    abandoned(reason);
  }

  [[noreturn]] void park(const std::string& reason);
};

namespace {

std::atomic<unsigned> parked_count = 0;

// Instruction selection recurses; LLVM's own tools run on 8 MiB.
constexpr std::size_t stack_bytes = 16UL << 20;

void fatal_error(void*, const char* reason, bool) {
  if (ContainedThread* thread = ContainedThread::current()) thread->park(reason);
}

void* contained_main(void* argument) {
  const std::unique_ptr<ContainedThread> thread(static_cast<ContainedThread*>(argument));
  ContainedThread::current() = thread.get();
  try {
    thread->work();
  } catch (const std::exception& exception) {
    thread->tell(std::string("exception: ") + exception.what());
  } catch (...) {
    thread->tell("an unknown exception");
  }
  ContainedThread::current() = nullptr;
  return nullptr;
}

}  // namespace

void ContainedThread::park(const std::string& reason) {
  ++parked_count;
  tell(reason);
  for (;;) pause();
}

OnAbandon::OnAbandon(std::function<void(const std::string& reason)> duty)
    : duty_(std::move(duty)), exceptions_(std::uncaught_exceptions()) {
  if (ContainedThread* thread = ContainedThread::current()) outer_ = std::exchange(thread->duties, this);
}

OnAbandon::~OnAbandon() {
  if (std::uncaught_exceptions() > exceptions_) duty_("an exception, most likely out of memory");
  if (ContainedThread* thread = ContainedThread::current()) thread->duties = outer_;
}

void install_containment() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::install_fatal_error_handler(fatal_error);
    llvm::install_bad_alloc_error_handler(fatal_error);
  });
}

bool start_contained(std::function<void()> work, std::function<void(const std::string& reason)> abandoned) {
  install_containment();
  auto thread = std::make_unique<ContainedThread>();
  thread->work = std::move(work);
  thread->abandoned = std::move(abandoned);
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  const system::BlockedSignals blocked;
  pthread_t handle;
  ContainedThread* const owned_by_thread = thread.release();
  const bool started = pthread_create(&handle, &attributes, contained_main, owned_by_thread) == 0;
  pthread_attr_destroy(&attributes);
  if (!started) {
    delete owned_by_thread;
  }
  return started;
}

namespace {

// How a contained piece of work ended, for the thread that waits for it. Shared: the thread of the work may outlive the
// wait.
class Ending {
 public:
  void set(std::string reason) {
    const std::scoped_lock lock(mutex_);
    reason_ = std::move(reason);
    changed_.notify_all();
  }
  std::string wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return reason_.has_value(); });
    return *reason_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::string> reason_;
};

}  // namespace

std::string run_contained(std::function<void()> work) {
  // Not std::future: ThreadSanitizer does not see libstdc++'s order between set_value and get.
  auto ending = std::make_shared<Ending>();
  // Set exactly once: by the end of the work, or by its loss.
  const bool started = start_contained(
      [work = std::move(work), ending] {
        work();
        ending->set("");
      },
      [ending](const std::string& reason) { ending->set(reason.empty() ? "unknown" : reason); });
  return started ? ending->wait() : "no thread: the process or the machine has too many";
}

bool is_contained() { return ContainedThread::current() != nullptr; }

unsigned parked_threads() { return parked_count.load(); }

}  // namespace wavejit::codegen

// The linker sends every call that LLVM and LLD make to these functions here (--wrap); on threads of the host, and in
// programs around the library, they are what they always were. The names are the linker's.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {
[[noreturn]] void __real_abort();
[[noreturn]] void __real_exit(int status);
[[noreturn]] void __real__exit(int status);

[[noreturn]] void __wrap_abort() {
  if (auto* thread = wavejit::codegen::ContainedThread::current()) thread->park("abort() was called");
  __real_abort();
}
[[noreturn]] void __wrap_exit(int status) {
  if (auto* thread = wavejit::codegen::ContainedThread::current()) thread->park("exit() was called");
  __real_exit(status);
}
[[noreturn]] void __wrap__exit(int status) {
  if (auto* thread = wavejit::codegen::ContainedThread::current()) thread->park("_exit() was called");
  __real__exit(status);
}
// Objects of static storage in LLVM, LLD and this library live for ever. A host may call exit() while another of its
// threads compiles; destructors that ran then would take the ground from under the compile (seen as a segmentation
// fault).
int __wrap___cxa_atexit(void (*)(void*), void*, void*) { return 0; }
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
