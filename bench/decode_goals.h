// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What bench/predicted_decode.md says of steps with little to do, beside its rows: goals, where cycles go, what was
// tried.
#pragma once

#include <cstdint>
#include <string_view>

namespace wavejit::bench {

// Cycles when the goal was set, and the goal.
struct Goal {
  std::string_view target;
  std::string_view words;
  std::uint64_t before = 0;
  std::uint64_t wanted = 0;
};
inline constexpr Goal goals[] = {
    {"gfx950", "b1 q1 k8192 h16/2 d128", 57'772, 26'000},
    {"gfx950", "b8 q1 k8192 h16/2 d128", 64'320, 36'000},
    {"gfx950", "b16 q1 k8192 h16/2 d128", 91'504, 66'000},
    {"gfx950", "b1 q1 k32768 h16/2 d128", 59'788, 32'000},
    {"gfx950", "b4 q1 k32768 h16/2 d128", 93'216, 64'000},
    {"gfx950", "b8 q1 k32768 h16/2 d128", 130'169, 118'000},
    {"gfx950", "b1 q1 k32768 h64/8 d128", 93'096, 64'000},
    {"gfx942", "b32 q1 k8192 h16/2 d128 layout=paged:16", 191'156, 152'000},
    {"gfx942", "b1 q1 k32768 h64/8 d128", 108'796, 83'850},
};

inline constexpr std::string_view goals_introduction = R"(
### Goals

Cycles are those of a whole call. "Before" is when the goals were set, by the clock of that time, whose second launch waited for 7,200 cycles: both kernels and the clock have changed since. 83,850 cycles are 82 % of what memory delivers at most.

| target | call | before | now | goal | |
|---|---|---|---|---|---|
)";

inline constexpr std::string_view small_causes = R"(
Large batches, all rows of this page with 64 sequences and more, were to take at most 1 % more than when the goals were set. By the clock of that time they took at most 0.8 % more on gfx942 (pages of 16: 1,253,640 instead of 1,243,634; pages of 64: 1,248,051 instead of 1,239,425, 0.7 %; others at most 0.12 %).
On gfx950 they took at most 0.05 % more (b256 k2048: 889,140 instead of 888,740), and 0.3 to 2.1 % less in pages.

### Where the cycles of few workgroups go

gfx950, bf16, d128, as `wavejit profile` had it when this was written. b1 k8192 16/2, 16 workgroups, 26,453 cycles:

| what | cycles |
|---|---|
| code and arguments arrive | 940 |
| addresses, until the first request | 1,000 |
| 512 KB of K and V by 32 KB in flight, 994 cycles a time | 15,900 |
| way of the first request, and all that the last step does behind its V | 4,700 |
| count, merge of eight parts, O stored | 3,900 |

With 32 parts (b1 k32768 16/2) the last of these rows takes 7,000 cycles, some 130 for each further part. With 256 workgroups (b16 k8192, b4 k32768, b1 k32768 64/8) memory alone takes 53,700 for K and V.

The last workgroup's end in b1 k8192 16/2, by `wavejit profile --timeline`: from the last K on, the step takes 3,860 (scores 1,230, maxima and the slowest wave 360, weights 1,000, V's reads and two barriers 470, products 800). Parts are stored and counted 1,470 later,
800 of them a store's way past the caches, 340 the slowest wave's stores. The count's way takes 990, the time from it to the first request for a part 300, the merge 1,870, and O's way 450.

Goals that are missed, and what they would take. The shares are of when this was written, and calls of 32 parts merge them in a second launch since:

* b1, b8 and b16 k8192 on gfx950 miss by 470, 610 and 240 cycles: behind the last V come four trips to memory, one after the other: parts are stored, counted, loaded, and O is stored.
* b4 k32768 and b1 k32768 64/8 on gfx950 miss by 3,800 and 4,000 in two launches; in one, which saves less than `auto` asks for, b1 k32768 64/8 takes 67,090 and misses by 3,100. One workgroup merges 32 parts of 4 KB, which come from the last level cache at a compute unit's share, 32 bytes a cycle: 4,096 cycles, whoever asks and however many are on their way. The clock leaves it at that share while 240 compute units have
  nothing to do; a real GPU would not. With that, the 53,700 of memory, code and arguments (940), the first request's way (994), a store's (800), the count's (994), the first part's (800) and O's (450), 62,770 are gone, so that the goal leaves 1,230 for the addresses in front of the first request,
  which take 1,000, and for all that the last step does behind its V.
* b8 k32768 on gfx950 and b32 k8192 in pages on gfx942 miss by 2 to 4 %. Where those cycles go was not asked.

What was tried, with the figures of the clock of that time:

* **Slices of the dims across workgroups.** Two workgroups for one chunk, each with all of K and half of V's dims, the last of all to arrive merges: bits stay by construction. b1 k8192 16/2 26,049 beside 27,705, b1 k1024 64/8 21,229 beside 22,933.
  A step then needs 96 KB, 2,980 cycles of memory. But scores, weights and products of one wave follow each other, and take 3,460. K is read twice: b4 k8192 16/2 takes 31,213 beside 28,145, b8 51,425 beside 37,789.
  So it pays for some 32 workgroups at the most, with 6 %, and would be a third kernel for every line of few rows. It is not in.
