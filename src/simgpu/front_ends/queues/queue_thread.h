// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What every queue has: a thread that sleeps until the doorbell rings and waits patiently for memory.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <format>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "simgpu/machine/device/device.h"
#include "simgpu/process/queue_config.h"

namespace wavejit::simgpu::queues {

// Lines on stderr, each with the simulated GPU's name.
void print(const Status& status);

// Whether doorbells are rung for every packet. ROCm 7.2 writes those of copy engines to memory alone.
enum class Doorbell : std::uint8_t { rings, is_silent };

class QueueThread {
 public:
  explicit QueueThread(QueueConfig config, Doorbell doorbell = Doorbell::rings)
      : config_(config), doorbell_kind_(doorbell) {}
  ~QueueThread() { stop(); }
  QueueThread(const QueueThread&) = delete;
  QueueThread& operator=(const QueueThread&) = delete;

  // `take` does one packet and says false when there is none. It runs until then, and again when the doorbell rings.
  // Where that is silent it is asked again by itself: often while there is work, every 4 ms after a while without.
  void start(std::function<bool()> take);
  // Before the next packet; the one that runs is waited for, a wait ends.
  void stop();
  bool stops() const { return stops_; }
  // For who looks often while a packet runs.
  const std::atomic<bool>* stop_flag() const { return &stops_; }
  void ring();
  // What the thread waits for at this moment; empty: for nothing.
  std::string waits_for() const;

  // Called by the thread itself: waits without keeping a core busy, as what a packet waits for is memory, which tells
  // nobody. False: the queue ends.
  template <typename Describe, typename IsMet>
  bool wait_until(Describe describe, IsMet is_met);

 private:
  void work();
  void sleep(int looks);
  void set_waits_for(std::string text);

  QueueConfig config_;
  Doorbell doorbell_kind_;
  std::function<bool()> take_;
  mutable std::mutex mutex_;
  std::condition_variable doorbell_;
  bool rung_ = false;      // guarded by mutex_
  std::string waits_for_;  // likewise
  std::atomic<bool> stops_ = false;
  std::thread thread_;
};

template <typename Describe, typename IsMet>
bool QueueThread::wait_until(Describe describe, IsMet is_met) {
  constexpr int looks_at_once = 200;
  constexpr std::chrono::microseconds longest(200);
  std::chrono::microseconds pause(1);
  const auto start = std::chrono::steady_clock::now();
  bool has_said = config_.patience == std::chrono::milliseconds(0);
  for (int looks = 0; !is_met(); ++looks) {
    if (stops_) return false;
    if (looks < looks_at_once) continue;
    if (looks == looks_at_once) set_waits_for(describe());
    if (!has_said && std::chrono::steady_clock::now() - start >= config_.patience) {
      has_said = true;
      const std::chrono::duration<double> waited = config_.patience;
      print({.code = 1,
             .text = std::format("a queue has waited for {:g} s and waits on: {}", waited.count(), describe())});
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, longest);
  }
  set_waits_for({});
  return true;
}

}  // namespace wavejit::simgpu::queues
