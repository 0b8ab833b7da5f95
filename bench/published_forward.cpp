// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "published_forward.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

namespace wavejit::bench {
namespace {

std::vector<PublishedBlock> read_blocks() {
  std::vector<PublishedBlock> blocks;
  try {
    const auto file = nlohmann::json::parse(std::ifstream(WAVEJIT_PUBLISHED_FORWARD));
    for (const auto& json : file.at("blocks")) {
      PublishedBlock& block = blocks.emplace_back();
      block.source = json.at("source");
      for (const auto& column : json.at("columns"))
        block.kernels.push_back({.target = column.at(0), .name = column.at(1)});
      for (const auto& row : json.at("rows")) {
        const auto& shape = row.at(0);
        block.rows.push_back({.shape = {.batch = shape.at(0),
                                        .query_heads = shape.at(1),
                                        .kv_heads = shape.at(2),
                                        .head_dim = shape.at(3),
                                        .causal = shape.at(4),
                                        .keys = shape.at(5)},
                              .tflops = row.at(1).get<std::vector<double>>()});
      }
    }
  } catch (const nlohmann::json::exception& error) {
    fmt::print(stderr, "{}: {}\n", WAVEJIT_PUBLISHED_FORWARD, error.what());
    std::exit(1);
  }
  return blocks;
}

}  // namespace

double PublishedShape::flops() const {
  const auto product = static_cast<double>(batch * query_heads * head_dim);
  const auto length = static_cast<double>(keys);
  return 4 * product * length * length / (causal ? 2 : 1);
}

std::string PublishedShape::descriptor() const {
  return fmt::format("attention_forward bf16 b{} q{} k{} h{}{} d{}{}", batch, keys, keys, query_heads,
                     kv_heads == query_heads ? "" : fmt::format("/{}", kv_heads), head_dim, causal ? " causal" : "");
}

const std::vector<PublishedBlock>& published_forward() {
  static const std::vector<PublishedBlock> blocks = read_blocks();
  return blocks;
}

}  // namespace wavejit::bench
