// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writes bench/predicted_backward.md: what the clock predicts for whole calls of attention_backward, beside what others
// have published and beside AITER's own code objects on this clock.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "boards/board.h"
#include "check_or_print.h"
#include "isa/matrix.h"
#include "predicted_launches.h"
#include "predicted_page.h"
#include "published_forward.h"
#include "targets/targets.h"

namespace {

using namespace wavejit;
using bench::AiterCall;
using bench::LaunchPrediction;
using bench::LaunchTask;
using bench::PublishedBlock;
using bench::PublishedShape;

constexpr const char* command = "./dev bench backward";

constexpr std::string_view introduction =
    R"(# What the clock predicts for gradients

Made by `./dev bench backward`. **Cycles, busy and share of peak are predicted, never measured**: no kernel of this project has run on a GPU.
[docs/timing-model.md](../docs/timing-model.md) says how far to trust them. Attention backward, bf16, as many keys as rows, every setting as it is by default: the dQ kernel, the dK/dV
kernel behind it, and what a launch loses that waits for another. Some workgroups of each grid are timed, all are handed out, the end of a launch counts. Arrays hold zeros.

| column | what it says |
|---|---|
| dQ, dK/dV | cycles of the two launches, predicted |
| call | cycles of both launches, and of the second one's wait (`launch.dependent` of [timing-model.md](../docs/timing-model.md)) |
| busy | matrix pipes of all compute units, both launches: seven products, and with a mask what it hides in a tile too |
| steady | busy matrix pipes in the middle half of a compute unit's time, of each launch |
| of peak | FLOPs as everybody counts them (10 B H S² D: **five** products, half of it when causal) over what the matrix pipes could do in those cycles. Where heads have 192 dims and 128 of v, three products have 192 and two have 128 |
| GHz to equal | the engine clock at which the predicted call would take as long as the fastest published kernel of the row did. **Not a clock that anybody saw.** Above the GPU's peak (marked !) that kernel is faster at any clock |
| the others | TFLOPS as their authors published them ([published_backward.json](published_backward.json)); – where there is none |

The clock cannot show these:

- **Atomic additions that meet.** Our kernels have none. The clock takes those of other kernels for stores that do not meet: AITER's cycles below are what they would be if no two workgroups
  ever added to the same line. By published figures 32-bit atomic additions cost 1.46 times as much as 16-bit ones.
- **Determinism.** AITER's sums of dQ depend on the order of arrival. They are here because they are the fastest that is published.
- **Power.** A GPU at its limit lowers its clock. Seven products where others have five draw it for longer.
)";

struct Task {
  const boards::Board* target = nullptr;
  PublishedShape shape;
  std::string published;  // cells
  double best = 0;
};

// 16-bit FLOPs of the whole GPU in a cycle.
double flops_of_cycle(const boards::Board& target) {
  const targets::MatrixInstruction& widest = target.matrix.front();
  const double of_simd = 2.0 * widest.m * widest.n * widest.k / (4 * isa::find_matrix_instruction(widest.id)->passes);
  return of_simd * target.simds_per_compute_unit * target.compute_units;
}

std::string heads_of(const PublishedShape& shape) {
  return shape.kv_heads == shape.query_heads ? fmt::format("{}", shape.query_heads)
                                             : fmt::format("{}/{}", shape.query_heads, shape.kv_heads);
}
std::string words_of(const PublishedShape& shape) {
  const std::string values = shape.head_dim_v == 0 ? "" : fmt::format("/{}", shape.head_dim_v);
  return fmt::format("| {} | {} | {}{} | {} | {} |", shape.batch, heads_of(shape), shape.head_dim, values,
                     shape.causal ? "causal" : "full", shape.keys);
}

std::string row_text(const Task& task, const LaunchPrediction& prediction) {
  const auto cycles = static_cast<double>(prediction.cycles);
  std::string text = words_of(task.shape) +
                     fmt::format(" {} | {} | {} | {:.1f} % | {:.1f}, {:.1f} % | {:.1f} % |", prediction.each[0].cycles,
                                 prediction.each[1].cycles, prediction.cycles, 100 * prediction.busy,
                                 100 * prediction.each[0].steady_busy, 100 * prediction.each[1].steady_busy,
                                 100 * task.shape.backward_flops() / cycles / flops_of_cycle(*task.target));
  const double ghz = task.best * 1e3 * cycles / task.shape.backward_flops();
  text += task.best == 0 ? std::string(" – |")
                         : fmt::format(" {:.2f}{} |", ghz, ghz * 1e6 > task.target->clock_khz ? " !" : "");
  return text + task.published + "\n";
}

