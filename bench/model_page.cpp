// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "model_page.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>

#include "anchor_error.h"
#include "anchors.h"
#include "outside_kernels.h"
#include "targets/targets.h"
#include "timing/timing.h"

namespace wavejit::bench {
namespace {

using simgpu::testing::Anchor;
using simgpu::testing::ConsistencyRow;

std::string number(double value) { return fmt::format("{:.4g}", value); }

std::string consistency_table(const std::vector<ConsistencyRow>& rows) {
  std::string text = "\n| target | rule | published | predicted | difference | source |\n|---|---|---|---|---|---|\n";
  for (const ConsistencyRow& row : rows) {
    const double predicted = row.predict();
    text += fmt::format("| {} | {} | {} {} | {} | {:+.1f} % | {} |\n", row.target, row.rule, number(row.published),
                        row.unit, number(predicted), 100 * (predicted - row.published) / row.published, row.source);
  }
  return text;
}

std::string with_sign(const Anchor& anchor, double value) {
  return anchor.unit == "% of cycles" ? fmt::format("{:+.3g}", value) : number(value);
}

std::string anchor_row(const JudgedAnchor& judged) {
  const Anchor& anchor = *judged.anchor;
  const std::string before =
      anchor.before ? fmt::format("{} ({:+.1f} %)", with_sign(anchor, *anchor.before), anchor.error(*anchor.before))
                    : "–";
  return fmt::format("| {} | {} | {} {} | {} | {} ({:+.1f} %) | {} | {} |\n", anchor.target, anchor.what,
                     with_sign(anchor, anchor.published), anchor.unit, before, with_sign(anchor, judged.predicted),
                     judged.error, anchor.source, anchor.differs);
}

std::string error_table() {
  const ModelErrors errors = errors_of(judged_anchors());
  std::string text =
      "\n| kind | anchors | too low by up to | too high by up to | root mean square |\n|---|---|---|---|---|\n";
  for (const auto& [kind, error] : errors) {
    std::string name = kind;
    for (char& each : name) each = each == '_' ? ' ' : each;
    text += fmt::format("| {} | {} | {:.1f} % | {:.1f} % | {:.1f} % |\n", name, error.anchors, error.too_low,
                        error.too_high, error.root_mean_square);
  }
  return text;
}

// What was published, what is predicted, and how far apart: the end of a row.
std::string beside_published(const OutsideKernel& row) {
  std::string predicted = fmt::format("{:.1f} % busy", 100 * row.matrix_busy);
  double comparable = 100 * row.matrix_busy;
  if (row.unit == "TFLOPS") {
    comparable = row.tflops_at_cap().value_or(0);
    predicted = fmt::format("{:.0f} TFLOPS at the power limit, {}, {:.1f} % in its loop", comparable, predicted,
                            100 * row.steady_busy);
  }
  std::string second;
  if (row.unit == "microseconds") {
    const double cycles_of_microsecond = targets::find_target(row.target)->clock_khz / 1e3;
    comparable = row.cycles / cycles_of_microsecond;
    const double warm = row.warm_cycles / cycles_of_microsecond;
    predicted = fmt::format("{:.1f} microseconds from memory, {:.1f} from the last level cache", comparable, warm);
    second = fmt::format(", {:+.1f} %", 100 * (warm - row.published) / row.published);
  }
  return fmt::format(" {} {} | {} | {:+.1f} %{} | {} |\n", number(row.published), row.unit, predicted,
                     100 * (comparable - row.published) / row.published, second, row.source);
}

std::string triton() {
  std::string text = R"(
### Triton's attention

Triton's own code objects, compiled by it for the target and launched on the simulated GPU: no kernel of ours, no constant of ours. 256 heads, as many
keys as queries. `bench/triton_clock.py` takes these figures, bench/triton_anchors.json keeps them. What differs: the published kernels are Triton's, but
not this source; their tiles and their walk over a causal mask are not published with the figures.

| target | head dim | mask | keys | published | predicted | difference | source |
|---|---|---|---|---|---|---|---|
)";
  for (const OutsideKernel& row : outside_kernels()) {
    if (row.name != "triton") continue;
    text += fmt::format("| {} | {} | {} | {} |{}", row.target, row.head_dim, row.mask, row.keys, beside_published(row));
  }
  return text + R"(
Causal rows ask for far less than this kernel does: what Triton's published one spends beyond its walk over a mask is not known. They stand in the error.
)";
}

std::string aiter() {
  std::string text = R"(
### AITER's attention

AITER's own code objects, which this tree does not hold. bf16, head dim 128, forward of 16 sequences of 16 heads; backward of one sequence of 64 heads over
8; paged decode, 8 query heads a kv head, pages of 16 keys. `./dev bench timing-model` fetches AITER's package (amd-aiter, from PyPI), runs
`bench/aiter_clock.py` on it and keeps the figures in bench/aiter_anchors.json. Decode is in microseconds at 2.4 GHz, once from memory, and once as a loop over
the same keys has it, where the last level cache has them all: every published benchmark is such a loop. What of a launch is in published times is not told. The kernel
of 32-bit atomics needs two more launches, which clear and round: they are in the published time, and not here.

| target | mask | batch x kv heads | keys | published | predicted | difference | source |
|---|---|---|---|---|---|---|---|
)";
  for (const OutsideKernel& row : outside_kernels()) {
    if (row.name != "aiter") continue;
    text += fmt::format("| {} | {} | {} x {} | {} |{}", row.target, row.mask, row.batch, row.heads, row.keys,
                        beside_published(row));
  }
  return text;
}

