// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "model_page.h"

#include <fmt/format.h>

#include <array>
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

std::string triton() {
  std::string text = R"(
### Triton's attention

Triton's own code objects, compiled by it for the target and launched on the simulated GPU: no kernel of ours, no constant of ours. 256 heads, as many
keys as queries. `bench/triton_clock.py` takes these figures, bench/triton_anchors.json keeps them. What differs: the published kernels are Triton's, but
not this source; their tiles and their walk over a causal mask are not published with the figures.

| target | head dim | mask | keys | published | predicted matrix busy | difference | clock implied | clock at the power limit | source |
|---|---|---|---|---|---|---|---|---|---|
)";
  for (const OutsideKernel& row : outside_kernels()) {
    if (row.name != "triton") continue;
    const auto* target = targets::find_target(row.target);
    constexpr double flops_of_cycle = 4096;  // of a gfx950 compute unit, 16-bit
    const bool busy = row.unit == "% matrix busy";
    text += fmt::format(
        "| {} | {} | {} | {} | {} {} | {:.1f} % | {} | {} | {} | {} |\n", row.target, row.head_dim, row.mask, row.keys,
        number(row.published), busy ? "% busy" : row.unit, 100 * row.matrix_busy,
        busy ? fmt::format("{:+.1f} %", (10000 * row.matrix_busy / row.published) - 100) : "",
        busy ? ""
             : fmt::format("{:.2f} GHz", row.published * 1e3 / row.useful / flops_of_cycle / target->compute_units),
        busy ? "" : fmt::format("{:.2f} GHz", clock_at_cap(row.target, row.matrix_busy).value_or(0)), row.source);
  }
  return text + R"(
**Cycles and clock apart.** Published TFLOPS are cycles times a clock that nobody publishes with them; a share of the peak at boost clock (2.4 GHz)
mixes both. Dividing by the predicted cycles leaves the clock that the prediction implies. The law of the power limit (below), found on other kernels by others, says
which clock a GPU as busy as predicted runs at. Without a mask both agree within 2 % from 4096 keys on, for both head dims: cycles are right in level there,
not only in ratio. Causal rows ask for lower clocks: what Triton's published kernel spends on them beyond this one's walk is not known.
)";
}

std::string aiter() {
  std::string text = R"(
### AITER's attention

AITER's own code objects, which this tree does not hold. bf16, head dim 128, 16 sequences of 16 heads; the last rows are its paged decode (8 query heads a
kv head, pages of 16 keys). To repeat them: `python3 bench/aiter_clock.py build/dev/lib/libwavejit_simgpu.so <folder of hsa/> bench/aiter_anchors.json`,
with the folder of ROCm/aiter or of its package (these are of amd-aiter 0.1.7.post2.dev18). Cycles of decode are microseconds at 2.4 GHz; what of a launch is in its published
times is not known.

| target | mask | batch x kv heads | keys | published | predicted | difference | source |
|---|---|---|---|---|---|---|---|
)";
  for (const OutsideKernel& row : outside_kernels()) {
    if (row.name != "aiter") continue;
    std::string predicted = fmt::format("{:.1f} % busy", 100 * row.matrix_busy);
    std::optional<double> comparable;
    if (row.unit == "% matrix busy") comparable = 100 * row.matrix_busy;
    const auto* target = targets::find_target(row.target);
    const double peak_ghz = target->clock_khz / 1e6;
    if (row.unit == "TFLOPS") {
      constexpr double flops_of_cycle = 4096;
      comparable = *row.throughput_at_cap() * flops_of_cycle * target->compute_units * peak_ghz / 1e3;
      predicted = fmt::format("{:.0f} TFLOPS at the power limit, {}", *comparable, predicted);
    }
    if (row.unit == "microseconds") {
      comparable = row.cycles / peak_ghz / 1e3;
      predicted = fmt::format("{:.1f} microseconds", *comparable);
    }
    text += fmt::format("| {} | {} | {} x {} | {} | {} {} | {} | {:+.1f} % | {} |\n", row.target, row.mask, row.batch,
                        row.heads, row.keys, number(row.published), row.unit, predicted,
                        100 * (*comparable - row.published) / row.published, row.source);
  }
  return text;
}

constexpr std::string_view dualwave = R"(
### FlyDSL's dual-wave attention

FlyDSL's kernel, compiled for gfx950 by its own compiler, was run from outside once, on the clock as it was before queues and traces: 16 heads, 8192 keys, head dim 128, no mask. The
loop of its mix above stands for it since.

| variant | thread traces of MI355X, matrix busy | predicted then |
|---|---|---|
| as it is | 83.6 to 86.5 % | 86.0 % |
| without s_setprio | 86.9 % | 86.6 % |
| rescale for every tile | 61.2 % | 64.9 % |
| without stagger | throughput −15 % | 50.2 % |
)";

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
};

// Of AITER's paged decode, on the clock without queues and what traces say of memory.
struct DecodeBefore {
  int keys = 0;
  double microseconds = 0;
};
constexpr std::array decodes_before = {DecodeBefore{.keys = 32768, .microseconds = 161.5},
                                       DecodeBefore{.keys = 8192, .microseconds = 42.3}};

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
  const double peak_ghz = targets::find_target("gfx950")->clock_khz / 1e6;
  for (const OutsideKernel& row : outside_kernels()) {
    if (row.mask != "decode") continue;
    for (const DecodeBefore& before : decodes_before) {
      if (before.keys != row.keys) continue;
      text += fmt::format(
          "| AITER's paged decode, {} x {} kv heads, {} keys | {} {} | {} | {:.1f} | queues, bytes in flight, lines of "
          "the address unit and latencies of traces came in between; which of them is too slow for this kernel is not "
          "known, nor what of a launch is in the published time |\n",
          row.batch, row.heads, row.keys, number(row.published), row.unit, before.microseconds,
          row.cycles / peak_ghz / 1e3);
    }
  }
  return text +
         "| XCD swizzle off | 2 to 7 % of cycles | +14.6 | below, at Toggles | a head each is the worst case: no "
         "line is shared, and device memory serves every tile. Published kernels without a swizzle still share in "
         "the last level cache; how much is not known |\n";
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
  const ModelError& whole = all.at("whole_kernels");
  text += fmt::format(
      "\n`wavejit profile` quotes whole kernels, `wavejit tune` and `wavejit compare` toggles. A predicted 91 % busy "
      "says "
      "{:.0f} to {:.0f} %. The published order of single-wave loops is unknown: the three orders tried bound it, and "
      "the "
      "clock cannot say which one a figure belongs to.\n",
      100 * whole.low_end(0.91), 100 * whole.high_end(0.91));
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
      "issue. Nothing was tuned to a row.\n\nAnchors no more:\n\n| what | why |\n|---|---|\n";
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
      "\n## The clock at the power limit\n\nMI355X, attention: MHz = {} − {} × percent of matrix-busy cycles "
      "({}). Nothing of the kind is published for gfx942.\n\n| matrix busy | MHz | throughput beside 85 % busy "
      "|\n|---|---|---|\n",
      power.idle.value, power.slope.value, power.idle.source);
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
