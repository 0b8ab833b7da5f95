#pragma once
// Keeping time of launches of this process: how many workgroups of each are sampled, and what came out.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "simgpu/clock/sample.h"
#include "simgpu/clock/trace.h"

namespace wavejit::simgpu {
struct Launch;
}

namespace wavejit::simgpu::clock {

/// The process's switch and its results.
class ClockLog {
 public:
  static ClockLog& instance();
  /// At most so many workgroups of each launch are timed; 0: none.
  void set_sample(uint32_t workgroups);
  [[nodiscard]] uint32_t sample() const;
  /// So many cycles of the first sampled compute unit are kept as a timeline; 0: none.
  void set_timeline(uint64_t cycles);
  [[nodiscard]] uint64_t timeline() const;
  void add(std::string json);
  /// All results, one JSON object a line; forgotten unless they do not fit into `capacity` − 1 characters.
  std::string take(size_t capacity);
  /// Keeps what `make` makes if no longer launch has a timeline here.
  void offer_trace(uint64_t cycles, const std::function<std::string()>& make);
  /// The timeline of the longest launch that was timed, forgotten likewise.
  std::string take_trace(size_t capacity);

 private:
  mutable std::mutex mutex_;
  uint32_t sample_ = 0;
  uint64_t timeline_ = 0;
  std::string trace_;
  uint64_t trace_cycles_ = 0;  ///< of its launch
  std::vector<std::string> results_;
};

/// One launch that is timed. Made before its workgroups run.
class LaunchClock {
 public:
  /// Null when nobody asked. Workgroups first, first + step, … run, `count` of them.
  static std::unique_ptr<LaunchClock> begin(const Launch& launch, uint64_t first, uint64_t step, uint64_t count);
  /// Sees the sampled workgroups; null when the launch cannot be timed, which `finish` says.
  [[nodiscard]] Observer* recorder() { return recorder_.get(); }
  /// Linear ids of the sampled workgroups; empty when the launch cannot be timed.
  [[nodiscard]] std::span<const uint64_t> sample() const { return sample_; }
  /// After the workgroups have run: times them and keeps the result.
  void finish();

 private:
  explicit LaunchClock(const Launch& launch) : launch_(&launch) {}
  const Launch* launch_;
  std::unique_ptr<TraceRecorder> recorder_;
  std::vector<Seed> seeds_;
  std::vector<uint64_t> sample_;
  std::string refusal_;
};

}  // namespace wavejit::simgpu::clock
