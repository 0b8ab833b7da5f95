// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ORC's session, in which each kernel under way is a symbol, and what a compile is while it is under way.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "codegen/barrier_order.h"
#include "codegen/compiled.h"
#include "codegen/pipeline.h"

namespace wavejit::codegen {

// One compile under way, shared by everyone who asked for it.
struct Job {
  std::string symbol;
  Plan plan;
  std::optional<LdsFlowGraph> ir_order;
  int private_bytes = 0;  // declared
  std::shared_ptr<Compiled> compiled = std::make_shared<Compiled>();

  // Set by whoever ends the job: the compile thread when it has left ORC, or its loss.
  void finish(Status status, std::string detail) {
    const std::scoped_lock lock(mutex_);
    if (finished_) return;
    compiled->status = status;
    compiled->detail = std::move(detail);
    finished_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return finished_; });
  }

  // The first reason why the job failed; steps after it are ORC telling us that it did.
  std::optional<Failure> failure;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool finished_ = false;
};

// Jobs run in it side by side. One that is lost stays in it for ever: whoever has a job that ended with Status::crashed
// keeps its session alive and takes another one for later jobs.
class CompileSession {
 public:
  CompileSession();
  ~CompileSession();  // waits for compiles under way
  CompileSession(const CompileSession&) = delete;
  CompileSession& operator=(const CompileSession&) = delete;

  // Defines the job's symbol, looks it up, waits for its end and removes it again.
  void compile(const std::shared_ptr<Job>& job);
  std::size_t live_symbols() const;

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace wavejit::codegen
