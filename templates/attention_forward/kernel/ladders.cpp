// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/kernel/ladders.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace wavejit::attention_forward {
namespace {

template <std::size_t count>
using Rungs = std::array<Rung, count>;

namespace dualwave {

// Slots of four cycles behind each matrix instruction (dualwave.cpp says what takes how many). It takes 32 cycles, of
// which it holds the port for 8: six slots are free. With 12 weights in `begin`, `finish` is 88 slots and `begin` 90.
// Nothing stands behind the last matrix instruction: while it runs, the barrier is met and lets the partner go.
constexpr Rungs<1> finish_64 = {{{.matrix = 8, .vector = 11}}};
constexpr Rungs<1> begin_64 = {{{.matrix = 8, .vector = 12}}};
constexpr Rungs<2> full_128 = {{{.matrix = 15, .vector = 6}, {.matrix = 1, .vector = 0}}};

// In 8 bits it takes 64 cycles, and fourteen slots are free. `finish` is 80 slots less two for each weight of `begin`,
// which has 66 and those: more than fits.
constexpr Rungs<2> finish_bytes = {{{.matrix = 3, .vector = 16}, {.matrix = 1, .vector = 14}}};
constexpr Rungs<2> begin_bytes = {{{.matrix = 4, .vector = 16}, {.matrix = 1, .vector = 14}}};

constexpr Rungs<1> early_64 = {{{.matrix = 8, .vector = 13}}};
constexpr Rungs<1> early_128 = {{{.matrix = 16, .vector = 7}}};

constexpr Rungs<2> late_64 = {{{.matrix = 1, .vector = 0}, {.matrix = 7, .vector = 13}}};
constexpr Rungs<2> late_128 = {{{.matrix = 1, .vector = 0}, {.matrix = 15, .vector = 6}}};

constexpr Rungs<1> even_128 = {{{.matrix = 16, .vector = 6}}};

// Every operation a slot, however long it takes: with 16 weights 64 and 67 of them.
constexpr Rungs<1> operations_finish_64 = {{{.matrix = 8, .vector = 8}}};
constexpr Rungs<1> operations_finish_128 = {{{.matrix = 16, .vector = 4}}};
constexpr Rungs<2> operations_begin_64 = {{{.matrix = 3, .vector = 8}, {.matrix = 5, .vector = 10}}};
constexpr Rungs<2> operations_begin_128 = {{{.matrix = 4, .vector = 6}, {.matrix = 12, .vector = 4}}};

constexpr Ladder usual = {
    .pipeline = Pipeline::dualwave,
    .name = attention_forward::standard_ladder,
    .idea = "12 weights under Vᵀ·Pᵀ; all that fits behind a matrix instruction, nothing behind the last",
    .finish = {.rungs_64 = finish_64, .rungs_128 = full_128, .rungs_bytes = finish_bytes},
    .begin = {.rungs_64 = begin_64, .rungs_128 = full_128, .rungs_bytes = begin_bytes},
    .weighed_bytes = 8,
    .weighed = 12,
    .by_cycles = true};

}  // namespace dualwave

namespace interleaved {

// Slots behind each matrix instruction. A slot is 4 cycles; a matrix instruction takes 8, its own included, so up to 7
// are free. bf16: `finish` is 6 exp2, 33 plain ones and 16 roundings, 137 slots, with 24 of V's writes (12 for head dim
// 64); `begin` is 20 plain ones, an exchange, 32 plain ones and 26 exp2, 156 slots. With all modifiers at head dim 128
// no register is free: one slot more behind every instruction spills 5, everything a fragment later spills 1.
constexpr Rungs<1> finish_64 = {{{.matrix = 16, .vector = 9}}};
constexpr Rungs<1> finish_128 = {{{.matrix = 32, .vector = 5}}};
constexpr Rungs<2> begin_64 = {{{.matrix = 4, .vector = 8}, {.matrix = 12, .vector = 12}}};
constexpr Rungs<2> begin_128 = {{{.matrix = 8, .vector = 5}, {.matrix = 24, .vector = 6}}};

constexpr Ladder usual = {
    .pipeline = Pipeline::interleaved,
    .name = attention_forward::standard_ladder,
    .idea = "26 weights under Vᵀ·Pᵀ; rounding and V's writes fill K·Qᵀ",
    .finish = {.lead = 8, .rungs_64 = finish_64, .rungs_128 = finish_128, .rungs_bytes = {}, .write_after = 130},
    .begin = {.lead = 4, .rungs_64 = begin_64, .rungs_128 = begin_128, .rungs_bytes = {}, .write_after = 150},
    .weighed = 26,
    .read_ahead = 4};

}  // namespace interleaved

// A ladder that differs from `from` by what `change` does to it.
template <typename Change>
constexpr Ladder changed(Ladder from, std::string_view name, std::string_view idea, Change change) {
  from.name = name;
  from.idea = idea;
  change(from);
  return from;
}

constexpr std::array dualwave_ladders = {
    dualwave::usual,
    changed(dualwave::usual, "early", "one or two slots more behind each matrix instruction",
            [](Ladder& ladder) {
              ladder.finish.rungs_64 = ladder.begin.rungs_64 = dualwave::early_64;
              ladder.finish.rungs_128 = ladder.begin.rungs_128 = dualwave::early_128;
            }),
    changed(dualwave::usual, "late", "everything one matrix instruction later",
            [](Ladder& ladder) {
              ladder.finish.rungs_64 = ladder.begin.rungs_64 = dualwave::late_64;
              ladder.finish.rungs_128 = ladder.begin.rungs_128 = dualwave::late_128;
            }),
    changed(dualwave::usual, "lead", "one matrix instruction's worth before the first",
            [](Ladder& ladder) { ladder.finish.lead = ladder.begin.lead = 6; }),
    changed(dualwave::usual, "even", "the last matrix instruction with as much behind it as the others",
            [](Ladder& ladder) { ladder.finish.rungs_128 = ladder.begin.rungs_128 = dualwave::even_128; }),
    changed(dualwave::usual, "operations", "16 weights under Vᵀ·Pᵀ; operations counted, not their cycles",
            [](Ladder& ladder) {
              ladder.by_cycles = false;
              ladder.weighed = 16;
              ladder.finish = {.rungs_64 = dualwave::operations_finish_64,
                               .rungs_128 = dualwave::operations_finish_128,
                               .rungs_bytes = dualwave::finish_bytes};
              ladder.begin = {.rungs_64 = dualwave::operations_begin_64,
                              .rungs_128 = dualwave::operations_begin_128,
                              .rungs_bytes = dualwave::begin_bytes};
            }),
    changed(dualwave::usual, "weights_8", "8 weights under Vᵀ·Pᵀ, 24 under K·Qᵀ",
            [](Ladder& ladder) { ladder.weighed = 8; }),
    changed(dualwave::usual, "weights_16", "16 weights under Vᵀ·Pᵀ, 16 under K·Qᵀ",
            [](Ladder& ladder) { ladder.weighed = 16; }),
    changed(dualwave::usual, "fetch_last", "DMA behind the LDS reads of its cluster",
            [](Ladder& ladder) { ladder.fetch_last = true; }),
};

constexpr std::array interleaved_ladders = {
    interleaved::usual,
    changed(interleaved::usual, "no_lead", "nothing before the first matrix instruction",
            [](Ladder& ladder) { ladder.finish.lead = ladder.begin.lead = 0; }),
    changed(interleaved::usual, "lead", "twice as much before the first matrix instruction",
            [](Ladder& ladder) {
              ladder.finish.lead = 16;
              ladder.begin.lead = 8;
            }),
    changed(interleaved::usual, "weights_22", "22 weights under Vᵀ·Pᵀ, 10 under K·Qᵀ",
            [](Ladder& ladder) { ladder.weighed = 22; }),
    changed(interleaved::usual, "weights_30", "30 weights under Vᵀ·Pᵀ, 2 under K·Qᵀ",
            [](Ladder& ladder) { ladder.weighed = 30; }),
    changed(interleaved::usual, "write_first", "tiles go into LDS before the softmax of their step",
            [](Ladder& ladder) { ladder.finish.write_after = ladder.begin.write_after = 0; }),
    changed(interleaved::usual, "write_middle", "tiles go into LDS in the middle of the softmax",
            [](Ladder& ladder) {
              ladder.finish.write_after = 65;
              ladder.begin.write_after = 75;
            }),
    changed(interleaved::usual, "read_2", "fragments come from LDS two ahead",
            [](Ladder& ladder) { ladder.read_ahead = 2; }),
    changed(interleaved::usual, "read_3", "fragments come from LDS three ahead",
            [](Ladder& ladder) { ladder.read_ahead = 3; }),
    changed(interleaved::usual, "fetch_last", "loads behind the products of their step",
            [](Ladder& ladder) { ladder.fetch_last = true; }),
};

constexpr int weights_of_lane = 32;

std::string fault_of_rungs(std::span<const Rung> rungs, int wanted) {
  int matrix = 0;
  for (const Rung& rung : rungs) {
    if (rung.matrix < 1 || rung.vector < 0)
      return "a rung of " + std::to_string(rung.matrix) + " matrix instructions with " + std::to_string(rung.vector) +
             " slots each; accepted: 1 and more with 0 and more";
    matrix += rung.matrix;
  }
  if (matrix == wanted) return {};
  return "rungs for " + std::to_string(matrix) + " matrix instructions; the product has " + std::to_string(wanted);
}

std::string fault_of_shadow(const Shadow& shadow, Pipeline pipeline) {
  if (shadow.lead < 0 || shadow.write_after < 0) return "a place before the first operation; accepted: 0 and more";
  if (shadow.write_after != 0 && pipeline != Pipeline::interleaved)
    return "writes into LDS; only pipeline=interleaved carries tiles through registers";
  for (const auto& [head_dim, rungs] : {std::pair(64, shadow.rungs_64), std::pair(128, shadow.rungs_128)}) {
    const std::string fault = fault_of_rungs(rungs, matrix_instructions(pipeline, head_dim));
    if (!fault.empty()) return "head dim " + std::to_string(head_dim) + ": " + fault;
  }
  return {};
}

}  // namespace

