// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A page (predicted_pages.cpp): what the clock predicts for forward attention and gradients on gfx1201, what it counts with, and how
// its issue came out beside hardware's traces.
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "boards/board.h"
#include "check_or_print.h"
#include "predicted_page.h"
#include "replay.h"
#include "timing/timing.h"
#include "tools/profile/launch_text.h"
#include "tools/profile/prediction.h"

namespace {

using namespace wavejit;
using Json = nlohmann::json;

constexpr const char* command = "./dev bench rdna4";
constexpr const char* target = "gfx1201";

constexpr std::string_view introduction = R"(# What the clock predicts for gfx1201

Made by `./dev bench rdna4`. **Cycles and shares are predicted, never measured**: no kernel of this project has run on a GPU. What was measured on
hardware is the issue of small programs, by others, and this page says how the clock stands beside that.

## What was compared with hardware cycle by cycle

tinygrad publishes thread traces of gfx1201 (and one of gfx1200): in which cycle a wave issued which instruction. `tests/simgpu/clock/traces` has them as text.
Each wave's instructions run through the clock's issue model, and the cycles between neighbours are added up on both sides. Not compared, and listed apart as
hardware's own cycles, is what stands behind a wait for memory, LDS or a barrier, before a vector memory instruction, before the first vector instruction behind one or behind
one of LDS (both wait for a queue where other SIMDs stand that nobody traced), at a wave's beginning and end, and at each line of code that a wave runs for the
first time. Figures of issue come from the first two programs only, and one from a trace of gfx1100 that is not here. The goal was 10 % for each of the others.

Some of that was decided with the traces in sight. The list of what is not compared grew while the errors of the other programs were in sight (an earlier, shorter list left `gemm` at
-11.2 %), and `matmul` decided one rule of structure, that memory waits for all vector instructions of its wave. Two rules came later, when it was known that `matmul`
needed something before pairs and before scalar instructions; what they say is from elsewhere ([below](#two-rules-that-came-later)). So these traces were held out of the
figures, not of the comparison's making.

Sums hide differences of either sign. `apart` adds up how far single gaps are from hardware's, as a part of its cycles.

| trace | what runs | rules or figures from it | instructions compared | hardware, cycles | clock | error | apart | behind waits | code from memory |
|---|---|---|---|---|---|---|---|---|---|
)";

constexpr std::string_view exclusions = R"(
### What is left out, and what that does

The clock has an answer for four of the things that are not compared. With each of these compared as well, the errors are:

| trace | as above | with vector memory instructions | with the first vector instruction behind memory and LDS | with waves' beginnings | with code from memory |
|---|---|---|---|---|---|
)";

constexpr std::string_view not_compared = R"(
So memory and the first fetch of code are where this clock knows least: `matmul`'s vector memory instructions stand before a queue that other SIMDs fill, and its waves wait
8,400 cycles at their beginning for what the whole GPU asks for at once. The page's shares of whole kernels have both in them, by guesses (the constants below).

The traces show how vector, matrix, transcendental and scalar instructions follow each other, within a wave and between waves of one SIMD, what `s_delay_alu`, `s_wait_alu` and
branches cost, and how LDS and memory instructions leave a SIMD. They have a few samples each, not more, of the latency of LDS, a barrier's release, cold code and cold arguments.
They have nothing of LDS when several SIMDs read it, bank conflicts, `global_load_tr`, every cache and memory under load, two workgroups at once, whole kernels, power. That LDS and
memory instructions wait until **all** vector instructions of their wave have ended is what traces show behind plain ones; that matrix instructions are no exception is a
guess, and costs the most of all guesses here.

Matrix instructions alone come out to the cycle (wmma), and within 8 % in turns with vector work of another wave (handwritten).

**Missed: matmul_256.** Its SIMD has vector instructions in the queue for 98 % of the time. In a replay loads stand where hardware had them, so waits for a queue show how near it
is to being full, not how long an instruction takes: a few percent there are most of the sum here. Neighbours in its full queue, by
when hardware reported them done, say what instructions take (of the first 120,000; no command repeats this table):

| instruction | registers read, most of one bank | samples | hardware, cycles from one to the next | clock |
|---|---|---|---|---|
| pair | 4, 2 | 2,757 | 2.01 | 2 |
| pair | 6, 2 | 27,592 | 2.35 | 2 |
| pair | 6, 3 | 46,533 | 2.90 | 3 |
| other | 1, 1 | 14,112 | 1.14 | 1 |
| other | 3, 1 | 16,505 | 1.29 | 1 |
| other | 3, 2 | 8,289 | 1.40 | 1 |

So where vector instructions of many waves leave no free cycle, plain ones take a tenth to a third of a cycle more than predicted here, behind pairs more than behind each
other. No trace shows what a kernel of few pairs loses by that.

### Two rules that came later

* **Pairs (VOPD) take one register of each of four banks in a cycle.** Banks go by register number. LLVM says so of gfx10, and that hardware gathers what instructions read ahead,
  to hide it; AMD's ISA documents name the banks for pairs. Nothing was fitted: a pair begins as many cycles after its predecessor as it reads registers of one bank. That pairs
  pay for their banks and other instructions do not is what `matmul_256` shows (the table above), a trace of the same kernel on the same GPU as `matmul`, of another size.
* **A scalar instruction that writes waits until vector instructions of its wave have read their scalars**: 7 cycles from their begin. LLVM has a counter of such reads
  (`va_ssrc`). The figure is from a trace of gfx1100's `gemm`, ten of ten waves; neither of the first two programs has such a place.

Without both, `matmul` was at -32.1 % and `gemm` at -5.6 %; with the second alone at -29.9 % and -2.5 %.

In a tile's work LLVM pairs two maxima, which saves a cycle, and six of 32 sums. Each of the three pairs of sums reads two registers of one bank, since weights that meet often stand
a multiple of four registers apart. So a pair takes the two cycles that its sums would take alone, and more pairs would save next to nothing.

)";

