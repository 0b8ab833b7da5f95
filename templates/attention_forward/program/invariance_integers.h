// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Batches whose queries and keys are integers of 8 bits: the same numbers in every call, whatever it changes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "templates/attention_forward/program/invariance_batch.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention_forward::program {

// The nearest integers to 32 times each element; what is no number is one, too.
std::vector<std::int8_t> integers_of(const Batch& batch, std::span<const std::uint16_t> elements);

// One for each row of each head, [batch][length][heads] of the tensor, whose elements `integers` are: what the row
// begins with says it, so that it goes where the row goes.
std::vector<float> row_scales(const wavejit_tensor& tensor, std::span<const std::int8_t> integers);

// K's scales are a number for each head in a third of the batches, and for each key in the others.
bool has_key_scales(const Batch& batch);
std::vector<float> head_scales(std::int64_t heads);

}  // namespace wavejit::attention_forward::program
