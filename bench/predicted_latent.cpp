// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A page (predicted_pages.cpp): what the clock predicts for whole calls of attention_latent, as a part of what
// memory delivers and of what matrix pipes do, beside what others have published.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "boards/board.h"
#include "check_or_print.h"
#include "isa/matrix.h"
#include "predicted_latent_text.h"
#include "predicted_launches.h"
#include "predicted_page.h"
#include "timing/timing.h"

namespace {

using namespace wavejit;
using bench::LaunchPrediction;
using bench::LaunchTask;

constexpr const char* command = "./dev bench latent";

// What a goal asks of a row.
enum class Asks : std::uint8_t {
  nothing,
  memory,         // of the whole call, % of what memory delivers, at least
  rate,           // of the walk, bytes a cycle, at least
  busy,           // %, at least
  beside,         // % more than the row beside it, at most
  without_a_wait  // microseconds of the call, at most
};
struct Goal {
  Asks asks = Asks::nothing;
  double number = 0;
};

struct Shape {
  int batch = 64;
  int queries = 1;
  int keys = 8192;
  int heads = 16;
  std::string_view words = "";
  Goal goal = {};
  std::string_view target = "";  // "": every one
  int top_k = 0;                 // keys that each query's list names; 0: no lists

  std::string descriptor() const {
    return fmt::format("attention_latent bf16 b{} q{} k{} h{} d576/512{}{}", batch, queries, keys, heads, words,
                       top_k == 0 ? std::string() : fmt::format(" top_k={}", top_k));
  }
  bool same_but_for_heads(const Shape& other) const {
    return other.top_k == 0 && batch == other.batch && queries == other.queries && keys == other.keys &&
           other.words.empty();
  }
  // Lists of different queries name different keys.
  double walked_keys() const { return top_k == 0 ? double{1} * batch * keys : double{1} * batch * queries * top_k; }
  double key_bytes() const { return double{576} * 2 * walked_keys(); }
  double operations() const {
    return 2.0 * (576 + 512) * heads * (top_k == 0 ? queries * walked_keys() : walked_keys());
  }
};

struct Block {
  std::string_view title;
  std::vector<Shape> shapes;
};

const std::vector<Block>& blocks() {
  static const std::vector<Block> all = {
      {.title = "Decode",
       .shapes = {{.goal = {Asks::memory, 92}},
                  {.batch = 128, .keys = 4096, .goal = {Asks::memory, 92}, .target = "gfx950"},
                  {.heads = 32, .goal = {Asks::memory, 92}, .target = "gfx950"},
                  {.batch = 128, .keys = 4096, .heads = 32, .goal = {Asks::memory, 92}, .target = "gfx950"},
                  {.heads = 32, .target = "gfx942"},
                  {.keys = 4096, .heads = 128, .goal = {Asks::memory, 70}, .target = "gfx950"},
                  {.keys = 4096, .heads = 128, .goal = {Asks::rate, 1300}, .target = "gfx942"}}},
      {.title = "Four queries a sequence",
       .shapes =
           {{.batch = 16, .queries = 4, .keys = 16384, .heads = 64, .goal = {Asks::busy, 61}, .target = "gfx950"}}},
      {.title = "Heads beside the next multiple of 16",
       .shapes = {{.heads = 8, .goal = {Asks::beside, 6}},
                  {.heads = 12, .goal = {Asks::beside, 6}},
                  {.heads = 20, .goal = {Asks::beside, 6}},
                  {.heads = 24, .goal = {Asks::beside, 6}}}},
      {.title = "Pages beside the same keys dense",
       .shapes = {{.words = " layout=paged:64", .goal = {Asks::beside, 2}},
                  {.words = " layout=paged:1", .goal = {Asks::beside, 6}}}},
      {.title = "Merged in one launch, and in two",
       .shapes = {{.batch = 1, .keys = 4096, .words = " launches=1"},
                  {.batch = 1, .keys = 4096, .words = " launches=2"},
                  {.batch = 1, .words = " launches=1"},
                  {.batch = 1, .words = " launches=2"},
                  {.batch = 1, .keys = 16384, .words = " launches=1"},
                  {.batch = 1, .keys = 16384, .words = " launches=2"},
                  {.batch = 1, .heads = 32, .words = " launches=1"},
                  {.batch = 1, .heads = 32, .words = " launches=2"},
                  {.words = " launches=1"}}},
      // Sequences are as short as memory of the machine that runs this wants them: no key is read twice in any case.
      {.title = "Lists of 2,048 keys a query",
       .shapes = {
           {.batch = 1, .words = " layout=paged:64", .goal = {Asks::without_a_wait, 9}, .top_k = 2048},
           {.batch = 48, .keys = 4096, .words = " layout=paged:64", .goal = {Asks::memory, 80}, .top_k = 2048},
           {.batch = 96, .keys = 4096, .words = " layout=paged:64", .goal = {Asks::memory, 80}, .top_k = 2048}}}};
  return all;
}

struct Task {
  const boards::Board* target = nullptr;
  const Block* block = nullptr;
  const Shape* shape = nullptr;
};

std::vector<Task> all_tasks() {
  std::vector<Task> tasks;
  for (const boards::Board& target : boards::complete_products())
    for (const Block& block : blocks())
      for (const Shape& shape : block.shapes)
        if (shape.target.empty() || shape.target == target.id)
          tasks.push_back({.target = &target, .block = &block, .shape = &shape});
  return tasks;
}

// 16-bit operations of the whole GPU in a cycle.
double operations_of_cycle(const boards::Board& target) {
  const targets::MatrixInstruction& widest = target.matrix.front();
  const double of_simd = 2.0 * widest.m * widest.n * widest.k / (4 * isa::find_matrix_instruction(widest.id)->passes);
  return of_simd * target.simds_per_compute_unit * target.compute_units;
}

// The row that a figure stands beside: of dense keys, of the next multiple of 16 heads.
const Task* beside(std::span<const Task> tasks, const Task& task) {
  const int heads = (task.shape->heads + 15) / 16 * 16;
  if (task.shape->top_k != 0 || (task.shape->words.empty() && heads == task.shape->heads)) return nullptr;
  for (const Task& other : tasks)
    if (other.target == task.target && task.shape->same_but_for_heads(*other.shape) && other.shape->heads == heads)
      return &other;
  return nullptr;
}

// "B64 × 8192, q 1, 16 heads".
std::string name_of(const Shape& shape) {
  return fmt::format("B{} × {}, q {}, {} heads{}", shape.batch, shape.keys, shape.queries, shape.heads, shape.words);
}

// The keys' bytes as a part of what memory delivers in so many cycles, %.
double of_memory(const Task& task, double cycles) {
  return 100 * task.shape->key_bytes() / cycles / timing::find_timing(*task.target)->memory.memory_rate.value;
}

struct Figures {
  double rate = 0;            // bytes a cycle of the walk
  double walk_of_memory = 0;  // %
  double of_memory = 0;       // the call's, %
  double busy = 0;            // %
  double beside = 0;          // %; only where a row stands beside it
  double without_a_wait = 0;  // µs
};

std::string goal_text(const Goal& goal, const Figures& figures) {
  const auto judged = [](const std::string& text, bool is_met) { return text + (is_met ? "" : ": missed"); };
  switch (goal.asks) {
    case Asks::memory:
      return judged(fmt::format("≥ {:.0f} % of memory", goal.number), figures.of_memory >= goal.number) +
             (figures.of_memory < goal.number && figures.walk_of_memory >= goal.number ? ", not by the walk" : "");
    case Asks::rate:
      return judged(fmt::format("≥ {:.0f} bytes a cycle", goal.number), figures.rate >= goal.number);
    case Asks::busy:
      return judged(fmt::format("≥ {:.0f} % busy", goal.number), figures.busy >= goal.number);
    case Asks::beside:
      return judged(fmt::format("≤ {:.0f} %", goal.number), figures.beside <= goal.number);
    case Asks::without_a_wait:
      return judged(fmt::format("≤ {:.0f} µs without the wait", goal.number), figures.without_a_wait <= goal.number);
    case Asks::nothing:
      break;
  }
  return "–";
}

std::string row_text(const Task& task, const LaunchPrediction& prediction, const LaunchPrediction* other) {
  const Shape& shape = *task.shape;
  const auto walk = static_cast<double>(prediction.each.front().cycles);
  const auto call = static_cast<double>(prediction.cycles);
  const double cycles_of_microsecond = static_cast<double>(task.target->clock_khz) / 1000.0;
  const bool has_merge = prediction.each.size() > 1;
  const double wait = has_merge ? static_cast<double>(prediction.each.back().wait) : 0;
  Figures figures = {.rate = shape.key_bytes() / walk,
                     .walk_of_memory = of_memory(task, walk),
                     .of_memory = of_memory(task, call),
                     .busy = 100 * prediction.each.front().steady_busy,
                     .without_a_wait = (call - wait) / cycles_of_microsecond};
  if (other != nullptr) figures.beside = 100 * (call / static_cast<double>(other->cycles) - 1);
  return fmt::format(
      "| {} | {} | {} | {} | {} | {:.0f} | {:.1f} %, {:.1f} % | {:.1f} % | {:.1f} % | {:.1f} | {} | {} |\n",
      name_of(shape), prediction.kernel, prediction.each.front().cycles,
      has_merge ? fmt::format("{}", prediction.each.back().cycles) : "–", prediction.cycles, figures.rate,
      figures.walk_of_memory, figures.of_memory, 100 * shape.operations() / call / operations_of_cycle(*task.target),
      figures.busy, call / cycles_of_microsecond, other == nullptr ? "–" : fmt::format("{:+.1f} %", figures.beside),
      goal_text(shape.goal, figures));
}

std::string title_of(const boards::Board& target) { return fmt::format("## {}, {}\n", target.id, target.product); }

std::string page(std::span<const Task> tasks, std::span<const LaunchPrediction> predictions) {
  std::string text(bench::introduction_of_latent);
  const Task* before = nullptr;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Task& task = tasks[i];
    if (before == nullptr || before->target != task.target) text += title_of(*task.target);
    if (before == nullptr || before->target != task.target || before->block != task.block)
      text += fmt::format(
          "\n{}:\n\n| call | kernel | walk | merge | call | bytes a cycle | of memory | of peak | busy | µs | "
          "beside | goal |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n",
          task.block->title);
    const Task* other = beside(tasks, task);
    text += row_text(task, predictions[i],
                     other == nullptr ? nullptr : &predictions[static_cast<std::size_t>(other - tasks.data())]);
    before = &task;
    if (i + 1 < tasks.size() && tasks[i + 1].target != task.target) text += "\n";
  }
  for (const std::string_view part : {bench::causes_of_latent, bench::compiling_of_latent, bench::others_of_latent})
    text += part;
  return text;
}

}  // namespace

