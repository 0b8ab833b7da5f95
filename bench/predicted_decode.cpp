// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A page (predicted_pages.cpp): what the clock predicts for calls of a few query rows over many keys, as a part of
// what memory can deliver, beside what others have published.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "boards/board.h"
#include "check_or_print.h"
#include "decode_captured.h"
#include "decode_goals.h"
#include "predicted_launches.h"
#include "predicted_page.h"
#include "timing/timing.h"
#include "tools/worker_processes.h"

namespace {

using namespace wavejit;
using bench::Captured;
using bench::LaunchPrediction;
using bench::LaunchTask;

constexpr const char* command = "./dev bench decode";

constexpr std::string_view introduction =
    R"(# What the clock predicts for decode

Made by `./dev bench decode`. **Cycles, times and shares are predicted, never measured**: no kernel of this project has run on a GPU.
[docs/timing-model.md](../docs/timing-model.md) says how far to trust them. One to a few query rows a sequence, every setting as it is by default,
the workspace the engine's own: all launches of a call, and what each that waits for another loses. Arrays hold zeros.

Memory decides here. The column "of memory" sets the bytes of K and V, each counted once, over the predicted time beside what the clock's memory delivers at
most: 2,500 bytes a cycle on gfx950 (the fastest published decode kernels) and 1,952 on gfx942 (BabelStream). Its compute units share that evenly, and
it knows no TLBs: a real GPU stays below. Microseconds are cycles at the peak clock.
**The 2,500 bytes a cycle are one row of this page**: the published 5.99 TB/s of "bf16 32, 32768 keys, 16/2 heads" below. A row near 100 % "of memory" is as fast as
that kernel by construction, and says no more.
In a "cold" call K and V come from memory. A benchmark's loop over one cache finds them in the last level cache where they are smaller than it (256 MiB): "warm" is such a call, and the figure
to hold against a published one.
Published figures of fp8 caches and of head dim 512 have no row, since there are no such kernels here. Figures whose authors do not tell the heads have none either.

Rows of unequal lengths ("512 to"): sequence i has 512 + i · (keys − 512) / (batch − 1) keys, in an order drawn by a seed. Workgroups of each amount of work are timed.
)";

struct Decode {
  std::string_view type = "bf16";
  int batch = 1;
  int queries = 1;
  int keys = 1;
  int heads = 64;
  int kv_heads = 8;
  int head_dim = 128;
  bool uneven = false;              // 512 to `keys` keys, evenly spread, in an order drawn by a seed
  std::string_view published = "";  // microseconds and TB/s
  std::string_view layout = "";     // "paged:16"

  std::vector<int> lengths() const {
    std::vector<int> all(static_cast<std::size_t>(batch), keys);
    if (!uneven) return all;
    for (int i = 0; i < batch; ++i) all[static_cast<std::size_t>(i)] = 512 + i * (keys - 512) / (batch - 1);
    std::mt19937 numbers(1);
    for (std::size_t i = all.size() - 1; i > 0; --i) std::swap(all[i], all[numbers() % (i + 1)]);
    return all;
  }
  double key_value_bytes() const {
    const std::vector<int> all = lengths();
    return std::accumulate(all.begin(), all.end(), 0.0) * kv_heads * head_dim * 2 * 2;
  }
  std::string descriptor() const {
    std::string text = fmt::format("attention_forward {} b{} q{} k{} h{}/{} d{}", type, batch, queries, keys, heads,
                                   kv_heads, head_dim);
    if (!layout.empty()) text += fmt::format(" layout={}", layout);
    if (uneven) text += fmt::format(" k_lengths={}", fmt::join(lengths(), ","));
    return text;
  }
};

// Calls that the project sets itself goals for.
constexpr Decode usual[] = {
    {.batch = 64, .keys = 8192},
    {.batch = 1, .keys = 131072},
    {.batch = 1, .keys = 32768},
    {.batch = 256, .keys = 2048},
    {.batch = 32, .keys = 32768, .uneven = true},
    {.batch = 64, .queries = 4, .keys = 8192},
    {.batch = 64, .keys = 8192, .layout = "paged:16"},
    {.batch = 64, .keys = 8192, .layout = "paged:16 k_total=524288"},
    {.batch = 64, .keys = 8192, .layout = "paged:1 k_total=524288"},
    {.batch = 64, .keys = 8192, .layout = "paged:16:vectorised"},
    {.batch = 64, .keys = 8192, .layout = "paged:16:vectorised_keys"},
    {.batch = 64, .keys = 8192, .layout = "paged:16:vectorised k_total=524288"},
    {.batch = 64, .keys = 8192, .layout = "paged:64"},
    {.batch = 64, .keys = 8192, .layout = "paged:64:vectorised"},
    {.batch = 64, .keys = 8192, .layout = "paged:64:vectorised_keys"},
};

