// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A compile that dies must not take the host with it.
//
// LLVM ends the process when it cannot go on: report_fatal_error, an allocation that failed, exit() after an error
// nobody handles, abort(). Compiles therefore run on threads of their own. Each of these ways to end (caught by the
// handlers that LLVM offers, or by the linker's --wrap of abort, exit and _exit) leads to the same place: the compile's
// abandon function is told the reason, and the thread parks for ever. Nothing is unwound, because nothing says that it
// could be: what the compile held stays allocated. A segmentation fault is not caught, since no signal handler is ever
// installed in a host; for that there are isolated compiles (isolated.h).
#pragma once

#include <functional>
#include <string>

namespace wavejit::codegen {

// Installs LLVM's handlers; the first call does it, from any thread.
void install_containment();

// Runs `work` on a new detached thread with all signals blocked and a stack of fixed size. When the thread is lost,
// `abandoned` is called once with the reason, on that thread, and must not call LLVM. Returns false when there is no
// thread to be had; neither function is called then.
bool start_contained(std::function<void()> work, std::function<void(const std::string& reason)> abandoned);

// The same, and waits for the end. An empty string is success; otherwise the reason why `work` was lost.
std::string run_contained(std::function<void()> work);

// Adds a duty to the current contained thread for as long as the object lives: called before the thread parks, and
// when an exception (out of memory) passes.
class OnAbandon {
 public:
  explicit OnAbandon(std::function<void(const std::string& reason)> duty);
  ~OnAbandon();
  OnAbandon(const OnAbandon&) = delete;
  OnAbandon& operator=(const OnAbandon&) = delete;

 private:
  friend struct ContainedThread;
  std::function<void(const std::string& reason)> duty_;
  OnAbandon* outer_ = nullptr;
  int exceptions_ = 0;  // in flight when the object was made
};

// Is the caller on a thread that start_contained() made?
bool is_contained();

// How many threads have been parked in this process. Each keeps its compile's memory.
unsigned parked_threads();

}  // namespace wavejit::codegen
