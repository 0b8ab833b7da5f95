// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What bench/predicted_latent.md says beside its tables: why goals are missed, what was tried, what compiling takes, and
// what others have published.
#pragma once

#include <string_view>

namespace wavejit::bench {

inline constexpr std::string_view introduction_of_latent =
    R"(# What the clock predicts for latent attention

Printed by `./dev bench latent`. **Cycles and shares are predicted, never measured**: no kernel of this project has run on a GPU.
[docs/timing-model.md](../docs/timing-model.md) says how far to trust them. `attention_latent`, bf16, 576 columns of which 512 are values, every setting as it is by default,
the workspace the engine's own. Arrays hold zeros.

| column | what it says |
|---|---|
| walk, merge | cycles of the two launches. `–`: the call has one launch, since keys are not cut into runs, or since the last workgroup to arrive merges as a part of the walk |
| call | cycles of all launches, and of the second one's wait (`launch.dependent` of [timing-model.md](../docs/timing-model.md)) |
| bytes a cycle | the bytes of the keys, each counted once, over the walk's cycles |
| of memory | that rate as a part of what the clock's memory delivers at most: 2,500 bytes a cycle on gfx950 and 1,952 on gfx942. The second figure is the whole call's |
| of peak | 2 · rows · keys · (576 + 512) operations over what all matrix pipes do in the call's cycles. Rows that are not there and scores that two waves multiply are no operations |
| beside | the call's cycles beside those of the row that the title names |
| busy | matrix pipes in the middle half of a compute unit's time, of the walk, whatever they multiply |
| goal | what this project set itself, and what misses it. A part of memory is asked of the whole call |

)";

inline constexpr std::string_view causes_of_latent = R"(
Caches of 8 bits stand in [predicted_low_precision.md](predicted_low_precision.md), lists of key blocks in [predicted_sparse.md](predicted_sparse.md).

## Why goals are missed

`wavejit profile` with a row's words prints what its waves wait for.

- **gfx950, 32 heads**: the walk waits for memory, and next to nothing is left for a merge.
- **gfx950, 128 heads**: parts are 68 MB beside 302 MB of keys. All 256 workgroups write theirs when their last key has come, and the merge reads them. The query is 38 MB, since four runs read it.
- **gfx942, 128 heads**: 256 workgroups leave 48 of 304 compute units empty. Some units have four of the 1,024 pieces (32 rows and a chunk each) however these are handed out, and 256 units can do that as well. A tile takes twice the 4,352 cycles of its products: between these the scores go through LDS, and the next tile
  waits for the only image that LDS holds.
- **Lists of 2,048 keys, 48 and 96 tokens**: 384 chunks of 48 tokens are cut into 192 runs of two, and no chunk of 256 keys can be divided, so that 64 of gfx950's 256 compute units do nothing. Cycles are lost until the first key, in the first tiles, when memory has too little to do, and in the last tile's products. On gfx942
  scores of 64 keys and the next keys also wait for one image.
- **A list of one token**: four tiles on 8 compute units, in which four waves share what a chunk has to do. Twice as many waves, each with half of the columns, would halve it; that is another kernel, and was not tried.

## What was tried

In per cent of cycles, by the clocks of September to November 2026. Kernels that lost are not kept, so these cannot be predicted again. On gfx950 unless a line names another target.

| change | cycles | |
|---|---|---|
| merges read their arguments together at the entry, where five to seven loads waited for one another | 16 heads −15 %, 32 heads −1 %, one sequence −17 %, lists −16 and −17 %, 128 heads 0 %: they wait for a full queue instead | in |
| walks read theirs together | −0.5 to −1 % | in |
| a workgroup of 128 heads has 128 rows, not 64 | −2.3 % | in |
| parts are stored as lanes have them | 128 heads −3.2 %, gfx942 −2.6 % | in |
| the query through LDS | up to 64 rows −1.4 %, one token over a list −12 %; 128 rows +1.3 %, which come in two turns | in up to 64 rows |
| fewer sequences than dies share all dies | a prompt of 4,096 tokens took 7.4 times as long on one (gfx942 7.6) | in |
| a lane of a merge has eight numbers of a row, and not sixteen | 16 heads −33 %, 128 heads +76 % | in up to 32 rows |
| a merge's wave has a row; more waves a SIMD | 128 heads +49 %; +61 % | out |
| gfx942: values are read a pair of blocks ahead, and the next rope between products | 128 heads −12 % | in |
| gfx942: weights of 48 of 64 keys in the shadow of products | 128 heads −4.5 %; on gfx950, which waits for memory, 0 % | in on gfx942 |
| gfx942: the rope's loads before the last score | 128 heads −0.6 %, 16 heads +8 % | out |
| gfx942: weights in the shadow, or values ahead, where each key is looked up | spills 1 to 6 registers | out |
| lists: entries of four tiles are asked for before all else, and seven of nine transfers start behind the exchange of scores | 48 tokens −16 %, 96 tokens −13 %, one token −17 % | in |
| lists of rows of 656 bytes: four lanes a row look up one key and load its four scales at once | one token −5 %, 48 tokens −11 % | in |
| such loads without lists | +20 %: three in eight pieces of 64 bytes of a row of 656 lie across two lines | out |
| scalar loads that stand together in the merge of the last workgroup to arrive | 0 % | out |
| a loop of 128 rows with one phase for each image of a tile | spills 192 registers | out |