namespace wavejit::bench {

int predict_latent(const PageRequest& request) {
  std::vector<Task> tasks = all_tasks();
  std::erase_if(tasks, [&](const Task& task) {
    return !request.asks_for(fmt::format("{} {}", task.target->id, task.shape->descriptor()));
  });
  if (tasks.empty()) {
    fmt::print(stderr, "no call has all of these words; without words the page has all calls\n");
    return 2;
  }
  std::vector<LaunchTask> launches;
  launches.reserve(tasks.size());
  for (const Task& task : tasks)
    launches.push_back({.target = task.target, .descriptor = task.shape->descriptor(), .warm = false});
  const auto predictions = bench::predict_launches(launches, tools::WorkerLife::one_task);
  if (!predictions) {
    fmt::print(stderr, "{}\n", predictions.error().what);
    return 1;
  }
  if (request.words.empty() || request.file == nullptr)
    return bench::check_or_print(page(tasks, *predictions), request.file, command);
  // A row whose neighbour was not asked for has a cell that only the whole page knows.
  const std::vector<Task> all = all_tasks();
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Task* other = beside(tasks, tasks[i]);
    if (other == nullptr && beside(all, tasks[i]) != nullptr) continue;
    rows.push_back(
        row_text(tasks[i], (*predictions)[i],
                 other == nullptr ? nullptr : &(*predictions)[static_cast<std::size_t>(other - tasks.data())]));
  }
  return bench::check_rows(rows, request.file, command);
}

}  // namespace wavejit::bench
