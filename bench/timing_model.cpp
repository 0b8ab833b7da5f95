// Prints docs/timing-model.md: every constant of the clock, and its predictions beside published measurements.
//
//   wavejit_timing_model                  the page
//   wavejit_timing_model --error          src/simgpu/clock/model_error.json, which the page and others quote
//   wavejit_timing_model --check <file>   exit 1 when the file differs, or when model_error.json would
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>

#include "anchor_error.h"
#include "anchors.h"
#include "check_or_print.h"
#include "model_error.h"
#include "targets/targets.h"
#include "timing/timing.h"
#include "toggle_effects.h"

namespace {

using wavejit::simgpu::testing::Anchor;

constexpr std::string_view introduction =
    R"(# The timing model: what it counts with, and how far to trust it

Made by `./dev bench timing-model`; a test compares it with the model. The simulated GPU predicts cycles (`wavejit run --cycles`,
[simgpu.h](../include/wavejit/simgpu.h)): it replays what the waves of sampled workgroups executed on a model of the target's compute units
([src/simgpu/clock](../src/simgpu/clock/README.md)). **Predictions are not measurements, and this project has measured nothing:** no AMD GPU was at hand.
Every constant was published by others or is a guess, and the tables below say which.

## Grades

| grade | what it means |
|---|---|
| measured by others | on hardware, by those whom the source names; rounded to what the model can use. [M] in the tables of anchors |
| documented | by AMD, or in LLVM's back end |
| derived | from code objects that AMD ships, or by arithmetic from the two above. [X] in the tables of anchors |
| guessed | nobody has published it; the source says what the guess leans on |

## Sources

What others measured, documented or shipped, and what of it the model has. Where no project is named, figures come from notes that engineers keep in public
repositories.

| source | GPU | what it gave |
|---|---|---|
| pyhip's microbenchmarks of one wave | MI300X | vector costs of gfx942, and what runs in the shadow of a matrix instruction |
| prices fitted to performance counters within 1 % | MI355X | issue costs of gfx950; 16 busy cycles a 16x16x32 matrix instruction; duty of one wave a SIMD (three anchors) |
| probes of a fixed-maximum attention, head dim 64 | MI355X | 79 % matrix busy, what leaving out exponentials, DMA, reads of V or barriers changes, 1.62 to 1.69 GHz at the power limit |
| LDS microbenchmarks | MI355X | 192 and 163 bytes a clock of 16-byte and of transpose reads |
| HipKittens (HazyResearch), phase tables | MI355X | which lanes of an LDS access go together |
| HipKittens, benchmark results | MI355X | throughput of its own, AITER's, CK's and Triton's attention: [published_forward.json](../bench/published_forward.json) |
| AITER (ROCm), README of its attention programs | MI300X, MI355X | throughput of its assembly kernels: the same file |
| attn-dsl-bench | MI300X | MfmaUtil counters of AITER's and Triton's attention, causal |
| a profile of latent-key attention | MI355X | cycles that a phase with one barrier loses; counted bank conflicts of transpose reads |
| a pointer chase and BabelStream | MI300X | latencies of L2, last level cache and memory; 4.1 TB/s |
| Chips and Cheese | MI300X | 11.9 TB/s of the last level cache |
| RDNA3 traces | RDNA3 | latencies that guesses lean on where nobody has measured CDNA |
| AMD: CDNA3 and CDNA4 white papers, instruction set architecture, matrix instruction calculator, rocprofiler-compute, Composable Kernel's notes on LDS | – | what is documented |
| LLVM: scheduling model, hazard recognizer | – | passes, wait states |
| code objects of AITER | – | what stands between two matrix instructions of a loop that AMD has tuned |

## The model

* Each SIMD is looked at every fourth cycle. At a look a wave issues at most one instruction, and each unit (vector with matrix, vector memory, scalar,
  LDS, branch) takes at most one: the wave of the highest priority first, of those the oldest. Waits, barriers, no-ops and priorities stay in the
  instruction buffer: they take a wave's turn and no unit.
* The vector port is held by each instruction for its cost, the matrix pipe for passes × 4. Vector instructions run beside the pipe, packed ones do
  not. A cost that is no multiple of four adds up over the looks.
* A matrix result may be read after its passes and a few wait states; the next product may add to it at once. Vector results are forwarded.
* LDS: one set of banks, busy for the turns that the addresses need (phases of the target, lost turns one by one), and a port for each pair of SIMDs.
  DMA takes the banks when its data arrives. Results come in order, counters count them, `s_waitcnt` waits.
* Vector memory: an address unit, L1, and the compute unit's equal share of the rates of L2, last level cache and memory. Lines that a neighbouring
  workgroup of the die reads too are fetched once for all of them. Neighbours are looked for in two places: the workgroup that the die gets next, and the
  nearest at the same x and z. Heads that take turns on a die so share nothing with each other, and all with the other query blocks of their own.
* Barriers release everybody a fixed time after the last arrival. Jumps empty the wave's instruction buffer; code is there unless it was displaced.
* A launch: four workgroups are sampled with up to two neighbours each, timed with as many beside them as registers and LDS admit, and their times
  handed to all workgroups in the order of dispatch (round the dies by linear id, then to the place that is free first).

**Not in the model:** power and clock frequency (a GPU at its power limit runs attention well below its peak clock: never convert predicted cycles to
time with the peak clock), register bank conflicts, the queues of the vector memory path, TLBs, cache replacement as it really is, other launches,
the overlap of a workgroup's beginning with the end of the one before it, and data: a product of zeros takes as long as any other.

## What a prediction says

`matrix_busy` is the part of all SIMDs' cycles in which the matrix pipe works, `steady_matrix_busy` the same in the middle half of a compute unit's time.
Cycles that a wave does not issue in are counted by cause, and by the instruction that it stands before: `own interval` (what it issued last still
occupies it), `matrix result`, `operand`, `matrix pipe`, `vector port`, `other wave` (a wave of higher priority or age took the unit), `vector memory`, `LDS`,
`scalar memory` (all three at a wait), `full counter`, `barrier`, `branch`, `pause` (`s_nop`, `s_sleep`), `fetch`.
A cluster is a run of instructions between jumps, their targets and barriers.
)";

