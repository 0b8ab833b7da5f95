// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/process/process.h"

#include <pthread.h>

namespace wavejit::simgpu {
namespace {
// A program that faults in a loop and never asks must not grow without end.
constexpr std::size_t most_reports = 1000;
}  // namespace

Process& Process::instance() {
  // Never destroyed: HIP programs launch and free from static destructors.
  static auto* const process = new Process();
  return *process;
}

Process::Process() : config_(read_config()), settings_(config_.settings) {}

Settings Process::settings() const {
  const std::scoped_lock lock(mutex_);
  return settings_;
}

void Process::set_settings(const Settings& settings) {
  {
    const std::scoped_lock lock(mutex_);
    settings_ = settings;
  }
  // Not under the lock: who listens may ask for the settings.
  if (const SettingsListener listener = listener_) listener(settings);
}

void Process::begin_threads() {
  if (has_threads_.exchange(true)) return;
  ::pthread_atfork(nullptr, nullptr, [] { instance().left_threads_behind_ = true; });
}

void Process::report(const std::string& line, const std::string& json) {
  counters_.reports.fetch_add(1, std::memory_order_relaxed);
  const std::scoped_lock lock(mutex_);
  if (reports_.size() < most_reports) reports_.push_back(line);
  if (findings_.size() < most_reports && !json.empty()) findings_.push_back(json);
}

namespace {

std::string take(std::vector<std::string>& lines, std::size_t capacity) {
  std::string text;
  for (const std::string& line : lines) {
    text += line;
    text += '\n';
  }
  if (text.size() < capacity) lines.clear();
  return text;
}

}  // namespace

std::string Process::take_reports(std::size_t capacity) {
  const std::scoped_lock lock(mutex_);
  return take(reports_, capacity);
}

std::string Process::take_findings(std::size_t capacity) {
  const std::scoped_lock lock(mutex_);
  return take(findings_, capacity);
}

}  // namespace wavejit::simgpu
