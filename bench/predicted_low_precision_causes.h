// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Words of bench/predicted_low_precision.md: what its columns are, why goals are missed, and what was tried.
#pragma once

#include <string_view>

namespace wavejit::bench {

inline constexpr std::string_view introduction_of_low_precision =
    R"(# What the clock predicts for 8 bits

Made by `./dev bench low_precision`. **Cycles and shares are predicted, never measured**: no kernel of this project has run on a GPU.
[docs/timing-model.md](../docs/timing-model.md) says how far to trust them. Every setting is as it is by default, the workspace the engine's own. Arrays hold zeros.

| column | what it says |
|---|---|
| bf16 | cycles of the same call in bf16: same masks and heads |
| walk, call | cycles of the first launch, and of all, with the second one's wait |
| times bf16 | cycles of bf16 over those of 8 bits |
| bytes a cycle, of memory | the bytes of the keys, each counted once, over the walk's cycles, and beside what the clock's memory delivers at most: 2,500 bytes a cycle on gfx950, 1,952 on gfx942. For prompts it is how busy matrix pipes are |
| µs | the call without that wait |
| goal | what this project set itself, and whether it is missed |

| peer, none of which was run here | what was published |
|---|---|
| prompts, Q, K and V in e4m3, MI355X | 1.70 times bf16 by assembly (1 sequence of 75,600 rows and keys, 5 heads, no mask: 2,028 and 1,196 TFLOPS; AITER#3495) |
| latent attention, all in 8 bits, on this clock | AITER's kernel, 128 heads: 916 bytes a cycle on gfx950, 929 on gfx942 |
| lists of 2,048 keys, all in 8 bits, MI355X | 6.5 µs of 1 token, 33 of 96 (AITER#5301) |
)";

inline constexpr std::string_view causes_of_decode =
    R"(A tile's bytes are read once and widened beside the other waves' products; the walk stays at what memory delivers. Integers cost 6 operations for 4 values where gfx950 has 2 for floats, which is what they lose. Scales of tokens are two more loads of 4 bytes a lane and tile.
)";

inline constexpr std::string_view causes_of_prompts =
    R"(Why goals are missed: on gfx950 the dual-wave kernel widens between matrix instructions; floats take an operation for two values there, integers three (`v_cvt_f32_i32` of each byte, then a packing), for which its port has no room beside the softmax. Scales of tokens are one multiplication a score and a weight more, 64 of 4 cycles a tile. On gfx950 that makes 1,356 cycles of the vector port a tile of a wave (85 % of the time, by `wavejit profile`), where all of a bf16 tile takes 1,226: a port that never waited would be at 1.11. Integers take
1,500. Packed products have two results an instruction and take their scales from no other lane. These were found on the way, by the clock of that time (floats, 8,192 rows, no mask). The generic pipeline took 1,201,830 cycles. Scales of a tile's keys in two registers, and of its values in two more, spilled 4 to 8. With one register each, which a swap of rows of lanes makes two while they are used, the kernel took 838,406; with 7 slots behind each product in place of 6 it took 824,478, with 8 and none behind
the last 837,702, with 8 behind all 826,526, and with everything a product later 862,518. Conversions in the memory cluster, where the partner has the port, gained nothing: 939,082 cycles in place of 662,878 (floats, scales of heads).
)";

inline constexpr std::string_view causes_of_byte_queries =
    R"(What keeps 8 bits from twice the speed: a tile of a wave is 576 cycles of matrix pipe, and 584 of the vector port beside them (32 exponentials of 8 cycles, 32 fused multiply-adds, 16 roundings of two weights, the maximum), which are no fewer
than bf16 has. So the port and not the pipe sets the pace: it is busy for 82 % of the time. A tile is two clusters over three LDS buffers, and what does not fit under its products is computed behind the barrier, beside the partner's. A row is one sum:
merging chunks of 1,024 keys took 20,000 of 225,000 cycles of a workgroup. The goal is 1.60. Tried without gain at 8,192 rows, by the clock of that time: four clusters a tile over two buffers 446,000; two clusters with all of a softmax before the barrier and merged chunks 451,000; one barrier a tile without a stagger, where one wave
of a SIMD runs ahead and waits, 499,000; no raised priority 415,000; 4 or 6 weights under the second product in place of 8 414,500, and 14 538,600. A compute cluster is 728 cycles of a wave that issues one instruction at a time, and its port 656.

