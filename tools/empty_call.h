// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A call of a family in which nothing is said yet.
#pragma once

#include "wavejit/wavejit.h"

namespace wavejit::tools {

template <typename Call>
Call empty_call(wavejit_family family) {
  Call call{};
  call.head.size = sizeof call;
  call.head.family = family;
  return call;
}

}  // namespace wavejit::tools
