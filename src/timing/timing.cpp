#include "timing/timing.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

namespace wavejit::timing {
namespace {

// Lanes first … first + count − 1.
constexpr std::uint64_t lanes(int first, int count) {
  const std::uint64_t ones = count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
  return ones << first;
}

// Lanes one after the other, so many at a time.
template <std::size_t count>
constexpr std::array<std::uint64_t, count> in_sequence() {
  std::array<std::uint64_t, count> phases{};
  for (std::size_t i = 0; i < count; ++i) phases[i] = lanes(static_cast<int>(i * (64 / count)), 64 / count);
  return phases;
}
constexpr std::array<std::uint64_t, 1> whole_wave = in_sequence<1>();
constexpr std::array<std::uint64_t, 2> halves = in_sequence<2>();
constexpr std::array<std::uint64_t, 4> sixteens = in_sequence<4>();
constexpr std::array<std::uint64_t, 8> eights = in_sequence<8>();

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

constexpr Figure measured(double value, std::string_view source) { return {value, Grade::measured, source}; }
constexpr Figure documented(double value, std::string_view source) { return {value, Grade::documented, source}; }
constexpr Figure derived(double value, std::string_view source) { return {value, Grade::derived, source}; }
constexpr Figure guessed(double value, std::string_view source) { return {value, Grade::guessed, source}; }

constexpr std::string_view profiler = "rocprofiler-compute, pipeline descriptions";
constexpr std::string_view ck = "Composable Kernel's LDS notes";

constexpr std::string_view bus = "128 bytes a clock";
constexpr std::string_view write_side = "the write side takes 128 bytes a clock, by the phases of writes";
constexpr std::string_view half_port = "64 bytes a clock for each pair of SIMDs";

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
     .cycles = guessed(1.57, "as efficient as transpose reads"),
     .port = guessed(4, "half of gfx942's"),
     .phase_source = "guessed: the whole wave over 64 banks"},
    {.name = "ds_read_b64",
     .bytes = 8,
     .banks = 64,
     .phases = halves,
     .cycles = guessed(3.14, "as transpose reads of 8 bytes"),
     .port = guessed(4, "twice gfx942's width"),
     .phase_source = "measured by others: HipKittens"},
    {.name = "ds_read_b128",
     .bytes = 16,
     .banks = 64,
     .phases = crossed_sixteens,
     .cycles = measured(5.33, "192 bytes a clock of a compute unit, MI355X"),
     .port = guessed(8, "twice gfx942's width"),
     .phase_source = "measured by others: HipKittens"},
    {.name = "ds_read_b64_tr_b16",
     .bytes = 8,
     .banks = 64,
     .phases = halves,
     .cycles = measured(3.14, "163 bytes a clock of a compute unit, MI355X (tr_b8)"),
     .port = guessed(4, "twice gfx942's width"),
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
     .port = guessed(0, "data comes from memory"),
     .phase_source = "guessed, as ds_write_b32"},
    {.name = "lds_dma_b128",
     .bytes = 16,
     .banks = 32,
     .phases = eights,
     .cycles = derived(8, write_side),
     .port = guessed(0, "data comes from memory"),
     .phase_source = "derived: 8 lanes of 16 bytes over 32 banks"},
}};

constexpr std::string_view microbenchmark = "microbenchmark of one wave, MI300X (pyhip)";
constexpr std::string_view prices = "prices fitted to performance counters within 1 %, MI355X";
constexpr std::string_view llvm_hazards = "LLVM, GCNHazardRecognizer: passes and so many wait states";
constexpr std::string_view isa = "CDNA3 instruction set architecture";
constexpr std::string_view cdna3_paper = "CDNA3 white paper";
constexpr std::string_view latency_kit = "pointer chase, MI300X";

constexpr WaveRules cdna3_waves = {
    .look = documented(4, profiler),
    .lds_wide_issue = guessed(8, "as others measured on gfx950"),
    .lds_issue = guessed(5, "as others measured on gfx950"),
    .memory_issue = guessed(6, "as others measured on gfx950"),
    .pass = documented(4, "AMD matrix instruction calculator; LLVM's scheduling model"),
    .result_states = documented(3, llvm_hazards),
    .vector_to_scalar = guessed(8, "two looks"),
    .taken_branch = guessed(16, "four looks: a jump empties the wave's instruction buffer"),
    .barrier_release = guessed(30, "between 20 and 40; others measured 6 on RDNA3"),
    .nop = documented(4, isa),
    .sleep = documented(64, isa),
    .instruction_cache = documented(65536, "shared by two compute units, which run the same kernel"),
    .instruction_miss = guessed(200, "about L2's latency"),
    .wave_start = guessed(8, "two looks"),
};

constexpr WaveRules cdna4_waves = [] {
  WaveRules rules = cdna3_waves;
  rules.lds_wide_issue = measured(8, prices);
  rules.lds_issue = measured(5, prices);
  rules.memory_issue = measured(6, prices);
  rules.result_states = documented(4, llvm_hazards);
  return rules;
}();

constexpr LdsRules lds_unit = {
    .latency = guessed(64, "unloaded; a guide says 20 to 40 without a source, others measured 31 on RDNA3"),
    .ports = documented(2, "one for each pair of SIMDs"),
};

