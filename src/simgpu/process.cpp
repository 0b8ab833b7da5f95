#include "simgpu/process.h"

namespace wavejit::simgpu {
namespace {
// A program that faults in a loop and never asks must not grow without end.
constexpr size_t most_reports = 1000;
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
  const std::scoped_lock lock(mutex_);
  settings_ = settings;
}

void Process::report(const std::string& line) {
  counters_.reports.fetch_add(1, std::memory_order_relaxed);
  const std::scoped_lock lock(mutex_);
  if (reports_.size() < most_reports) reports_.push_back(line);
}

std::string Process::take_reports(size_t capacity) {
  const std::scoped_lock lock(mutex_);
  std::string text;
  for (const std::string& line : reports_) {
    text += line;
    text += '\n';
  }
  if (text.size() < capacity) reports_.clear();
  return text;
}

}  // namespace wavejit::simgpu
