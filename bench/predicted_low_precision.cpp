// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writes bench/predicted_low_precision.md: what the clock predicts for calls over 8 bits, beside the same call in bf16
// on the same clock, with what this project set itself and what others have published. The words about causes stand in
// predicted_low_precision_causes.h.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "boards/board.h"
#include "check_or_print.h"
#include "predicted_launches.h"
#include "predicted_low_precision_causes.h"
#include "predicted_page.h"
#include "timing/timing.h"

namespace {

using namespace wavejit;
using bench::LaunchPrediction;
using bench::LaunchTask;

constexpr const char* command = "./dev bench low_precision";

// What a goal asks of a row.
enum class Asks : std::uint8_t {
  nothing,
  times,         // as fast as bf16, so many times, at least
  most,          // so many times the cycles of bf16 at most
  memory,        // so many % of what memory delivers, at least
  rate,          // so many bytes a cycle of the walk, at least
  microseconds,  // so many at most
};
struct Goal {
  Asks asks = Asks::nothing;
  double number = 0;
};

struct Row {
  std::string_view words;   // the descriptor's, without the format's
  std::string_view format;  // words of the 8 bits; {} is the target's e4m3
  std::string_view name;    // what the page calls the format
  double key_bytes = 0;     // all keys that a call walks, each counted once; 0: not asked
  std::vector<Goal> goals = {};
  std::string_view target = "";  // "": every one
};
struct Block {
  std::string_view title;
  std::string_view family;
  std::string_view causes;
  std::vector<Row> rows;
};

constexpr double million = 1e6;
constexpr double decode_bytes = 64.0 * 8192 * 8 * 2 * 128 / million;

// Bytes are given in millions.
std::vector<Block> blocks() {
  constexpr std::string_view decode = "b64 q1 k8192 h64/8 d128";
  constexpr std::string_view prompt = "b1 q8192 k8192 h16/4 d128";
  constexpr std::string_view causal = "b1 q8192 k8192 h16/4 d128 causal";
  const std::vector<Goal> times_18 = {{Asks::memory, 90}, {Asks::times, 1.8}};
  const std::vector<Goal> times_175 = {{Asks::memory, 80}, {Asks::times, 1.75}};
  const std::vector<Goal> close = {{Asks::most, 1.10}};
  std::vector<Block> all = {
      {.title = "Decode over caches of 8 bits",
       .family = "attention_forward",
       .causes = bench::causes_of_decode,
       .rows = {{decode, "cache={}", "e4m3", decode_bytes, times_18, "gfx950"},
                {decode, "cache={}", "e4m3", decode_bytes, times_175, "gfx942"},
                {decode, "cache={} cache_scales=token", "e4m3, scales of tokens", decode_bytes},
                {decode, "cache=i8 cache_scales=h", "int8, scales of heads", decode_bytes}}},
      {.title = "Prompts over caches of 8 bits",
       .family = "attention_forward",
       .causes = bench::causes_of_prompts,
       .rows = {{prompt, "cache={}", "e4m3", 0, close},
                {causal, "cache={}", "e4m3", 0, close},
                {prompt, "cache=i8 cache_scales=h", "int8", 0, close},
                {causal, "cache=i8 cache_scales=h", "int8", 0, close},
                {prompt, "cache={} cache_scales=token", "e4m3, scales of tokens", 0, close},
                {causal, "cache={} cache_scales=token", "e4m3, scales of tokens", 0, close},
                {prompt, "cache=i8 cache_scales=token", "int8, scales of tokens", 0, close}}},
      {.title = "Queries of 8 bits",
       .family = "attention_forward",
       .causes = bench::causes_of_byte_queries,
       .rows = {}},
      {.title = "Queries and keys in int8, values of 16 bits",
       .family = "attention_forward",
       .causes = bench::causes_of_integers,
       .rows = {{"b1 q8192 k8192 h16 d128", "qk=i8", "int8", 0, {{Asks::times, 1.1}}, "gfx950"},
                {"b1 q8192 k8192 h16 d128 causal", "qk=i8", "int8", 0, {{Asks::times, 1.1}}, "gfx950"},
                {"b1 q8192 k8192 h16 d128", "qk=i8", "int8", 0, {}, "gfx942"}}},
      {.title = "Latent attention", .family = "attention_latent", .causes = bench::causes_of_latent_bytes, .rows = {}},
  };
  // Rows of 584 bytes have 512 columns, those of 656 and of one scale 576.
  constexpr std::string_view d576 = "b64 q1 k8192 h16 d576/512 layout=paged:64";
  constexpr std::string_view d512 = "b64 q1 k8192 h16 d512 layout=paged:64";
  constexpr std::string_view listed_576 = "b1 q1 k8192 h16 d576/512 layout=paged:64 top_k=2048";
  constexpr std::string_view listed_512 = "b1 q1 k8192 h16 d512 layout=paged:64 top_k=2048";
  struct Latent {
    std::string_view format;
    std::string_view name;
    double row_bytes;
    std::string_view all_keys;
    std::string_view listed;
  };
  for (const Latent& latent : {Latent{"cache={} cache_scales=1", "e4m3, one scale", 576, d576, listed_576},
                               Latent{"cache={} row_scales=128", "rows of 656 bytes", 656, d576, listed_576},
                               Latent{"cache={} row_scales=64", "rows of 584 bytes", 584, d512, listed_512}}) {
    all[4].rows.push_back({latent.all_keys,
                           latent.format,
                           latent.name,
                           64.0 * 8192 * latent.row_bytes / million,
                           {{Asks::memory, 80}},
                           "gfx950"});
    all[4].rows.push_back({latent.listed,
                           latent.format,
                           latent.name,
                           2048 * latent.row_bytes / million,
                           {{Asks::microseconds, 6.5}},
                           "gfx950"});
  }
  all[4].rows.push_back({"b64 q1 k4096 h128 d576/512",
                         "cache={} cache_scales=1",
                         "e4m3, one scale",
                         64.0 * 4096 * 576 / million,
                         {{Asks::rate, 1100}},
                         "gfx950"});
  for (const std::string_view words :
       {"b1 q2048 k2048 h16 d128", "b1 q8192 k8192 h16 d128", "b1 q16384 k16384 h16 d128",
        "b1 q8192 k8192 h16 d128 causal", "b1 q16384 k16384 h16 d128 causal", "b1 q8192 k8192 h16/4 d64",
        "b1 q8192 k8192 h16/4 d192/128"}) {
    const bool asked = words.ends_with("d128") && !words.contains("2048 ");
    all[2].rows.push_back({words, "queries=e4m3", "e4m3", 0,
                           asked ? std::vector<Goal>{{Asks::times, 1.60}} : std::vector<Goal>(), "gfx950"});
  }
  return all;
}

struct Task {
  const boards::Board* target = nullptr;
  const Block* block = nullptr;
  const Row* row = nullptr;