struct Published {
  std::string_view target;
  std::string_view source;
  std::vector<Decode> rows;
};
const std::vector<Published>& published() {
  static const auto opus = [](int batch, int keys, std::string_view figure) {
    return Decode{.batch = batch, .keys = keys, .heads = 16, .kv_heads = 2, .published = figure};
  };
  static const auto tokenspeed = [](int keys, std::string_view figure) {
    return Decode{.type = "fp16", .batch = 16, .keys = keys, .head_dim = 64, .published = figure};
  };
  static const std::vector<Published> all = {
      {.target = "gfx950",
       .source = "ROCm/aiter#4794 (OPUS paged attention, two kv heads; the group is not told, 8 here)",
       .rows = {opus(1, 8192, "16.6 µs, 0.51"), opus(8, 8192, "17.6 µs, 3.81"), opus(16, 8192, "23.9 µs, 5.62"),
                opus(32, 8192, "41.1 µs, 6.53"), opus(1, 32768, "17.8 µs, 1.89"), opus(2, 32768, "22.8 µs, 2.95"),
                opus(4, 32768, "27.2 µs, 4.93"), opus(8, 32768, "42.5 µs, 6.31"), opus(16, 32768, "93.4 µs, 5.75"),
                opus(32, 32768, "179.3 µs, 5.99")}},
      {.target = "gfx950",
       .source = "AITER's assembly, which does not split keys (ROCm/aiter#4794; one kv head, and two)",
       .rows = {{.keys = 32768, .heads = 8, .kv_heads = 1, .published = "169 µs, 0.10"},
                opus(32, 8192, "52.6 µs, 5.10")}},
      {.target = "gfx950",
       .source = "facebookexperimental/triton#2778 (no times; the type is not told)",
       .rows = {{.keys = 8192, .head_dim = 64, .published = "0.51"},
                {.batch = 8, .keys = 8192, .head_dim = 64, .published = "4.26"}}},
      {.target = "gfx950",
       .source = "tokenspeed#191 (64 heads over 8, head dim 64; the batch follows from bytes and times)",
       .rows = {tokenspeed(1024, "9.7 µs, 3.44"), tokenspeed(2048, "16.2 µs, 4.14"), tokenspeed(4096, "25.3 µs, 5.31"),
                tokenspeed(8192, "45.3 µs, 5.92")}}};
  return all;
}

struct Task {
  const boards::Board* target = nullptr;
  const Published* published = nullptr;  // null: a usual one
  Decode decode;
};

std::vector<Task> all_tasks() {
  std::vector<Task> tasks;
  for (const boards::Board& target : boards::complete_products()) {
    for (const Decode& decode : usual) tasks.push_back({.target = &target, .decode = decode});
    for (const Published& block : published())
      if (block.target == target.id)
        for (const Decode& decode : block.rows)
          tasks.push_back({.target = &target, .published = &block, .decode = decode});
  }
  return tasks;
}

