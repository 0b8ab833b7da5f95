// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "interpreter.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace wavejit::python {

namespace {

std::atomic<int> holders{0};  // threads between Held and its end, also those that wait for the lock
std::atomic<bool> ended{false};
thread_local int depth = 0;
thread_local bool is_last = false;  // the thread that ends Python

// Called with the lock, by the thread that ends Python, while everything else still works.
void await_holders() {
  const Released released;
  is_last = true;
  ended = true;
  while (holders > depth) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

Held::Held() : held_(true) {
  holders.fetch_add(1);
  if (ended && !(is_last && Py_IsInitialized() != 0)) {
    holders.fetch_sub(1);
    held_ = false;
    return;
  }
  ++depth;
  state_ = PyGILState_Ensure();
}

Held::~Held() {
  if (!held_) return;
  PyGILState_Release(state_);
  --depth;
  holders.fetch_sub(1);
}

Released::~Released() {
  try {
    PyEval_RestoreThread(state_);
  } catch (...) {  // pthread_exit, which unwinds
    for (;;) ::pause();
  }
}

void watch_for_pythons_end() {
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&await_holders));
  // A thread that held the lock in the parent stays there.
  ::pthread_atfork(nullptr, nullptr, [] { holders = depth; });
}

}  // namespace wavejit::python
