// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writes bench/predicted_shapes.md: what the clock predicts for whole launches of the shapes whose throughput others
// have published, beside what they published.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "boards/board.h"
#include "check_or_print.h"
#include "isa/matrix.h"
#include "model_error.h"
#include "outside_kernels.h"
#include "predicted_launches.h"
#include "predicted_page.h"
#include "published_forward.h"
#include "targets/targets.h"

namespace {

using namespace wavejit;
using bench::LaunchPrediction;
using bench::LaunchTask;
using bench::PublishedBlock;
using bench::PublishedRow;

constexpr const char* command = "./dev bench shapes";

constexpr std::string_view introduction =
    R"(# What the clock predicts for shapes that others have published

Made by `./dev bench shapes`. **Cycles, busy and share of peak are predicted, never measured**: no kernel of this project has run on a GPU.
[docs/timing-model.md](../docs/timing-model.md) says how far to trust them. Attention forward, bf16, as many keys as queries. The kernel is the one that `auto` takes, with every
setting as it is by default. Launches are whole: four workgroups of the grid are timed beside others of their die, all workgroups are handed out to dies and compute
units, and the end of the launch counts, in which places stay empty. Arrays hold zeros: no row's maximum grows after its first tile.

Where two workgroups share a compute unit (gfx942), the time of a pair is taken for that of its first, also when a causal mask gives the other one less to
do: with few query blocks cycles come out some percent short.

| column | what it says |
|---|---|
| cycles | predicted, of all launches of the call, and what each that waits for another loses |
| busy | predicted: matrix pipes of all compute units, whole launch |
| range | where busy lies on a GPU if the clock is off by as much as it was, one way or the other, for kernels that others measured, 30 real ones of gfx950 among them |
| of peak | predicted: FLOPs (4 B H S² D, half of it when causal) over what the matrix pipes could do in those cycles at 2 m n k FLOPs an instruction. No clock is in it. Causal kernels multiply what the mask hides too, so busy is more |
| GHz to equal | the engine clock at which the predicted cycles would take as long as the best published kernel of the row did. **Not a clock that anybody saw**, and no throughput of ours. Above the GPU's peak (marked !) the published kernel is faster at any clock |
| at the cap | gfx950: predicted TFLOPS of an MI355X at its power limit, by the law in docs/timing-model.md, **divided by what the same law gives too much in the mean to 30 real kernels of others**, which is said above the tables. A lead of less than the error of those kernels is none |
| the others | TFLOPS as their authors published them ([published_forward.json](published_forward.json)); – where there is none for the target |
)";

struct Task {
  const boards::Board* target = nullptr;
  const PublishedBlock* block = nullptr;
  const PublishedRow* row = nullptr;
};

// 16-bit FLOPs of the whole GPU in a cycle.
double flops_of_cycle(const boards::Board& target) {
  const targets::MatrixInstruction& widest = target.matrix.front();
  const double of_simd = 2.0 * widest.m * widest.n * widest.k / (4 * isa::find_matrix_instruction(widest.id)->passes);
  return of_simd * target.simds_per_compute_unit * target.compute_units;
}

std::vector<std::size_t> kernels_on(const PublishedBlock& block, const targets::Target& target) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < block.kernels.size(); ++i)
    if (block.kernels[i].target == target.id) found.push_back(i);
  return found;
}

std::string row_text(const Task& task, const LaunchPrediction& prediction) {
  const auto& [shape, tflops] = *task.row;
  const bench::ModelError& error = bench::model_error();
  const auto cycles = static_cast<double>(prediction.cycles);
  std::string text =
      fmt::format("| {} | {} | {} | {} | {} | {} | {} | {:.1f} % | {:.0f} to {:.0f} % | {:.1f} % |", shape.batch,
                  shape.kv_heads == shape.query_heads ? fmt::format("{}", shape.query_heads)
                                                      : fmt::format("{}/{}", shape.query_heads, shape.kv_heads),
                  shape.head_dim, shape.causal ? "causal" : "full", shape.keys, prediction.kernel, prediction.cycles,
                  100 * prediction.busy, 100 * error.low_end(prediction.busy), 100 * error.high_end(prediction.busy),
                  100 * shape.flops() / cycles / flops_of_cycle(*task.target));
  const auto cap = bench::clock_at_cap(task.target->id, prediction.steady_busy);
  const std::string at_cap =
      cap ? fmt::format(" {:.0f} |", shape.flops() / cycles * *cap / 1e3 / bench::bias_at_cap()) : std::string();
  double best = 0;
  std::string published;
  for (const std::size_t i : kernels_on(*task.block, *task.target)) {
    best = std::max(best, tflops[i]);
    published += fmt::format(" {} |", tflops[i]);
  }
  if (best == 0) return text + " – |" + at_cap + "\n";
  const double ghz = best * 1e3 * cycles / shape.flops();
  return text +
         fmt::format(" {:.2f}{} |{}{}\n", ghz, ghz * 1e6 > task.target->clock_khz ? " !" : "", at_cap, published);
}

