// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writes bench/predicted_sparse.md: what the clock predicts for attention by lists of key blocks, beside dense
// attention on the same clock and beside what others have published.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
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
#include "templates/attention/program/block_lists.h"
#include "templates/attention_forward/program/described_experiment.h"
#include "templates/attention_forward/program/device_case.h"
#include "timing/timing.h"

namespace {

using namespace wavejit;
using bench::LaunchPrediction;
using bench::LaunchTask;

constexpr const char* command = "./dev bench sparse";

constexpr std::string_view introduction =
    R"(# What the clock predicts for lists of key blocks

Made by `./dev bench sparse`. **Cycles, busy and shares are predicted, never measured**: no kernel of this project has run on a GPU.
[docs/timing-model.md](../docs/timing-model.md) says how far to trust them. `attention_forward` in bf16, one sequence of 65,536 rows and as many keys, 24 heads of 128 dims, no mask, a tenth of all blocks.
Lists are those that a descriptor asks for ([docs/sparse.md](../docs/sparse.md)):

- `alike`: windows in three dimensions, as video has them. Keys are a grid of blocks, 16 wide and 8 high. A block of rows sees the 12 × 3 × n blocks around its own place; neighbours along the first dimension share 11 of 12 or more.
  The call says so (`WAVEJIT_LISTS_ALIKE`).
- `random`: each list draws its blocks for itself, and so does each head.

All launches of a call count: the kernel that makes walks, what the second launch loses by waiting (`launch.dependent` of [timing-model.md](../docs/timing-model.md)), and the attention kernel. Arrays hold zeros.
Some workgroups of grids as large as these are timed, from the one with the least work to the one with the most, and all are handed out.

| column | what it says |
|---|---|
| walks | cycles of the kernel that makes walks of lists |
| call | cycles of all launches, and the wait |
| busy | matrix pipes of all compute units, the attention launch. Tiles that only some of a workgroup's rows see are in it |
| of peak | FLOPs that lists ask for (4 D for each row and key that it sees) over what the matrix pipes could do in the call's cycles |
| of dense | that share over the dense kernel's: what a listed block costs against one of dense attention |
| bound | the least cycles that the attention launch could take: what matrix pipes, L2, the last level cache or memory need at their rates for what it multiplies and loads. The greatest of the four, and which it is |
| of bound | that over the attention launch's cycles |
| GHz to equal | the engine clock at which the call would take as long as the best published one. **Not a clock that anybody saw.** Above the GPU's peak (marked !) the published kernel is faster at any clock |

Lists that are alike lose against dense attention on gfx950 for these reasons: a row sees 108 tiles of the 114.75 that its workgroup of 256 rows walks, on average; a workgroup has a tenth of the tiles to spread its beginning and its end over; chunks of
keys end after 12 tiles in place of 16; and a call has the kernel that makes walks, and the wait for it.

Others published 14.40 ms, then 10.68 ms for an MI355X with these lengths, heads and dims, 64 × 64 blocks, 10 % (FastVideo#1860, video sparse attention): 367 and 495 TFLOPS of the blocks that lists name, beside 1,218 TFLOPS of dense attention
there, **40 % of dense**. They do not say how their lists lie.

The clock knows of L2 only lines that two workgroups dispatched next to each other both read. Random lists of 128 workgroups that run side by side on a die have more in common than two of them do; the clock counts that as reads
from memory. So rows of random lists are too slow, by as much as a real L2 keeps.

The goals are ≥ 80 % of dense for lists that are alike, and ≥ 90 % of the bound for random ones. They are reached save for random lists on gfx942, which have 79 %. What follows is of an earlier clock, on which
they had 81 %, and 88 % where the call says `WAVEJIT_LISTS_ALIKE`: it did not know that workgroups of a die fill their L2 together.

With random lists on gfx942 the profile (`wavejit profile "attention_forward bf16 b1 q65536 k65536 h24 d128 lists=64x64:10" --device sim:gfx942`) says what waves wait for: a full queue of memory for 22 % of their time, loads for 21 %,
the matrix pipe 15 %, their own interval 7 %, barriers 7 %, LDS 2 %, the walk's entries 2 %. Places of workgroups are taken for 97 % of the launch, so its end costs little, and the kernel that makes walks takes 0.8 % of the call. So memory is the
cause, but it is not asked all the time: a compute unit has room for two workgroups of two waves, one wave a SIMD, and nothing else asks for keys or computes while those wait, 15 % of their time at a single wait for a tile (0x165c), 13 % behind the
barrier before it goes into LDS. 268 registers of a wave allow no second one on its SIMD, since the tile that is on its way waits in them; and 32,768 bytes of LDS a workgroup would allow no third one either. On gfx950 tiles come by LDS DMA, need no
such registers, and 98 % of the bound are reached. The dense kernel of these 64 rows has as many registers (268), so it is no matter of lists.

What was tried for random lists on gfx942, in cycles of the attention launch:

| kernel that walks | cycles | of peak busy | waits: memory, full queue, barriers |
|---|---|---|---|
| generic, 64 rows, as without a hint | 42,253,435 | 20.2 % | 21, 22, 7 % |
| generic, 64 rows, neighbours on one die (`xcd_swizzle=on`) | 44,726,813 | 19.2 % | 22, 22, 7 % |
| generic, 32 rows | 79,752,269 | 10.6 % | 23, 18, – |
| generic, 128 rows: each tile that one of two lists names, twice the products | 44,811,101 | 35.7 % | 11, 21, 13 % |
| interleaved, 128 rows, as `WAVEJIT_LISTS_ALIKE` chooses | 38,549,760 | 44.2 % | 20, 18, 13 % |

So a call of random lists with `WAVEJIT_LISTS_ALIKE` takes 38,776,090 cycles on gfx942, the walks' 219,130 and the wait among them. These are 9 % fewer than without the hint: half of what the matrix pipes multiply is hidden, and waves wait less for memory. Memory's bound, without what two lists share, is 34,142,913 still (88 %).
No bit of the result shows which kernel walks. Whether lists that are shorter, or fit the caches, gain as well was not asked, so the caller says it and it is not the default. A kernel of fewer registers and half of the LDS, tiles of 32 keys, and a second tile on its way in registers (244 of 512 are free) were not tried.
)";

struct Lists {
  std::string_view name;
  std::string_view words;  // a descriptor's; none: dense
};
constexpr std::array<Lists, 3> all_lists = {
    {{"dense", ""}, {"64 × 64 alike", " lists=64x64:10 lists_alike"}, {"64 × 64 random", " lists=64x64:10"}}};

constexpr std::string_view problem_words = "attention_forward bf16 b1 q65536 k65536 h24 d128";
constexpr double flops_of_pair = 4.0 * 128;  // a row and a key that it sees take them
constexpr double best_published = 495;       // TFLOPS

std::string descriptor_of(const Lists& lists) { return fmt::format("{}{}", problem_words, lists.words); }

// Rows times the keys that each sees, of all heads.
double pairs_of(const Lists& lists) {
  const auto problem = attention_forward::program::parse_experiment(descriptor_of(lists));
  if (!problem) return 0;
  const auto heads = static_cast<double>(problem->query_heads);
  if (problem->list_rows == 0)
    return heads * static_cast<double>(problem->query_length) * static_cast<double>(problem->key_length);
  const auto made = attention::program::lists_of(*problem);
  const auto blocks = std::accumulate(made.masked.counts.begin(), made.masked.counts.end(), std::int64_t{0});
  return static_cast<double>(blocks) * static_cast<double>(problem->list_rows) *
         static_cast<double>(problem->list_keys);
}

// 16-bit FLOPs of the whole GPU in a cycle.
double flops_of_cycle(const boards::Board& target) {
  const targets::MatrixInstruction& widest = target.matrix.front();
  const double of_simd = 2.0 * widest.m * widest.n * widest.k / (4 * isa::find_matrix_instruction(widest.id)->passes);
  return of_simd * target.simds_per_compute_unit * target.compute_units;
}

struct Bound {
  std::string_view of;
  double cycles = 0;
};
Bound bound_of(const boards::Board& target, const bench::OneLaunch& launch) {
  const auto& memory = timing::find_timing(target)->memory;
  const double line = memory.line.value;
  const std::array<Bound, 4> bounds = {
      {{"pipes", launch.busy * static_cast<double>(launch.cycles)},
       {"L2", launch.lines.l2 * line / (memory.l2_rate.value * target.xcds)},
       {"last level", launch.lines.last_level * line / (memory.mall_rate.value * target.xcds)},
       {"memory", launch.lines.memory * line / memory.memory_rate.value}}};
  return *std::ranges::max_element(bounds, {}, &Bound::cycles);
}

std::string row_text(const boards::Board& target, const Lists& lists, const LaunchPrediction& prediction, double pairs,
                     double dense) {
  const auto cycles = static_cast<double>(prediction.cycles);
  const double of_peak = pairs * flops_of_pair / cycles / flops_of_cycle(target);
  const bench::OneLaunch& attention = prediction.each.back();
  const Bound bound = bound_of(target, attention);
  const double ghz = best_published * 1e3 * cycles / (pairs * flops_of_pair);
  const bool listed = !lists.words.empty();
  const bool published = listed && target.id == "gfx950";
  return fmt::format("| {} | {} | {} | {} | {:.1f} % | {:.1f} % | {} | {:.0f} ({}) | {:.0f} % | {} |\n", lists.name,
                     prediction.kernel, listed ? fmt::format("{}", prediction.each.front().cycles) : "–",
                     prediction.cycles, 100 * attention.busy, 100 * of_peak,
                     listed ? fmt::format("{:.0f} %", 100 * of_peak / dense) : "–", bound.cycles, bound.of,
                     100 * bound.cycles / static_cast<double>(attention.cycles),
                     published ? fmt::format("{:.2f}{}", ghz, ghz * 1e6 > target.clock_khz ? " !" : "") : "–");
}

}  // namespace

