// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How the struct of a call grew: families/call/struct_size.h has the rule.
#pragma once

#include "families/call/struct_size.h"
#include "wavejit/wavejit.h"

namespace wavejit::families {

template <>
struct Versions<wavejit_attention_merge_arguments> : OneVersion {};

}  // namespace wavejit::families
