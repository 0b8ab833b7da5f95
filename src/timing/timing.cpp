// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "timing/timing.h"

#include <algorithm>
#include <array>

#include "timing/launches.h"
#include "timing/rows.h"

namespace wavejit::timing {
namespace {

constexpr std::array<std::uint64_t, 1> whole_wave = in_sequence<64, 1>();
constexpr std::array<std::uint64_t, 2> halves = in_sequence<64, 2>();
constexpr std::array<std::uint64_t, 4> sixteens = in_sequence<64, 4>();
constexpr std::array<std::uint64_t, 8> eights = in_sequence<64, 8>();

// Eight lanes of half a wave at a time, the second half like the first.
constexpr std::array<std::uint64_t, 8> crossed_eights = [] {
  std::array<std::uint64_t, 8> phases{};
  constexpr std::array<std::uint64_t, 4> first = {lanes(0, 4) | lanes(20, 4), lanes(4, 4) | lanes(16, 4),
                                                  lanes(8, 4) | lanes(28, 4), lanes(12, 4) | lanes(24, 4)};
  for (std::size_t i = 0; i < 4; ++i) {
    phases[i] = first[i];
    phases[i + 4] = first[i] << 32;
  }
  return phases;
}();

// Sixteen lanes of half a wave at a time.
constexpr std::array<std::uint64_t, 4> crossed_sixteens = [] {
  constexpr std::uint64_t first = lanes(0, 4) | lanes(12, 4) | lanes(20, 8);
  constexpr std::uint64_t second = lanes(4, 8) | lanes(16, 4) | lanes(28, 4);
  return std::array<std::uint64_t, 4>{first, second, first << 32, second << 32};
}();

constexpr std::string_view profiler = "rocprofiler-compute, pipeline descriptions";
constexpr std::string_view ck = "Composable Kernel's LDS notes";

constexpr std::string_view bus = "128 bytes a clock";
constexpr std::string_view write_side = "the write side takes 128 bytes a clock, by the phases of writes";
constexpr std::string_view half_port = "64 bytes a clock for each pair of SIMDs";
// ROCm/gfx950-gluon-tutorials: AMD's engineers read thread traces of an MI355X. tinygrad/tinygrad, extra/sqtt: traces
// of an MI350 series GPU that anybody can read.
constexpr std::string_view lds_traces = "thread traces of MI355X, gfx950-gluon-tutorials: LDS throughput, ten cells";
constexpr std::string_view attention_traces = "thread traces of MI355X, gfx950-gluon-tutorials: attention notes";
constexpr std::string_view open_traces = "thread traces of MI350, tinygrad";
constexpr std::string_view as_gfx950 = "as traces show on gfx950";
constexpr std::string_view wide_bus = "256 bytes a clock: AMD's traces of ds_read_b128";

constexpr std::array<LdsAccess, 7> cdna3_lds = {{
    {.name = "ds_read_b32",
     .bytes = 4,
     .banks = 32,
     .phases = halves,
     .cycles = documented(2, bus),
     .port = documented(8, "limited by addresses"),
     .phase_source = "documented: half a wave at a time"},
    {.name = "ds_read_b64",
     .bytes = 8,
     .banks = 32,
     .phases = sixteens,
     .cycles = documented(4, bus),
     .port = documented(8, half_port),
     .phase_source = "guessed by the width of the bus"},
    {.name = "ds_read_b128",
     .bytes = 16,
     .banks = 32,
     .phases = crossed_eights,
     .cycles = documented(8, bus),
     .port = documented(16, half_port),
     .phase_source = "documented: Composable Kernel's LDS notes; others measured gfx950's ds_read_b96 so"},
    {.name = "ds_write_b32",
     .bytes = 4,
     .banks = 32,
     .phases = halves,
     .cycles = documented(2, bus),
     .port = documented(8, ck),
     .phase_source = "guessed, as ds_read_b32"},
    {.name = "ds_write_b64",
     .bytes = 8,
     .banks = 32,
     .phases = sixteens,
     .cycles = documented(4, bus),
     .port = derived(12, "between ds_write_b32 and ds_write_b128"),
     .phase_source = "measured by others: HipKittens, on gfx950"},
    {.name = "ds_write_b128",
     .bytes = 16,
     .banks = 32,
     .phases = eights,
     .cycles = documented(8, bus),
     .port = documented(20, ck),
     .phase_source = "documented: Composable Kernel's LDS notes"},
    {.name = "lds_dma_b32",
     .bytes = 4,
     .banks = 32,
     .phases = halves,
     .cycles = guessed(2, bus),
     .port = guessed(0, "data comes from memory"),
     .phase_source = "guessed, as ds_write_b32"},
}};

constexpr std::array<LdsAccess, 9> cdna4_lds = {{
    {.name = "ds_read_b32",
     .bytes = 4,
     .banks = 64,
     .phases = whole_wave,
     .cycles = guessed(1, wide_bus),
     .port = guessed(4, "half of gfx942's"),
     .phase_source = "guessed: the whole wave over 64 banks"},
    {.name = "ds_read_b64",
     .bytes = 8,
     .banks = 64,
     .phases = halves,
     .cycles = documented(2, "gfx950-gluon-tutorials: 8 cycles for four SIMDs"),
     .port = guessed(4, "half of ds_read_b128's"),
     .phase_source = "measured by others: HipKittens"},
    {.name = "ds_read_b128",
     .bytes = 16,
     .banks = 64,
     .phases = crossed_sixteens,
     .cycles = measured(4, lds_traces),
     .port = measured(8, lds_traces),
     .phase_source = "measured by others: HipKittens"},
    {.name = "ds_read_b64_tr_b16",
     .bytes = 8,
     .banks = 64,
     .phases = halves,
     .cycles = documented(2, "gfx950-gluon-tutorials: transpose reads as others of their width"),
     .port = guessed(4, "half of ds_read_b128's"),
     .phase_source =
         "measured by others: half a wave over 64 banks predicted a counted number of conflicts within 2 %"},
    {.name = "ds_write_b32",
     .bytes = 4,
     .banks = 32,
     .phases = halves,
     .cycles = derived(2, write_side),
     .port = guessed(8, "as gfx942"),
     .phase_source = "guessed, as gfx942"},
    {.name = "ds_write_b64",
     .bytes = 8,
     .banks = 32,
     .phases = sixteens,
     .cycles = derived(4, write_side),
     .port = guessed(12, "as gfx942"),
     .phase_source = "measured by others: HipKittens"},
    {.name = "ds_write_b128",
     .bytes = 16,
     .banks = 32,
     .phases = eights,
     .cycles = derived(8, write_side),
     .port = guessed(20, "as gfx942"),
     .phase_source = "documented: Composable Kernel's LDS notes, not verified on gfx950"},
    {.name = "lds_dma_b32",
     .bytes = 4,
     .banks = 32,
     .phases = halves,
     .cycles = derived(2, write_side),
     .port = derived(0, "a request in the queue of its pair of SIMDs, as long as the banks take"),
     .phase_source = "guessed, as ds_write_b32"},
    {.name = "lds_dma_b128",
     .bytes = 16,
     .banks = 32,
     .phases = eights,
     .cycles = derived(8, write_side),
     .port = derived(0, "a request in the queue of its pair of SIMDs, as long as the banks take"),
     .phase_source = "derived: 8 lanes of 16 bytes over 32 banks"},
}};

constexpr std::string_view microbenchmark = "microbenchmark of one wave, MI300X (pyhip)";
constexpr std::string_view llvm_hazards = "LLVM, GCNHazardRecognizer: passes and this many wait states";
constexpr std::string_view isa = "CDNA3 instruction set architecture";
constexpr std::string_view cdna3_paper = "CDNA3 white paper";
constexpr std::string_view mt4g =
    "MT4G's report of an MI300X (a virtual function, ROCm 6.4): by a chase of 116 cycles in L1, 287.5 in L2, 900 in "
    "memory, 48 in the scalar cache and 51.3 in LDS. This is left when what the model adds to a step is taken off";

constexpr WaveRules cdna3_waves = {
    .look = documented(4, profiler),
    .lds_issue = guessed(4, as_gfx950),
    .memory_issue = guessed(4, as_gfx950),
    .vector_to_memory = guessed(12, as_gfx950),
    .pass = documented(4, "AMD matrix instruction calculator; LLVM's scheduling model"),
    .result_states = documented(3, llvm_hazards),
    .vector_to_scalar = guessed(20, as_gfx950),
    .taken_branch = guessed(20, as_gfx950),
    .passed_scc_branch = guessed(20, as_gfx950),
    .barrier_release = guessed(30, "between 20 and 40; others measured 6 on RDNA3"),
    .nop = documented(4, isa),
    .sleep = documented(64, isa),
    .instruction_cache = documented(65536, "shared by two compute units, which run the same kernel"),
    .instruction_miss = guessed(200, "about L2's latency"),
    .wave_start = guessed(4, as_gfx950),
    .cold_code = guessed(400, as_gfx950),
};

constexpr WaveRules cdna4_waves = [] {
  WaveRules rules = cdna3_waves;
  rules.lds_issue = measured(4, open_traces);
  rules.memory_issue = measured(4, open_traces);
  rules.vector_to_memory = measured(12, open_traces);
  rules.vector_to_scalar = measured(20, "thread traces of MI350, tinygrad: seven samples of one program");
  rules.taken_branch = measured(20, open_traces);
  rules.passed_scc_branch = measured(20, "thread traces of MI350, tinygrad: seven samples of one program");
  rules.wave_start = measured(4, open_traces);
  rules.cold_code = measured(400, "thread traces of MI350, tinygrad: 372 to 772");
  rules.result_states = documented(4, llvm_hazards);
  return rules;
}();

constexpr LdsRules cdna3_lds_unit = {
    .latency = derived(31, mt4g),
    .ports = documented(2, "one for each pair of SIMDs"),
    .queue = guessed(8, as_gfx950),
    .sets = {},
};

constexpr LdsRules cdna4_lds_unit = {
    .latency = measured(44, "thread traces of MI350, tinygrad: 48 to 52 from issue to use, idle"),
    .ports = measured(2, lds_traces),
    .queue = measured(8, lds_traces),
    .sets = {},
};

constexpr MemoryRules cdna3_memory = {
    .lanes_narrow = guessed(16, as_gfx950),
    .lanes_wide = guessed(4, as_gfx950),
    .queue = guessed(12, as_gfx950),
    .in_flight = guessed(32768, "as on gfx950: the size of L1"),
    .l1_bytes = documented(32768, cdna3_paper),
    .l1_sets =
        documented(4, "iree-org/wave, AMD's compiler of kernels in Python, on buffers and swizzles: 4 sets on MI300"),
    .line = documented(128, cdna3_paper),
    .l1_rate = documented(64, cdna3_paper),
    .l1_latency = derived(97, mt4g),
    .l2_bytes = documented(4194304, cdna3_paper),
    .l2_rate = documented(2048, "16 channels of 128 bytes"),
    .l2_latency = derived(266, mt4g),
    .mall_bytes = documented(268435456, cdna3_paper),
    .mall_rate = measured(
        345,
        "5.8 TB/s of 8 dies at 2.1 GHz, MT4G's report of an MI300X; 0.65 to 0.74 TB/s a "
        "die, both ways, by slopes of streams of 17 to 134 MB on an MI300A (sarchlab/mgpusim). Reads alone of another kernel: "
        "11.9 TB/s, MI300X"),
    .mall_latency =
        guessed(650,
                "between 636 and 693: 545 by a pointer chase on an MI300X, which is 91 and 148 cycles below "
                "MT4G in L2 (175) and memory (730)"),
    .memory_rate = measured(1952, "4.1 TB/s at 2.1 GHz: what BabelStream reaches, MI300X"),
    .memory_latency = derived(878, mt4g),
    .scalar_bytes = documented(16384, "CDNA3 white paper; two compute units share it"),
    .scalar_latency = derived(16, mt4g),
    .cold_arguments = guessed(740, as_gfx950),
    .write_back =
        measured(666, "317 ns, the most that a fence of agent scope took, L2 empty, GPU otherwise idle, MI300X"),
    .invalidate = guessed(242, "115 ns, the least that a fence of agent scope took; which of the two is not said"),
};

constexpr MemoryRules cdna4_memory = [] {
  MemoryRules rules = cdna3_memory;
  rules.l1_sets = carried_over(cdna3_memory.l1_sets);
  rules.l1_latency = carried_over(cdna3_memory.l1_latency);
  rules.scalar_bytes = carried_over(cdna3_memory.scalar_bytes);
  rules.scalar_latency = carried_over(cdna3_memory.scalar_latency);
  rules.lanes_narrow = measured(16, "thread traces of MI355X, gfx950-gluon-tutorials: a dword takes 4 cycles");
  rules.lanes_wide =
      measured(4, "thread traces of MI350, tinygrad: dwordx4 16 cycles, 64 where four lanes have four lines");
  rules.queue = measured(12, "thread traces of MI355X, gfx950-gluon-tutorials: products of matrices");
  rules.in_flight = measured(32768, "gfx950-gluon-tutorials: the size of L1 bounds loops of products");
  rules.l1_rate = measured(64, "thread traces of MI350, tinygrad: never above");
  rules.mall_bytes = documented(268435456, "CDNA4 white paper");
  rules.l2_latency =
      measured(452, "thread traces of MI350, tinygrad: the least of 128 loads that miss L1, GPU otherwise idle");
  // MI300X's third of the paper's rate does not carry over: AITER's attention of 4,096 keys without a mask would take
  // 18 % longer then, 14 % longer than published.
  rules.mall_rate =
      documented(1024, "CDNA4 white paper: 8192 of 8 dies; what an MI355X reaches of it nobody has published");
  rules.mall_latency = guessed(800, "between L2 and memory");
  rules.memory_rate = measured(2500, "6.0 TB/s at 2.4 GHz: what the fastest published decode kernels reach, MI355X");
  rules.memory_latency =
      measured(994, "thread traces of MI350, tinygrad: the median of 128 loads, cold caches, GPU otherwise idle");
  rules.cold_arguments = measured(740, "thread traces of MI350, tinygrad: 600 to 1,100");
  rules.write_back =
      measured(574, "256 workgroups that meet once: 13.20 µs, 5.55 without their buffer_wbl2, 32 a die, MI355X");
  rules.invalidate = guessed(276, "115 ns, as MI300X");
  return rules;
}();

constexpr PowerRules cdna4_power = {
    .idle = measured(2714,
                     "clock of 17 builds of two attention kernels by the busy share of their loops, MI355X, "
                     "within 1.7 %: gfx950-gluon-tutorials"),
    .slope = measured(12.4,
                      "clock of 17 builds of two attention kernels by the busy share of their loops, MI355X, within "
                      "1.7 %: gfx950-gluon-tutorials"),
    .delivered =
        measured(0.927,
                 "gfx950-gluon-tutorials: throughput over cycles at that clock of the five builds of both kernels "
                 "whose throughput, cycles and clock are all told: 0.922 to 0.936"),
};

constexpr std::array<Timing, 2> table = {{
    {.target = "gfx942",
     .issue = {.plain = measured(4, microbenchmark),
               .three_source = measured(5, microbenchmark),
               .packed = measured(5, microbenchmark),
               .transcendental = measured(16, microbenchmark),
               .lane_swap = guessed(20, "as gfx950; the target has none"),
               .double_precision = documented(4, "CDNA3 white paper: vector rate of f64"),
               .wide = {},
               .multiply = {},
               .matrix_issue = measured(4, microbenchmark),
               .matrix_issue_wide = guessed(8, "as gfx950"),
               .packed_after_matrix = measured(0, microbenchmark)},
     .wave = cdna3_waves,
     .ordered = {},
     .lds_unit = cdna3_lds_unit,
     .memory = cdna3_memory,
     .launch = stream,
     .power = {},
     .lds = cdna3_lds},
    {.target = "gfx950",
     .issue = {.plain = measured(4, open_traces),
               .three_source = measured(4, open_traces),
               .packed = documented(
                   4,
                   "AMD's published rate of f32 on vectors, 256 operations a clock and compute unit, needs it; so "
                   "say gfx950-gluon-tutorials' rules of issue, whose scheduler plans with two slots of 4"),
               .transcendental = measured(8, attention_traces),
               .lane_swap = guessed(20, "five slots, as AMD's scheduler of attention prices it; nobody measured it"),
               .double_precision = documented(4, "CDNA4 white paper: vector rate of f64"),
               .wide = {},
               .multiply = {},
               .matrix_issue = guessed(4, "as gfx942"),
               .matrix_issue_wide = measured(8, attention_traces),
               .packed_after_matrix = measured(12, attention_traces)},
     .wave = cdna4_waves,
     .ordered = {},
     .lds_unit = cdna4_lds_unit,
     .memory = cdna4_memory,
     .launch = stream_elsewhere,
     .power = cdna4_power,
     .lds = cdna4_lds},
}};

}  // namespace

const Timing* find_timing(const targets::Target& target) {
  const auto row = std::ranges::find(table, target.id, &Timing::target);
  if (row != table.end()) return &*row;
  return target.id == rdna4.target ? &rdna4 : nullptr;
}

const LdsAccess* find_lds_access(const Timing& timing, std::string_view name) {
  const auto row = std::ranges::find(timing.lds, name, &LdsAccess::name);
  return row == timing.lds.end() ? nullptr : &*row;
}

std::string_view to_text(Grade grade) {
  switch (grade) {
    case Grade::measured:
      return "measured by others";
    case Grade::documented:
      return "documented";
    case Grade::derived:
      return "derived";
    case Grade::carried:
      return "carried over";
    case Grade::guessed:
      return "guessed";
  }
  return "";
}

}  // namespace wavejit::timing