Where maxima grow it is nearly the same (the figures that follow are of an earlier clock): no row is multiplied for it. O and l are counted in a power of two, and the products' scales, a byte a row in the same instruction, say how many powers the weights of a tile stand above that ([canonical-arithmetic.md](../docs/canonical-arithmetic.md#queries-in-8-bits)).
With numbers from N(0, 1), 16/4 heads, without a mask `wavejit profile` said of 8,192 rows 420,902 cycles, and 627,918 of bf16: 1.49 times; of 16,384 rows 1,620,128 and 2,438,896: 1.51 times; of 8,192 causal ones 228,746 and 342,157: 1.50 times.
Before, a maximum could fall behind by 0.75 powers of two and O was multiplied when it grew by more, which nearly every tile had a row for: 540,374 cycles, 1.16 times. Larger growths would have made small weights 0: 2.75 took 457,898 cycles, 4.75 418,928.
Something else was found with it: maxima of two that first bring both operands into a form (no signalling NaN) are three instructions, and those of three with minus infinity are one. That brought 425,198 cycles to 420,542. Ones for the sums of weights are of e2m1, four registers in place of eight, without which pairs of tiles spilled.
Tried without gain after that, at 8,192 rows of N(0, 1): 6 weights under the second product 428,590 cycles, 10 of them 437,514; 12 slots behind its first product and 17 behind the others 423,062; less in its shadow and more behind the barrier 447,730 and 592,202. What was left to 1.60, 392,449 cycles: a compute cluster waits some 36
cycles for the branch that asks for a mask, 20 for a lane swap and 30 at its barrier, in which the port stands still unless the partner has something to compute, and of what the partner could, LDS reads stand behind it.
)";

inline constexpr std::string_view causes_of_integers =
    R"(Q and K in int8 (`qk=i8`) have no dual-wave kernel: the goal of 1.1 times bf16 is out of its reach, whatever its canon. A tile of a wave in bf16, which takes some 1,226 cycles, has 1,024 of matrix pipe, and 1,005 of the vector port. With keys in int8
the pipe has 768. The port has 256 more (32 conversions of sums and 32 multiplications by a row's scale, of 4 cycles each): 1,261, more than all of a bf16 tile, before it ever waits. Sums that start at 0x4B400000, so that one multiply-add is conversion and multiplication, have 1,133; a scale that only the exponent's
multiply-add sees has 1,005, and at the 83 % that ports reach 1.01 times bf16. The first changes scores, the second how a row is told its maximum; by hand, neither was built. The generic kernel takes half as long again as bf16's dual-wave kernel (0.67 in the table), so int8 queries are for what has them already, not for speed.

By `wavejit profile` of 8,192 rows without a mask on gfx950: the generic kernel takes 176 vector registers, and two workgroups of 4 waves share a compute unit; they wait for the matrix pipe (14 % of their time), LDS (10 %), barriers and the vector port (9 % each), and both pipes stand
still in between: matrix 39 %, vector port 55 %. In bf16 that kernel has the pipe busy for 50 %; bf16's dual-wave kernel is what integers are held against here, and a pipeline that overlaps tiles is not built for them.
)";

inline constexpr std::string_view causes_of_latent_bytes =
    R"(The first rows walk all keys of 64 sequences, those with `top_k=` the 2,048 keys of one token, for which others publish 6.5 µs over rows of 656 bytes. How they work: [low-precision.md](../docs/low-precision.md#latent-attention).

**Rows of 656 bytes** take 176 instructions a tile more than rows of 584. There one conversion widens two numbers and multiplies them by a power of two; here it takes three instructions, since a scale of any size has to be multiplied in f32 and rounded to bf16. A workgroup has four waves, one a SIMD, and is alone on its compute unit by its
registers (400), so that nothing runs beside a wave that waits. No unit is full: `wavejit profile` says how busy each is, and what waves wait for. Tried: the table's entry by a vector load a tile before it is needed, in place of a scalar one that every tile waits for: 0.9 % fewer cycles; waits for a full queue and for barriers take
its place. It is not in. `splits=8`, whose workgroups begin twice, took 9 % more.

**128 heads**: the query, 38 MB, and the parts, 68 MB, are as many bytes as with 16 bits, and 136 products a tile take the time that its keys need. What keeps matrix pipes from more is the start and the end, where a full queue holds the query's loads and the parts' stores. Tried without gain: all 128 rows of the query through LDS
before the first key, 2.4 % more; three tiles of LDS in place of four, 1.3 % more; two, 4.8 %.

**A list of one token** misses its goal by its start, one wait after another to the first key, and by tiles that arrive a latency apart. Rows with scales are multiplied, rounded and written to LDS, 32 rows a workgroup, since registers of more spill. Four waves share what a chunk has to do; eight would halve that.
)";

}  // namespace wavejit::bench
