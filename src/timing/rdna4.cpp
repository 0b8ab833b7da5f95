// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// gfx1201's row. Issue comes from thread traces that tinygrad publishes: figures from the two programs "handwritten"
// and "every instruction" only, so that the other traces can say how far off they are (tests/simgpu/clock/replay_test).
#include "timing/launches.h"
#include "timing/rows.h"

namespace wavejit::timing {
namespace {

constexpr std::string_view handwritten = "thread traces of gfx1201, tinygrad: handwritten";
constexpr std::string_view every = "thread traces of gfx1201, tinygrad: every instruction";
constexpr std::string_view rdna4_isa = "RDNA4 instruction set architecture";
constexpr std::string_view gfx950_has = "as gfx950";
constexpr std::string_view bank_sets =
    "128 bytes a clock of each of two sets of banks: AMD's digest of the ISA document";

constexpr std::array<std::uint64_t, 1> wave_of_32 = in_sequence<32, 1>();
constexpr std::array<std::uint64_t, 2> halves_of_32 = in_sequence<32, 2>();
constexpr std::array<std::uint64_t, 4> eights_of_32 = in_sequence<32, 4>();

constexpr LdsAccess access(std::string_view name, int bytes, std::span<const std::uint64_t> phases) {
  const auto cycles = static_cast<double>(phases.size());
  return {.name = name,
          .bytes = bytes,
          .banks = 32,
          .phases = phases,
          .cycles = documented(cycles, bank_sets),
          .port = derived(cycles, "as long as its turns"),
          .phase_source = "guessed: lanes in order, 128 bytes at a time"};
}
constexpr std::array<LdsAccess, 6> rdna4_lds = {{
    access("ds_load_b32", 4, wave_of_32),
    access("ds_load_b64", 8, halves_of_32),
    access("ds_load_b128", 16, eights_of_32),
    access("ds_store_b32", 4, wave_of_32),
    access("ds_store_b64", 8, halves_of_32),
    access("ds_store_b128", 16, eights_of_32),
}};

}  // namespace

constinit const Timing rdna4 = {
    .target = "gfx1201",
    .issue = {.plain = measured(1, handwritten),
              .three_source = measured(1, every),
              .packed = measured(1, every),
              .transcendental = measured(1, handwritten),
              .lane_swap = measured(1, every),
              .double_precision = measured(32, every),
              .wide = measured(2, handwritten),
              .multiply = measured(4, handwritten),
              .matrix_issue = measured(16, handwritten),
              .matrix_issue_wide = measured(16, handwritten),
              .packed_after_matrix = measured(0, every)},
    .wave = {.look = measured(1, handwritten),
             .lds_issue = measured(1, every),
             .memory_issue = measured(1, every),
             .vector_to_memory = {},  // ordered.leaves
             .pass = measured(4, "thread traces of gfx1201, tinygrad: 16 cycles of 16-bit inputs, 8 of bytes"),
             .result_states = {},     // ordered.matrix_result
             .vector_to_scalar = {},  // ordered.leaves
             .taken_branch = measured(9, handwritten),
             .passed_scc_branch = measured(3, "thread traces of gfx1201, tinygrad: handwritten, its last round"),
             .barrier_release = measured(13, "a thread trace of gfx1201, tinygrad: sync, from the last signal on"),
             .nop = documented(1, rdna4_isa),
             .sleep = documented(64, rdna4_isa),
             .instruction_cache = documented(32768, "shared by two compute units"),
             .instruction_miss = guessed(230, "about L2's latency"),
             .wave_start = measured(2, handwritten),
             .cold_code = measured(700, every)},
    .ordered = {.queue = measured(8, handwritten),
                .matrix_stays = measured(10, handwritten),
                .result = measured(4, every),
                .matrix_result = derived(8,
                                         "handwritten: reported 27 cycles after it begins; the next vector "
                                         "instruction that reads may begin 3 before that, as behind others"),
                .accumulated = measured(2, "every instruction: sparse ones that add to each other's results"),
                .transcendental_unit = measured(4, handwritten),
                .leaves = measured(16,
                                   "every instruction: 9 cycles after it is reported, which is 8 after it begins; "
                                   "of matrix ones guessed"),
                .scalar_result = measured(9, handwritten),
                .scalar_chain = measured(2, every),
                .scalar_backlog = measured(11, every),
                .internal = measured(3, every),
                .data_backlog = measured(22, every),
                .scalar_reads = measured(7, "a thread trace of gfx1100, tinygrad: gemm, in ten of ten waves"),
                .banks = documented(4,
                                    "LLVM on gfx10's register banks, AMD's ISA documents on pairs: one register of "
                                    "each bank in a cycle")},
    .lds_unit = {.latency = measured(31, "a thread trace of gfx1201, tinygrad: sync, 32 from issue to use, idle"),
                 .ports = documented(2, "one for each compute unit of a pair"),
                 .queue = guessed(16, "17 loads of one wave issue in a row in every instruction"),
                 .sets = documented(2, bank_sets)},
    .memory = {.lanes_narrow = guessed(16, gfx950_has),
               .lanes_wide = guessed(4, gfx950_has),
               .queue = guessed(12, gfx950_has),
               .in_flight = guessed(32768, "the size of L0, as on gfx950"),
               .l1_bytes = documented(32768, "of a compute unit"),
               .l1_sets = guessed(16, "16 ways, as this clock has of L2"),
               .line = documented(128, rdna4_isa),
               .l1_rate = guessed(64, gfx950_has),
               .l1_latency = guessed(130, "45 ns at 2.92 GHz; nobody has published it"),
               .l2_bytes = documented(8388608, "RX 9070 XT, R9700"),
               .l2_rate = guessed(2048, "16 channels of 128 bytes"),
               .l2_latency = guessed(234, "80 ns at 2.92 GHz; nobody has published it"),
               .mall_bytes = documented(67108864, "RX 9070 XT, R9700"),
               .mall_rate = guessed(
                   609, "1,779 GB/s that others measured on gfx1100, at 2.92 GHz; guessed for both ways together"),
               .mall_latency = guessed(438, "150 ns that others measured on RDNA3, at 2.92 GHz"),
               .memory_rate = measured(209.5, "611.8 GB/s at 2.92 GHz: a copy, R9700"),
               .memory_latency = derived(809,
                                         "277 ns at 2.92 GHz: a pointer chase over 128 MiB takes 206 ns, and "
                                         "72 MiB of it are in caches, R9700"),
               .scalar_bytes = {},
               .scalar_latency = guessed(200, "others measured it on RDNA3"),
               .cold_arguments = measured(1697, every),
               .write_back = guessed(574, gfx950_has),
               .invalidate = guessed(276, gfx950_has)},
    .launch = {.dependent = carried_over(stream.dependent),
               .workgroup = guessed(0, "nobody has published how fast it begins workgroups: at once")},
    .power = {},
    .lds = rdna4_lds,
};

}  // namespace wavejit::timing
