// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What may change about a call with lists of keys without showing in a bit of O or LSE.
#pragma once

#include "tools/invariance/invariance.h"

namespace wavejit::attention_forward::program {

const tools::Invariance& key_list_invariance();

}  // namespace wavejit::attention_forward::program
