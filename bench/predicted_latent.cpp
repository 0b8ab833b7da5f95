// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A page (predicted_pages.cpp): what the clock predicts for whole calls of attention_latent, as a part of what
// memory delivers and of what matrix pipes do, beside what others have published.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <optional>
#include <ranges>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "boards/board.h"
#include "isa/matrix.h"
#include "predicted_launches.h"
#include "predicted_page.h"
#include "timing/launches.h"
#include "timing/timing.h"

namespace {

using namespace wavejit;
using bench::LaunchPrediction;
using bench::LaunchTask;

constexpr std::string_view introduction =
    R"(# What the clock predicts for latent attention

Printed by `./dev bench predicted latent`. **Cycles and shares are predicted, never measured**: no kernel of this project has run on a GPU.
[docs/timing-model.md](../docs/timing-model.md) says how far to trust them. `attention_latent`, bf16, 576 columns of which 512 are values, every setting as it is by default,
the workspace the engine's own. Arrays hold zeros.

| column | what it says |
|---|---|
| walk, merge | cycles of the two launches. `–`: the call has one launch, since keys are not cut into runs, or since the last workgroup to arrive merges as a part of the walk |
| call | cycles of all launches, and of the second one's wait (`launch.dependent` of [timing-model.md](../docs/timing-model.md)) |
| bytes a cycle | the bytes of the keys, each counted once, over the walk's cycles |
| of memory | that rate as a part of what the clock's memory delivers at most: 2,500 bytes a cycle on gfx950 and 1,952 on gfx942. The second figure is the whole call's |
| of peak | 2 · rows · keys · (576 + 512) operations over what all matrix pipes do in the call's cycles. Rows that are not there and scores that two waves multiply are no operations |
| beside | the call's cycles beside those of the row that the title names |
| busy | matrix pipes in the middle half of a compute unit's time, of the walk, whatever they multiply |
| goal | what this project set itself |

)";

constexpr std::string_view behind = R"(
## What others published

None of these was run here.

| figure | source |
|---|---|
| bf16, 32 heads, MI355X, B16, 32, 64, 128 × 4k: 34.8, 47.3, 75.8, 130.5 µs; × 16k: 73.5, 126, 231, 429 µs; × 128k: up to 5.96 TB/s, 360 TFLOP/s | ROCm/aiter, pull request 5456 |
| bf16, 64 heads, q 4, MI355X, B16, 32, 64, 128 × 4k: 79, 121, 204, 335 µs; × 16k: 190, 344, 680, 1,292 µs; at most 924 TFLOP/s, 37 % of peak | ROCm/aiter, pull request 5456 |
| bf16, MI300X and MI325X | nothing is published beside 55 µs and 11.5 µs of merging for 16 heads, B64 on MI325X (InferenceX, pull requests 863 and 871) |
)";

struct Shape {
  int batch = 64;
  int queries = 1;
  int keys = 8192;
  int heads = 16;
  std::string_view words = "";
  std::string_view goal = "";
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
       .shapes = {{.goal = "≥ 92 % of memory"},
                  {.batch = 128, .keys = 4096, .goal = "≥ 92 % of memory", .target = "gfx950"},
                  {.heads = 32, .goal = "≥ 92 % of memory", .target = "gfx950"},
                  {.batch = 128, .keys = 4096, .heads = 32, .goal = "≥ 92 % of memory", .target = "gfx950"},
                  {.heads = 32, .goal = "–", .target = "gfx942"},
                  {.keys = 4096, .heads = 128, .goal = "≥ 70 % of memory", .target = "gfx950"},
                  {.keys = 4096, .heads = 128, .goal = "≥ 1,300 bytes a cycle", .target = "gfx942"}}},
      {.title = "Four queries a sequence",
       .shapes = {{.batch = 16, .queries = 4, .keys = 16384, .heads = 64, .goal = "≥ 61 % busy", .target = "gfx950"}}},
      {.title = "Heads beside the next multiple of 16",
       .shapes = {{.heads = 8, .goal = "≤ 6 %"},
                  {.heads = 12, .goal = "≤ 6 %"},
                  {.heads = 20, .goal = "≤ 6 %"},
                  {.heads = 24, .goal = "≤ 6 %"}}},
      {.title = "Pages beside the same keys dense",
       .shapes = {{.words = " layout=paged:64", .goal = "≤ 2 %"}, {.words = " layout=paged:1", .goal = "≤ 6 %"}}},
      {.title = "Merged in one launch, and in two",
       .shapes = {{.batch = 1, .keys = 4096, .words = " launches=1", .goal = "–"},
                  {.batch = 1, .keys = 4096, .words = " launches=2", .goal = "–"},
                  {.batch = 1, .words = " launches=1", .goal = "–"},
                  {.batch = 1, .words = " launches=2", .goal = "–"},
                  {.batch = 1, .keys = 16384, .words = " launches=1", .goal = "–"},
                  {.batch = 1, .keys = 16384, .words = " launches=2", .goal = "–"},
                  {.batch = 1, .heads = 32, .words = " launches=1", .goal = "–"},
                  {.batch = 1, .heads = 32, .words = " launches=2", .goal = "–"},
                  {.words = " launches=1", .goal = "–"}}},
      // Sequences are as short as memory of the machine that runs this wants them: no key is read twice in any case.
      {.title = "Lists of 2,048 keys a query",
       .shapes = {
           {.batch = 1, .words = " layout=paged:64", .goal = "≤ 9 µs without the wait", .top_k = 2048},
           {.batch = 48, .keys = 4096, .words = " layout=paged:64", .goal = "≥ 80 % of memory", .top_k = 2048},
           {.batch = 96, .keys = 4096, .words = " layout=paged:64", .goal = "≥ 80 % of memory", .top_k = 2048}}}};
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

