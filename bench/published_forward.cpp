// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "published_forward.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

namespace wavejit::bench {
namespace {

PublishedShape shape_of(const nlohmann::json& shape) {
  return {.batch = shape.at(0),
          .query_heads = shape.at(1),
          .kv_heads = shape.at(2),
          .head_dim = shape.at(3),
          .causal = shape.at(4),
          .keys = shape.at(5)};
}

std::vector<PublishedBlock> read_blocks(const char* name) {
  std::vector<PublishedBlock> blocks;
  try {
    const auto file = nlohmann::json::parse(std::ifstream(name));
    for (const auto& json : file.at("blocks")) {
      PublishedBlock& block = blocks.emplace_back();
      block.source = json.at("source");
      for (const auto& column : json.at("columns"))
        block.kernels.push_back({.target = column.at(0), .name = column.at(1)});
      for (const auto& row : json.at("rows"))
        block.rows.push_back({.shape = shape_of(row.at(0)), .tflops = row.at(1).get<std::vector<double>>()});
    }
  } catch (const nlohmann::json::exception& error) {
    fmt::print(stderr, "{}: {}\n", name, error.what());
    std::exit(1);
  }
  return blocks;
}

}  // namespace

// Three products over the dims of q and k, two over those of v.
double PublishedShape::backward_flops() const {
  const std::int64_t values = head_dim_v == 0 ? head_dim : head_dim_v;
  return flops() / 2 * static_cast<double>((3 * head_dim) + (2 * values)) / static_cast<double>(head_dim);
}

double PublishedShape::flops() const {
  const auto product = static_cast<double>(batch * query_heads * head_dim);
  const auto length = static_cast<double>(keys);
  return 4 * product * length * length / (causal ? 2 : 1);
}

std::string PublishedShape::descriptor(std::string_view family) const {
  return fmt::format("{} bf16 b{} q{} k{} h{}{} d{}{}{}", family, batch, keys, keys, query_heads,
                     kv_heads == query_heads ? "" : fmt::format("/{}", kv_heads), head_dim,
                     head_dim_v == 0 ? "" : fmt::format("/{}", head_dim_v), causal ? " causal" : "");
}

const std::vector<PublishedBlock>& published_forward() {
  static const std::vector<PublishedBlock> blocks = read_blocks(WAVEJIT_PUBLISHED_FORWARD);
  return blocks;
}

const std::vector<PublishedBlock>& published_backward() {
  static const std::vector<PublishedBlock> blocks = read_blocks(WAVEJIT_PUBLISHED_BACKWARD);
  return blocks;
}

const std::vector<AiterCall>& aiter_backward_kernels() {
  static const std::vector<AiterCall> kernels = [] {
    std::vector<AiterCall> all;
    try {
      for (const auto& row : nlohmann::json::parse(std::ifstream(WAVEJIT_AITER_BACKWARD)))
        all.push_back({.target = row.at("target"), .shape = shape_of(row.at("shape")), .cycles = row.at("cycles")});
    } catch (const nlohmann::json::exception& error) {
      fmt::print(stderr, "{}: {}\n", WAVEJIT_AITER_BACKWARD, error.what());
      std::exit(1);
    }
    return all;
  }();
  return kernels;
}

}  // namespace wavejit::bench