struct Task {
  const char* type;
  int keys;
  int dims;
  const char* goal;
  int heads = 16;
};
// 24 heads as CK's rows below.
constexpr std::array<Task, 12> tasks = {{{"bf16", 4096, 128, "70, at least 62"},
                                         {"bf16", 8192, 128, "70, at least 62"},
                                         {"fp16", 4096, 128, "74, at least 65"},
                                         {"fp16", 8192, 128, "74, at least 65"},
                                         {"bf16", 4096, 64, "55"},
                                         {"bf16", 8192, 64, "55"},
                                         {"fp16", 4096, 64, "55"},
                                         {"fp16", 8192, 64, "55"},
                                         {"fp16", 1024, 128, "–", 24},
                                         {"fp16", 4096, 128, "–", 24},
                                         {"fp16", 8192, 128, "–", 24},
                                         {"fp16", 12288, 128, "–", 24}}};

constexpr std::string_view barriers = R"(
Waves wait at barriers for 10 to 20 % of their time, and other workgroups of the SIMD work meanwhile: a clock whose barriers never wait said 79.2 in place of 79.0 % (bf16 d128
4096) and 66.5 in place of 66.6 % (bf16 d64 4096). So tiles that are read further ahead, or a second buffer of them, would gain next to nothing. These two pairs of figures are of an
earlier clock; no command repeats them.
)";

constexpr std::string_view gradients = R"(
## Gradients

`attention_backward b1 h16/16`, two launches: dQ, then dK and dV. `steady` and `launch` as above. The kernels multiply more often than gradients need: seven products of 64 dims, and eight of
128, whose second launch walks the rows twice ([backward.md](../docs/backward.md)); what a mask hides of a tile is multiplied, too. TFLOPS count five, as everybody does, and half of it when causal.
No published figure of gradients on this GPU was found.

| shape | registers | steady, % | launch, % | cycles | TFLOPS at 2.92 GHz | what waves of the longer launch wait for |
|---|---|---|---|---|---|---|
)";

struct GradientTask {
  const char* type;
  int dims;
  const char* mask;
};
constexpr std::array<GradientTask, 6> gradient_tasks = {{{"bf16", 128, ""},
                                                         {"bf16", 128, " causal"},
                                                         {"fp16", 128, ""},
                                                         {"bf16", 64, ""},
                                                         {"bf16", 64, " causal"},
                                                         {"fp16", 64, ""}}};

constexpr std::string_view published = R"(
## Published beside it

Others measured these TFLOPS of forward attention, without a mask unless a row says so. A share of the 195 (RX 9070 XT) or 191 (R9700) that AMD states is not a share of cycles: boards run WMMA loops at
about 3.05 GHz, 200 TFLOPS.

