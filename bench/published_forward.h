// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Throughput of attention as others published it (bench/published_forward.json, published_backward.json): figures and
// where they stand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace wavejit::bench {

struct PublishedShape {
  std::int64_t batch = 1;
  std::int64_t query_heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 1;
  bool causal = false;
  std::int64_t keys = 1;        // and queries
  std::int64_t head_dim_v = 0;  // 0: as head_dim
  // 4 · B · H · S² · D, half of it when causal: as everybody counts. Of a backward call 10 ·.
  double flops() const;
  double backward_flops() const;
  // As wavejit writes it, bf16.
  std::string descriptor(std::string_view family = "attention_forward") const;
  bool operator==(const PublishedShape&) const = default;
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
const std::vector<PublishedBlock>& published_backward();

// AITER's code objects of gradients, their main kernel alone, timed from outside (bench/aiter_clock.py --backward).
struct AiterCall {
  std::string target;
  PublishedShape shape;
  double cycles = 0;
};
const std::vector<AiterCall>& aiter_backward_kernels();

}  // namespace wavejit::bench