  std::string wide() const { return fmt::format("{} bf16 {}", block->family, row->words); }
  std::string narrow() const {
    std::string format(row->format);
    if (const std::size_t place = format.find("{}"); place != std::string::npos)
      format.replace(place, 2, std::string_view(target->id) == "gfx942" ? "e4m3_fnuz" : "e4m3");
    return wide() + ' ' + format;
  }
};

std::string goal_text(const Goal& goal) {
  switch (goal.asks) {
    case Asks::times:
      return fmt::format("≥ {:.2f} ×", goal.number);
    case Asks::most:
      return fmt::format("≤ {:.2f} × the cycles", goal.number);
    case Asks::memory:
      return fmt::format("≥ {:.0f} % of memory", goal.number);
    case Asks::rate:
      return fmt::format("≥ {:.0f} bytes a cycle", goal.number);
    case Asks::microseconds:
      return fmt::format("≤ {:.1f} µs, as published", goal.number);
    case Asks::nothing:
      break;
  }
  return "–";
}

struct Figures {
  double cycles = 0;        // the whole call's, the wait among them
  double microseconds = 0;  // without that wait
  double times = 0;         // as fast as bf16
  double rate = 0;          // bytes a cycle of the walk
  double memory = 0;        // that rate as % of what memory delivers
};

bool is_met(const Goal& goal, const Figures& figures) {
  switch (goal.asks) {
    case Asks::times:
      return figures.times >= goal.number;
    case Asks::most:
      return 1 / figures.times <= goal.number;
    case Asks::memory:
      return figures.memory >= goal.number;
    case Asks::rate:
      return figures.rate >= goal.number;
    case Asks::microseconds:
      return figures.microseconds <= goal.number;
    case Asks::nothing:
      break;
  }
  return true;
}

std::string row_text(const Task& task, const LaunchPrediction& wide, const LaunchPrediction& narrow) {
  std::uint64_t waits = 0;
  for (const bench::OneLaunch& launch : narrow.each) waits += launch.wait;
  Figures figures;
  figures.cycles = static_cast<double>(narrow.cycles);
  figures.microseconds =
      static_cast<double>(narrow.cycles - waits) / (static_cast<double>(task.target->clock_khz) / 1000.0);
  figures.times = static_cast<double>(wide.cycles) / figures.cycles;
  figures.rate = task.row->key_bytes * million / static_cast<double>(narrow.each.front().cycles);
  figures.memory = 100 * figures.rate / timing::find_timing(*task.target)->memory.memory_rate.value;
  std::string goals;
  for (const Goal& goal : task.row->goals)
    goals += fmt::format("{}{}{}", goals.empty() ? "" : ", ", goal_text(goal), is_met(goal, figures) ? "" : ": missed");
  const bool of_memory = task.row->key_bytes != 0;
  return fmt::format(
      "| {} | {} | {} | {} | {} | {} | {:.2f} | {} | {} | {:.1f} | {} |\n", task.row->words, task.row->name,
      narrow.kernel, wide.cycles, narrow.each.front().cycles, narrow.cycles, figures.times,
      of_memory ? fmt::format("{:.0f}", figures.rate) : "–",
      of_memory ? fmt::format("{:.1f} %", figures.memory) : fmt::format("{:.1f} % busy", 100 * narrow.busy),
      figures.microseconds, goals.empty() ? "–" : goals);
}

std::string page(std::span<const Task> tasks, std::span<const LaunchPrediction> predictions) {
  std::string text(bench::introduction_of_low_precision);
  const Block* before = nullptr;
  const boards::Board* target = nullptr;  // that the rows above have
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Task& task = tasks[i];
    if (before != task.block) {
      text += fmt::format("\n## {}\n\n", task.block->title);
      target = nullptr;
    }
    if (target != task.target)
      text += fmt::format(
          "{}{}, {}:\n\n"
          "| call | 8 bits | kernel | bf16 | walk | call | times bf16 | bytes a cycle | of memory | µs | goal |\n"
          "|---|---|---|---|---|---|---|---|---|---|---|\n",
          target == nullptr ? "" : "\n", task.target->id, task.target->product);
    text += row_text(task, predictions[2 * i], predictions[(2 * i) + 1]);
    before = task.block;
    target = task.target;
    if (i + 1 == tasks.size() || tasks[i + 1].block != task.block) text += fmt::format("\n{}", task.block->causes);
  }
  return text;
}

}  // namespace