namespace wavejit::bench {

int predict_sparse(const PageRequest& request) {
  std::vector<LaunchTask> tasks;
  for (const boards::Board& target : boards::complete_products())
    for (const Lists& lists : all_lists)
      tasks.push_back({.target = &target, .descriptor = descriptor_of(lists), .warm = false});
  const auto predictions = bench::predict_launches(tasks);
  if (!predictions) {
    fmt::print(stderr, "{}\n", predictions.error().what);
    return 1;
  }
  std::array<double, all_lists.size()> pairs{};
  std::ranges::transform(all_lists, pairs.begin(), pairs_of);
  std::string text(introduction);
  auto next = predictions->begin();
  for (const boards::Board& target : boards::complete_products()) {
    text += fmt::format(
        "\n## {}, {}\n\nPeak: {:.1f} GHz, {} compute units.\n\n| lists | kernel | walks | call | busy | of peak | of "
        "dense | bound | of bound | GHz to equal |\n|---|---|---|---|---|---|---|---|---|---|\n",
        target.id, target.product, target.clock_khz / 1e6, target.compute_units);
    const double dense = pairs[0] * flops_of_pair / static_cast<double>(next->cycles) / flops_of_cycle(target);
    for (std::size_t i = 0; i < all_lists.size(); ++i) text += row_text(target, all_lists[i], *next++, pairs[i], dense);
  }
  return bench::check_or_print(text, request.file, command);
}

}  // namespace wavejit::bench