constexpr std::string_view on_one_clock = R"(
## On one clock

AITER's own code objects with 16-bit atomic additions: their main kernel ([aiter_backward.json](aiter_backward.json)) beside our whole call. Its assembly was tuned on the GPU, ours on this very clock. Theirs also launches a kernel for delta before and one behind that brings dQ into order,
and PyTorch adds up dK and dV of the query heads of a group, which are 16-bit there: what these take is not in the figure.

| target | batch | heads | dim | mask | rows and keys | ours | AITER's main kernel | ours over it |
|---|---|---|---|---|---|---|---|---|
)";

std::string clock_row(const AiterCall& call, const LaunchPrediction& prediction) {
  return fmt::format("| {} {} {} | {:.0f} | {:.2f} |\n", call.target, words_of(call.shape), prediction.cycles,
                     call.cycles, static_cast<double>(prediction.cycles) / call.cycles);
}

// Published figures of shapes that no row can have.
constexpr std::string_view without_a_row = R"(
## Without a row

- Primus-Turbo, MI355X, causal with a window of 128 (64 dims, batch 3, 64/8 heads, 8,192 rows): about 347 TFLOPS. A row here has no window.
- Primus-Turbo's means over a suite of shapes: 874 TFLOPS with atomic additions, 648 for 36 shapes of its split kernels of HipKittens. The shapes are not told.
- TLX on MI350X: 92 to 102 % of HipKittens, 0.99 to 1.38 times AITER. These are shares, and that GPU has another clock.
- FA3 and TLX on H100: 313 to 561 TFLOPS. That is another vendor's GPU.
)";

// Calls that ask for kernels behind the two, and what these cost.
struct Beside {
  const char* descriptor;
  const char* says;
};
constexpr std::array<Beside, 4> beside = {
    {{"attention_backward bf16 b1 q2048 k2048 h8 d128 bias=bh", "without d_bias: no dBias kernel"},
     {"attention_backward bf16 b1 q2048 k2048 h8 d128 bias=bh d_bias", "an element each: nothing broadcasts"},
     {"attention_backward bf16 b1 q2048 k2048 h8 d128 causal bias=h d_bias",
      "causal, an element each: nothing broadcasts"},
     {"attention_backward bf16 b4 q2048 k2048 h8 d128 bias=1 d_bias", "32 heads of four sequences share an element"}}};
constexpr std::string_view with_a_bias = R"(
## With the gradient of a bias

The dBias kernel multiplies scores and dO · Vᵀ once more for every head, two products, and keeps its sums in registers. A workgroup has 128 × 64 elements. With a bias the other two have one block a wave.

| target | problem | dQ | dK/dV | dBias | its pipes busy | steady | call | |
|---|---|---|---|---|---|---|---|---|
)";

std::string beside_row(const targets::Target& target, const Beside& of, const LaunchPrediction& prediction) {
  const bool has = prediction.each.size() > 2;
  return fmt::format(
      "| {} | `{}` | {} | {} | {} | {} | {} | {} |\n", target.id, of.descriptor, prediction.each[0].cycles,
      prediction.each[1].cycles, has ? fmt::format("{}", prediction.each[2].cycles) : "–",
      has ? fmt::format("{:.1f} % | {:.1f} %", 100 * prediction.each[2].busy, 100 * prediction.each[2].steady_busy)
          : "– | –",
      prediction.cycles, of.says);
}

std::vector<Task> tasks_of(const boards::Board& target, const PublishedBlock& block) {
  std::vector<Task> tasks;
  for (const bench::PublishedRow& row : block.rows) {
    Task task = {.target = &target, .shape = row.shape, .published = "", .best = 0};
    for (std::size_t i = 0; i < block.kernels.size(); ++i) {
      if (block.kernels[i].target != target.id) continue;
      task.best = std::max(task.best, row.tflops[i]);
      task.published += row.tflops[i] == 0 ? std::string(" – |") : fmt::format(" {} |", row.tflops[i]);
    }
    tasks.push_back(std::move(task));
  }
  return tasks;
}

struct Table {
  std::string heading;
  std::vector<Task> tasks;
};

