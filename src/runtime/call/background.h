// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Work that no call waits for, one piece after the other, on a thread that is made for the first: kernels that
// WAVEJIT_COMPILE_BEHIND asked for, and those that a captured call may need one day.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "families/call/family.h"

namespace wavejit::runtime {

class Background {
 public:
  // `work` must not throw. `line`: the problem that needs the shape.
  using Work = std::function<void(const families::Shape& shape, const std::string& line)>;

  explicit Background(Work work) : work_(std::move(work)) {}
  ~Background();  // waits for the work that is under way; what waits behind it is dropped
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // A shape that is waiting or under way is there once. Dropped when the system has no thread for it.
  void add(const families::Shape& shape, const std::string& line);
  // Returns when the shape is neither waiting nor under way. False: it was not when asked. A hook that the work itself
  // calls does not wait for it, here and below.
  bool wait_for(const families::Shape& shape);
  // Returns when nothing is waiting or under way.
  void wait_for_all();

 private:
  struct Wanted {
    families::Shape shape;
    std::string line;
  };
  void run();
  bool works_here() const { return thread_.get_id() == std::this_thread::get_id(); }

  Work work_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;  // a piece of work, or all of it
  std::deque<Wanted> waiting_;    // the first is under way while the thread works
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace wavejit::runtime