Statistics of parts in an array of their own, apart from O, were not tried.
)";

inline constexpr std::string_view compiling_of_latent = R"(
## What compiling takes

The goal is ≤ 200 ms a kernel. Processor time from a spec's text to the code object, the least of five, with other work beside it (load 2 to 8 on two cores), of kernels that have golden facts:
`kernel_facts times attention_latent`, `kernel_facts times sparse_indexer`. None took more than 182 ms. On two other days, at load 1, the dearest took 216 and 242 ms: compiling is near the goal, and above it on slow days.

| kernels | gfx942: how many, middle and most, ms | gfx950 |
|---|---|---|
| attention_latent, 32 rows a workgroup | 16; 85, 112 | 16; 73, 96 |
| attention_latent, 32 rows, over caches of 8 bits and rows with scales | 48; 97, 124 | 48; 90, 125 |
| attention_latent, 64 rows | 18; 117, 149 | 18; 97, 115 |
| attention_latent, 64 rows, over 8 bits | 6; 126, 141 | 12; 112, 130 |
| attention_latent, 128 rows | – | 18; 133, 181 |
| attention_latent, 128 rows, over 8 bits | – | 12; 145, 182 |
| over lists of keys, 32 rows | 12; 99, 125 | 12; 86, 106 |
| over lists of keys, 32 rows, over 8 bits | 24; 110, 140 | 24; 96, 135 |
| over lists of keys, 64 rows | 12; 128, 169 | 12; 108, 124, and over 8 bits 12; 117, 134 |
| over lists of keys, 128 rows | – | 12; 139, 165, and over 8 bits 6; 144, 176 |
| attention_latent_combine | 16; 26, 31 | 16; 26, 30 |
| sparse_scores and sparse_select, bf16, fp16 and 8 bits | 97; 39, 92 | 97; 37, 89 |

A kernel of 128 rows (bf16, causal, gfx950; `llc -time-passes` with this project's options, least of three) spends 32 % of the time in instruction selection, 19 in the register coalescer, which has 5,937 copies to join, 6 in the register allocator, 5 in two passes of common subexpressions, and the rest in 70 other passes. Decoding the machine
code for the inspection takes 5 % of all. No pass that takes time can be left out: without either pass of common subexpressions, the first early-CSE, reassociation or hoisting kernels get other machine code. LLVM's target machine is kept between compiles, since it remembers what it found out about registers: a second compile takes 2.5 % fewer
instructions (callgrind).
)";

inline constexpr std::string_view others_of_latent = R"(
## What others published

None of these was run here.

| figure | source |
|---|---|
| bf16, 32 heads, MI355X, B16, 32, 64, 128 × 4k: 34.8, 47.3, 75.8, 130.5 µs; × 16k: 73.5, 126, 231, 429 µs; × 128k: up to 5.96 TB/s, 360 TFLOP/s | ROCm/aiter, pull request 5456 |
| bf16, 64 heads, q 4, MI355X, B16, 32, 64, 128 × 4k: 79, 121, 204, 335 µs; × 16k: 190, 344, 680, 1,292 µs; at most 924 TFLOP/s, 37 % of peak | ROCm/aiter, pull request 5456 |
| bf16, MI300X and MI325X | nothing is published beside 55 µs and 11.5 µs of merging for 16 heads, B64 on MI325X (InferenceX, pull requests 863 and 871) |
)";

}  // namespace wavejit::bench