constexpr MemoryRules cdna3_memory = {
    .address_rate = guessed(64, "64 lanes of 16 bytes in 16 cycles"),
    .l1_bytes = documented(32768, cdna3_paper),
    .line = documented(128, cdna3_paper),
    .l1_rate = documented(64, cdna3_paper),
    .l1_latency = guessed(125, "60 ns"),
    .l2_bytes = documented(4194304, cdna3_paper),
    .l2_rate = documented(2048, "16 channels of 128 bytes"),
    .l2_latency = measured(175, latency_kit),
    .mall_rate = measured(5667, "11.9 TB/s at 2.1 GHz, MI300X"),
    .mall_latency = measured(545, latency_kit),
    .memory_rate = measured(1952, "4.1 TB/s at 2.1 GHz, BabelStream, MI300X"),
    .memory_latency = measured(730, latency_kit),
    .scalar_latency = guessed(200, "others measured it on RDNA3"),
};

constexpr MemoryRules cdna4_memory = [] {
  MemoryRules rules = cdna3_memory;
  rules.l1_rate = documented(128, "rocprofiler-compute's formula of the peak");
  rules.l2_latency = guessed(500, "as loaded");
  rules.mall_rate = documented(8192, "CDNA4 white paper");
  rules.mall_latency = guessed(800, "as loaded");
  rules.memory_rate = documented(3333, "8 TB/s at 2.4 GHz");
  rules.memory_latency = guessed(1200, "as loaded");
  return rules;
}();

constexpr std::array<Timing, 2> table = {{
    {.target = "gfx942",
     .issue = {.plain = measured(4, microbenchmark),
               .three_source = measured(5, microbenchmark),
               .packed = measured(5, microbenchmark),
               .transcendental = measured(16, microbenchmark),
               .lane_swap = guessed(8, "between 4 and 8; the target has none"),
               .double_precision = documented(4, "CDNA3 white paper: vector rate of f64"),
               .matrix_issue = measured(4, microbenchmark)},
     .wave = cdna3_waves,
     .lds_unit = lds_unit,
     .memory = cdna3_memory,
     .lds = cdna3_lds},
    {.target = "gfx950",
     .issue = {.plain = measured(4, prices),
               .three_source = derived(4, "AMD's own loops put six v_fma_f32 behind each 32-cycle matrix instruction"),
               .packed = guessed(5, "as gfx942; that it never runs beside the matrix pipe others measured"),
               .transcendental = measured(8, prices),
               .lane_swap = guessed(8, "between 4 and 8"),
               .double_precision = documented(4, "CDNA4 white paper: vector rate of f64"),
               .matrix_issue = measured(4, prices)},
     .wave = cdna4_waves,
     .lds_unit = lds_unit,
     .memory = cdna4_memory,
     .lds = cdna4_lds},
}};

}  // namespace

const Timing* find_timing(const targets::Target& target) {
  const auto row = std::ranges::find(table, target.id, &Timing::target);
  return row == table.end() ? nullptr : &*row;
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
    case Grade::guessed:
      return "guessed";
  }
  return "";
}

void for_each_figure(const Timing& timing,
                     const std::function<void(std::string_view, std::string_view, const Figure&)>& visit) {
  const IssueCosts& issue = timing.issue;
  visit("issue.plain", "cycles", issue.plain);
  visit("issue.three_source", "cycles", issue.three_source);
  visit("issue.packed", "cycles", issue.packed);
  visit("issue.transcendental", "cycles", issue.transcendental);
  visit("issue.lane_swap", "cycles", issue.lane_swap);
  visit("issue.double_precision", "cycles", issue.double_precision);
  visit("issue.matrix_issue", "cycles", issue.matrix_issue);
  const WaveRules& wave = timing.wave;
  visit("wave.look", "cycles", wave.look);
  visit("wave.lds_wide_issue", "cycles", wave.lds_wide_issue);
  visit("wave.lds_issue", "cycles", wave.lds_issue);
  visit("wave.memory_issue", "cycles", wave.memory_issue);
  visit("wave.pass", "cycles", wave.pass);
  visit("wave.result_states", "wait states", wave.result_states);
  visit("wave.vector_to_scalar", "cycles", wave.vector_to_scalar);
  visit("wave.taken_branch", "cycles", wave.taken_branch);
  visit("wave.barrier_release", "cycles", wave.barrier_release);
  visit("wave.nop", "cycles", wave.nop);
  visit("wave.sleep", "cycles", wave.sleep);
  visit("wave.instruction_cache", "bytes", wave.instruction_cache);
  visit("wave.instruction_miss", "cycles", wave.instruction_miss);
  visit("wave.wave_start", "cycles", wave.wave_start);
  visit("lds.latency", "cycles", timing.lds_unit.latency);
  visit("lds.ports", "", timing.lds_unit.ports);
  for (const LdsAccess& access : timing.lds) {
    const std::string name = "lds." + std::string(access.name);
    visit(name + ".cycles", "cycles", access.cycles);
    visit(name + ".port", "cycles", access.port);
  }
  const MemoryRules& memory = timing.memory;
  visit("memory.address_rate", "bytes a clock", memory.address_rate);
  visit("memory.l1_bytes", "bytes", memory.l1_bytes);
  visit("memory.line", "bytes", memory.line);
  visit("memory.l1_rate", "bytes a clock", memory.l1_rate);
  visit("memory.l1_latency", "cycles", memory.l1_latency);
  visit("memory.l2_bytes", "bytes", memory.l2_bytes);
  visit("memory.l2_rate", "bytes a clock", memory.l2_rate);
  visit("memory.l2_latency", "cycles", memory.l2_latency);
  visit("memory.mall_rate", "bytes a clock", memory.mall_rate);
  visit("memory.mall_latency", "cycles", memory.mall_latency);
  visit("memory.memory_rate", "bytes a clock", memory.memory_rate);
  visit("memory.memory_latency", "cycles", memory.memory_latency);
  visit("memory.scalar_latency", "cycles", memory.scalar_latency);
}

}  // namespace wavejit::timing