std::span<const Ladder> ladders(Pipeline pipeline) {
  switch (pipeline) {
    case Pipeline::dualwave:
      return dualwave_ladders;
    case Pipeline::interleaved:
      return interleaved_ladders;
    case Pipeline::generic:
      break;
  }
  return {};
}

const Ladder* find_ladder(Pipeline pipeline, std::string_view name) {
  const std::span<const Ladder> all = ladders(pipeline);
  const auto found = std::ranges::find(all, name.empty() ? standard_ladder : name, &Ladder::name);
  return found == all.end() ? nullptr : &*found;
}

std::string ladder_names(Pipeline pipeline) {
  std::string list;
  for (const Ladder& ladder : ladders(pipeline)) list += (list.empty() ? "" : ", ") + std::string(ladder.name);
  return list;
}

int matrix_instructions(Pipeline pipeline, int head_dim) {
  // 32 × 32 blocks of 64 keys (scores) or of the head dim (O), 16 deep; interleaved runs where one takes two
  // instructions.
  return head_dim / 8 * (pipeline == Pipeline::interleaved ? 2 : 1);
}

namespace {

std::vector<Rung> known_rungs(const Shadow& shadow, Pipeline pipeline, int instructions) {
  const auto as_they_are = [](std::span<const Rung> rungs) { return std::vector<Rung>(rungs.begin(), rungs.end()); };
  if (instructions == 0) return {};
  if (instructions == matrix_instructions(pipeline, 64)) return as_they_are(shadow.rungs_64);
  if (instructions == matrix_instructions(pipeline, 128)) return as_they_are(shadow.rungs_128);
  int slots = 0;
  for (const Rung& rung : shadow.rungs_128) slots += rung.matrix * rung.vector;
  // As there: nothing stands behind the last.
  const bool last_is_bare = !shadow.rungs_128.empty() && shadow.rungs_128.back().vector == 0 && instructions > 1;
  const int carrying = instructions - (last_is_bare ? 1 : 0);
  // Where the last is bare what does not fit stands behind it; else a slot too many costs less than one too late.
  const int each = last_is_bare ? slots / carrying : (slots + carrying - 1) / carrying;
  std::vector<Rung> rungs = {{.matrix = carrying, .vector = each}};
  if (last_is_bare) rungs.push_back({.matrix = 1, .vector = 0});
  return rungs;
}

}  // namespace

