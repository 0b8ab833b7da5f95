// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loops of ours for anchors.json: the published counts in an order of our own.
#include <cstdint>
#include <cstdio>
#include <format>
#include <map>
#include <string>
#include <vector>

#include "anchors.h"
#include "attention_mixes.h"
#include "clocked.h"

namespace wavejit::simgpu::testing {
namespace {

constexpr const char* descriptor =
    "s_load_dwordx2 s[20:21], s[0:1], 0\ns_mov_b32 s22, 0x40000\ns_mov_b32 s23, 0x27000\ns_mov_b32 m0, 0\n"
    "s_waitcnt lgkmcnt(0)\ns_and_b32 s21, s21, 0xffff\n";

double told(const std::string& error, double value) {
  if (!error.empty()) std::fputs((error + "\n").c_str(), stderr);
  return error.empty() ? value : -1;
}

double busy_of(const std::string& target, const std::string& body) {
  const Buffer<std::uint32_t> memory(65536);
  const StreamTime time = time_stream({.target = target,
                                       .before = descriptor,
                                       .body = body,
                                       .waves = 4,
                                       .lds_bytes = 65536,
                                       .arguments = {memory.address()}});
  return told(time.error, 100 * time.matrix_busy);
}

double cycles_of(const Stream& stream) {
  const StreamTime time = time_stream(stream);
  return told(time.error, time.cycles);
}

// Work for the next step evenly between the products of this one.
std::string woven(const char* product, unsigned count, const std::vector<std::string>& work) {
  std::string text;
  for (unsigned i = 0; i < count; ++i) {
    text += product;
    for (std::size_t k = i * work.size() / count; k < (i + 1) * work.size() / count; ++k) text += work[k];
  }
  return text;
}

std::string joined(const std::vector<std::string>& work) {
  std::string text;
  for (const std::string& instruction : work) text += instruction;
  return text;
}

// A step of a matrix product, one wave a SIMD: an LDS read for every second product and a DMA for every sixteenth, as a
// wave of 64 × 64 needs them, a barrier, two waits; what is left of the other instructions are plain vector ones.
enum class Order { blind, apart, interleaved };
double duty(double others_a_product, Order order) {
  constexpr unsigned matrix = 64;
  constexpr unsigned fixed = 3;
  const auto others = static_cast<unsigned>((others_a_product * matrix) + 0.5) - fixed;
  const unsigned copies = order == Order::blind ? others / 9 : matrix / 16;
  const unsigned reads = order == Order::blind ? others - copies : std::min(matrix / 2, others - copies);
  std::vector<std::string> work(copies, "buffer_load_dwordx4 v1, s[20:23], 0 offen lds\n");
  const auto place = order == Order::blind ? work.begin() : work.end();
  work.insert(place, reads, "ds_read_b128 v[32:35], v1\n");
  work.insert(work.end(), others - copies - reads, "v_add_f32 v36, v2, v3\n");
  const std::string begins = "s_waitcnt vmcnt(0)\ns_barrier\n";
  const std::string waits = "s_waitcnt lgkmcnt(0)\n";
  return busy_of("gfx950", order == Order::interleaved
                               ? begins + woven(matrix16_gfx950, matrix, work) + waits
                               : begins + joined(work) + waits + repeated(matrix16_gfx950, matrix));
}

// A step of a product on gfx942, tiles through registers.
double product_gfx942(bool spread) {
  constexpr unsigned matrix = 256;
  const std::vector<std::string> loads(16, "buffer_load_dwordx4 v[36:39], v1, s[20:23], 0 offen\n");
  const std::vector<std::string> reads(32, "ds_read_b128 v[32:35], v1\n");
  const std::vector<std::string> writes(16, "ds_write_b128 v1, v[40:43] offset:4096\n");
  if (!spread) {
    return busy_of("gfx942", joined(loads) + joined(reads) + "s_waitcnt lgkmcnt(0)\ns_barrier\n" +
                                 repeated(matrix16_gfx942, matrix / 2) + "s_waitcnt vmcnt(0)\ns_barrier\n" +
                                 joined(writes) + repeated(matrix16_gfx942, matrix / 2) +
                                 "s_waitcnt lgkmcnt(0)\ns_barrier\n");
  }
  std::vector<std::string> first = loads;
  first.insert(first.end(), reads.begin(), reads.end());
  return busy_of("gfx942", woven(matrix16_gfx942, matrix / 2, first) + "s_waitcnt vmcnt(0) lgkmcnt(0)\ns_barrier\n" +
                               woven(matrix16_gfx942, matrix / 2, writes) + "s_waitcnt lgkmcnt(0)\ns_barrier\n");
}

double busy(const MixTime& time) { return time.cycles < 0 ? -1 : 100 * time.matrix_busy; }

// Percent of cycles that a change adds.
double change(const MixTime& before, const MixTime& after) {
  return 100 * (after.cycles - before.cycles) / before.cycles;
}
double fixed_maximum_change(const FixedMaximumMix& changed) { return change(time_mix({}), time_mix(changed)); }
double dualwave_change(const DualwaveMix& changed) { return change(time_dualwave_mix({}), time_dualwave_mix(changed)); }

double barrier_alone() {
  const std::string work = repeated(matrix16_gfx950, 16);
  return cycles_of({.body = work + "s_barrier\n", .waves = 4}) - cycles_of({.body = work, .waves = 4});
}

double barriers_covered() {
  const std::string work = repeated(matrix32_gfx950, 32);
  const double without = cycles_of({.body = work, .waves = 4, .workgroups = 2});
  return 100 * (cycles_of({.body = work + "s_barrier\n", .waves = 4, .workgroups = 2}) - without) / without;
}

std::map<std::string, std::function<double()>> make_loops() {
  std::map<std::string, std::function<double()>> loops = {
      {"rounding mix, between", [] { return busy(time_rounding_mix(true)); }},
      {"fixed maximum mix, between", [] { return busy(time_mix({})); }},
      {"dualwave mix", [] { return busy(time_dualwave_mix({})); }},
      {"product gfx942 clumped", [] { return product_gfx942(false); }},
      {"product gfx942 spread", [] { return product_gfx942(true); }},
      {"no exponentials", [] { return fixed_maximum_change({.exponentials = false}); }},
      {"no DMA", [] { return fixed_maximum_change({.dma = false}); }},
      {"no reads of V", [] { return fixed_maximum_change({.value_reads = false}); }},
      {"no stagger", [] { return dualwave_change({.stagger = false}); }},
      {"no priority", [] { return dualwave_change({.raised_priority = false}); }},
      {"no pacing", [] { return dualwave_change({.pacing = false}); }},
      {"eager", [] { return dualwave_change({.lazy = false}); }},
      {"barrier alone", barrier_alone},
      {"barriers covered", barriers_covered}};
  for (const double others : {0.621, 0.886, 2.14}) {
    for (const auto& [name, order] : {std::pair("blind", Order::blind), std::pair("apart", Order::apart),
                                      std::pair("interleaved", Order::interleaved)})
      loops[std::format("duty {} {}", others, name)] = [others, order] { return duty(others, order); };
  }
  return loops;
}

}  // namespace

std::optional<double> predict_loop(const std::string& id) {
  static const std::map<std::string, std::function<double()>> loops = make_loops();
  const auto found = loops.find(id);
  return found == loops.end() ? std::nullopt : std::optional(found->second());
}

}  // namespace wavejit::simgpu::testing