std::string row_text(const Task& task, const LaunchPrediction& prediction, const LaunchPrediction* other) {
  const Shape& shape = *task.shape;
  const auto walk = static_cast<double>(prediction.each.front().cycles);
  const auto call = static_cast<double>(prediction.cycles);
  const std::string merge =
      prediction.each.size() > 1 ? fmt::format("{}", prediction.each.back().cycles) : std::string("–");
  const std::string ratio =
      other == nullptr ? "–" : fmt::format("{:+.1f} %", 100 * (call / static_cast<double>(other->cycles) - 1));
  return fmt::format(
      "| {} | {} | {} | {} | {} | {:.0f} | {:.1f} %, {:.1f} % | {:.1f} % | {:.1f} % | {:.1f} | {} | {} |\n",
      name_of(shape), prediction.kernel, prediction.each.front().cycles, merge, prediction.cycles,
      shape.key_bytes() / walk, of_memory(task, walk), of_memory(task, call),
      100 * shape.operations() / call / operations_of_cycle(*task.target), 100 * prediction.each.front().steady_busy,
      call / (static_cast<double>(task.target->clock_khz) / 1000.0), ratio, shape.goal);
}

std::string title_of(const boards::Board& target) { return fmt::format("## {}, {}\n", target.id, target.product); }

std::string page(std::span<const Task> tasks, std::span<const LaunchPrediction> predictions) {
  std::string text(introduction);
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
  text += behind;
  return text;
}

// A page that was printed, and what it says of each task.
class KnownPage {
 public:
  explicit KnownPage(const char* file) {
    std::ostringstream read;
    read << std::ifstream(file).rdbuf();
    text_ = read.str();
  }

  bool has(std::string_view words) const { return text_.contains(words); }
  // "": the part that begins with `title` is not there.
  std::string_view part(std::string_view title) const {
    const std::size_t begin = text_.find(title);
    if (begin == std::string::npos) return {};
    return std::string_view(text_).substr(begin, text_.find("\n## ", begin) - begin);
  }
  // The row, with its end; "": none, or several.
  std::string row(const Task& task) const {
    std::string_view table = part(title_of(*task.target));
    const std::size_t begin = table.find(fmt::format("\n{}:\n", task.block->title));
    if (begin == std::string_view::npos) return {};
    table.remove_prefix(begin + 1);
    // A table's title, an empty line, and lines that begin with a bar.
    table = table.substr(0, table.find("|\n\n"));
    const std::string first = fmt::format("\n| {} |", name_of(*task.shape));
    const std::size_t at = table.find(first);
    if (at == std::string_view::npos || table.find(first, at + 1) != std::string_view::npos) return {};
    table.remove_prefix(at + 1);
    return std::string(table.substr(0, table.find('\n'))) + (table.contains('\n') ? "\n" : "|\n");
  }
  // Rows of calls in the tables of a target.
  std::ptrdiff_t rows(const boards::Board& target) const {
    return std::ranges::count_if(std::views::split(part(title_of(target)), '\n'),
                                 [](auto&& line) { return std::string_view(line).starts_with("| B"); });
  }

 private:
  std::string text_;
};

