// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the GPUs of this process did and what was found wrong: for the report and the summary that a process leaves
// (WAVEJIT_SIM_REPORT, WAVEJIT_SIM_SUMMARY; docs/simulated-gpu.md has the report's fields).
//
// The report is written when the first GPU is used, whenever something is found, and when the process ends by exit() or
// by returning from main. So a program that aborts, or is killed, leaves what was found until then, "finished": false.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simgpu/process/config.h"
#include "simgpu/process/status.h"

namespace wavejit::simgpu {

// A launch that has run, or failed.
struct LaunchRecord {
  const std::string& kernel;
  std::uint64_t workgroups = 0;
  std::optional<LaunchTime> time;
  const std::string& not_timed;  // why, where somebody asked
  const std::string& doubt;      // why its cycles may say nothing; empty: no reason is known
};

// Thread-safe.
class Ledger {
 public:
  static Ledger& instance();

  // "rocr" or "hip": whose packets or calls the launches come from.
  void set_front(std::string_view front);
  void launched(const LaunchRecord& launch);
  // `kernel` may be empty: what was wrong was no kernel's. `json`: as take_findings has it; may be empty.
  void found(const std::string& kernel, std::string_view check, const std::string& line, const std::string& json = {});
  // By a copy engine or the HIP front; copies that kernels make are launches.
  void copied(std::uint64_t bytes);

  // Writes the report as it is now, if one is wanted.
  void publish(bool finished);
  // The same for people: lines with their ends, empty where nothing is to be said.
  std::string summary() const;
  void end_process();

  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

 private:
  struct KernelRow {
    std::uint64_t launches = 0;
    std::uint64_t workgroups = 0;
    std::uint64_t cycles = 0;                                    // of those that were timed
    std::uint64_t not_timed = 0;                                 // launches
    std::uint64_t doubted = 0;                                   // launches whose cycles may say nothing
    std::string doubt;                                           // why, the first of them
    std::map<std::string, std::uint64_t, std::less<>> findings;  // by check
  };
  Ledger();
  ~Ledger() = default;
  KernelRow& row_of(const std::string& kernel);
  KernelRow total() const;
  std::string text(bool finished) const;

  const Config& config_;
  const int process_;  // who made it: a fork's child has nothing to report
  mutable std::mutex mutex_;
  std::string front_ = "hip";
  std::map<std::string, KernelRow, std::less<>> kernels_;
  std::vector<std::string> findings_;  // JSON objects
  std::string not_timed_;              // the first reason
  std::uint64_t copied_bytes_ = 0;
  std::mutex file_;  // held while a report is written
};

}  // namespace wavejit::simgpu
