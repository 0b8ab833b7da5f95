#include "anchor_error.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "anchors.h"

namespace wavejit::bench {
namespace {

std::vector<TritonAnchor> read_triton_anchors() {
  std::vector<TritonAnchor> all;
  try {
    for (const nlohmann::json& row : nlohmann::json::parse(std::ifstream(WAVEJIT_TRITON_ANCHORS))) {
      all.push_back({.target = row.at("target"),
                     .head_dim = row.at("head_dim"),
                     .mask = row.at("mask"),
                     .keys = row.at("keys"),
                     .unit = row.at("unit"),
                     .published = row.at("published"),
                     .source = row.at("source"),
                     .matrix_busy = row.at("matrix_busy"),
                     .useful = row.at("useful"),
                     .tile = row.at("tile"),
                     .triton = row.at("triton")});
    }
  } catch (const nlohmann::json::exception& error) {
    std::fprintf(stderr, "%s: %s; bench/triton_clock.py writes it anew\n", WAVEJIT_TRITON_ANCHORS, error.what());
    std::exit(1);
  }
  return all;
}

}  // namespace

const std::vector<TritonAnchor>& triton_anchors() {
  static const std::vector<TritonAnchor> all = read_triton_anchors();
  return all;
}

ModelError anchor_error() {
  std::vector<double> off;  // predicted ÷ published − 1
  for (const TritonAnchor& anchor : triton_anchors()) {
    if (anchor.unit == "% matrix busy") off.push_back((100 * anchor.matrix_busy / anchor.published) - 1);
  }
  for (const auto& anchor : simgpu::testing::held_out_anchors()) {
    if (anchor.unit == "% matrix busy" && !anchor.bound) off.push_back((anchor.predict() / anchor.published) - 1);
  }
  const auto tenths = [](double part) { return std::round(1000 * part) / 10; };
  double lowest = 0;
  double highest = 0;
  double squares = 0;
  for (const double each : off) {
    lowest = std::min(lowest, each);
    highest = std::max(highest, each);
    squares += each * each;
  }
  return {.kernels = static_cast<int>(off.size()),
          .too_low = tenths(-lowest),
          .too_high = tenths(highest),
          .root_mean_square = off.empty() ? 0 : tenths(std::sqrt(squares / static_cast<double>(off.size())))};
}

}  // namespace wavejit::bench
