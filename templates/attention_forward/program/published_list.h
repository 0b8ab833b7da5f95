// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The problems that the field tests attention with: what `wavejit sweep` runs when none are named.
#pragma once

#include <string>
#include <vector>

namespace wavejit::attention_forward::program {

// Every shape of the published tests (FlyDSL's forward matrix: dense, split, tail, packed and unequal) × head dim 64,
// 128 × bf16, fp16 × non-causal, causal, with LSE, inputs uniform in (−1, 1) and seed 123 as they are there.
std::vector<std::string> published_list();

}  // namespace wavejit::attention_forward::program
