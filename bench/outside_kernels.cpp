// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "outside_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "targets/targets.h"
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
                     .matrix_busy = row.at("matrix_busy"),
                     .useful = row.at("useful")});
    }
  } catch (const nlohmann::json::exception& error) {
    fmt::print(stderr, "{}: {}; bench/{}_clock.py writes it anew\n", path, error.what(), name);
    std::exit(1);
  }
}

}  // namespace

std::optional<double> clock_at_cap(std::string_view target, double matrix_busy) {
  const targets::Target& row = *targets::find_target(target);
  const timing::Timing* const timing = timing::find_timing(row);
  if (timing == nullptr || !timing->power.known()) return std::nullopt;
  return std::min(timing->power.ghz(matrix_busy), row.clock_khz / 1e6);
}

std::optional<double> OutsideKernel::throughput_at_cap() const {
  const auto ghz = clock_at_cap(target, matrix_busy);
  if (!ghz) return std::nullopt;
  return useful * *ghz / (targets::find_target(target)->clock_khz / 1e6);
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