std::vector<Rung> rungs_of(const Shadow& shadow, Pipeline pipeline, int instructions, int more) {
  std::vector<Rung> rungs = known_rungs(shadow, pipeline, instructions);
  if (more == 0) return rungs;
  // More than fits: behind the last one, too.
  int slots = more;
  for (const Rung& rung : rungs) slots += rung.matrix * rung.vector;
  return {{.matrix = instructions, .vector = (slots + instructions - 1) / instructions}};
}

std::string fault_of(const Ladder& ladder) {
  const std::string name = "ladder=" + std::string(ladder.name) + ": ";
  if (ladder.pipeline == Pipeline::generic)
    return name + "pipeline=generic has no ladders; accepted: dualwave, interleaved";
  if (ladder.weighed < 0 || ladder.weighed > weights_of_lane)
    return name + std::to_string(ladder.weighed) + " weights in the first half; accepted: 0 to " +
           std::to_string(weights_of_lane);
  // The smallest product has 8 fragments; more ahead than that would be read in the step before.
  const bool reads_ahead = ladder.pipeline == Pipeline::interleaved;
  if (const int most = reads_ahead ? 8 : 0; ladder.read_ahead < (reads_ahead ? 1 : 0) || ladder.read_ahead > most)
    return name + std::to_string(ladder.read_ahead) + " fragments ahead; accepted: " + (reads_ahead ? "1 to 8" : "0");
  for (const auto& [where, shadow] : {std::pair("finish: ", &ladder.finish), std::pair("begin: ", &ladder.begin)}) {
    const std::string fault = fault_of_shadow(*shadow, ladder.pipeline);
    if (!fault.empty()) return std::string(name).append(where).append(fault);
  }
  return {};
}

}  // namespace wavejit::attention_forward
