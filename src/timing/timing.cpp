#include "timing/timing.h"

#include <algorithm>
#include <array>
#include <cstddef>

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

// gfx942. 32 banks.
//   read b128        [D] Composable Kernel's LDS notes; the same groups were measured on gfx950's ds_read_b96
//   write b64, b128  [M] and [D], as on gfx950
//   read b64         [G] by the width of the bus: 16 lanes × 8 bytes = 32 banks
//   b32              [D] half a wave at a time
//   DMA              [G] writes as ds_write does; consecutive lanes write consecutive bytes
constexpr std::array<LdsAccess, 6> cdna3_lds = {{
    {.name = "ds_read_b32", .bytes = 4, .banks = 32, .phases = halves},
    {.name = "ds_read_b64", .bytes = 8, .banks = 32, .phases = sixteens},
    {.name = "ds_read_b128", .bytes = 16, .banks = 32, .phases = crossed_eights},
    {.name = "ds_write_b64", .bytes = 8, .banks = 32, .phases = sixteens},
    {.name = "ds_write_b128", .bytes = 16, .banks = 32, .phases = eights},
    {.name = "lds_dma_b32", .bytes = 4, .banks = 32, .phases = halves},
}};

// gfx950. 64 banks for reads of 8 and 16 bytes, 32 for writes.
//   read b128, b64   [M] HipKittens' phase measurements
//   transpose read   [M] phases of half a wave over 64 banks predicted a measured conflict count within 2 %
//   write b64        [M] HipKittens; b128 [D] Composable Kernel, not verified on gfx950
//   b32              [G] the whole wave over 64 banks
//   DMA              [X] the write side takes 128 bytes a clock: 8 lanes × 16 bytes over 32 banks
constexpr std::array<LdsAccess, 8> cdna4_lds = {{
    {.name = "ds_read_b32", .bytes = 4, .banks = 64, .phases = whole_wave},
    {.name = "ds_read_b64", .bytes = 8, .banks = 64, .phases = halves},
    {.name = "ds_read_b128", .bytes = 16, .banks = 64, .phases = crossed_sixteens},
    {.name = "ds_read_b64_tr_b16", .bytes = 8, .banks = 64, .phases = halves},
    {.name = "ds_write_b64", .bytes = 8, .banks = 32, .phases = sixteens},
    {.name = "ds_write_b128", .bytes = 16, .banks = 32, .phases = eights},
    {.name = "lds_dma_b32", .bytes = 4, .banks = 32, .phases = halves},
    {.name = "lds_dma_b128", .bytes = 16, .banks = 32, .phases = eights},
}};

constexpr std::array<Timing, 2> table = {{
    // Plain 4.01, three-source 5.01, packed 5.0, exp and rcp 16.0 cycles: [M] microbenchmarks of one wave on MI300X,
    // which also showed that a 16-cycle matrix instruction hides exactly three plain ones: it issues for 4.
    {.target = "gfx942",
     .issue = {.plain = 4, .three_source = 5, .packed = 5, .transcendental = 16, .lane_swap = 8, .matrix_issue = 4},
     .lds = cdna3_lds},
    // Plain 4, transcendental 8, matrix 4: [M] prices fitted to performance counters within 1 %; three-source 4: [X]
    // AMD's own loops put six v_fma_f32 behind each 32-cycle matrix instruction. Packed 5: [G] as on gfx942 (that it
    // never runs beside the matrix pipe is [M]). Lane swaps 8: [G], between 4 and 8.
    {.target = "gfx950",
     .issue = {.plain = 4, .three_source = 4, .packed = 5, .transcendental = 8, .lane_swap = 8, .matrix_issue = 4},
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

}  // namespace wavejit::timing
