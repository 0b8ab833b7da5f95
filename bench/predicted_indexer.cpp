// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A page (predicted_pages.cpp): what the clock predicts for the indexer of sparse attention. Scores as a part of what memory can
// deliver or of what matrix pipes do, lists in cycles.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "boards/board.h"
#include "check_or_print.h"
#include "isa/matrix.h"
#include "predicted_page.h"
#include "timing/timing.h"
#include "tools/array_problem.h"
#include "tools/device_array.h"
#include "tools/profile/timed_launches.h"
#include "tools/worker_processes.h"

namespace {

using namespace wavejit;
using tools::DeviceArray;
using tools::ExitCode;
using tools::failed;
using tools::Result;

constexpr const char* command = "./dev bench indexer";

constexpr std::string_view introduction =
    R"(# What the clock predicts for the indexer

Made by `./dev bench indexer`. **Cycles and shares are predicted, never measured**: no kernel of this project has run on a GPU.
[docs/timing-model.md](../docs/timing-model.md) says how far to trust them. `sparse_indexer` with the shapes of DeepSeek V3.2 in bf16: 64 index heads of 128 dims, lists of 2,048 keys, keys in
pages of 64. Index queries and keys hold zeros; lists are made of normal numbers, the same for every row.

| column | what it says |
|---|---|
| scores | cycles of the first launch |
| of memory | the bytes of the index keys, each counted once, over those cycles, as a part of what the clock's memory delivers at most: 2,500 bytes a cycle on gfx950 and 1,952 on gfx942 |
| of peak | 2 · heads · 128 operations for each key that a row sees, over what all matrix pipes do in those cycles |
| busy | matrix pipes in the middle half of a compute unit's time, of the scores |
| list | cycles of the second launch, which has a row a workgroup. Two numbers: several workgroups have a part of a long row each, and one more launch chooses among what they chose ([docs/sparse-indexer.md](../docs/sparse-indexer.md)) |
| call | cycles of all launches, and the wait of each for the one before (`launch.dependent` of [timing-model.md](../docs/timing-model.md)) |
| µs | microseconds of the call, at the peak clock |

Published figures are of 8-bit index keys, half of these bytes, and are no rows here: 2.2 to 3.1 µs for the scores of 1 to 64 rows over 1,024 keys (ROCm/aiter#5332, MXFP4), 0.74, 1.14 and 2.95 ms a decode step for all layers' indexers at 1, 4 and 16
requests of 131k keys (vllm#56506).
)";

constexpr std::int64_t heads = 64;
constexpr std::int64_t dims = 128;
constexpr std::int64_t top_k = 2048;
constexpr std::int64_t page = 64;
constexpr std::int64_t key_bytes = dims * 2;

struct Task {
  const boards::Board* target = nullptr;
  std::int64_t batch = 1;
  std::int64_t rows = 1;  // a sequence's last ones
  std::int64_t keys = 1;

  bool is_prompt() const { return batch == 1 && rows > 1; }
  // Keys that all rows see together.
  double seen_keys() const {
    return static_cast<double>(batch * rows) * (static_cast<double>(keys) - (static_cast<double>(rows - 1) / 2));
  }
};

std::vector<Task> all_tasks() {
  std::vector<Task> tasks;
  for (const boards::Board& target : boards::complete_products()) {
    for (const std::int64_t batch : {1, 48, 96})
      for (const std::int64_t keys : {8192, 32768, 131072})
        tasks.push_back({.target = &target, .batch = batch, .keys = keys});
    for (const std::int64_t rows : {2, 4})
      tasks.push_back({.target = &target, .batch = 48, .rows = rows, .keys = 8192});
    for (const auto& [rows, keys] : {std::pair{512, 8192}, {2048, 2048}, {2048, 8192}, {2048, 32768}})
      tasks.push_back({.target = &target, .rows = rows, .keys = keys});
  }
  return tasks;
}

struct Prediction {
  std::uint64_t scores = 0;
  double busy = 0;
  std::vector<std::uint64_t> lists;  // cycles of each launch
  std::uint64_t wait = 0;

  std::uint64_t call() const {
    std::uint64_t all = scores;
    for (const std::uint64_t list : lists) all += list + wait;
    return all;
  }
};

// The launches of one call.
Result<std::vector<nlohmann::json>> timed(const tools::SimulatedGpu& gpu, wavejit_engine* engine,
                                          const wavejit_sparse_indexer_arguments& call) {
  const tools::TimedLaunches launches(gpu, 0, 1);
  if (auto ran = tools::checked(wavejit_sparse_indexer(engine, &call, nullptr)); !ran)
    return std::unexpected(ran.error());
  if (auto ended = tools::checked(wavejit_device_synchronize(engine)); !ended) return std::unexpected(ended.error());
  std::vector<nlohmann::json> all = launches.take();
  for (const nlohmann::json& launch : all)
    if (launch.contains("refused")) return failed(ExitCode::device, launch["refused"].get<std::string>());
  return all;
}

// Normal numbers: sums of twelve uniform ones are nearly that.
std::vector<float> row_of_scores(std::int64_t keys) {
  std::vector<float> row(static_cast<std::size_t>(keys));
  for (std::uint64_t draw = 0; draw < 12; ++draw) {
    const std::vector<float> numbers = tools::seeded_values(draw + 1, row.size());
    for (std::size_t key = 0; key < row.size(); ++key) row[key] += numbers[key];
  }
  return row;
}

// Scores and lists apart: the first are of zeros, whose lists would be those of equals only.
Result<Prediction> predict(const Task& task) {
  const std::string device = fmt::format("sim:{}", task.target->id);
  wavejit_engine_options options{};
  options.size = sizeof options;
  options.device = device.c_str();
  options.cache_mode = "off";
  wavejit_engine* raw = nullptr;
  if (auto created = tools::checked(wavejit_engine_create(&options, &raw)); !created)
    return std::unexpected(created.error());
  const std::unique_ptr<wavejit_engine, tools::DestroyEngine> engine(raw);
  const auto gpu = tools::SimulatedGpu::resident();
  if (!gpu) return failed(ExitCode::device, "the simulated GPU is not there");

  const std::int64_t columns = task.keys / page;
  const std::int64_t all_rows = task.batch * task.rows;
  const auto bytes = [](std::int64_t number) { return static_cast<std::size_t>(number); };
  auto queries = DeviceArray::allocate(raw, bytes(all_rows * heads * dims * 2));
  auto keys = DeviceArray::allocate(raw, bytes(task.batch * task.keys * key_bytes));
  auto weights = DeviceArray::allocate(raw, bytes(all_rows * heads * 4));
  auto scores = DeviceArray::allocate(raw, bytes(all_rows * task.keys * 4));
  auto table = DeviceArray::allocate(raw, bytes(task.batch * columns * 4));
  auto indices = DeviceArray::allocate(raw, bytes(all_rows * top_k * 4));
  for (const auto* array : {&queries, &keys, &weights, &scores, &table, &indices})
    if (!*array) return std::unexpected(array->error());
  // Neighbouring pages of a sequence lie apart.
  std::vector<std::int32_t> entries;
  for (std::int64_t batch = 0; batch < task.batch; ++batch)
    for (std::int64_t column = 0; column < columns; ++column)
      entries.push_back(static_cast<std::int32_t>((column * task.batch) + batch));
  if (auto copied = table->copy_in(entries.data()); !copied) return std::unexpected(copied.error());

  wavejit_sparse_indexer_arguments call{};
  call.head.size = sizeof call;
  call.head.family = WAVEJIT_SPARSE_INDEXER;
  call.queries = wavejit_dense_tensor(queries->data(), WAVEJIT_BF16, task.batch, task.rows, heads, dims);
  call.keys = wavejit_dense_tensor(keys->data(), WAVEJIT_BF16, task.batch * columns, page, 1, dims);
  call.weights = wavejit_dense_tensor(weights->data(), WAVEJIT_FP32, task.batch, task.rows, heads, 1);
  call.scores = wavejit_dense_tensor(scores->data(), WAVEJIT_FP32, task.batch, task.rows, 1, task.keys);
  call.pages.block_table = static_cast<const std::int32_t*>(table->data());
  call.pages.table_columns = columns;
  call.max_key_length = task.keys;
  if (task.rows > 1) call.mask.bits = WAVEJIT_MASK_CAUSAL;
  const auto of_scores = timed(*gpu, raw, call);
  if (!of_scores) return std::unexpected(of_scores.error());
  if (of_scores->size() != 1) return failed(ExitCode::internal, "scores are not one launch");

  const std::vector<float> row = row_of_scores(task.keys);
  for (std::int64_t at = 0; at < all_rows; ++at)
    if (auto copied = scores->copy_in(row.data(), bytes(at * task.keys * 4), row.size() * 4); !copied)
      return std::unexpected(copied.error());
  wavejit_sparse_indexer_arguments select{};
  select.head.size = sizeof select;
  select.head.family = WAVEJIT_SPARSE_INDEXER;
  select.scores = call.scores;
  select.mask.bits = call.mask.bits;
  select.indices = static_cast<std::int32_t*>(indices->data());
  select.top_k = top_k;
  // A call that keeps its scores has behind them what parts of long rows choose.
  if (auto asked = tools::checked(wavejit_call_workspace(raw, &select.head, &select.split.workspace_bytes)); !asked)
    return std::unexpected(asked.error());
  auto workspace = DeviceArray::allocate(raw, std::max<std::size_t>(select.split.workspace_bytes, 1));
  if (!workspace) return std::unexpected(workspace.error());
  if (select.split.workspace_bytes != 0) {
    select.split.workspace = workspace->data();
    // Where only chosen workgroups run, the others' parts must be there.
    if (auto ran = tools::checked(wavejit_sparse_indexer(raw, &select, nullptr)); !ran)
      return std::unexpected(ran.error());
    if (auto ended = tools::checked(wavejit_device_synchronize(raw)); !ended) return std::unexpected(ended.error());
  }
  const auto of_list = timed(*gpu, raw, select);
  if (!of_list) return std::unexpected(of_list.error());
  Prediction prediction = {.scores = of_scores->front().at("cycles").get<std::uint64_t>(),
                           .busy = of_scores->front().at("steady_matrix_busy").get<double>(),
                           .lists = {},
                           .wait = of_list->front().at("dependent_launch_cycles").get<std::uint64_t>()};
  for (const nlohmann::json& launch : *of_list) prediction.lists.push_back(launch.at("cycles").get<std::uint64_t>());
  return prediction;
}

double memory_rate(const boards::Board& target) { return timing::find_timing(target)->memory.memory_rate.value; }

// 16-bit operations of the whole GPU in a cycle.
double operations_of_cycle(const boards::Board& target) {
  const targets::MatrixInstruction& widest = target.matrix.front();
  const double of_simd = 2.0 * widest.m * widest.n * widest.k / (4 * isa::find_matrix_instruction(widest.id)->passes);
  return of_simd * target.simds_per_compute_unit * target.compute_units;
}

std::string row_text(const Task& task, const Prediction& predicted) {
  const auto scores = static_cast<double>(predicted.scores);
  std::string lists;
  for (const std::uint64_t list : predicted.lists) lists += fmt::format("{}{}", lists.empty() ? "" : " + ", list);
  const std::string rows = task.rows == 1     ? fmt::format("{}", task.batch)
                           : task.is_prompt() ? fmt::format("{}", task.rows)
                                              : fmt::format("{} × {}", task.batch, task.rows);
  const double least = static_cast<double>(task.batch * task.keys * key_bytes) / memory_rate(*task.target);
  const double operations = 2.0 * heads * dims * task.seen_keys();
  const std::string share =
      task.is_prompt()
          ? fmt::format("{:.0f} % | {:.0f} %", 100 * operations / scores / operations_of_cycle(*task.target),
                        100 * predicted.busy)
          : fmt::format("{:.0f} %", 100 * least / scores);
  return fmt::format("| {} | {} | {} | {} | {} | {} | {:.1f} |\n", rows, task.keys, predicted.scores, share, lists,
                     predicted.call(), static_cast<double>(predicted.call()) / (task.target->clock_khz / 1000.0));
}

}  // namespace

namespace wavejit::bench {

int predict_indexer(const PageRequest& request) {
  const std::vector<Task> tasks = all_tasks();
  std::vector<Prediction> predictions(tasks.size());
  std::size_t done = 0;
  const auto ran = tools::run_in_processes(
      tasks.size(), 2,
      [&](std::size_t index) -> Result<std::string> {
        const auto prediction = predict(tasks[index]);
        if (!prediction) return std::unexpected(prediction.error());
        return nlohmann::json({prediction->scores, prediction->busy, prediction->lists, prediction->wait}).dump();
      },
      [&](std::size_t index, const std::string& answer) -> Result<void> {
        const auto json = nlohmann::json::parse(answer);
        predictions[index] = {.scores = json.at(0), .busy = json.at(1), .lists = json.at(2), .wait = json.at(3)};
        fmt::print(stderr, "[{:2} of {}] {} {} × {} rows, {} keys: {} {}\n", ++done, tasks.size(),
                   tasks[index].target->id, tasks[index].batch, tasks[index].rows, tasks[index].keys,
                   predictions[index].scores, predictions[index].call());
        return {};
      });
  if (!ran) {
    fmt::print(stderr, "{}\n", ran.error().what);
    return 1;
  }
  std::string text(introduction);
  for (const boards::Board& target : boards::complete_products()) {
    text += fmt::format("\n## {}, {}\n", target.id, target.product);
    for (const bool prompts : {false, true}) {
      text += prompts
                  ? "\nPieces of a prompt, the last rows of so many keys, causal:\n\n"
                    "| rows | keys | scores | of peak | busy | list | call | µs |\n|---|---|---|---|---|---|---|---|\n"
                  : "\nDecode, a row a sequence, and speculation:\n\n"
                    "| rows | keys | scores | of memory | list | call | µs |\n|---|---|---|---|---|---|---|\n";
      for (std::size_t index = 0; index < tasks.size(); ++index)
        if (tasks[index].target == &target && tasks[index].is_prompt() == prompts)
          text += row_text(tasks[index], predictions[index]);
    }
  }
  return bench::check_or_print(text, request.file, command);
}

}  // namespace wavejit::bench
