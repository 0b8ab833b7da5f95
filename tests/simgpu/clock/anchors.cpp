// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "anchors.h"

#include <array>
#include <cstdio>
#include <format>

#include "clocked.h"

namespace wavejit::simgpu::testing {
namespace {

std::string plain(unsigned count) { return repeated("v_add_f32 v{}, v2, v3", count, 32); }
std::string exponentials(unsigned count) { return repeated("v_exp_f32 v{}, v2", count, 32); }

double cycles(const Stream& stream) {
  const StreamTime time = time_stream(stream);
  if (!time.error.empty()) std::fputs((time.error + "\n").c_str(), stderr);
  return time.error.empty() ? time.cycles : -1;
}

ConsistencyRow one_wave(const std::string& target, const std::string& rule, const std::string& body, double published,
                        const std::string& source) {
  return {.target = target,
          .rule = rule,
          .unit = "cycles",
          .published = published,
          .source = source,
          .predict = [target, body] { return cycles({.target = target, .body = body}); }};
}

// Bytes a clock that eight waves read out of LDS.
ConsistencyRow lds_rate(const std::string& rule, const std::string& instruction, unsigned bytes, unsigned stride_shift,
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

// AMD's table of ds_read_b128: cycles an instruction, by what the addresses do.
struct LdsCell {
  const char* name;
  unsigned stride;  // bytes from lane to lane
  unsigned first;
  double one_wave;
  double four_waves;
};
constexpr std::array<LdsCell, 5> lds_cells = {{{"no conflict", 16, 0, 8, 16},
                                               {"two-way conflicts", 32, 0, 8, 32},
                                               {"four-way conflicts", 64, 0, 16, 64},
                                               {"eight-way conflicts", 128, 0, 32, 128},
                                               {"rows off by 4 bytes", 16, 4, 64, 256}}};

ConsistencyRow conflict_cell(const LdsCell& cell, unsigned waves) {
  return {
      .target = "gfx950",
      .rule = std::format("ds_read_b128, {}, {}", cell.name, waves == 1 ? "one wave" : "a wave on each SIMD"),
      .unit = "cycles",
      .published = waves == 1 ? cell.one_wave : cell.four_waves,
      .source = "[M] gfx950-gluon-tutorials, MI355X",
      .predict = [=] {
        return cycles({.before = std::format("v_and_b32 v1, 63, v0\nv_mul_u32_u24 v1, {}, v1\nv_add_u32 v1, {}, v1\n",
                                             cell.stride, cell.first),
                       .body = "ds_read_b128 v[32:35], v1\n",
                       .waves = waves,
                       .lds_bytes = 65536});
      }};
}

std::vector<ConsistencyRow> make_consistency_rows() {
  const std::string pyhip = "[M] pyhip microbenchmarks, MI300X";
  const std::string traces = "[M] thread traces of MI350, tinygrad";
  const std::string attention = "[M] thread traces of MI355X, gfx950-gluon-tutorials";
  const std::string loops = "[X] AMD's own loops: what stands between two matrix instructions";
  std::vector<ConsistencyRow> all;
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
  gfx950("v_add_f32", plain(1), 4, traces);
  gfx950("v_exp_f32", exponentials(1), 8, attention);
  gfx950("matrix instruction of 16 cycles", matrix16_gfx950, 16, "[M] counters: busy ÷ instructions, MI355X");
  gfx950("matrix 32 + 6 v_fma_f32", matrix32_gfx950 + repeated("v_fma_f32 v{}, v2, v3, v4", 6, 32), 32, loops);
  gfx950("matrix 32 + 3 v_exp_f32", matrix32_gfx950 + exponentials(3), 32, loops);
  gfx950("8 dependent matrix 32, nothing between", repeated(matrix32_gfx950, 8), 256, loops);
  gfx950("v_pk_mul_f32", "v_pk_mul_f32 v[32:33], v[2:3], v[4:5]\n", 4, "AMD: 157.3 TFLOPS of f32 on vectors, MI355X");
  gfx950("v_add_f32, then ds_read_b32", "", 12 + 4, traces);
  all.back().predict = [] {
    return cycles({.body = "v_add_f32 v36, v2, v3\nds_read_b32 v32, v1\n", .lds_bytes = 4096});
  };
  gfx950("a loop of two scalar instructions and its branch", "", 4 + 4 + 20, traces);
  all.back().predict = [] { return cycles({.body = "", .loop = true}); };
  for (const LdsCell& cell : lds_cells) {
    for (const unsigned waves : {1U, 4U}) all.push_back(conflict_cell(cell, waves));
  }
  // Two lanes a bank in both phases.
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

std::vector<ConsistencyRow> make_contradicted_rows() {
  return {lds_rate("ds_read_b128 of eight waves", "ds_read_b128 v[32:35], v1\n", 16, 4, 192,
                   "[M] an MI355X microbenchmark; AMD's traces say 256"),
          lds_rate("ds_read_b64_tr_b16 of eight waves", "ds_read_b64_tr_b16 v[32:33], v1\n", 8, 3, 163,
                   "[M] an MI355X microbenchmark (tr_b8); AMD's notes say 256"),
          one_wave("gfx950", "v_pk_mul_f32", "v_pk_mul_f32 v[32:33], v[2:3], v[4:5]\n", 8,
                   "two passes, as AMD's notes of attention count them; their rules of issue say 4")};
}

}  // namespace

const std::vector<ConsistencyRow>& consistency_rows() {
  static const std::vector<ConsistencyRow> all = make_consistency_rows();
  return all;
}

const std::vector<ConsistencyRow>& contradicted_rows() {
  static const std::vector<ConsistencyRow> all = make_contradicted_rows();
  return all;
}

}  // namespace wavejit::simgpu::testing