std::string number(double value) { return fmt::format("{:.4g}", value); }

std::string constants() {
  std::string text = "\n## Constants\n";
  for (const auto& target : wavejit::targets::all_targets()) {
    const wavejit::timing::Timing* timing = wavejit::timing::find_timing(target);
    if (timing == nullptr) continue;
    text += fmt::format("\n### {}\n\n| constant | value | unit | grade | source |\n|---|---|---|---|---|\n", target.id);
    wavejit::timing::for_each_figure(
        *timing, [&](std::string_view name, std::string_view unit, const wavejit::timing::Figure& figure) {
          text += fmt::format("| {} | {} | {} | {} | {} |\n", name, fmt::format("{}", figure.value), unit,
                              to_text(figure.grade), figure.source);
        });
    text += "\nLDS phases:";
    for (const auto& access : timing->lds) {
      text +=
          fmt::format("{} {}: {} of {} lanes over {} banks ({})", &access == timing->lds.data() ? "" : ";", access.name,
                      access.phases.size(), 64 / access.phases.size(), access.banks, access.phase_source);
    }
    text += ".\n";
  }
  return text;
}

std::string anchors(const std::vector<Anchor>& all, bool with_difference) {
  std::string text = "\n| target | rule | published | predicted | difference | source |";
  text += with_difference ? " what differs |\n|---|---|---|---|---|---|---|\n" : "\n|---|---|---|---|---|---|\n";
  for (const Anchor& anchor : all) {
    const double predicted = anchor.predict();
    text += fmt::format("| {} | {} | {} {} | {} | {:+.1f} % | {} |", anchor.target, anchor.rule,
                        number(anchor.published), anchor.unit, number(predicted),
                        100 * (predicted - anchor.published) / anchor.published, anchor.source);
    text += with_difference ? fmt::format(" {} |\n", anchor.difference) : "\n";
  }
  return text;
}

std::string triton() {
  std::string text = R"(
## Triton's attention

Triton's own code objects, compiled by it for the target and launched on the simulated GPU: no kernel of ours, no constant of ours. 256 heads, as many
keys as queries. `bench/triton_clock.py` takes these figures, bench/triton_anchors.json keeps them. What differs: the published kernels are Triton's, but
not this source; their tiles and their walk over a causal mask are not published with the figures.

| target | head dim | mask | keys | published | predicted matrix busy | difference | clock implied | source |
|---|---|---|---|---|---|---|---|---|
)";
  for (const auto& row : wavejit::bench::triton_anchors()) {
    const auto* target = wavejit::targets::find_target(row.target);
    constexpr double flops_of_cycle = 4096;  // of a gfx950 compute unit, 16-bit
    const bool busy = row.unit == "% matrix busy";
    text += fmt::format(
        "| {} | {} | {} | {} | {} {} | {:.1f} % | {} | {} | {} |\n", row.target, row.head_dim, row.mask, row.keys,
        number(row.published), busy ? "% busy" : row.unit, 100 * row.matrix_busy,
        busy ? fmt::format("{:+.1f} %", (10000 * row.matrix_busy / row.published) - 100) : "",
        busy ? ""
             : fmt::format("{:.2f} GHz", row.published * 1e3 / row.useful / flops_of_cycle / target->compute_units),
        row.source);
  }
  return text + R"(
