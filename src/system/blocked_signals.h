// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The host's signal handlers are not to run in threads that the host does not know: a thread inherits the mask of the
// one that starts it.
#pragma once

#include <pthread.h>

#include <csignal>

namespace wavejit::system {

// Every signal, for the calling thread, until the end of the scope.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace wavejit::system