constexpr std::string_view dualwave = R"(
### FlyDSL's dual-wave attention

FlyDSL's kernel, compiled for gfx950 by its own compiler, was run from outside twice: on the clock as it was before queues and traces, and on that of
3e92f55. 16 heads, 8192 keys, head dim 128, no mask. FlyDSL's package has the compiler and not the kernels, so that no command repeats it; the loop of its mix above
stands for it.

| variant | thread traces of MI355X, matrix busy | before queues and traces | 3e92f55 |
|---|---|---|---|
| as it is | 82.9 to 86.5 % | 86.0 % | 78.3 % |
| without s_setprio | 86.9 % | 86.6 % | 78.6 % |
| rescale for every tile | 61.2 % | 64.9 % | 54.9 % |
| without stagger | throughput −15 %, by the law of the power limit +38 % of cycles | 50.2 % | +45 % of cycles |
)";

constexpr std::string_view known_when = R"(
### What was known when

The list was frozen 16 minutes after the clock had been recalibrated to thread traces (f2572d0), and a few constants of it changed once more half an hour later
(dd61b3c): whoever set them could see the rows. The thirty real kernels of gfx950 were timed then and left out of the error, which so had no real gfx950 kernel in it.
They are in it since. What changed the clock afterwards is written down here with the reason, and where it comes from:

| rule or constant | from | what was known of the rows |
|---|---|---|
| the law of the power limit goes by the busy share of a loop, not of a launch | AMD's notes, whose fit is over loops | AITER's and Triton's rows of the old law: 18.9 % too high in the mean |
| power.delivered | five builds of AMD's notes with throughput, cycles and clock: none of them is a row | the same |
| lines that other dies read come from the last level cache | dies are filled in turns; the cache is one for all | that 2,048 and 4,096 keys were slower than 8,192 without a reason |
| stores and atomics take memory's rate | L2 writes back | atomics of 4 bytes cost nothing |
| LDS and vector memory leave a SIMD by one port | AMD's notes | nothing that it moves |

No constant was moved to bring a row closer. An anchor that becomes the target of a change is a constant from then on, and goes to the list of those that are none any
more. `memory.memory_rate` of gfx950 is such a constant: it is the published rate of one decode call, and stands beside that call in
[predicted_decode.md](../bench/predicted_decode.md).
)";

struct MeanError {
  double mean = 0;
  double root_mean_square = 0;
};
MeanError without_causal_triton() {
  MeanError error;
  int kernels = 0;
  for (const JudgedAnchor& judged : judged_anchors()) {
    const Anchor& anchor = *judged.anchor;
    if (anchor.kind != "real kernels") continue;
    if (anchor.id.starts_with("triton") && anchor.id.contains("causal")) continue;
    error.mean += judged.error;
    error.root_mean_square += judged.error * judged.error;
    ++kernels;
  }
  return {.mean = error.mean / kernels, .root_mean_square = std::sqrt(error.root_mean_square / kernels)};
}

struct Unexplained {
  std::string_view anchor;  // its name
  std::string_view what;    // is wrong with it, or thought to be
};
constexpr std::array unexplained_anchors = {
    Unexplained{"FlyDSL's dual-wave mix, both groups in step",
                "the GPU hides latencies between the phases that the clock adds up; which is not known"},
    Unexplained{"a loop of a fixed-maximum attention's mix, head dim 64, four waves a SIMD, softmax between its matrix "
                "instructions",
                "four waves hide everything here; what the published kernel loses a fifth of its time to is not known, "
                "and none of the three deletions below it says"},
    Unexplained{
        "AITER's attention, head dim 128, causal, 1024 keys, at the power limit",
        "two workgroups a compute unit and 95 microseconds; what the published time has beside the kernel is not "
        "told, and AMD's notes see up to 10 microseconds of idle compute units between uneven workgroups, whose "
        "cause is not published"},
    Unexplained{"AITER's attention, head dim 128, no mask, 1024 keys, at the power limit",
                "four workgroups a compute unit and 146 microseconds; 20 more are published"},
};

}  // namespace

std::string unexplained() {
  std::string text =
      "\n## What stays unexplained\n\nThe largest differences that no rule of the clock accounts for. No constant was "
      "moved for them.\n\n| what | published | before | now | what is known |\n|---|---|---|---|---|\n";
  for (const auto& [name, what] : unexplained_anchors) {
    for (const JudgedAnchor& judged : judged_anchors()) {
      const Anchor& anchor = *judged.anchor;
      if (anchor.what != name) continue;
      text += fmt::format("| {} | {} {} | {} | {} | {} |\n", anchor.what, with_sign(anchor, anchor.published),
                          anchor.unit, anchor.before ? with_sign(anchor, *anchor.before) : "–",
                          with_sign(anchor, judged.predicted), what);
    }
  }
  return text +
         "| XCD swizzle off | 2 to 7 % of cycles | +14.6 | below, at Toggles | a head each is the worst case: no "
         "line is shared on a die. One die of eight reads it from memory then, the others from the last level cache; "
         "before, every die read it from memory |\n";
}

