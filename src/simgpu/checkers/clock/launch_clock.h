// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Keeping time of launches of this process: how many workgroups of each are sampled, and what came out.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "simgpu/checkers/clock/launch_memory.h"
#include "simgpu/checkers/clock/sample.h"
#include "simgpu/checkers/clock/survey.h"
#include "simgpu/checkers/clock/trace.h"
#include "simgpu/machine/launch/observer.h"
#include "simgpu/machine/launch/seats.h"
#include "simgpu/process/simulated_time.h"

namespace wavejit::simgpu {
struct Launch;
}

namespace wavejit::simgpu::clock {

// The process's switch and its results.
class ClockLog {
 public:
  static ClockLog& instance();
  // At most this many workgroups of each launch are timed, and results are kept. 0: what the environment asks for,
  // whose results nobody takes and which are not kept.
  void set_sample(std::uint32_t workgroups);
  std::uint32_t sample() const;
  // This many cycles of the first sampled compute unit are kept as a timeline; 0: none.
  void set_timeline(std::uint64_t cycles);
  void set_warm(bool warm);
  bool is_warm() const;
  // What launches of a queue wrote.
  WriteLog writes(std::uint64_t queue) const;
  void add_writes(std::uint64_t queue, Writes written);
  std::uint64_t timeline() const;
  // Simulated time of launches that no queue keeps the time of: each waits for those before it.
  LaunchBegin launch_begin() const;
  void launch_ended(std::uint64_t picoseconds);
  bool keeps_results() const;
  void add(std::string json);
  // All results, one JSON object a line; forgotten unless they do not fit into `capacity` − 1 characters.
  std::string take(std::size_t capacity);
  // Keeps what `make` makes if no longer launch has a timeline here.
  void offer_trace(std::uint64_t cycles, const std::function<std::string()>& make);
  // The timeline of the longest launch that was timed, forgotten likewise.
  std::string take_trace(std::size_t capacity);

 private:
  ClockLog();

  mutable std::mutex mutex_;
  std::uint32_t sample_ = 0;
  bool keeps_ = false;
  std::uint64_t timeline_ = 0;
  bool warm_ = false;
  std::map<std::uint64_t, WriteLog> writes_;  // by queue
  const std::uint64_t origin_ = clock_now();
  std::uint64_t latest_ = 0;  // picoseconds since then
  std::string trace_;
  std::uint64_t trace_cycles_ = 0;  // of its launch
  std::vector<std::string> results_;
};

// One launch that is timed. Made before its workgroups run.
class LaunchClock final : public Keeper {
 public:
  // Null when nobody asked. Workgroups first, first + step, … run, `count` of them.
  static std::unique_ptr<LaunchClock> begin(Launch& launch, std::uint64_t first, std::uint64_t step,
                                            std::uint64_t count);
  Observer* recorder() override { return guest_clock_ != nullptr ? guest_clock_.get() : recorder_.get(); }
  // Launches of a few workgroups run whole: later ones may need what they leave, as plans and counts of arrivals. So do
  // those whose workgroups release and acquire: one that counts arrivals has to count all of them.
  std::span<const std::uint64_t> needed() const override;
  // More that are to be timed. When there are none: all others of a launch that prepares for later ones at little cost.
  std::vector<std::uint64_t> widen() override;
  bool in_turn() const override { return orders_workgroups_; }
  void finish() override;

 private:
  LaunchClock(Launch& launch, bool keeps_results) : launch_(&launch), keeps_results_(keeps_results) {}
  void refuse(std::string reason);
  std::vector<std::uint64_t> more_to_time();
  bool prepares_cheaply() const;
  std::uint64_t workgroups() const;
  Launch* launch_;
  bool keeps_results_;
  bool orders_workgroups_ = false;
  LaunchBegin begin_;
  std::unique_ptr<TraceRecorder> recorder_;
  std::unique_ptr<Observer> guest_clock_;  // of kernels that read clocks
  std::vector<Seed> seeds_;
  std::vector<std::uint64_t> sample_;
  std::vector<std::uint64_t> ends_;    // counted beside the sample
  std::vector<std::uint64_t> to_run_;  // both, ascending
  std::optional<Survey> survey_;
  bool surveyed_ = false;  // nothing is left to ask for
  std::unordered_set<std::uint64_t> ran_;
  bool whole_ = false;  // all of them have run
  std::string refusal_;
};

}  // namespace wavejit::simgpu::clock
