#include "model_error.h"

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

ModelError find_error() {
  std::vector<double> off;
  for (const TritonAnchor& anchor : triton_anchors()) {
    if (anchor.unit == "% matrix busy") off.push_back((100 * anchor.matrix_busy / anchor.published) - 1);
  }
  for (const auto& anchor : simgpu::testing::held_out_anchors()) {
    if (anchor.unit == "% matrix busy" && !anchor.bound) off.push_back((anchor.predict() / anchor.published) - 1);
  }
  ModelError error;
  for (const double each : off) {
    error.lowest = std::min(error.lowest, each);
    error.highest = std::max(error.highest, each);
    error.mean_square += each * each;
  }
  error.kernels = static_cast<int>(off.size());
  error.mean_square = off.empty() ? 0 : std::sqrt(error.mean_square / static_cast<double>(off.size()));
  return error;
}

}  // namespace

const std::vector<TritonAnchor>& triton_anchors() {
  static const std::vector<TritonAnchor> all = read_triton_anchors();
  return all;
}

const ModelError& model_error() {
  static const ModelError error = find_error();
  return error;
}

}  // namespace wavejit::bench