std::string consistency() {
  return "\n## Consistency: single rules beside the sources of their constants\n\nKernels of our own, assembled to "
         "isolate one rule each. Constants come from the same sources, so agreement says that the rules are combined "
         "as the hardware does, no more, and no row is in any error that is quoted. [M] measured by others, [X] "
         "derived from shipped kernels.\n" +
         consistency_table(simgpu::testing::consistency_rows()) +
         "\nSources that others contradict, whose figures the model does not have:\n" +
         consistency_table(simgpu::testing::contradicted_rows());
}

std::string judged_tables() {
  std::string text =
      "\n## The error to quote\n\nPublished figures that no constant was taken from: one frozen list "
      "([anchors.json](../tests/simgpu/clock/anchors.json)), all of it in the error. Errors are percent of the "
      "published "
      "figure, or, where it is itself a change, of all cycles.\n";
  text += error_table();
  const ModelErrors all = errors_of(judged_anchors());
  const ModelError& whole = all.at("quoted");
  text += fmt::format(
      "\n`wavejit profile` and [bench/predicted_shapes.md](../bench/predicted_shapes.md) quote `quoted`: whole kernels "
      "and real ones, in busy pipes and in throughput at the power limit. `wavejit tune` and `wavejit compare` quote "
      "toggles. A predicted 91 % busy says "
      "{:.0f} to {:.0f} %; without Triton's causal rows, whose source is not the published one, real kernels of gfx950 "
      "are {:+.1f} % off in the mean and {:.1f} % in root mean square. The published order of single-wave loops is "
      "unknown: the three orders tried bound it, and the clock cannot say which one a figure belongs to.\n",
      100 * whole.low_end(0.91), 100 * whole.high_end(0.91), without_causal_triton().mean,
      without_causal_triton().root_mean_square);
  text += known_when;
  std::set<std::string> kinds;
  for (const JudgedAnchor& first : judged_anchors()) {
    if (!kinds.insert(first.anchor->kind).second) continue;
    text += fmt::format(
        "\n### Anchors: {}\n\n| target | what | published | before | predicted | source | what differs |\n"
        "|---|---|---|---|---|---|---|\n",
        first.anchor->kind);
    for (const JudgedAnchor& judged : judged_anchors())
      if (judged.anchor->kind == first.anchor->kind) text += anchor_row(judged);
  }
  text +=
      "\n\"Before\": the clock without queues, with LDS rates of a microbenchmark and without what traces say of "
      "issue; of real kernels: the clock of 3e92f55, with the law of the power limit by the busy share of the whole "
      "launch.\n\nAnchors no more:\n\n| what | why |\n|---|---|\n";
  for (const auto& row : simgpu::testing::former_anchors()) text += fmt::format("| {} | {} |\n", row.what, row.why);
  return text;
}

std::string published_kernels() {
  return "\n## Kernels that this tree does not hold\n\nPredictions for kernels of others, timed from outside.\n" +
         triton() + aiter() + std::string(dualwave);
}

std::string power_section() {
  const timing::PowerRules& power = timing::find_timing(*targets::find_target("gfx950"))->power;
  std::string text = fmt::format(
      "\n## The clock at the power limit\n\nMI355X, attention: MHz = {} − {} × percent of matrix-busy cycles of the "
      "kernel's loop ({}), never above the peak. Throughput is {} of what cycles at that clock would give ({}). The "
      "power controller answers to how busy the issue ports are, say the same notes, and both kernels have one mix: a "
      "kernel of another mix has another line, which nobody has published. Nothing of the kind is published for "
      "gfx942.\n\n| matrix busy | MHz | throughput beside 85 % busy |\n|---|---|---|\n",
      power.idle.value, power.slope.value, power.idle.source, power.delivered.value, power.delivered.source);
  constexpr double reference = 0.85;
  for (const double busy : {0.50, 0.614, 0.70, 0.80, 0.85, 0.90, 0.937, 0.953}) {
    text += fmt::format("| {:.1f} % | {:.0f} | {:+.1f} % |\n", 100 * busy, 1000 * power.ghz(busy),
                        100 * ((busy * power.ghz(busy) / (reference * power.ghz(reference))) - 1));
  }
  return text +
         "\nThroughput changes by about a third of what cycles change. A published loss of 15 % of throughput "
         "(FlyDSL's kernel without its stagger) is 38 % more cycles, not 18 %: the GPU repays the rest with its clock. "
         "The "
         "densest published loop (AMD's fmha_v4, read from thread traces) is 93.7 to 95.3 % busy.\n";
}

}  // namespace wavejit::bench