// A step as an engine sees it that serves few sequences, on one GPU of eight.
struct Small {
  std::string_view what;
  std::string_view words;  // a descriptor's, behind the type
};
constexpr Small small_ones[] = {
    {"Llama 70B, Qwen3 235B", "b1 q1 k1024 h8/1 d128"},
    {"Llama 70B, Qwen3 235B", "b1 q1 k8192 h8/1 d128"},
    {"Llama 70B, Qwen3 235B", "b1 q2 k8192 h8/1 d128 causal"},
    {"Llama 70B, Qwen3 235B", "b1 q4 k8192 h8/1 d128 causal"},
    {"Llama 70B, Qwen3 235B", "b1 q8 k8192 h8/1 d128 causal"},
    {"Llama 70B, Qwen3 235B", "b1 q1 k32768 h8/1 d128"},
    {"Llama 70B, Qwen3 235B", "b16 q1 k8192 h8/1 d128"},
    {"gpt-oss, layers that see all", "b1 q1 k8192 h8/1 d64 causal sink"},
    {"gpt-oss, layers that see all", "b1 q2 k8192 h8/1 d64 causal sink"},
    {"gpt-oss, layers that see all", "b1 q4 k8192 h8/1 d64 causal sink"},
    {"gpt-oss, layers that see all", "b1 q8 k8192 h8/1 d64 causal sink"},
    {"gpt-oss, layers with a window", "b1 q1 k8192 h8/1 d64 causal window=127,0 sink"},
    {"gpt-oss, layers with a window", "b1 q2 k8192 h8/1 d64 causal window=127,0 sink"},
    {"gpt-oss, layers with a window", "b1 q4 k8192 h8/1 d64 causal window=127,0 sink"},
    {"gpt-oss, layers with a window", "b1 q8 k8192 h8/1 d64 causal window=127,0 sink"},
    {"short contexts, one GPU", "b1 q1 k128 h64/8 d128"},
    {"short contexts, one GPU", "b1 q1 k256 h64/8 d128"},
    {"short contexts, one GPU", "b1 q1 k512 h64/8 d128"},
    {"short contexts, one GPU", "b1 q1 k1024 h64/8 d128"},
    {"short contexts, one GPU", "b1 q1 k2048 h64/8 d128"},
};

struct SmallTask {
  const boards::Board* target = nullptr;
  Small call;

  std::string descriptor() const { return fmt::format("attention_forward bf16 {}", call.words); }
};

std::vector<SmallTask> all_small() {
  std::vector<SmallTask> all;
  for (const boards::Board& target : boards::complete_products())
    for (const Small& call : small_ones) all.push_back({.target = &target, .call = call});
  return all;
}

constexpr std::string_view small_introduction = R"(
## A step with little to do

This table says where a decode step of few sequences takes its cycles. "Waits" are those between launches (`launch.dependent`). "Cold" are cycles until a launch's code and arguments are there, of all launches. "Walk" are the other cycles of
kernels that walk keys, and "merge" those of the kernel that merges their parts. Memory is cold. One GPU of eight under tensor parallelism has one kv head of these models.

| target | what | call | kernel | launches | cycles | µs | waits | cold | walk | merge |
|---|---|---|---|---|---|---|---|---|---|---|
)";

std::vector<LaunchTask> goal_launches() {
  std::vector<LaunchTask> all;
  for (const bench::Goal& goal : bench::goals)
    all.push_back({.target = boards::find_product(goal.target),
                   .descriptor = fmt::format("attention_forward bf16 {}", goal.words),
                   .warm = false});
  return all;
}

std::string row_text(const bench::Goal& goal, const LaunchPrediction& prediction) {
  return fmt::format("| {} | {} | {} | {} | {} | {} |\n", goal.target, goal.words, goal.before, prediction.cycles,
                     goal.wanted, prediction.cycles <= goal.wanted ? "met" : "missed");
}

std::string row_text(const SmallTask& task, const LaunchPrediction& prediction) {
  std::uint64_t waits = 0;
  std::uint64_t cold = 0;
  std::uint64_t walk = 0;
  std::uint64_t merge = 0;
  for (const bench::OneLaunch& launch : prediction.each) {
    waits += launch.wait;
    cold += launch.cold;
    (launch.name.contains("_combine") ? merge : walk) += launch.cycles - launch.cold;
  }
  const double clock = static_cast<double>(task.target->clock_khz) * 1e3;
  return fmt::format("| {} | {} | {} | {} | {} | {} | {:.1f} | {} | {} | {} | {} |\n", task.target->id, task.call.what,
                     task.call.words, prediction.kernel, prediction.launches, prediction.cycles,
                     static_cast<double>(prediction.cycles) / clock * 1e6, waits, cold, walk, merge);
}

// One chunk of a prompt among sequences of one row, and what the same two kinds of sequences cost in calls apart.
struct Mixed {
  const boards::Board* target = nullptr;
  std::string_view words;
  int queries = 2048;
  int tokens = 63;
  int keys = 8192;

