// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What belongs to the process as a whole: settings, counters, reports. The C interface over it is control_api.cpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "simgpu/process/config.h"

namespace wavejit::simgpu {

struct Counters {
  std::atomic<std::uint64_t> launches{0};
  std::atomic<std::uint64_t> workgroups{0};
  std::atomic<std::uint64_t> wave_instructions{0};
  std::atomic<std::uint64_t> matrix_instructions{0};
  std::atomic<std::uint64_t> reports{0};
  std::atomic<std::uint64_t> translated_instructions{0};
  std::atomic<std::uint64_t> translation_nanoseconds{0};
  std::atomic<std::uint64_t> matrix_nanoseconds{0};
};

class Process {
 public:
  static Process& instance();

  // As the environment said at the first call.
  const Config& config() const { return config_; }
  Settings settings() const;
  void set_settings(const Settings& settings);
  // Hears of settings from now on; device memory, which keeps beside itself what a check wants to know.
  using SettingsListener = void (*)(const Settings& settings);
  void listen(SettingsListener listener) { listener_ = listener; }
  Counters& counters() { return counters_; }

  // `json`: the same for programs; empty where there is nothing but the words.
  void report(const std::string& line, const std::string& json = {});
  // All reports, one a line; forgotten unless they do not fit into `capacity` − 1 characters.
  std::string take_reports(std::size_t capacity);
  // Likewise, one JSON object a line.
  std::string take_findings(std::size_t capacity);

  // Before a thread of the simulated GPU's: a fork leaves it behind.
  void begin_threads();
  // In a child of a process that had such threads: whoever waits for one waits for ever.
  bool left_threads_behind() const { return left_threads_behind_.load(std::memory_order_relaxed); }

  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

 private:
  Process();
  ~Process() = default;

  Config config_;
  mutable std::mutex mutex_;
  Settings settings_;
  Counters counters_;
  std::vector<std::string> reports_;
  std::vector<std::string> findings_;
  std::atomic<SettingsListener> listener_{nullptr};
  std::atomic<bool> has_threads_{false};
  std::atomic<bool> left_threads_behind_{false};
};

}  // namespace wavejit::simgpu