| kernel | shape | TFLOPS | note |
|---|---|---|---|
| CK tile, RX 9070 XT (rocm-libraries#5455) | fp16 b8 h16 d128, 256 to 4,096 keys | 42.8, 71.5, 105.6, 107.7, 102.9 | ordinary layouts |
| | bf16 b8 h16 d128, 256 to 4,096 keys | 53.7, 72.2, 92.7, 96.3, 93.0 | |
| | fp16 d64 h32, four lengths upward | 72.8, 87.7, 101.7, 103.2 | |
| CK tile (rocm-libraries#5798) | fp16 b1 h24 d128, 1,024, 4,096, 8,192, 12,288 and 65,536 keys | 85.3, 100.7, 105.4, 107.4, 105.3 | ordinary layouts |
| AOTriton's FlyDSL kernels | fp16 b1 h8, 4,096 keys, d64, d128, d192 | 91, 103, 104 | V with rows in order |
| aiter's FlyDSL | bf16 8192 × 12 × 128 | 90.3 | P truncated |
| gcnasm, HIP | bf16 b4 h32 d128, 4,096 keys | 88.5 to 103 | V transposed beforehand, which is not timed |
| gcnasm, assembly | bf16 h32 d128, 1,536, 3,072, 6,144 keys | 114 to 120, 106, 100 | V transposed beforehand, which is not timed; lane 0's maximum for all 16 rows |
| Triton (aiter#2397) | d128, 16,384 tokens, 512 to 32,768 keys | 30, 53, 69, 79, 83, 83, 80 | |

)";

constexpr std::string_view ways = R"(
## What the clock counts with

Grades as on [docs/timing-model.md](../docs/timing-model.md). The model: each SIMD has one queue of vector and matrix instructions and begins them in order, so that nothing
runs beside a matrix instruction, of whichever wave. Scalar, LDS and memory instructions, branches and waits of other waves go beside. Two compute units with four SIMDs
and 128 KiB of LDS make one place for workgroups.

| constant | value | unit | grade | source |
|---|---|---|---|---|
)";

std::string replay_row(const simgpu::testing::Trace& trace) {
  const simgpu::testing::Replayed replayed = simgpu::testing::replay(simgpu::testing::path_of(trace));
  if (!replayed.error.empty()) return fmt::format("| {} | {} |\n", trace.name, replayed.error);
  return fmt::format("| {} | {} | {} | {} | {} | {} | {:+.1f} % | {:.0f} % | {} | {} |\n", trace.name, trace.what,
                     trace.gave_figures ? "yes" : "no", replayed.compared, replayed.hardware, replayed.clock,
                     replayed.percent(),
                     100 * static_cast<double>(replayed.apart) / static_cast<double>(replayed.hardware), replayed.waits,
                     replayed.code);
}

std::string exclusion_row(const simgpu::testing::Trace& trace) {
  using simgpu::testing::LeftOut;
  std::string row = fmt::format("| {} |", trace.name);
  for (const LeftOut too :
       {LeftOut::none, LeftOut::memory, LeftOut::behind_memory, LeftOut::beginning, LeftOut::code}) {
    const simgpu::testing::Replayed replayed = simgpu::testing::replay(simgpu::testing::path_of(trace), too);
    row += replayed.error.empty() ? fmt::format(" {:+.1f} % |", replayed.percent()) : " – |";
  }
  return row + "\n";
}

tools::Result<tools::Prediction> predict(const std::string& descriptor) {
  tools::EngineOptions options;
  options.set_cache_mode("off");
  const auto subject = tools::parse_subject(descriptor, {fmt::format("device=sim:{}", target)}, options, "set");
  if (!subject) return std::unexpected(subject.error());
  return tools::predict(*subject, 0);
}

double tflops(double operations, const tools::Prediction& prediction) {
  const boards::Board& board = *boards::find_product(target);
  const double seconds = static_cast<double>(prediction.cycles()) / (board.clock_khz * 1000.0);
  return operations / seconds / 1e12;
}

// Cycles of waves by cause, as parts of all their cycles.
std::string waited(const Json& launch) {
  const Json& waves = launch.at("waves");
  return tools::shares(waves.at("waited"), waves.at("cycles").get<double>());
}

std::string shape_row(const Task& task) {
  const std::string descriptor = fmt::format("attention_forward {} b1 q{} k{} h{}/{} d{}", task.type, task.keys,
                                             task.keys, task.heads, task.heads, task.dims);
  const auto prediction = predict(descriptor);
  if (!prediction) return fmt::format("| {} | {} |\n", descriptor, prediction.error().what);
  const Json& launch = *prediction->longest();
  const Json& unit = launch.at("compute_unit");
  const double simd_cycles = unit.at("cycles").get<double>() * unit.at("simds").get<double>();
  const double operations = 4.0 * task.keys * task.keys * task.dims * task.heads;
  return fmt::format(
      "| {} d{} {} h{} | {} | {:.1f} | {} | {:.1f} | {:.1f} | {:.0f} | {} | {} |\n", task.type, task.dims, task.keys,
      task.heads, launch.at("vgprs").get<int>(), 100 * launch.at("steady_matrix_busy").get<double>(), task.goal,
      100 * launch.at("matrix_busy").get<double>(), 100 * unit.at("port_busy").get<double>() / simd_cycles,
      tflops(operations, *prediction), waited(launch), tools::shares(unit.at("idle"), simd_cycles));
}

// "232; 240": what both launches have.
std::string both(const tools::Prediction& prediction, const auto& of) {
  std::string text;
  for (const Json& launch : prediction.launches) text += (text.empty() ? "" : "; ") + of(launch);
  return text;
}

std::string gradient_row(const GradientTask& task) {
  constexpr int keys = 4096;
  const std::string descriptor =
      fmt::format("attention_backward {} b1 q{} k{} h16/16 d{}{}", task.type, keys, keys, task.dims, task.mask);
  const auto prediction = predict(descriptor);
  if (!prediction) return fmt::format("| {} | {} |\n", descriptor, prediction.error().what);
  const auto share = [](const char* name) {
    return [name](const Json& launch) { return fmt::format("{:.1f}", 100 * launch.at(name).get<double>()); };
  };
  const double operations = 10.0 * keys * keys * task.dims * 16 / (*task.mask == 0 ? 1 : 2);
  return fmt::format(
      "| {} d{} {}{} | {} | {} | {} | {} | {:.0f} | {} |\n", task.type, task.dims, keys, task.mask,
      both(*prediction, [](const Json& launch) { return fmt::format("{}", launch.at("vgprs").get<int>()); }),
      both(*prediction, share("steady_matrix_busy")), both(*prediction, share("matrix_busy")), prediction->cycles(),
      tflops(operations, *prediction), waited(*prediction->longest()));
}

std::string page() {
  std::string text(introduction);
  for (const simgpu::testing::Trace& trace : simgpu::testing::traces()) text += replay_row(trace);
  text += exclusions;
  for (const simgpu::testing::Trace& trace : simgpu::testing::traces()) text += exclusion_row(trace);
  text += not_compared;
  text +=
      "## Forward attention\n\n"
      "Nobody's kernel has been measured at such shares: hand-tuned ones have come to about four fifths of what the "
      "sum of their instructions allows, and these stand at 95 % of it. "
      "What the clock does not know (above) makes its predictions too quick, not too slow.\n\n"
      "`attention_forward b1`, 16 heads or 24, no mask. `steady`: share of the cycles in which a SIMD multiplies, "
      "in the middle half of a workgroup's time; `launch`: of all cycles of the launch. "
      "`queue`: SIMDs that do something at all. TFLOPS at 2.92 GHz, the R9700's boost clock, "
      "which a board at its power limit may not hold.\n\n"
      "| shape | registers | steady, % | goal | launch, % | queue, % | TFLOPS at 2.92 GHz | what waves wait for | what "
      "idle SIMDs wait for |\n|---|---|---|---|---|---|---|---|---|\n";
  for (const Task& task : tasks) text += shape_row(task);
  text += barriers;
  text += gradients;
  for (const GradientTask& task : gradient_tasks) text += gradient_row(task);
  text += published;
  text += ways;
  timing::for_each_figure(*timing::find_timing(*targets::find_target(target)),
                          [&](std::string_view name, std::string_view unit, const timing::Figure& figure) {
                            if (figure.value > 0)
                              text += fmt::format("| {} | {} | {} | {} | {} |\n", name, figure.value, unit,
                                                  to_text(figure.grade), figure.source);
                          });
  return text;
}

int print_trace(const std::string& path) {
  const simgpu::testing::Replayed replayed = simgpu::testing::replay(path);
  fmt::print("{}\ncompared {}, hardware {}, clock {}, {:+.2f} %, single gaps {} apart; behind waits {}, code {}\n",
             replayed.error, replayed.compared, replayed.hardware, replayed.clock, replayed.percent(), replayed.apart,
             replayed.waits, replayed.code);
  for (const std::string& line : replayed.worst) fmt::print("{}\n", line);
  return replayed.error.empty() ? 0 : 1;
}

}  // namespace

namespace wavejit::bench {

int predict_rdna4(const PageRequest& request) { return check_or_print(page(), request.file, command); }

int predict_rdna4_trace(const PageRequest& request) { return print_trace(request.words.front()); }

}  // namespace wavejit::bench
