// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attention_mixes.h"

#include <cstdio>
#include <format>
#include <vector>

#include "clocked.h"

namespace wavejit::simgpu::testing {
namespace {

constexpr const char* dma_descriptor =
    "s_load_dwordx2 s[20:21], s[0:1], 0\ns_mov_b32 s22, 0x40000\ns_mov_b32 s23, 0x27000\ns_mov_b32 m0, 0\n"
    "s_waitcnt lgkmcnt(0)\ns_and_b32 s21, s21, 0xffff\n"
    // v1: 16 bytes a lane, v63: 8, both without bank conflicts.
    "v_and_b32 v1, 1023, v1\nv_lshlrev_b32 v63, 3, v0\nv_and_b32 v63, 511, v63\n";
// The second half of the waves passes one barrier more.
constexpr const char* stagger_opens =
    "v_readfirstlane_b32 s30, v0\ns_lshr_b32 s30, s30, 8\ns_cmp_eq_u32 s30, 0\ns_cbranch_scc1 6f\ns_barrier\n6:\n";
constexpr const char* waits_and_barrier = "s_waitcnt vmcnt(2)\ns_waitcnt lgkmcnt(0)\ns_barrier\n";

struct Work {
  std::string text;
  unsigned cost = 4;
};

// Work behind the matrix instructions, so that the port is loaded evenly; or all of it before them.
std::string ordered(const std::vector<std::string>& products, const std::vector<Work>& work, bool woven) {
  double all = 0;
  for (const Work& each : work) all += each.cost;
  std::string text;
  double done = 0;
  std::size_t next = 0;
  for (; !woven && next < work.size(); ++next) text += work[next].text;
  for (std::size_t i = 0; i < products.size(); ++i) {
    text += products[i];
    const double wanted = all * static_cast<double>(i + 1) / static_cast<double>(products.size());
    for (; next < work.size() && done + (work[next].cost / 2.0) <= wanted; ++next) {
      done += work[next].cost;
      text += work[next].text;
    }
  }
  for (; next < work.size(); ++next) text += work[next].text;
  return text;
}

std::string product(const char* name, unsigned operands, unsigned accumulator) {
  return std::format("{} v[{}:{}], v[2:{}], v[6:{}], v[{}:{}]\n", name, accumulator, accumulator + 15, 1 + operands,
                     5 + operands, accumulator, accumulator + 15);
}

std::string fixed_maximum_tile(const FixedMaximumMix& mix) {
  constexpr const char* name = "v_mfma_f32_32x32x16_bf16";
  constexpr const char* dma = "buffer_load_dwordx4 v1, s[20:23], 0 offen lds\n";
  constexpr unsigned half_of_weights = 16;
  const Work exponential = {"v_exp_f32 v41, v2\n", 8};
  std::string text;
  if (mix.dma) text += dma;
  for (unsigned i = 0; i < 8; ++i) text += std::format("ds_read_b128 v[42:45], v1 offset:{}\n", i * 1024);
  text += waits_and_barrier;
  std::vector<std::string> products;
  for (unsigned step = 0; step < 4; ++step) {
    for (const unsigned accumulator : {64U, 80U}) products.push_back(product(name, 4, accumulator));
  }
  std::vector<Work> work;
  for (unsigned i = 0; i < half_of_weights; ++i) {
    if (mix.exponentials) work.push_back(exponential);
    work.push_back({"v_cvt_pk_bf16_f32 v40, v2, v3\n", 4});
  }
  text += ordered(products, work, mix.woven) + "s_barrier\n";
  if (mix.dma) text += dma;
  if (mix.value_reads) {
    for (unsigned i = 0; i < 16; ++i) text += std::format("ds_read_b64_tr_b16 v[42:43], v63 offset:{}\n", i * 512);
  }
  text += waits_and_barrier;
  products.clear();
  work.clear();
  for (unsigned step = 0; step < 4; ++step) {
    for (const unsigned accumulator : {96U, 112U}) products.push_back(product(name, 4, accumulator));
    if (step % 2 == 1) products.push_back(product(name, 4, 16));  // row sums
  }
  if (mix.exponentials) work.assign(half_of_weights, exponential);
  work.insert(work.end(), 3, {"v_add_f32 v40, v2, v3\n", 4});
  const std::string second = ordered(products, work, mix.woven);
  text += mix.raised_priority ? "s_setprio 1\n" + second + "s_setprio 0\n" : second;
  return text + "s_barrier\n";
}

MixTime time_of(const Stream& stream) {
  const StreamTime time = time_stream(stream);
  if (!time.error.empty()) std::fputs((time.error + "\n").c_str(), stderr);
  if (!time.error.empty()) return {.cycles = -1};
  double beside = 0;
  double busy = 0;
  for (const clock::SimdResult& simd : time.result.simds) {
    beside += static_cast<double>(simd.overlapped);
    busy += static_cast<double>(simd.matrix_busy);
  }
  return {.cycles = time.cycles, .matrix_busy = time.matrix_busy, .beside = beside / busy};
}

}  // namespace

MixTime time_mix(const FixedMaximumMix& mix) {
  const Buffer<std::uint32_t> memory(65536);
  const std::string tile = fixed_maximum_tile(mix);
  return time_of({.before = std::string(dma_descriptor) + (mix.stagger ? stagger_opens : ""),
                  .body = tile + tile,
                  .waves = 8,
                  .workgroups = 2,
                  .lds_bytes = 34048,
                  .arguments = {memory.address()},
                  .loop = true});
}

namespace {

std::string copies_of(const std::string& text, unsigned count) { return repeated(text, count); }

std::string dualwave_tile(const DualwaveMix& mix) {
  constexpr const char* name = "v_mfma_f32_32x32x16_bf16";
  constexpr const char* copies =
      "s_nop 7\nbuffer_load_dwordx4 v1, s[20:23], 0 offen lds\nbuffer_load_dwordx4 v1, s[20:23], 0 offen lds\n";
  constexpr const char* ends = "s_waitcnt lgkmcnt(0)\ns_waitcnt vmcnt(4)\ns_barrier\n";
  const std::string pause = mix.pacing ? copies_of("s_nop 1", 3) : "";
  const Work exponential = {"v_exp_f32 v41, v2\n", 8};
  const Work addition = {"v_add_f32 v40, v2, v3\n", 4};
  std::string text = copies;
  for (unsigned i = 0; i < 16; ++i) text += std::format("ds_read_b128 v[42:45], v1 offset:{}\n", i * 1024);
  text += ends;
  // K Qᵀ, and the end of the softmax of the tile before.
  std::vector<std::string> products;
  std::vector<Work> work;
  for (unsigned step = 0; step < 8; ++step)
    for (const unsigned accumulator : {64U, 80U}) products.push_back(product(name, 4, accumulator));
  for (unsigned i = 0; i < 16; ++i) {
    work.insert(work.end(), {exponential, addition, addition});
    work.push_back({"v_cvt_pk_bf16_f32 v40, v2, v3\n", 4});
  }
  text += ordered(products, work, true) + pause + "s_nop 1\ns_barrier\n" + copies;
  for (unsigned i = 0; i < 32; ++i) text += std::format("ds_read_b64_tr_b16 v[42:43], v63 offset:{}\n", i * 512);
  text += ends;
  // The first quarter of Vᵀ Pᵀ, the maximum, the rescale if there is one, the rest with the beginning of the softmax.
  const auto outputs = [&](unsigned steps) {
    products.clear();
    for (unsigned step = 0; step < steps; ++step)
      for (const unsigned accumulator : {96U, 112U, 128U, 144U}) products.push_back(product(name, 4, accumulator));
  };
  if (mix.raised_priority) text += "s_setprio 1\n";
  outputs(1);
  work.assign(17, {"v_max_f32 v40, v2, v3\n", 4});
  text += ordered(products, work, true);
  if (!mix.lazy) text += repeated("v_mul_f32 v{}, v2, v{}", 64, 96);
  outputs(3);
  work.assign(35, addition);
  work.insert(work.end(), 16, exponential);
  text += ordered(products, work, true) + "s_nop 1\ns_nop 1\n";
  if (mix.raised_priority) text += "s_setprio 0\n";
  return text + "s_barrier\n";
}

}  // namespace

MixTime time_dualwave_mix(const DualwaveMix& mix) {
  const Buffer<std::uint32_t> memory(65536);
  const std::string tile = dualwave_tile(mix);
  return time_of({.before = std::string(dma_descriptor) + (mix.stagger ? stagger_opens : ""),
                  .body = tile + tile,
                  .waves = 8,
                  .lds_bytes = 65536,
                  .vgprs = 256,
                  .arguments = {memory.address()},
                  .loop = true});
}

MixTime time_rounding_mix(bool woven) {
  constexpr const char* name = "v_mfma_f32_32x32x8_bf16";
  const Buffer<std::uint32_t> memory(65536);
  std::string tile;
  for (unsigned i = 0; i < 8; ++i) tile += "buffer_load_dword v1, s[20:23], 0 offen lds\n";
  for (unsigned i = 0; i < 8; ++i) tile += std::format("ds_read_b128 v[42:45], v1 offset:{}\n", i * 1024);
  tile += "s_waitcnt vmcnt(8)\ns_waitcnt lgkmcnt(0)\ns_barrier\n";
  std::vector<std::string> scores;
  std::vector<std::string> outputs;
  for (unsigned step = 0; step < 16; ++step) scores.push_back(product(name, 2, 64));
  for (unsigned step = 0; step < 16; ++step) outputs.push_back(product(name, 2, 80 + (step % 3 * 16)));
  // Published for two tiles: 34 exponentials, 32 v_fma, 134 v_mul, 32 times add3, cmp, cndmask, 24 v_perm; what is left
  // of 2000 vector cycles is plain.
  std::vector<Work> first;
  std::vector<Work> second;
  for (unsigned i = 0; i < 31; ++i) first.push_back({"v_max_f32 v40, v2, v3\n", 4});
  for (unsigned i = 0; i < 16; ++i) first.push_back({"v_fma_f32 v40, v2, v3, v4\n", 5});
  for (unsigned i = 0; i < 17; ++i) first.push_back({"v_exp_f32 v41, v2\n", 16});
  for (unsigned i = 0; i < 16; ++i) {
    second.push_back({"v_cmp_u_f32 vcc, v2, v2\n", 4});
    second.push_back({"v_add3_u32 v40, v2, v3, v4\n", 5});
    second.push_back({"v_cndmask_b32 v41, v2, v3, vcc\n", 4});
  }
  for (unsigned i = 0; i < 12; ++i) second.push_back({"v_perm_b32 v40, v2, v3, v4\n", 4});
  for (unsigned i = 0; i < 67; ++i) second.push_back({"v_mul_f32 v40, v2, v3\n", 4});
  tile += ordered(scores, first, woven) + "s_barrier\n";
  for (unsigned i = 0; i < 16; ++i) tile += std::format("ds_read_b64 v[42:43], v63 offset:{}\n", i * 512);
  tile += "s_waitcnt lgkmcnt(0)\n" + ordered(outputs, second, woven);
  return time_of({.target = "gfx942",
                  .before = dma_descriptor,
                  .body = tile + tile,
                  .waves = 8,
                  .lds_bytes = 65536,
                  .arguments = {memory.address()},
                  .loop = true});
}

}  // namespace wavejit::simgpu::testing