**Cycles and clock apart.** Published TFLOPS are cycles times a clock that nobody publishes with them; a share of the peak at boost clock (2.4 GHz)
mixes both. Dividing by the predicted cycles leaves the clock: without a mask it comes out the same for both head dims and for all but short launches,
about 2 GHz on MI355X, between the boost clock and the 1.62 to 1.69 GHz that others saw at the power limit. That it is one clock says that the clock of
the simulated GPU has the ratios right (head dim 64 to 128 at 16384 keys: published 0.876); it cannot say that the level is right. Causal rows ask for
lower clocks: what Triton's published kernel spends on them beyond this one's walk is not known.
)";
}

std::string error_bar() {
  const wavejit::bench::ModelError& error = wavejit::bench::model_error();
  return fmt::format(
      "\n## The error to quote\n\nOf {} whole kernels and loops whose share of matrix-busy cycles others measured, "
      "none of which gave the "
      "model a constant, the clock's figure was between {:.1f} % too low and {:.1f} % too high; root mean square "
      "{:.1f} %. A predicted "
      "91 % therefore says {:.0f} to {:.0f} %. Kernels whose waves take turns by barriers lie at the optimistic end: "
      "where the "
      "clock sees every matrix instruction covered, 97 %, counters saw 79 %, with waves drifting into phase. Why is "
      "not known "
      "well enough to be a rule: register bank conflicts, arbitration of LDS between reads and DMA and the memory "
      "path's own "
      "queues are documented by nobody, so that the model has none of them.\n",
      error.kernels, error.too_low, error.too_high, error.root_mean_square, 100 * error.low_end(0.91),
      100 * error.high_end(0.91));
}

std::string effects() {
  std::string text =
      "\nWhat changes to that fixed-maximum attention changed, and what the same change does to our loop of its mix. "
      "The clock sees "
      "all of them covered, the GPU did not quite:\n\n| change | published | predicted | source |\n|---|---|---|---|\n";
  for (const auto& effect : wavejit::simgpu::testing::published_effects())
    text += fmt::format("| {} | {} | {:.1f} % of cycles | {} |\n", effect.change, effect.published, effect.predict(),
                        effect.source);
  return text;
}

}  // namespace

int main(int count, char** values) {
  const std::string_view option = count > 1 ? values[1] : "";
  if (count != 1 && (count != 2 || option != "--error") && (count != 3 || option != "--check")) {
    fmt::print(stderr, "usage: {} [--error | --check <file>]\n", values[0]);
    return 2;
  }
  if (option == "--error") {
    fmt::print("{}", wavejit::bench::anchor_error().to_json());
    return 0;
  }
  if (option == "--check") {
    if (const std::string today = wavejit::bench::anchor_error().to_json();
        today != wavejit::bench::model_error().to_json()) {
      fmt::print(stderr,
                 "src/simgpu/clock/model_error.json is not what it would be today; ./dev bench timing-model writes it "
                 "anew. Today:\n{}",
                 today);
      return 1;
    }
  }
  std::string text(introduction);
  text += constants();
  text +=
      "\n## Single rules, beside what was published\n\nKernels of our own, assembled to isolate one rule each. "
      "Constants come from the "
      "same sources, so agreement says that the rules are combined as the hardware does, no more. Nothing is tuned to "
      "a row. [M] measured by others, [X] "
      "derived from shipped kernels.\n";
  text += anchors(wavejit::simgpu::testing::fitted_anchors(), false);
  text +=
      "\n## What no constant was taken from\n\nThe error to quote beside a prediction. Where the order of a published "
      "kernel is unknown, two orders bound it. They were chosen after a first loop (reads of LDS first, DMA in "
      "proportion) "
      "had shown 54.6, 43.4 and 22.9 % matrix busy, all below what was published: that the published figures lie "
      "between "
      "the two, 27 to 45 points apart, is weak evidence.\n";
  text += anchors(wavejit::simgpu::testing::held_out_anchors(), true);
  text += effects();
  text += triton();
  text += error_bar();
  const std::string toggles = wavejit::bench::toggle_effects();
  if (toggles.empty()) return 1;
  text += toggles;
  text += R"(
Published figures that cannot be repeated here, because their kernels cannot be built from this project: AITER's and CK's counters of matrix
utilisation on gfx942 by sequence length (a loop of AITER's mix stands above), AOTriton's. Predictions for this project's own kernels stand in
[bench/predicted_table.md](../bench/predicted_table.md) (one compute unit in the middle of a launch) and
[bench/predicted_shapes.md](../bench/predicted_shapes.md) (whole launches of published shapes, beside what was published), each with the range that
the error above leaves it.
)";
  return wavejit::bench::check_or_print(text, count == 1 ? nullptr : values[2], "./dev bench timing-model");
}