namespace wavejit::bench {

int predict_low_precision(const PageRequest& request) {
  const std::vector<Block> all = blocks();
  std::vector<Task> tasks;
  for (const Block& block : all)
    for (const boards::Board& target : boards::complete_products())
      for (const Row& row : block.rows)
        if (row.target.empty() || row.target == target.id)
          tasks.push_back({.target = &target, .block = &block, .row = &row});
  std::erase_if(
      tasks, [&](const Task& task) { return !request.asks_for(fmt::format("{} {}", task.target->id, task.narrow())); });
  if (tasks.empty()) {
    fmt::print(stderr, "no call has all of these words; without words the page has all calls\n");
    return 2;
  }
  // A call in bf16 stands beside several: it is timed once.
  std::vector<LaunchTask> launches;
  std::vector<std::size_t> places;
  for (const Task& task : tasks)
    for (const std::string& descriptor : {task.wide(), task.narrow()}) {
      const auto same = std::ranges::find_if(launches, [&](const LaunchTask& launch) {
        return launch.target == task.target && launch.descriptor == descriptor;
      });
      places.push_back(static_cast<std::size_t>(same - launches.begin()));
      if (same == launches.end()) launches.push_back({.target = task.target, .descriptor = descriptor, .warm = false});
    }
  const auto timed = bench::predict_launches(launches, tools::WorkerLife::one_task);
  if (!timed) {
    fmt::print(stderr, "{}\n", timed.error().what);
    return 1;
  }
  std::vector<LaunchPrediction> predictions;
  predictions.reserve(places.size());
  for (const std::size_t place : places) predictions.push_back((*timed)[place]);
  return bench::check_or_print(page(tasks, predictions), request.file, command);
}

}  // namespace wavejit::bench