// What the clock says of others' code objects and of ours for one shape: no power limit and no published figure is in
// it.
std::string on_one_clock(const std::vector<Task>& tasks, const std::vector<LaunchPrediction>& predictions) {
  std::string text = R"(
## On one clock

Cycles of whole launches on gfx950, all predicted by the same clock. Code objects of AITER and of Triton, as their own compilers made them, stand beside ours: bf16,
16 sequences of 16 heads. No published figure and no clock frequency is in these cycles. A row compares how each kernel's instructions fit the model.

A row can show neither power, nor what a launch costs beside its cycles, nor rules of the hardware that the model lacks and that hit one kernel more than another
([docs/timing-model.md](../docs/timing-model.md) lists what it lacks). AITER's assembly was tuned on the GPU, ours on this very clock: where the two are close, that
speaks for AITER's. Triton's source is of this project ([triton_attention.py](triton_attention.py)), not the published one.

| dim | mask | keys | ours | AITER | Triton | ours over AITER's | ours over Triton's |
|---|---|---|---|---|---|---|---|
)";
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const auto& shape = tasks[i].row->shape;
    if (tasks[i].target->id != "gfx950" || shape.batch != 16 || shape.query_heads != 16 || shape.kv_heads != 16)
      continue;
    const std::string mask = shape.causal ? "causal" : "full";
    const auto* aiter = bench::find_outside("aiter", "gfx950", shape.head_dim, mask, shape.keys);
    const auto* triton = bench::find_outside("triton", "gfx950", shape.head_dim, mask, shape.keys);
    const auto cycles = static_cast<double>(predictions[i].cycles);
    const auto cell = [&](const bench::OutsideKernel* kernel, bool ratio) {
      if (kernel == nullptr || kernel->cycles == 0) return std::string("–");
      return ratio ? fmt::format("{:.2f}", cycles / kernel->cycles) : fmt::format("{:.0f}", kernel->cycles);
    };
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", shape.head_dim, mask, shape.keys,
                        predictions[i].cycles, cell(aiter, false), cell(triton, false), cell(aiter, true),
                        cell(triton, true));
  }
  return text;
}

std::string page(const std::vector<Task>& tasks, const std::vector<LaunchPrediction>& predictions) {
  std::string text(introduction);
  text += fmt::format(
      "\nReal kernels of others come out {:+.1f} % in the mean (geometric) by that law: \"at the cap\" is divided by {:.3f}.\n",
      100 * (bench::bias_at_cap() - 1), bench::bias_at_cap());
  text += on_one_clock(tasks, predictions);
  const Task* before = nullptr;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Task& task = tasks[i];
    if (before == nullptr || before->target != task.target) {
      text += fmt::format("\n## {}, {}\n\nPeak: {:.1f} GHz, {} compute units.\n", task.target->id, task.target->product,
                          task.target->clock_khz / 1e6, task.target->compute_units);
    }
    if (before == nullptr || before->target != task.target || before->block != task.block) {
      text += fmt::format("\nShapes{} of {}:\n\n", kernels_on(*task.block, *task.target).empty() ? "" : " and TFLOPS",
                          task.block->source);
      std::string names =
          "| batch | heads | dim | mask | keys | kernel | cycles | busy | range | of peak | GHz to equal |";
      std::string rule = "|---|---|---|---|---|---|---|---|---|---|---|";
      if (bench::clock_at_cap(task.target->id, 1)) {
        names += " at the cap |";
        rule += "---|";
      }
      for (const std::size_t column : kernels_on(*task.block, *task.target)) {
        names += fmt::format(" {} |", task.block->kernels[column].name);
        rule += "---|";
      }
      text += names + "\n" + rule + "\n";
    }
    text += row_text(task, predictions[i]);
    before = &task;
  }
  return text;
}

}  // namespace

namespace wavejit::bench {

int predict_shapes(const PageRequest& request) {
  std::vector<Task> tasks;
  for (const boards::Board& target : boards::complete_products()) {
    for (const PublishedBlock& block : bench::published_forward()) {
      for (const PublishedRow& row : block.rows) {
        if (request.asks_for(row.shape.descriptor()))
          tasks.push_back({.target = &target, .block = &block, .row = &row});
      }
    }
  }
  std::vector<LaunchTask> launches;
  for (const Task& task : tasks)
    launches.push_back({.target = task.target, .descriptor = task.row->shape.descriptor(), .warm = false});
  const auto predictions = bench::predict_launches(launches);
  if (!predictions) {
    fmt::print(stderr, "{}\n", predictions.error().what);
    return 1;
  }
  if (!request.words.empty()) {
    std::vector<std::string> rows;
    for (std::size_t i = 0; i < tasks.size(); ++i) rows.push_back(row_text(tasks[i], (*predictions)[i]));
    return bench::check_rows(rows, request.file, command);
  }
  return bench::check_or_print(page(tasks, *predictions), request.file, command);
}

}  // namespace wavejit::bench
