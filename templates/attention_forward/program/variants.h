// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What people ask attention_forward for by name, and the questions that lead to a variant of any family
// (tools/variants/variants.h).
#pragma once

#include <span>

#include "tools/variants/variants.h"

namespace wavejit::attention_forward::program {

std::span<const tools::Variant> variant_rows();
const tools::Variants& attention_variants();

}  // namespace wavejit::attention_forward::program
