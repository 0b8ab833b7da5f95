// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Prints docs/timing-model.md: every constant of the clock, and its predictions beside published measurements.
//
//   wavejit_timing_model                  the page
//   wavejit_timing_model --error          src/simgpu/checkers/clock/model_error.json, which the page and others quote
//   wavejit_timing_model --check <file>   exit 1 when the file differs, or when model_error.json would
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "anchor_error.h"
#include "check_or_print.h"
#include "model_error.h"
#include "model_page.h"
#include "targets/targets.h"
#include "timing/timing.h"
#include "toggle_effects.h"

namespace {

constexpr std::string_view introduction =
    R"(# The timing model: what it counts with, and how far to trust it

Made by `./dev bench timing-model`; a test compares it with the model. The simulated GPU predicts cycles (`wavejit run --cycles`,
[simgpu.h](../include/wavejit/simgpu.h)). It runs sampled workgroups, and replays what their waves executed on a model of the target's compute units
([src/simgpu/checkers/clock](../src/simgpu/checkers/clock/README.md)). **Predictions are not measurements, and this project has measured nothing:** no AMD GPU was at hand.
Costs, latencies and rates were published by others, derived from what was, or guessed, and the tables below say which. Associativity of L2 and the scalar cache, the hash that chooses sets of
caches and the thresholds of sampling are guesses in src/simgpu/checkers/clock.

Ratios are predicted ÷ measured, here and in [silicon-score.md](silicon-score.md). A ratio of times above 1 says that the clock is too slow. In the tables of anchors +10 % says that the predicted
figure is a tenth larger than the published one: a + on a speed or a busy share says that the clock is too fast.

## Grades

| grade | what it means |
|---|---|
| measured by others | on hardware, by those whom the source names; rounded to what the model can use. [M] in the tables of anchors |
| documented | by AMD, or in LLVM's back end |
| derived | from code objects that AMD ships, or by arithmetic from the two above. [X] in the tables of anchors |
| carried over | measured by others on another GPU of AMD, which the source names, and taken as it is: nobody has published it of the target |
| guessed | nobody has published it; the source says what the guess is based on |

## Sources

What others measured, documented or shipped, and what the model has of that. Where no project is named, figures come from notes that engineers keep in public
repositories.

| source | GPU | what it gave |
|---|---|---|
| pyhip's microbenchmarks of one wave | MI300X | vector costs of gfx942, and what runs beside a matrix instruction |
| ROCm/gfx950-gluon-tutorials: AMD's engineers read thread traces of attention, of products and of LDS | MI355X, MI300X | issue beside a matrix instruction, queues, LDS rates, bytes on their way, cycles a round of whole loops, the clock at the power limit |
| tinygrad/tinygrad, `extra/sqtt`: thread traces that anybody can read (no matrix instruction in them) | MI350 series | vector, scalar, LDS and memory issue; branches; latencies; starts and ends of waves |
| prices fitted to performance counters within 1 % | MI355X | duty of one wave a SIMD (three figures); its costs were replaced by those of traces |
| probes of a fixed-maximum attention, head dim 64 | MI355X | 79 % matrix busy, what leaving out exponentials, DMA, reads of V or barriers changes, 1.62 to 1.69 GHz at the power limit |
| LDS microbenchmarks | MI355X | 192 and 163 bytes a clock of 16-byte and of transpose reads: contradicted by AMD's traces, which the model follows |
| HipKittens (HazyResearch), phase tables | MI355X | which lanes of an LDS access go together |
| HipKittens, benchmark results | MI355X | throughput of its own, AITER's, CK's and Triton's attention: [published_forward.json](../bench/published_forward.json) |
| AITER (ROCm), README of its attention programs | MI300X, MI355X | throughput of its assembly kernels: the same file |
| attn-dsl-bench | MI300X | MfmaUtil counters of AITER's and Triton's attention, causal |
| a profile of latent-key attention | MI355X | cycles that a phase with one barrier loses; counted bank conflicts of transpose reads |
| fences of agent scope in a loop, and a message from die to die | MI300X | 115 to 317 ns a fence, 703 ns from a release to the poll that sees it: with this model's fences, atomic and load 1.04 µs, where 0.9 to 1.0 was measured |
| a kernel of 256 workgroups that meet again and again | MI355X | 13.20 µs a meeting, 5.55 without `buffer_wbl2`; its cost does not follow the bytes that are written back |
| BabelStream, and a pointer chase | MI300X | 4.1 TB/s; latencies of the last level cache, L2 and memory. The next line contradicts those of L2 and memory |
| a report of MT4G, a public tool that measures the caches of a GPU | MI300X, a virtual function | latencies of L1, L2, memory, LDS and the scalar cache, each a step of a chase; 5.8 TB/s of the last level cache |
| sarchlab/mgpusim d01e70d5, `gpu_perf_scripts`: 22 HIP programs (no matrix instruction, LDS DMA or atomic in them) | MI300A | what one more launch takes, how fast workgroups begin; the rate at which a die transfers to and from the last level cache and memory, which does not carry over to gfx950. Of the latencies they confirm L1's, L2's and the scalar cache's |
| sarchlab/mgpusim 7155c64f, a table of microbenchmarks | MI300X | how long a launch without work takes between two events |
| published paged decode | MI355X | 6.0 TB/s, the most that anybody reports of device memory |
| Chips and Cheese | MI300X | 11.9 TB/s of the last level cache by reads alone: contradicted by MT4G and by the MI300A, which the model follows |
| RDNA3 traces | RDNA3 | latencies that guesses are based on where nobody has measured CDNA |
| AMD: CDNA3 and CDNA4 white papers, instruction set architecture, matrix instruction calculator, rocprofiler-compute, Composable Kernel's notes on LDS | – | what is documented |
| LLVM: scheduling model, hazard recognizer | – | passes, wait states |
| code objects of AITER | – | what stands between two matrix instructions of a loop that AMD has tuned |

## The model

* **Issue.** Each SIMD is looked at every fourth cycle. At a look a wave issues at most one instruction. Each unit takes at most one: vector with matrix,
  memory with LDS, scalar, branch. The wave of the highest priority goes first, among equal ones the oldest. Waits, barriers, no-ops and priorities stay in the
  instruction buffer: they take a wave's turn and no unit.
* **Vector and matrix.** An instruction holds the vector port for its cost. A matrix instruction holds the matrix pipe for passes × 4, and the vector port while its
  operands are read. After that, vector instructions run beside the pipe. Packed vector instructions do not: they wait until the pipe has ended, and some cycles
  more. A cost that is no multiple of four adds up over the looks.
* **Results.** A matrix result may be read after its passes and a few wait states. The next product may add to it at once. Vector results are forwarded. LDS and memory
  instructions wait a little after a vector instruction of their wave. Scalar instructions wait after a vector instruction that writes scalars.
* **LDS.** Each pair of SIMDs has a queue and a port, served in order. One set of banks serves both pairs. An access keeps the banks busy for the turns that its
  addresses need: by the target's phases, lost turns one by one, misaligned reads of 16 bytes lane by lane. A full queue holds up the waves of its SIMDs. DMA
  joins the queue when its data arrives. Results come in order, counters count them, `s_waitcnt` waits.
* **Vector memory.** Requests stand in a queue. An address unit takes four lanes at a time, or sixteen where a lane has up to 4 bytes. It takes a cycle for each line
  that these lanes touch. The bytes on their way are limited. Then come L1, which passes on the halves of lines that somebody wants, and the compute unit's equal share of the rates of L2, of the die's transfers to and from the last level
  cache and memory, which reads and writes share, and of memory. Each of the workgroups that replay one trace has lines of its own, but for those that more workgroups read than a die has compute units. Sets of caches are chosen by mixed bits of
  the line's number.
* **Scalar memory.** Scalar loads have a cache of their own on CDNA, with lines as long as L1's; what it lacks comes from L2 and beyond. Arguments are there: the first load of them is counted once, at
  the beginning of the launch. On gfx1201 every scalar load takes the same.
* **gfx1201** issues in its own way: a SIMD is looked at every cycle, vector and matrix instructions stand in one queue in order, pairs (VOPD)
  take one register of each bank in a cycle, counters are split, two compute units are one place of a workgroup. [bench/predicted_rdna4.md](../bench/predicted_rdna4.md) has its constants, and how it stands beside hardware's thread traces.
* **Lines on their way.** A request for a line that is on its way to L1, to L2 or to the scalar cache waits until it has come.
* **Lines of several workgroups.** Up to four neighbours of a workgroup are traced: the next one in the die's part of a row of the grid, the nearest of the die at the same x and z, the one beside it, and the next row's, which are on other dies.
  Lines that both read say who shares: a die fetches such a line once for all of its workgroups that have it, each of which waits for it as long as it would alone (they are taken to ask at the same time). A line of several dies comes from memory once; the other dies find it in the last level cache.
  * How many share it is what all workgroups read of its array ÷ the array: an allocation, or the part that the launch touches of one that is more than twice as large. Seven heads of a row of 35, in each of two rows, are 14 readers; their ids say that they lie on eight dies, so that a die has 1.75 of them in the mean
    and each of them pays for 1 / 1.75 of a fetch. Ten heads on eight dies are 1.25 a die.
  * A die has no more readers of a line at a time than workgroups. If these together read more lines of an array than it has, as when each gathers from all of it, its lines have several readers, too.
  * If one sampled workgroup shares more than half of its lines of an array with a neighbour, the whole sample does. Otherwise the last head of a group, whose neighbour is of another group, would fetch alone.
  * The workgroup beside the sampled one on its compute unit has lines of its own. They are shared as the sampled one's own are, if both have as many of the array, within an eighth.
  * Lines of one workgroup have its equal part of L2; lines of several have all of it.
* **Stores.** What is written stays in L2, as far as the compute unit's part of L2 reaches. It goes back to memory when memory has nothing else to do. Writes beyond that
  part wait. No workgroup takes less time than memory needs for its reads and writes, and a launch ends when all is written. Neither does it take less than L1, L2, an address unit or LDS need at their rates. Atomics read and write at memory's
  rate, because all dies see them.
* **Workgroups that merge.** A `buffer_wbl2` of agent scope keeps the die's L2 busy for a fixed time, however little is written. The L2 serves its workgroups one after the
  other, and the model has them come together: each waits for as many as compute units of its die work. `buffer_inv` empties L1 and the part of L2, and what follows
  comes from the last level cache or memory, as what a second launch reads does. Loads and stores with `sc1` go past L1 and L2. A launch with such instructions runs whole, its workgroups one after
  the other, and up to 256 of them are timed: the one that merges comes last, and ends when its own work and the merge are done.
* **Cold and warm.** A launch finds L2 empty. In the last level cache it finds what launches of its queue wrote before, the latest first, as far as that fits and the memory was not freed since:
  so a merge reads its parts there. All else comes from memory, as in a program's first launch. After `wavejit_simgpu_set_warm`, and with `--warm` of `wavejit profile` and `sim`, a launch
  finds all that it reads in the last level cache, as the second of two equal launches does. It finds it in L2, too, if what the workgroups of a die touch fits; but not what lies where
  this launch or the one before it writes, since another die may have written it. [predicted_decode.md](../bench/predicted_decode.md) has both.
* **Barriers, jumps, ends.** A barrier releases everybody a fixed time after the last arrival. A jump empties the wave's instruction buffer. Code is there unless it was
  displaced. A wave ends when its stores have arrived.
* **Beginnings.** A launch begins cold: its code arrives, then its arguments. Launches of one call wait for each other. `predicted_cycles` of `wavejit profile` adds
  `launch.dependent` for each launch that waits. A die begins its workgroups one after the other, `launch.workgroup` apart.
* **One launch or two.** Both forms are on one footing. A second launch costs `launch.dependent`, code and arguments that arrive cold, and the merge's own time. A merge
  within the launch costs the release of each workgroup, an atomic's way to memory and back, an acquire, and the merge's own time. 8 workgroups on 8 dies of gfx950 release in 574 cycles; 256 in
  18,368, which is more than the 1,800 between two launches. So a merge within the launch pays where few workgroups share a die. What a release costs was measured by others. What one more launch
  takes is derived from slopes that others measured on an MI300A: 800 to 2,400 cycles beside what its kernel does. Other targets carry it over.
* **A whole launch.** Four workgroups are sampled, with up to four neighbours each. Each is timed with as many others beside it as registers and LDS admit. Then all
  workgroups are handed out in the order of dispatch: round the dies by linear id, and to the place that is free first. Where other workgroups wait for places, a workgroup holds its place for T × all ÷ done: T is the time from
  the mean start to the end of the first workgroup on the compute unit, all and done are the busy cycles of its matrix pipes, in the whole run and within T. Without matrix instructions it holds its place for the mean time of the workgroups there. Where all workgroups run at once, the launch ends with the last. Each workgroup has an equal part of memory's rates, so that of
  305 workgroups on 304 units two share a unit and have 2 of 305 parts; where others have one less, these are timed, too, as if no unit had more, and the slower one counts. That is more than memory's rate where nearly all units have the greater number.
* **Workgroups that differ.** The first and the last workgroup are counted beside the sample. More are counted when these two differ from what the sample says, or when all
  workgroups end at once. The same holds when workgroups of the sample differ and no dimension of the grid says how, as with sequences of different lengths. Then
  instructions of up to 1,024 workgroups are counted, both ends of each dimension among them. Between neighbours that differ the count goes on, until the two
  stand side by side. Up to twelve workgroups, of the least work to the most, are timed, each beside workgroups like it. All others take time in proportion to
  their work.
* **What a sample can miss.** A dimension with more places than were counted is known at some of them: one long sequence in the midst of hundreds may be missed. When a
  kernel has matrix instructions and its sample ran none, the report says so as a doubt.

**Not in the model:**

* Power and clock frequency. A GPU at its power limit runs attention well below its peak clock. Never convert predicted cycles to time with the peak clock. What is known
  of the real clock stands [below](#the-clock-at-the-power-limit).
* Register bank conflicts, and cache replacement as it really is. TLBs: an MI300A streams 3.9 TB/s over 0.2 GB and 2.3 over 6.4 GB, and transposes 0.5 GB at
  3.5 TB/s, 1.2 GB at 1.5 and 8.6 GB at 0.5 (sarchlab/mgpusim). The clock has one rate for all of them.
* A last round that is not full, behind workgroups that differ, or where matrix pipes need longer than memory. Its workgroups take as long as those before them: gfx942 `fp16 b4 q1024 k4096 h24 d128`
  703,847 cycles, where `h19`, its full round, takes 561,911: 141,936 for 160 workgroups that take 201,316 alone, and could begin as soon as the first of the round end. Behind equal workgroups for which memory decides, they are timed with as many beside them as there are.
* Workgroups of one group that do not begin together. Those that a die has at a time read a line at the same time; behind rounds of causal blocks, which end one by one, they drift apart, and each may
  fetch it again. Triton's causal rows of gfx942, below, are the ones that are predicted too fast.
* Room for more keys than there are, in dense keys: the room counts as read, so that fewer workgroups seem to share a line. gfx1201 shows it, where compute hides least.
* Allocations whose lines have unequal readers, some many and others one. No line of them has more than the mean.
* What reads push out of the last level cache, and what launches of other queues left there. `--warm` has no limit: a launch finds 2 GB there, too.
* L2 between two launches that are not equal: gfx1201 has one die, and its L2 could still hold what the launch before wrote. It comes from the last level cache here.
* Atomics that return: they take memory's latency and know no contention. Others measured 382 cycles alone and 1,937 contended, MI300X. An MI300X takes those at one address
  one after the other, 20 cycles for each wave ([silicon-score.md](silicon-score.md#probes), where programs of all kinds stand beside measured times).
* The cache of scalar loads of gfx1201: each takes the same.
* Clocks that a kernel reads (`clock64()`, `wall_clock64()`) know nothing of the workgroups beside their own, begin with the launch in each workgroup, and find nothing in L2
  under `--warm`.
* What makes a SIMD issue at half rate for hundreds of cycles now and then. Traces show it and do not say why.
* The pause of the matrix pipe at a wait between its instructions. AMD's notes see it: 71.4 to 76.2 % busy for ten waits less in a loop of 64 products.
* Vector instructions of three operands that meet data on its way from LDS. AMD's notes: 89.5 to 93.7 % busy when 64 of them were moved, or made of two.
* What a launch costs before its first cycle, and the overlap of a workgroup's beginning with the end of the workgroup before it.
* Data: a product of zeros takes as long as any other.

## What a prediction says

`matrix_busy` is the part of all SIMDs' cycles in which the matrix pipe works. `steady_matrix_busy` is the same part in the middle half of a compute unit's time.
A cycle in which a wave does not issue is counted by its cause, and at the instruction before which the wave stands.

| cause | the wave stands there because |
|---|---|
| `own interval` | the instruction that it issued last still occupies it |
| `matrix result`, `operand` | something that it reads is not there yet |
| `matrix pipe`, `vector port` | the unit works |
| `other wave` | a wave of higher priority or age took the unit |
| `vector memory`, `LDS`, `scalar memory` | it waits (`s_waitcnt`) for such results |
| `full counter`, `full queue` | no more requests may be under way |
| `barrier` | others have not arrived, or the barrier has not opened yet |
| `branch`, `fetch` | its next instruction is on its way |
| `pause` | `s_nop` or `s_sleep` says so |

A cluster is a run of instructions between jumps, their targets and barriers.
)";

std::string constants() {
  std::string text = "\n## Constants\n";
  for (const auto& target : wavejit::targets::complete_targets()) {
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

}  // namespace

int main(int count, char** values) {
  const std::string_view option = count > 1 ? values[1] : "";
  if (count != 1 && (count != 2 || option != "--error") && (count != 3 || option != "--check")) {
    fmt::print(stderr, "usage: {} [--error | --check <file>]\n", values[0]);
    return 2;
  }
  const std::string today = to_json(errors_of(wavejit::bench::judged_anchors()));
  if (option == "--error") {
    fmt::print("{}", today);
    return 0;
  }
  if (option == "--check" && today != to_json(wavejit::bench::model_errors())) {
    fmt::print(
        stderr,
        "src/simgpu/checkers/clock/model_error.json is not what it would be today; ./dev bench timing-model writes it anew. Today:\n"
        "{}",
        today);
    return 1;
  }
  std::string text(introduction);
  text += constants();
  text += wavejit::bench::consistency();
  text += wavejit::bench::judged_tables();
  text += wavejit::bench::published_kernels();
  text += wavejit::bench::power_section();
  text += wavejit::bench::unexplained();
  const std::string toggles = wavejit::bench::toggle_effects();
  if (toggles.empty()) return 1;
  text += toggles;
  text += R"(
Predictions for this project's own kernels stand in [bench/predicted_table.md](../bench/predicted_table.md) (one compute unit in the middle of a
launch) and [bench/predicted_shapes.md](../bench/predicted_shapes.md) (whole launches of published shapes, beside what was published), each with the
range that the quoted error leaves it.
)";
  return wavejit::bench::check_or_print(text, count == 1 ? nullptr : values[2], "./dev bench timing-model");
}
