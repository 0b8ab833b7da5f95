// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Prints the static figures of every kernel's steady state; bench/static_table.md is its output.
//
//   wavejit_static_table                     the table
//   wavejit_static_table --check <file>      exit 1 when the file differs
//   wavejit_static_table --details <word>    vector instructions a tile and LDS accesses, for kernels whose spec
//   contains the word
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "check_or_print.h"
#include "kernels/statics.h"
#include "targets/targets.h"
#include "timing/timing.h"

namespace {

using wavejit::analysis::Kind;
using wavejit::analysis::LdsUse;
using wavejit::attention_forward::ForwardKernel;
using wavejit::attention_forward::Mask;
using wavejit::tests::ObservedSteadyState;
using wavejit::tests::Statics;

// 12, 12.5: what stands in a turn of several tiles need not be a whole number a tile.
std::string per_tile(int count, int tiles) {
  if (count % tiles == 0) return fmt::format("{}", count / tiles);
  return fmt::format("{:.1f}", static_cast<double>(count) / tiles);
}

std::string name_of(const ForwardKernel& spec) {
  return fmt::format("{} {}x{} {} d{}{}{}", to_text(spec.pipeline), spec.tile_queries, spec.tile_keys,
                     to_text(spec.dtype), spec.head_dim_qk,
                     spec.head_dim_v == spec.head_dim_qk ? "" : fmt::format("/{}", spec.head_dim_v),
                     spec.mask == Mask::causal ? " causal" : "");
}

constexpr std::string_view introduction =
    R"(# What a tile costs: every kernel's steady state

Made by `./dev bench static`; a test compares it with the kernels. Per tile of 64 keys and wave of 32 query rows, read from the machine code: the
loop, its likely path without masks and without a taken rescale, is found as src/analysis/steady_state.h says, and waves of the simulated GPU
were seen to take it turn after turn. Cycles are predictions from public figures (src/timing), not measurements.

| column | what it counts |
|---|---|
| turn | tiles in one turn of the loop |
| matrix, pipe | matrix instructions, and their cycles on the matrix pipe |
| plain … swap | the other vector instructions by what they cost; packed ones never run beside the matrix pipe |
| port | cycles of the vector issue port: all of them, and 4 for each matrix instruction |
| port/pipe | below 1 the matrix pipe is the limit |
| busy | matrix pipe, at most: pipe ÷ the larger of port and pipe + packed, were everything else to overlap perfectly |
| LDS r, w, DMA | LDS reads, writes and DMA, in instructions |
| lost | LDS turns lost to bank conflicts, of 100 that the accesses take: by the addresses of a run and the phases in src/timing |

Not in the model: dependent instructions that wait for each other, LDS bandwidth, barriers, instruction fetch.
)";

std::string heading(std::string_view target) {
  return fmt::format(
      "\n## {}\n\n"
      "| kernel | turn | VGPRs | matrix | pipe | plain | 3-source | packed | exp | swap | port | port/pipe | busy | "
      "LDS r | LDS w | DMA | loads | waits | barriers | scalar | lost |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
      target);
}

std::string row(const Statics& statics, const ObservedSteadyState& observed) {
  const auto& counts = statics.steady.counts;
  const auto of = [&](Kind kind) { return per_tile(counts.count(kind), statics.tiles); };
  const int packed_cycles =
      counts.count(Kind::packed) * wavejit::timing::find_timing(statics.code->target())->issue.packed.cycles();
  const double busy =
      static_cast<double>(counts.matrix_cycles) / std::max(counts.port_cycles, counts.matrix_cycles + packed_cycles);
  LdsUse all;
  for (const auto& [name, use] : observed.lds) {
    all.phases += use.phases;
    all.extra += use.extra;
  }
  std::string text = "| " + name_of(statics.spec) + " |";
  const auto cell = [&](const auto& value) { text += fmt::format(" {} |", value); };
  cell(statics.tiles);
  cell(statics.kernel.facts.vgprs);
  cell(of(Kind::matrix));
  cell(per_tile(counts.matrix_cycles, statics.tiles));
  for (const Kind kind : {Kind::plain, Kind::three_source, Kind::packed, Kind::transcendental, Kind::lane_swap})
    cell(of(kind));
  cell(per_tile(counts.port_cycles, statics.tiles));
  cell(fmt::format("{:.2f}", counts.port_to_matrix()));
  cell(fmt::format("{:.0f} %", 100 * busy));
  cell(per_tile(counts.count(Kind::lds_read) + counts.count(Kind::lds_lanes), statics.tiles));
  for (const Kind kind : {Kind::lds_write, Kind::lds_dma, Kind::load, Kind::wait, Kind::barrier}) cell(of(kind));
  cell(per_tile(counts.count(Kind::scalar) + counts.count(Kind::branch), statics.tiles));
  cell(fmt::format("{:.3g} %", 100.0 * all.extra / (all.phases + all.extra)));
  return text + "\n";
}

// What stands behind a row: vector instructions by name, LDS accesses by kind.
int print_details(std::string_view word) {
  for (const ForwardKernel& spec : wavejit::tests::steady_state_specs()) {
    if (!to_text(spec).contains(word)) continue;
    const auto statics = wavejit::tests::statics_of(spec);
    if (!statics) {
      fmt::print(stderr, "{}: {}\n", to_text(spec), statics.error());
      return 1;
    }
    fmt::print("{}\n", to_text(spec));
    for (const auto& [mnemonic, count] : statics->steady.counts.of_mnemonic)
      fmt::print("  {:>6} {}\n", per_tile(count, statics->tiles), mnemonic);
    const auto observed = wavejit::tests::observe_steady_state(*statics);
    if (!observed) {
      fmt::print(stderr, "{}: {}\n", to_text(spec), observed.error());
      return 1;
    }
    for (const auto& [name, use] : observed->lds)
      fmt::print("  {}: {} visits seen, {} turns without conflicts, {} lost\n", name, use.visits, use.phases,
                 use.extra);
  }
  return 0;
}

}  // namespace

int main(int count, char** values) {
  const std::string_view option = count > 1 ? values[1] : "";
  if ((count != 1 && count != 3) || (count == 3 && option != "--check" && option != "--details")) {
    fmt::print(stderr, "usage: {} [--check <file> | --details <word>]\n", values[0]);
    return 2;
  }
  if (option == "--details") return print_details(values[2]);

  std::string text(introduction);
  std::string target;
  bool good = true;
  for (const ForwardKernel& spec : wavejit::tests::steady_state_specs()) {
    const auto statics = wavejit::tests::statics_of(spec);
    if (!statics) {
      fmt::print(stderr, "{}: {}\n", to_text(spec), statics.error());
      return 1;
    }
    const auto observed = wavejit::tests::observe_steady_state(*statics);
    if (!observed) {
      fmt::print(stderr, "{}: {}\n", to_text(spec), observed.error());
      return 1;
    }
    if (!observed->difference.empty() || observed->turns == 0 || !observed->unknown.empty()) {
      fmt::print(stderr, "{}: not what waves do: {} turns; {}; LDS accesses without a rule: {}\n", to_text(spec),
                 observed->turns, observed->difference, observed->unknown);
      good = false;
    }
    if (spec.target != target) text += heading(target = spec.target);
    text += row(*statics, *observed);
  }
  const int same = wavejit::bench::check_or_print(text, count == 1 ? nullptr : values[2], "./dev bench static");
  return good ? same : 1;
}