  std::string descriptor(int prompts, int others) const {
    std::vector<int> lengths(static_cast<std::size_t>(prompts + others), 1);
    if (prompts != 0) lengths[lengths.size() / 2] = queries;
    return fmt::format("attention_forward bf16 b{} q{} k{} h64/8 d128 {} q_lengths={}", prompts + others,
                       prompts != 0 ? queries : 1, keys, words, fmt::join(lengths, ","));
  }
  std::vector<LaunchTask> launches() const {
    return {{.target = target, .descriptor = descriptor(1, tokens), .warm = false},
            {.target = target, .descriptor = descriptor(1, 0), .warm = false},
            {.target = target, .descriptor = descriptor(0, tokens), .warm = false}};
  }
  static constexpr std::size_t calls = 3;
};

std::vector<Mixed> all_mixed() {
  std::vector<Mixed> all;
  for (const boards::Board& target : boards::complete_products())
    for (const std::string_view words : {"layout=packed", "causal layout=packed"})
      all.push_back({.target = &target, .words = words});
  return all;
}

std::string row_text(const Mixed& mixed, std::span<const LaunchPrediction> predictions) {
  const std::uint64_t apart = predictions[1].cycles + predictions[2].cycles;
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} | {:.3f} |\n", mixed.target->id, mixed.words,
                     predictions[0].kernel, predictions[0].launches, predictions[0].cycles, predictions[1].cycles,
                     predictions[2].cycles, static_cast<double>(predictions[0].cycles) / static_cast<double>(apart));
}

constexpr std::string_view mixed_introduction = R"(
## Long and short queries in one call

One sequence of 2,048 query rows among 63 of one row, 8,192 keys each, 64 heads over 8, head dim 128, bf16: one call, whose kernels for long and
short queries run one after the other (docs/split-keys.md), beside one call with the long sequence and one with the others. All launches count.

| target | words | kernel of the long one | launches | cycles | long one apart | others apart | one call over two |
|---|---|---|---|---|---|---|---|
)";

std::string row_text(const Task& task, const LaunchPrediction& prediction) {
  const Decode& decode = task.decode;
  const auto cycles = static_cast<double>(prediction.cycles);
  const double rate = decode.key_value_bytes() / cycles;
  const double reachable = timing::find_timing(*task.target)->memory.memory_rate.value;
  const double clock = static_cast<double>(task.target->clock_khz) * 1e3;
  const std::string warm = prediction.warm_cycles == 0
                               ? "–"
                               : fmt::format("{:.1f}", static_cast<double>(prediction.warm_cycles) / clock * 1e6);
  std::string text = fmt::format(
      "| {} {} | {} | {}{}{}{} | {}/{} | {} | {} | {} | {} | {:.0f} | {:.1f} % | {:.1f} | {} | {:.2f} |", decode.type,
      decode.batch, decode.queries, decode.uneven ? "512 to " : "", decode.keys, decode.layout.empty() ? "" : ", ",
      decode.layout, decode.heads, decode.kv_heads, decode.head_dim, prediction.kernel, prediction.launches,
      prediction.cycles, rate, 100 * rate / reachable, cycles / clock * 1e6, warm, rate * clock / 1e12);
  return text + (task.published == nullptr ? "\n" : fmt::format(" {} |\n", decode.published));
}

// First those of the tasks, then of the small calls, of the mixed ones, of the captured ones, and of goals.
using Predictions = std::vector<LaunchPrediction>;
// Predictions of one row, where those of `before` other calls come first and each row has some.
template <typename Row>
std::span<const LaunchPrediction> of_row(const Predictions& predictions, std::size_t before, std::size_t index) {
  return std::span(predictions).subspan(before + (index * Row::calls), Row::calls);
}

