// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A call of softmax_lse in plain numbers: what is left of the struct when every field was looked at.
#pragma once

#include <cstdint>

#include "families/call/family.h"
#include "families/call/shape_of.h"
#include "templates/attention/call/limits.h"
#include "templates/attention/call/mask.h"
#include "templates/softmax_lse/kernel/spec.h"

namespace wavejit::softmax_lse {

using families::fail;
using families::Failure;
using families::Result;

const families::Family& family();

// Everything of a call that changes code.
using SoftmaxShape = families::ShapeOf<AskedWords, families::AskedBits<AskedWords>, family>;

// Pointers and strides stay where the caller put them.
struct SoftmaxProblem {
  SoftmaxShape shape;
  std::uint32_t batch = 0;
  std::uint32_t heads = 0;
  std::uint32_t query_length = 0;
  std::uint32_t key_length = 0;
  float scale_log2e = 0;
  attention::SeenKeys seen = {};
};

// Heads are the y, batches the z dimension of the grid.
using attention::max_batch;
using attention::max_heads;

// Reads the struct only as far as its size allows. Does not touch what the tensors point to.
Result<SoftmaxProblem> check(const wavejit_softmax_lse_arguments* arguments);

}  // namespace wavejit::softmax_lse