// Head dims that nobody has published, as far as we know: the columns without those of others.
Table wide_heads(const boards::Board& target) {
  Table table = {
      .heading =
          "\nWide heads, for which no published figure was found:\n\n"
          "| batch | heads | dim | mask | rows and keys | dQ | dK/dV | call | busy | steady | of peak | GHz to equal |\n"
          "|---|---|---|---|---|---|---|---|---|---|---|---|\n",
      .tasks = {}};
  for (const auto& [dims, values] : {std::pair{192, 128}, {256, 0}}) {
    const PublishedShape shape = {.batch = 1,
                                  .query_heads = 32,
                                  .kv_heads = 32,
                                  .head_dim = dims,
                                  .causal = false,
                                  .keys = 4096,
                                  .head_dim_v = values};
    table.tasks.push_back({.target = &target, .shape = shape, .published = "", .best = 0});
  }
  return table;
}

std::vector<Table> all_tables() {
  std::vector<Table> tables;
  for (const boards::Board& target : boards::complete_products()) {
    std::string heading = fmt::format("\n## {}, {}\n\nPeak: {:.1f} GHz, {} compute units.\n", target.id, target.product,
                                      target.clock_khz / 1e6, target.compute_units);
    for (const PublishedBlock& block : bench::published_backward()) {
      std::string names;
      std::string rule;
      for (const bench::PublishedKernel& kernel : block.kernels) {
        if (kernel.target != target.id) continue;
        names += fmt::format(" {} |", kernel.name);
        rule += "---|";
      }
      if (names.empty()) continue;
      tables.push_back(
          {.heading =
               heading +
               fmt::format(
                   "\nShapes and TFLOPS of {}:\n\n"
                   "| batch | heads | dim | mask | rows and keys | dQ | dK/dV | call | busy | steady | of peak | GHz to equal |{}\n"
                   "|---|---|---|---|---|---|---|---|---|---|---|---|{}\n",
                   block.source, names, rule),
           .tasks = tasks_of(target, block)});
      heading.clear();
    }
    tables.push_back(wide_heads(target));
  }
  return tables;
}

}  // namespace

namespace wavejit::bench {

int predict_backward(const PageRequest& request) {
  // Shapes may stand in several tables: each is timed once.
  const std::vector<Table> tables = all_tables();
  std::vector<LaunchTask> launches;
  const auto number_of = [&](const targets::Target& target, const PublishedShape& shape) {
    const std::string descriptor = shape.descriptor("attention_backward");
    const auto known = std::ranges::find_if(launches, [&](const LaunchTask& task) {
      return task.target->id == target.id && task.descriptor == descriptor;
    });
    if (known != launches.end()) return static_cast<std::size_t>(known - launches.begin());
    launches.push_back({.target = &target, .descriptor = descriptor, .warm = false});
    return launches.size() - 1;
  };
  std::vector<std::size_t> numbers;
  for (const Table& table : tables)
    for (const Task& task : table.tasks) numbers.push_back(number_of(*task.target, task.shape));
  for (const AiterCall& call : bench::aiter_backward_kernels())
    for (const boards::Board& target : boards::complete_products())
      if (target.id == call.target) numbers.push_back(number_of(target, call.shape));
  for (const boards::Board& target : boards::complete_products())
    for (const Beside& of : beside) {
      numbers.push_back(launches.size());
      launches.push_back({.target = &target, .descriptor = of.descriptor, .warm = false});
    }
  const auto predictions = bench::predict_launches(launches);
  if (!predictions) {
    fmt::print(stderr, "{}\n", predictions.error().what);
    return 1;
  }
  std::string of_tables;
  std::size_t at = 0;
  for (const Table& table : tables) {
    of_tables += table.heading;
    for (const Task& task : table.tasks) of_tables += row_text(task, (*predictions)[numbers[at++]]);
  }
  std::string text(introduction);
  text += on_one_clock;
  for (const AiterCall& call : bench::aiter_backward_kernels()) text += clock_row(call, (*predictions)[numbers[at++]]);
  text += of_tables;
  text += with_a_bias;
  for (const boards::Board& target : boards::complete_products())
    for (const Beside& of : beside) text += beside_row(target, of, (*predictions)[numbers[at++]]);
  text += without_a_row;
  return bench::check_or_print(text, request.file, command);
}

}  // namespace wavejit::bench