* **K of all waves before V of any**, at the beginning: twelve requests stand in front of memory, and one wave's V stood before another's K. It is in: b1 k128 64/8 10,151 after 10,655.
* **Statistics apart from O.** A part was a record of 528 bytes, so that each run of 256 bytes lay in three lines of memory. Now a row has O of all chunks, then m and l of all. It is in: b1 k32768 16/2 30,621 after 32,249, b4 67,465 after
  69,985, b8 117,089 after 118,041, and gfx942 b1 k32768 64/8 84,445 after 89,565, since one launch was faster there then. Where chunks are no multiple of eight, later rows begin within a line.
* **Longer runs for tables with room.** Four waves for runs of two chunks, in place of one wave a chunk, where a second launch merges and only the device knows lengths. b8 with room for 65,536 keys: all full 245,190 beside 250,296, of 16,384 keys 78,570 beside 91,588, of 4,096 keys
  75,056 beside 88,230. But with one of eight full and the others of 2,048 keys 132,375 beside 95,280, and b32 64/8 with 4,096 of 32,768 keys 276,541 beside 233,450. Where one launch merges, full tables lose: b8 k32768 16/2 123,681 beside 118,041. It is not in.

* **What stands in front of the first request.** Each of its 400 instructions takes 4 cycles, and each batch of arguments that the backend loads behind another one 212. Now they are asked for together, and V's and O's descriptors, V's addresses and where K and Q stand in LDS are made when K has been
  asked for, while nothing but memory has work. And where a merging wave's rows are is worked out while its parts are on their way to memory, in place of behind the count. It is in: gfx950 b1 k8192 16/2 26,453 after 27,009, b8 36,513 after 37,053, b1 k32768 64/8 66,893 after 67,465, b1 k128 64/8 9,711 after
  10,151 (0.84 of one wave's 11,576); gfx942 b1 k32768 64/8 83,821 after 84,445. All arguments at once keep 44 copies of them: 26,921. Asked for anew where they are used: 27,909.
* **Four waves to merge eight rows**, where two do now with twice the dims each: 27,003 beside 27,009, b1 k32768 64/8 67,911 beside 67,465, gfx942 84,727 beside 84,445. A compute unit's 32 KB in flight are what it waits for, not waves. It is not in.
* **Two waves for two tiles** (keys up to 128) before that: gfx950 b1 k128 64/8 9,417 beside 10,151, d64 7,801 beside 8,925; k256 loses, 12,825 beside 10,865. On gfx942 d64 9,397 beside 12,285, d128 spills. It would be one more kernel for each line of so few keys, and the goal is met without: it is not in.
* **The last step apart**, which fetches nothing for a next one, and has no third barrier: b1 k8192 16/2 26,221, b8 36,469, b1 k1024 64/8 21,777 beside 22,285, b1 k128 9,363 beside 9,711, b1 k32768 64/8 66,841. It reaches no goal, and compiling takes a third longer (203 ms beside 151, both on a
  busy machine), where the goal for that is near already. It is not in.
* **P of all tiles read before V is waited for**, with a barrier more: 28,065 beside 26,453. Behind V's reads alone may the next V come, and reading P first holds them up, in every step.
* **What stands between the count and the first part asked for** made ready in front of the count (the descriptor of LSE, offsets, uniform chunks in scalars): 26,429 beside 26,453. With arguments that were not asked for together, 26,705. It is not in.
* **V's reads between the products** were not built: V's and P's reads keep LDS busy for 1,024 cycles of a step as they stand, the products the matrix unit for 512.

* **Arguments that are in registers when a wave starts** (kernarg preload) were not built. Fourteen dwords of some sixty would be there; first the struct would have to have K's in front. The clock adds code and arguments as one figure, 940 cycles, so what it said of it would be what one put in.

### What compiling takes

Processor time of one kernel, from its spec's text to its code object (`kernel_facts times <spec>…`, least of five, dev preset, beside other work), when this was written. The goal: 130 ms.

| kernels of bf16, split keys, packed heads | gfx942 | gfx950 |
|---|---|---|
| d256 in pages, as few workgroups have it | 74 to 80 ms | 73 to 81 ms (two waves share) |
| d256 in pages, one wave a chunk | 74 to 80 ms | 92 to 110 ms |
| d256 dense, one wave a chunk | 75 to 84 ms | 90 to 105 ms |
| d256 dense, two waves share | no such kernel | 56 to 58 ms, 181 to 196 before straight-line strength reduction was left out |
| d64, d128, d192/128, waves share, dense or in pages | 69 to 98 ms | 61 to 93 ms |
| d128, d192/128, d256, waves share, merged in the same launch | 135 to 162 ms on a machine so busy | 119 to 155 ms, where d256 dense, two waves share, takes 96 to 100 |

Causal, windows, softcap and pages of 1 are among them; gfx942 has no softcap with 256 dims.
)";

}  // namespace wavejit::bench
