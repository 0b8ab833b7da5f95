// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "called.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <format>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "cache/cache.h"
#include "cache/entry.h"
#include "support/attention_run.h"
#include "support/test_device.h"

namespace wavejit::tests {
namespace {

class CachedEngine {
 public:
  CachedEngine(const std::string& target, const std::string& pipeline, const std::string& folder, const char* mode) {
    const std::string device = test_device(target);
    wavejit_engine_options options{};
    options.size = sizeof options;
    options.device = device.c_str();
    options.cache_directory = folder.c_str();
    options.cache_mode = mode;
    options.pipeline = pipeline.c_str();
    if (wavejit_engine_create(&options, &engine_) != WAVEJIT_OK) throw std::runtime_error(wavejit_last_detail());
  }
  ~CachedEngine() { wavejit_engine_destroy(engine_); }
  CachedEngine(const CachedEngine&) = delete;
  CachedEngine& operator=(const CachedEngine&) = delete;
  wavejit_engine* get() const { return engine_; }

 private:
  wavejit_engine* engine_ = nullptr;
};

// What `work` returns in a child process, or a line that says how the child ended.
std::string in_child(const std::function<std::string()>& work) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no child process");
  if (child == 0) {
    std::string answer;
    try {
      answer = work();
    } catch (const std::exception& error) {
      answer = std::string("reported ") + error.what();
    }
    for (std::size_t done = 0; done < answer.size();) {
      const ssize_t written = write(ends[1], answer.data() + done, answer.size() - done);
      if (written <= 0) _exit(1);
      done += static_cast<std::size_t>(written);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string answer;
  std::array<char, 4096> piece{};
  for (ssize_t got = 0; (got = read(ends[0], piece.data(), piece.size())) > 0;)
    answer.append(piece.data(), static_cast<std::size_t>(got));
  close(ends[0]);
  int ended = 0;
  waitpid(child, &ended, 0);
  return ended == 0 ? answer : std::format("reported the process ended with status {}", ended);
}

std::uint64_t digest_of(const CallResult& result) {
  return std::hash<std::string_view>{}(
      {reinterpret_cast<const char*>(result.bits.data()), result.bits.size() * sizeof(std::uint32_t)});
}

}  // namespace

CalledKernel::CalledKernel(std::string target, std::string pipeline, const std::vector<std::string>& words,
                           std::vector<CallProblem> problems, Journal journal)
    : target_(std::move(target)),
      pipeline_(std::move(pipeline)),
      problems_(std::move(problems)),
      journal_(std::move(journal)) {
  const std::string answer = in_child([this] {
    set_schedule(WAVEJIT_SIMGPU_REVERSE, 1);  // every check, and results as late as may be
    const CachedEngine engine(target_, pipeline_, cache_.path(), "rw");
    std::string digests;
    for (std::size_t i = 0; i < problems_.size(); ++i) {
      const CallResult result = problems_[i].run(engine.get(), true);
      if (result.status != WAVEJIT_OK || !result.reports.empty() || !result.fence_intact || !result.wrong.empty())
        return std::format("reported problem {}: {}{}{}", i, result.reports, result.wrong,
                           result.fence_intact ? "" : " something around the results was written");
      digests += std::format("{} ", digest_of(result));
    }
    return digests;
  });
  std::istringstream digests(answer);
  for (std::uint64_t digest = 0; digests >> digest;) whole_.push_back(digest);
  if (whole_.size() != problems_.size()) problem_ = answer;
  if (!problem_.empty() || !find_kernel(words)) return;
  for (const std::uint64_t digest : whole_) {
    order_.push_back(order_.size());
    std::uint64_t name = digest;
    while (std::ranges::contains(names_, name)) ++name;
    names_.push_back(name);
  }
  std::vector<std::uint64_t> ran;
  if (const std::string again = outcome_on(order_, code_object_, ran); !again.empty())
    problem_ = "another result the second time: " + again;
}

bool CalledKernel::find_kernel(const std::vector<std::string>& words) {
  cache::Cache cache({.layers = {{.name = "test", .root = cache_.path(), .writable = true}}, .remote = {}});
  std::string specs;
  int found = 0;
  cache.visit([&](const cache::Visited& visited) {
    if (visited.entry == nullptr) return;
    const std::string& spec = visited.entry->key_text;
    specs += "\n  " + spec;
    if (!std::ranges::all_of(words, [&](const std::string& word) { return spec.contains(word); })) return;
    ++found;
    file_ = visited.path;
    entry_.assign(visited.file.begin(), visited.file.end());
    code_object_.assign(visited.entry->code_object.begin(), visited.entry->code_object.end());
  });
  if (found != 1) problem_ = std::format("{} kernels have these words, of:{}", found, specs);
  return found == 1;
}

std::string CalledKernel::outcome_on(const std::vector<std::size_t>& order, const std::vector<std::byte>& code_object,
                                     std::vector<std::uint64_t>& ran) const {
  auto entry = cache::parse(entry_);
  entry->code_object = code_object;
  const auto bytes = cache::serialise(*entry);
  {
    std::ofstream file(file_, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(bytes->data()), static_cast<std::streamsize>(bytes->size()));
    if (!file) throw std::runtime_error("cannot write " + file_);
  }
  // Its first word: how many problems ran.
  const std::string answer = in_child([&] {
    set_schedule(WAVEJIT_SIMGPU_REVERSE, 1);
    const CachedEngine engine(target_, pipeline_, cache_.path(), "ro");
    std::size_t count = 0;
    for (const std::size_t i : order) {
      const CallResult result = problems_[i].run(engine.get(), false);
      ++count;
      if (!result.reports.empty())
        return std::format("{} reported {}", count, result.reports.substr(0, result.reports.find('\n')));
      if (result.status != WAVEJIT_OK || !result.fence_intact || digest_of(result) != whole_[i])
        return std::format("{} differs", count);
    }
    return std::format("{} ", count);
  });
  std::size_t count = 0;
  std::istringstream words(answer);
  words >> count;
  if (!words) return answer;  // how the child ended: which problem it was is not known
  for (std::size_t i = 0; i < std::min(count, order.size()); ++i) ran.push_back(names_[order[i]]);
  return answer.substr(answer.find(' ') + 1);
}

Outcome CalledKernel::run(const std::vector<std::byte>& code_object) {
  const std::uint64_t code =
      std::hash<std::string_view>{}({reinterpret_cast<const char*>(code_object.data()), code_object.size()});
  Journal::Entry found;
  if (const Journal::Entry* before = journal_.find(code)) found = *before;
  const auto known = [&](std::uint64_t name) { return std::ranges::contains(names_, name); };
  if (found.outcome.empty() || !std::ranges::all_of(found.problems, known)) {
    if (!found.outcome.empty()) found = {};
    std::vector<std::size_t> order;
    for (const std::size_t i : order_)
      if (!std::ranges::contains(found.problems, names_[i])) order.push_back(i);
    if (!order.empty()) {
      found.outcome = outcome_on(order, code_object, found.problems);
      if (!found.outcome.empty() && !found.problems.empty()) {
        const std::size_t noticed =
            static_cast<std::size_t>(std::ranges::find(names_, found.problems.back()) - names_.begin());
        std::erase(order_, noticed);
        order_.insert(order_.begin(), noticed);
      }
      journal_.add(code, found);
    }
  }
  Outcome outcome{.checks = {}, .first = found.outcome, .differs = found.outcome == "differs"};
  if (found.outcome.starts_with("reported ")) outcome.checks.emplace_back("reported");
  return outcome;
}

}  // namespace wavejit::tests
