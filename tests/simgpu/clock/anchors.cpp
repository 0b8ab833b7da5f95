#include "anchors.h"

#include <algorithm>
#include <cstdio>
#include <format>
#include <utility>

#include "attention_mixes.h"
#include "clocked.h"

namespace wavejit::simgpu::testing {
namespace {

constexpr const char* matrix16_gfx942 = "v_mfma_f32_16x16x16_f16 v[8:11], v[2:3], v[4:5], v[8:11]\n";
constexpr const char* matrix16_gfx950 = "v_mfma_f32_16x16x32_f16 v[8:11], v[2:5], v[4:7], v[8:11]\n";
constexpr const char* matrix32_gfx950 = "v_mfma_f32_32x32x16_f16 v[8:23], v[2:5], v[4:7], v[8:23]\n";
constexpr const char* matrix32_gfx942 = "v_mfma_f32_32x32x8_f16 v[8:23], v[2:3], v[4:5], v[8:23]\n";

std::string plain(unsigned count) { return repeated("v_add_f32 v{}, v2, v3", count, 32); }
std::string exponentials(unsigned count) { return repeated("v_exp_f32 v{}, v2", count, 32); }

double cycles(const Stream& stream) {
  const StreamTime time = time_stream(stream);
  if (!time.error.empty()) std::fputs((time.error + "\n").c_str(), stderr);
  return time.error.empty() ? time.cycles : -1;
}

Anchor one_wave(const std::string& target, const std::string& rule, const std::string& body, double published,
                const std::string& source) {
  return {.target = target,
          .rule = rule,
          .unit = "cycles",
          .published = published,
          .source = source,
          .predict = [target, body] { return cycles({.target = target, .body = body}); }};
}

// Bytes a clock that eight waves read out of LDS.
Anchor lds_rate(const std::string& rule, const std::string& instruction, unsigned bytes, unsigned stride_shift,
                double published, const std::string& source) {
  return {.target = "gfx950",
          .rule = rule,
          .unit = "bytes a clock",
          .published = published,
          .source = source,
          .predict = [=] {
            constexpr unsigned waves = 8;
            const double taken = cycles({.before = std::format("v_lshlrev_b32 v1, {}, v0\n", stride_shift),
                                         .body = instruction,
                                         .waves = waves,
                                         .lds_bytes = 65536});
            return taken > 0 ? waves * 64.0 * bytes / taken : -1;
          }};
}

std::vector<Anchor> make_fitted() {
  const std::string pyhip = "[M] pyhip microbenchmarks, MI300X";
  const std::string prices = "[M] prices fitted to counters, MI355X";
  const std::string loops = "[X] AMD's own loops: what stands between two matrix instructions";
  std::vector<Anchor> all;
  const auto gfx942 = [&](const std::string& rule, const std::string& body, double published) {
    all.push_back(one_wave("gfx942", rule, body, published, pyhip));
  };
  gfx942("v_add_f32", plain(1), 4.01);
  gfx942("v_fma_f32", "v_fma_f32 v32, v2, v3, v4\n", 5.01);
  gfx942("v_pk_mul_f32", "v_pk_mul_f32 v[32:33], v[2:3], v[4:5]\n", 5.0);
  gfx942("v_exp_f32", exponentials(1), 16.0);
  gfx942("matrix instruction of 16 cycles", matrix16_gfx942, 16);
  for (unsigned n = 1; n <= 3; ++n) {
    gfx942(std::format("matrix 16 + {} v_add_f32", n), matrix16_gfx942 + plain(n), 16);
  }
  gfx942("matrix 16 + 4 v_add_f32", matrix16_gfx942 + plain(4), 20);
  for (unsigned n = 1; n <= 3; ++n) {
    gfx942(std::format("matrix 16 + {} v_exp_f32", n), matrix16_gfx942 + exponentials(n), 4 + (16.0 * n));
  }
  gfx942("matrix 16 + v_pk_mul_f32 (12 cycles of stall)",
         std::string(matrix16_gfx942) + "v_pk_mul_f32 v[32:33], v[2:3], v[4:5]\n", 21);
  all.push_back(one_wave("gfx942", "matrix 32 + 7 v_add_f32", matrix32_gfx942 + plain(7), 32, loops));
  const auto gfx950 = [&](const std::string& rule, const std::string& body, double published,
                          const std::string& source) {
    all.push_back(one_wave("gfx950", rule, body, published, source));
  };
  gfx950("v_add_f32", plain(1), 4, prices);
  gfx950("v_exp_f32", exponentials(1), 8, prices);
  gfx950("matrix instruction of 16 cycles", matrix16_gfx950, 16, "[M] counters: busy ÷ instructions, MI355X");
  gfx950("matrix 32 + 6 v_fma_f32", matrix32_gfx950 + repeated("v_fma_f32 v{}, v2, v3, v4", 6, 32), 32, loops);
  gfx950("matrix 32 + 3 v_exp_f32", matrix32_gfx950 + exponentials(3), 32, loops);
  gfx950("8 dependent matrix 32, nothing between", repeated(matrix32_gfx950, 8), 256, loops);
  all.push_back({.target = "gfx950",
                 .rule = "ds_read_b128 of one wave",
                 .unit = "cycles",
                 .published = 8,
                 .source = prices,
                 .predict = [] { return cycles({.body = "ds_read_b128 v[32:35], v1\n", .lds_bytes = 4096}); }});
  all.push_back(
      lds_rate("ds_read_b128 of eight waves", "ds_read_b128 v[32:35], v1\n", 16, 4, 192, "[M] MI355X microbenchmark"));
  all.push_back(lds_rate("ds_read_b64_tr_b16 of eight waves", "ds_read_b64_tr_b16 v[32:33], v1\n", 8, 3, 163,
                         "[M] MI355X microbenchmark (tr_b8)"));
  // Two lanes a bank in both phases: 3.14 + 2 cycles.
  all.push_back({.target = "gfx950",
                 .rule = "cycles that a two-way bank conflict adds to ds_read_b64_tr_b16, a phase",
                 .unit = "cycles",
                 .published = 1,
                 .source = "[M] predicted counted conflicts within 2 %",
                 .predict = [] {
                   const auto taken = [](unsigned shift) {
                     return cycles({.before = std::format("v_lshlrev_b32 v1, {}, v0\n", shift),
                                    .body = "ds_read_b64_tr_b16 v[32:33], v1\n",
                                    .waves = 8,
                                    .lds_bytes = 65536});
                   };
                   return (taken(4) - taken(3)) / 8 / 2;
                 }});
  return all;
}

// A step of a matrix product, one wave a SIMD: an LDS read for every second product and a DMA for every sixteenth, as a
// wave of 64 × 64 needs them, a barrier, two waits; what is left of `others` are plain vector instructions.
enum class Order { apart, interleaved };
std::string product_step(unsigned matrix, unsigned others, Order order) {
  constexpr unsigned fixed = 3;
  const unsigned copies = matrix / 16;
  const unsigned reads = std::min(matrix / 2, others - fixed - copies);
  const unsigned plains = others - fixed - copies - reads;
  std::vector<std::string> work;
  for (unsigned i = 0; i < copies; ++i) work.emplace_back("buffer_load_dwordx4 v1, s[20:23], 0 offen lds\n");
  for (unsigned i = 0; i < reads; ++i) work.emplace_back("ds_read_b128 v[32:35], v1\n");
  for (unsigned i = 0; i < plains; ++i) work.emplace_back("v_add_f32 v36, v2, v3\n");
  std::string body = "s_waitcnt vmcnt(0)\ns_barrier\n";
  if (order == Order::apart) {
    // Everything first, then the products that need it.
    for (const std::string& instruction : work) body += instruction;
    return body + "s_waitcnt lgkmcnt(0)\n" + repeated(matrix16_gfx950, matrix);
  }
  // Work for the next step evenly between the products of this one.
  for (unsigned i = 0; i < matrix; ++i) {
    body += matrix16_gfx950;
    for (std::size_t k = i * work.size() / matrix; k < (i + 1) * work.size() / matrix; ++k) body += work[k];
  }
  return body + "s_waitcnt lgkmcnt(0)\n";
}

Anchor duty(double n, double published, Order order) {
  return {.target = "gfx950",
          .rule = std::format("one wave a SIMD, {} other instructions a 16-cycle matrix instruction, {}", n,
                              order == Order::apart ? "apart" : "interleaved"),
          .unit = "% matrix busy",
          .published = published,
          .source = "[M] counters of products and attention, MI355X",
          .predict =
              [n, order] {
                const Buffer<std::uint32_t> memory(65536);
                constexpr unsigned matrix = 64;
                const auto others = static_cast<unsigned>((n * matrix) + 0.5);
                const StreamTime time =
                    time_stream({.before = "s_load_dwordx2 s[20:21], s[0:1], 0\ns_mov_b32 s22, 0x40000\n"
                                           "s_mov_b32 s23, 0x27000\ns_mov_b32 m0, 0\n"
                                           "s_waitcnt lgkmcnt(0)\ns_and_b32 s21, s21, 0xffff\n",
                                 .body = product_step(matrix, others, order),
                                 .waves = 4,
                                 .lds_bytes = 65536,
                                 .arguments = {memory.address()}});
                return time.error.empty() ? 100 * time.matrix_busy : -1;
              },
          .difference = order == Order::apart ? "the order is not published: everything first, then the products"
                                              : "the order is not published: evenly between the products",
          .bound = true};
}

Anchor mix(const std::string& target, const std::string& rule, double published, const std::string& source, bool woven,
           const std::function<MixTime()>& time) {
  return {.target = target,
          .rule = rule + (woven ? ", softmax between its matrix instructions" : ", softmax before them"),
          .unit = "% matrix busy",
          .published = published,
          .source = source,
          .predict =
              [time] {
                const MixTime taken = time();
                return taken.cycles < 0 ? -1 : 100 * taken.matrix_busy;
              },
          .difference = woven ? "a loop of the published counts, the order within a cluster is ours; its steady state"
                              : "the same, in the worst order",
          .bound = !woven};
}

double faster(const FixedMaximumMix& changed) {
  const double before = time_mix({}).cycles;
  return 100 * (before - time_mix(changed).cycles) / before;
}

std::vector<Anchor> make_held_out() {
  std::vector<Anchor> all;
  for (const auto& [n, published] : {std::pair(0.621, 75.12), std::pair(0.886, 68.05), std::pair(2.14, 54.4)}) {
    all.push_back(duty(n, published, Order::apart));
    all.push_back(duty(n, published, Order::interleaved));
  }
  all.push_back({.target = "gfx950",
                 .rule = "cycles that a barrier costs a SIMD with one wave",
                 .unit = "cycles",
                 .published = 46,
                 .source = "[M] dead cycles a phase with one barrier, attention with latent keys",
                 .predict =
                     [] {
                       const std::string work = repeated(matrix16_gfx950, 16);
                       const double without = cycles({.body = work, .waves = 4});
                       const double with = cycles({.body = work + "s_barrier\n", .waves = 4});
                       return with - without;
                     },
                 .difference = "its phases do more than wait for one another"});
  all.push_back({.target = "gfx950",
                 .rule = "% that barriers cost when another wave covers them, two in 2048 matrix cycles",
                 .unit = "%",
                 .published = 0.1,
                 .source = "[M] two barriers deleted from a loop, MI355X",
                 .predict =
                     [] {
                       const std::string work = repeated(matrix32_gfx950, 32);
                       const double without = cycles({.body = work, .waves = 4, .workgroups = 2});
                       const double with = cycles({.body = work + "s_barrier\n", .waves = 4, .workgroups = 2});
                       return 100 * (with - without) / without;
                     },
                 .difference = "covered by a second workgroup"});
  for (const bool woven : {false, true}) {
    all.push_back(mix("gfx942", "mix of AMD's assembly, head dim 128, two waves a SIMD", 72.1,
                      "[M] MfmaUtil of the whole launch, causal, 16384 keys, MI300X", woven,
                      [woven] { return time_rounding_mix(woven); }));
    all.push_back(mix("gfx950", "mix of a fixed-maximum attention, head dim 64, four waves a SIMD", 79,
                      "[M] counters, causal, 8192 keys, MI355X", woven, [woven] {
                        FixedMaximumMix changed;
                        changed.woven = woven;
                        return time_mix(changed);
                      }));
  }
  return all;
}

}  // namespace

const std::vector<Anchor>& fitted_anchors() {
  static const std::vector<Anchor> all = make_fitted();
  return all;
}

const std::vector<Anchor>& held_out_anchors() {
  static const std::vector<Anchor> all = make_held_out();
  return all;
}

const std::vector<Effect>& published_effects() {
  static const std::string source = "[M] probes of a fixed-maximum attention, head dim 64, MI355X";
  static const std::vector<Effect> all = {
      {"no exponentials", "7.8 to 8.7 % of time, of which 3.1 % is a higher clock", source,
       [] { return faster({.exponentials = false}); }},
      {"no DMA of K and V", "3.95 % of time", source, [] { return faster({.dma = false}); }},
      {"no reads of V", "3.6 % of time", source, [] { return faster({.value_reads = false}); }},
  };
  return all;
}

}  // namespace wavejit::simgpu::testing