std::string page(const std::vector<Task>& tasks, const std::vector<SmallTask>& small, const std::vector<Mixed>& mixed,
                 const std::vector<Captured>& captured, const Predictions& predictions) {
  std::string text(introduction);
  const Task* before = nullptr;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Task& task = tasks[i];
    const bool other_target = before == nullptr || before->target != task.target;
    if (other_target)
      text += fmt::format("\n## {}, {}\n\nPeak: {:.1f} GHz, {} compute units.\n", task.target->id, task.target->product,
                          static_cast<double>(task.target->clock_khz) / 1e6, task.target->compute_units);
    if (other_target || before->published != task.published) {
      text += task.published == nullptr ? "\n" : fmt::format("\nShapes and figures of {}:\n\n", task.published->source);
      text +=
          "| type, batch | queries | keys | heads | dim | kernel | launches | cycles | bytes a cycle | of memory | µs "
          "cold | µs warm | TB/s cold |";
      text += task.published == nullptr ? "\n" : " published, TB/s |\n";
      text += "|---|---|---|---|---|---|---|---|---|---|---|---|---|";
      text += task.published == nullptr ? "\n" : "---|\n";
    }
    text += row_text(task, predictions[i]);
    before = &task;
  }
  text += small_introduction;
  for (std::size_t i = 0; i < small.size(); ++i) text += row_text(small[i], predictions[tasks.size() + i]);
  const std::size_t before_mixed = tasks.size() + small.size();
  const std::size_t before_captured = before_mixed + (mixed.size() * Mixed::calls);
  text += bench::captured_introduction;
  for (std::size_t i = 0; i < captured.size(); ++i)
    text += row_text(captured[i], of_row<Captured>(predictions, before_captured, i));
  text += bench::goals_introduction;
  for (std::size_t i = 0; i < std::size(bench::goals); ++i)
    text += row_text(bench::goals[i], predictions[before_captured + (captured.size() * Captured::calls) + i]);
  text += bench::small_causes;
  text += mixed_introduction;
  for (std::size_t i = 0; i < mixed.size(); ++i)
    text += row_text(mixed[i], of_row<Mixed>(predictions, before_mixed, i));
  return text;
}

}  // namespace

namespace wavejit::bench {

int predict_decode(const PageRequest& request) {
  std::vector<Task> tasks = all_tasks();
  std::vector<SmallTask> small = all_small();
  std::vector<Mixed> mixed = all_mixed();
  std::vector<Captured> captured = bench::all_captured();
  const auto lacks_word = [&](const std::string& descriptor) { return !request.asks_for(descriptor); };
  std::erase_if(tasks, [&](const Task& task) { return lacks_word(task.decode.descriptor()); });
  std::erase_if(small, [&](const SmallTask& task) { return lacks_word(task.descriptor()); });
  std::erase_if(mixed, [&](const Mixed& one) { return lacks_word(one.descriptor(1, one.tokens)); });
  // Their descriptors are those of other rows: a word of their own picks them.
  std::erase_if(captured, [&](const Captured& one) { return lacks_word(one.descriptor() + " captured"); });
  std::vector<LaunchTask> launches;
  constexpr double last_level_cache = 256.0 * 1024 * 1024;  // CDNA3 and CDNA4 white papers
  for (const Task& task : tasks)
    launches.push_back({.target = task.target,
                        .descriptor = task.decode.descriptor(),
                        .warm = task.decode.key_value_bytes() < last_level_cache});
  for (const SmallTask& task : small)
    launches.push_back({.target = task.target, .descriptor = task.descriptor(), .warm = false});
  for (const Mixed& one : mixed) std::ranges::copy(one.launches(), std::back_inserter(launches));
  for (const Captured& one : captured) std::ranges::copy(one.launches(), std::back_inserter(launches));
  if (request.words.empty()) std::ranges::copy(goal_launches(), std::back_inserter(launches));
  const auto predictions = bench::predict_launches(launches, tools::WorkerLife::one_task);
  if (!predictions) {
    fmt::print(stderr, "{}\n", predictions.error().what);
    return 1;
  }
  if (!request.words.empty()) {
    std::vector<std::string> rows;
    for (std::size_t i = 0; i < tasks.size(); ++i) rows.push_back(row_text(tasks[i], (*predictions)[i]));
    for (std::size_t i = 0; i < small.size(); ++i) rows.push_back(row_text(small[i], (*predictions)[tasks.size() + i]));
    const std::size_t before_mixed = tasks.size() + small.size();
    for (std::size_t i = 0; i < mixed.size(); ++i)
      rows.push_back(row_text(mixed[i], of_row<Mixed>(*predictions, before_mixed, i)));
    const std::size_t before_captured = before_mixed + (mixed.size() * Mixed::calls);
    for (std::size_t i = 0; i < captured.size(); ++i)
      rows.push_back(row_text(captured[i], of_row<Captured>(*predictions, before_captured, i)));
    return bench::check_rows(rows, request.file, command);
  }
  return bench::check_or_print(page(tasks, small, mixed, captured, *predictions), request.file, command);
}

}  // namespace wavejit::bench
