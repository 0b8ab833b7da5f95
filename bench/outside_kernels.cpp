// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "outside_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "boards/board.h"
#include "timing/timing.h"

namespace wavejit::bench {
namespace {

void read_file(const char* path, const std::string& name, std::vector<OutsideKernel>& all) {
  try {
    for (const nlohmann::json& row : nlohmann::json::parse(std::ifstream(path))) {
      all.push_back({.name = name,
                     .target = row.at("target"),
                     .head_dim = row.value("head_dim", 128),
                     .mask = row.at("mask"),
                     .batch = row.value("batch", 16),
                     .heads = row.value("heads", 16),
                     .keys = row.at("keys"),
                     .unit = row.at("unit"),
                     .published = row.at("published"),
                     .source = row.at("source"),
                     .cycles = row.value("cycles", 0.0),
                     .warm_cycles = row.value("warm_cycles", 0.0),
                     .matrix_busy = row.at("matrix_busy"),
                     .steady_busy = row.at("steady_matrix_busy"),
                     .useful = row.at("useful")});
    }
  } catch (const nlohmann::json::exception& error) {
    fmt::print(stderr, "{}: {}; bench/{}_clock.py writes it anew\n", path, error.what(), name);
    std::exit(1);
  }
}

}  // namespace

std::optional<double> clock_at_cap(std::string_view target, double steady_busy) {
  const boards::Board& row = *boards::find_product(target);
  const timing::Timing* const timing = timing::find_timing(row);
  if (timing == nullptr || !timing->power.known()) return std::nullopt;
  return timing->power.delivered.value * std::min(timing->power.ghz(steady_busy), row.clock_khz / 1e6);
}

// Its scripts wait for the GPU, record an event, call, and record another: analysis/attn/fwd/benchmark/test_python.py.
bool OutsideKernel::between_events() const { return source == "[M] HipKittens' benchmark, MI355X"; }

std::optional<double> OutsideKernel::throughput_at_cap(double events) const {
  const auto ghz = clock_at_cap(target, steady_busy);
  if (!ghz) return std::nullopt;
  const double part = useful * *ghz / (boards::find_product(target)->clock_khz / 1e6);
  if (!between_events()) return part;
  const double microseconds = cycles / (*ghz * 1e3);
  return part * microseconds / (microseconds + events);
}

const std::vector<OutsideKernel>& outside_kernels() {
  static const std::vector<OutsideKernel> all = [] {
    std::vector<OutsideKernel> kernels;
    read_file(WAVEJIT_TRITON_ANCHORS, "triton", kernels);
    read_file(WAVEJIT_AITER_ANCHORS, "aiter", kernels);
    return kernels;
  }();
  return all;
}

std::optional<double> OutsideKernel::tflops_at_cap(double events) const {
  const auto part = throughput_at_cap(events);
  if (!part) return std::nullopt;
  constexpr double flops_of_cycle = 4096;  // of a gfx950 compute unit, 16-bit; no other target's clock is known
  const boards::Board& row = *boards::find_product(target);
  return *part * flops_of_cycle * row.compute_units * row.clock_khz / 1e9;
}

double bias_at_cap() {
  double logarithms = 0;
  int kernels = 0;
  for (const OutsideKernel& kernel : outside_kernels()) {
    const auto tflops = kernel.tflops_at_cap();
    if (kernel.unit != "TFLOPS" || !tflops || (kernel.mask != "full" && kernel.mask != "causal")) continue;
    logarithms += std::log(*tflops / kernel.published);
    ++kernels;
  }
  return kernels == 0 ? 1 : std::exp(logarithms / kernels);
}

const OutsideKernel* find_outside(const std::string& name, const std::string& target, int head_dim,
                                  const std::string& mask, int keys) {
  const auto& all = outside_kernels();
  const auto found = std::ranges::find_if(all, [&](const OutsideKernel& kernel) {
    return kernel.name == name && kernel.target == target && kernel.head_dim == head_dim && kernel.mask == mask &&
           kernel.keys == keys;
  });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace wavejit::bench