// A row's own columns say its kernel, its cycles and how busy matrix pipes are. Nothing: it has another number of columns.
std::optional<LaunchPrediction> read_row(const std::string& row) {
  std::vector<std::string_view> cells;
  for (const auto& cell : std::views::split(std::string_view(row), std::string_view(" | "))) cells.emplace_back(cell);
  constexpr std::size_t columns = 12;
  if (cells.size() != columns) return std::nullopt;
  const auto number = [](std::string_view digits) {
    double value = -1;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  };
  const auto cycles = [&](std::size_t cell) { return static_cast<std::uint64_t>(number(cells[cell])); };
  LaunchPrediction read;
  read.kernel = cells[1];
  bench::OneLaunch& walk = read.each.emplace_back();
  walk.cycles = cycles(2);
  walk.steady_busy = number(cells[8]) / 100;
  read.cycles = walk.cycles;
  if (cells[3] != "–") {
    bench::OneLaunch& merge = read.each.emplace_back();
    merge.wait = static_cast<std::uint64_t>(timing::stream.dependent.cycles());
    merge.cycles = cycles(3);
    read.cycles += merge.wait + merge.cycles;
  }
  return read;
}

// How "Goals, one by one" says what a call gets of memory.
std::string goal_figures(const Task& task, const LaunchPrediction& prediction) {
  const auto call = static_cast<double>(prediction.cycles);
  if (prediction.each.size() == 1) return fmt::format("{:.1f} %, one launch", of_memory(task, call));
  return fmt::format("walk {:.1f} %; call {:.1f} %, {:.1f} %",
                     of_memory(task, static_cast<double>(prediction.each.front().cycles)), of_memory(task, call),
                     of_memory(task, call - static_cast<double>(prediction.each.back().wait)));
}

// All that is wrong with the page, a line each.
std::vector<std::string> wrong_lines(const KnownPage& page, std::span<const Task> tasks) {
  std::vector<std::string> wrong;
  for (const std::string_view text : {introduction, behind})
    if (!page.has(text.substr(0, text.size() - 1))) wrong.push_back(fmt::format("not there:\n{}", text));
  std::vector<std::optional<LaunchPrediction>> read;
  for (const Task& task : tasks) read.push_back(read_row(page.row(task)));
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Task& task = tasks[i];
    const std::string name = fmt::format("{}, {}: {}", task.target->id, task.block->title, name_of(*task.shape));
    if (!read[i]) {
      wrong.push_back(fmt::format("{}: no such row, or several", name));
      continue;
    }
    const Task* other = beside(tasks, task);
    const auto& of_other = other == nullptr ? read[i] : read[static_cast<std::size_t>(other - tasks.data())];
    const std::string row = row_text(task, *read[i], other == nullptr || !of_other ? nullptr : &*of_other);
    if (page.row(task) != row)
      wrong.push_back(fmt::format("{}\n  the page:     {}  its cycles say: {}", name, page.row(task), row));
    const std::string figures = goal_figures(task, *read[i]);
    if (task.shape->goal.ends_with("of memory") && !page.part("## Goals, one by one").contains(figures))
      wrong.push_back(fmt::format("{}: \"Goals, one by one\" has not: {}", name, figures));
  }
  for (const boards::Board& target : boards::complete_products())
    if (const auto known = std::ranges::count(tasks, &target, &Task::target); page.rows(target) != known)
      wrong.push_back(fmt::format("{}: {} rows, and the program has {}", target.id, page.rows(target), known));
  return wrong;
}

int print_wrong(const char* file, std::span<const std::string> wrong) {
  for (const std::string& line : wrong) fmt::print(stderr, "{}: {}\n", file, line);
  return wrong.empty() ? 0 : 1;
}

}  // namespace

namespace wavejit::bench {

int predict_latent(const PageRequest& request) {
  const char* const file = request.file;
  const std::vector<Task> all = all_tasks();
  if (file != nullptr) {
    const int code = print_wrong(file, wrong_lines(KnownPage(file), all));
    if (code != 0 || request.words.empty()) return code;
  }
  std::vector<Task> tasks = all;
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
  const auto predictions = bench::predict_launches(launches);
  if (!predictions) {
    fmt::print(stderr, "{}\n", predictions.error().what);
    return 1;
  }
  if (file == nullptr) {
    fmt::print("{}", page(tasks, *predictions));
    return 0;
  }
  // The page itself says which row another stands beside: rows were held against each other above.
  std::vector<std::string> wrong;
  const KnownPage known(file);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const std::string row = known.row(tasks[i]);
    const Task* other = beside(all, tasks[i]);
    const auto of_other = other == nullptr ? std::nullopt : read_row(known.row(*other));
    const std::string today = row_text(tasks[i], (*predictions)[i], of_other ? &*of_other : nullptr);
    if (row != today) wrong.push_back(fmt::format("the page: {}today:    {}", row, today));
  }
  return print_wrong(file, wrong);
}

}  // namespace wavejit::bench
