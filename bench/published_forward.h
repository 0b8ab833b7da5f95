// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Throughput of attention forward as others published it (bench/published_forward.json): figures and where they stand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace wavejit::bench {

struct PublishedShape {
  std::int64_t batch = 1;
  std::int64_t query_heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 1;
  bool causal = false;
  std::int64_t keys = 1;  // and queries
  // 4 · B · H · S² · D, half of it when causal: as everybody counts.
  double flops() const;
  // As wavejit writes it, bf16.
  std::string descriptor() const;
};

struct PublishedKernel {
  std::string target;
  std::string name;
};

struct PublishedRow {
  PublishedShape shape;
  std::vector<double> tflops;  // of each kernel of the block
};

struct PublishedBlock {
  std::string source;
  std::vector<PublishedKernel> kernels;
  std::vector<PublishedRow> rows;
};

// Ends the program with a line when the file is not as it should be.
const std::vector<PublishedBlock>& published_forward();

}  // namespace wavejit::bench
