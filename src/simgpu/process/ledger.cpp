// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/process/ledger.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <format>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>

#include "simgpu/process/process.h"
#include "simgpu/process/symbol_names.h"

namespace wavejit::simgpu {
namespace {

using Json = nlohmann::ordered_json;

// A program that finds something in every launch, or has kernels without end, must not grow without end.
constexpr std::size_t most_findings = 1000;
constexpr std::size_t most_kernels = 10'000;
constexpr const char* other_kernels = "(others)";

// The one of the process, for its end: nobody is to be made there.
std::atomic<Ledger*>& made() {
  static std::atomic<Ledger*> ledger = nullptr;
  return ledger;
}

Json program_words() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  Json words = Json::array();
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

template <typename Counts>
std::uint64_t sum_of(const Counts& counts) {
  std::uint64_t sum = 0;
  for (const auto& [check, count] : counts) sum += count;
  return sum;
}

// "races 2, waits 1"
template <typename Counts>
std::string listed(const Counts& counts) {
  std::string list;
  for (const auto& [check, count] : counts) list += std::format("{}{} {}", list.empty() ? "" : ", ", check, count);
  return list;
}

std::string counted(std::uint64_t count, std::string_view thing, std::string_view plural = "s") {
  return std::format("{} {}{}", count, thing, count == 1 ? "" : plural);
}

// Whole or not at all: written beside its place, then renamed.
void replace_file(const std::string& path, const std::string& text) {
  const std::string temporary = std::format("{}.{}.tmp", path, ::getpid());
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(temporary, path, error);
  if (file && !error) return;
  std::filesystem::remove(temporary, error);
  static_cast<void>(
      std::fputs(std::format("wavejit simulated GPU: the report {} cannot be written\n", path).c_str(), stderr));
}

// As late as a library can: programs launch from destructors of their own.
__attribute__((destructor)) void end_of_process() {
  if (Ledger* const ledger = made().load()) ledger->end_process();
}

}  // namespace

Ledger& Ledger::instance() {
  // Never destroyed: queues may run while static destructors do.
  static auto* const ledger = [] {
    auto* const fresh = new Ledger();
    made() = fresh;
    fresh->publish(false);
    return fresh;
  }();
  return *ledger;
}

Ledger::Ledger() : config_(Process::instance().config()), process_(::getpid()) {}

void Ledger::set_front(std::string_view front) {
  {
    const std::scoped_lock lock(mutex_);
    front_ = front;
  }
  publish(false);
}

// With the lock.
Ledger::KernelRow& Ledger::row_of(const std::string& kernel) {
  const auto found = kernels_.find(kernel);
  if (found != kernels_.end()) return found->second;
  return kernels_[kernels_.size() < most_kernels ? kernel : other_kernels];
}

void Ledger::launched(const LaunchRecord& launch) {
  const std::scoped_lock lock(mutex_);
  KernelRow& row = row_of(launch.kernel);
  ++row.launches;
  row.workgroups += launch.workgroups;
  if (launch.time) row.cycles += launch.time->cycles;
  if (!launch.doubt.empty() && ++row.doubted == 1) {
    row.doubt = launch.doubt;
    const std::string line = std::format("wavejit simulated GPU: kernel {}: doubtful cycles: {}; said once a kernel\n",
                                         demangled(launch.kernel), row.doubt);
    static_cast<void>(std::fputs(line.c_str(), stderr));
  }
  if (config_.clock_sample == 0 || launch.time) return;
  ++row.not_timed;
  if (!not_timed_.empty() || launch.not_timed.empty()) return;
  not_timed_ = launch.not_timed;
  const std::string line = std::format("wavejit simulated GPU: kernel {} takes no time: {}; others are not said\n",
                                       demangled(launch.kernel), not_timed_);
  static_cast<void>(std::fputs(line.c_str(), stderr));
}

void Ledger::found(const std::string& kernel, std::string_view check, const std::string& line,
                   const std::string& json) {
  const std::scoped_lock lock(mutex_);
  ++row_of(kernel).findings[std::string(check)];
  if (findings_.size() >= most_findings) return;
  findings_.push_back(json.empty() ? Json({{"check", check}, {"kernel", kernel}, {"text", line}})
                                         .dump(-1, ' ', false, Json::error_handler_t::replace)
                                   : json);
}

void Ledger::copied(std::uint64_t bytes) {
  const std::scoped_lock lock(mutex_);
  copied_bytes_ += bytes;
}

// With the lock.
Ledger::KernelRow Ledger::total() const {
  KernelRow all;
  for (const auto& [name, row] : kernels_) {
    all.launches += row.launches;
    all.workgroups += row.workgroups;
    all.cycles += row.cycles;
    all.not_timed += row.not_timed;
    all.doubted += row.doubted;
    for (const auto& [check, count] : row.findings) all.findings[check] += count;
  }
  return all;
}

std::string Ledger::text(bool finished) const {
  const bool timed = config_.clock_sample != 0;
  const std::scoped_lock lock(mutex_);
  const auto numbers = [&](Json& json, const KernelRow& row) {
    json["launches"] = row.launches;
    json["workgroups"] = row.workgroups;
    if (timed) json["cycles"] = row.cycles;
    if (timed) json["not_timed"] = row.not_timed;
    if (timed) json["doubted"] = row.doubted;
    if (!row.doubt.empty()) json["doubt"] = row.doubt;
    json["findings"] = row.findings;
  };
  const Counters& counters = Process::instance().counters();
  Json report = {{"process", process_}, {"program", program_words()},      {"finished", finished},
                 {"front", front_},     {"target", config_.device_target}, {"devices", config_.device_count}};
  numbers(report, total());
  report["wave_instructions"] = counters.wave_instructions.load();
  report["matrix_instructions"] = counters.matrix_instructions.load();
  report["copied_bytes"] = copied_bytes_;
  if (!not_timed_.empty()) report["not_timed_because"] = not_timed_;
  report["kernels"] = Json::array();
  for (const auto& [name, row] : kernels_) {
    if (name.empty()) continue;
    Json kernel = {{"kernel", name}, {"name", demangled(name)}};
    numbers(kernel, row);
    report["kernels"].push_back(std::move(kernel));
  }
  report["found"] = Json::array();
  for (const std::string& finding : findings_) report["found"].push_back(Json::parse(finding, nullptr, false));
  return report.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string Ledger::summary() const {
  if (config_.summary == Summary::off) return {};
  const std::scoped_lock lock(mutex_);
  const KernelRow all = total();
  const std::uint64_t findings = sum_of(all.findings);
  if (config_.summary == Summary::findings && findings == 0) return {};
  const bool timed = config_.clock_sample != 0;
  std::string text = "wavejit simulated GPU: ";
  const auto with_findings = static_cast<std::uint64_t>(
      std::ranges::count_if(kernels_, [](const auto& row) { return !row.second.findings.empty(); }));
  const std::string found = findings == 0 ? "nothing found"
                                          : std::format("{} ({}) in {}", counted(findings, "finding"),
                                                        listed(all.findings), counted(with_findings, "kernel"));
  if (config_.summary == Summary::findings) return text + found + "\n";
  text += std::format("{} of {}, {} copied, ", counted(all.launches, "launch", "es"),
                      counted(kernels_.size(), "kernel"), counted(copied_bytes_, "byte"));
  if (timed) text += std::format("{} predicted, ", counted(all.cycles, "cycle"));
  text += found + "\n";
  for (const auto& [name, row] : kernels_) {
    text += std::format("wavejit simulated GPU:   {}", counted(row.launches, "launch", "es"));
    if (timed) text += std::format(", {}", counted(row.cycles, "cycle"));
    if (row.doubted != 0) text += std::format(" ({} in doubt)", counted(row.doubted, "launch", "es"));
    text += std::format(" of {}", name.empty() ? "(no kernel)" : demangled(name));
    if (!row.findings.empty()) text += std::format(": {}", listed(row.findings));
    text += "\n";
  }
  return text;
}

void Ledger::publish(bool finished) {
  if (config_.report.empty() || ::getpid() != process_) return;
  const std::scoped_lock lock(file_);
  replace_file(config_.report, text(finished));
}

void Ledger::end_process() {
  if (::getpid() != process_) return;
  publish(true);
  static_cast<void>(std::fputs(summary().c_str(), stderr));
}

}  // namespace wavejit::simgpu
