// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `wavejit run cache_append`: new keys, values and queries from files, the caches and turned queries to files, checked
// against float64 if asked. Caches begin as zeros.
#pragma once

#include <memory>

#include "tools/family.h"

namespace wavejit::cache_append::program {

std::unique_ptr<tools::ArrayCall> make_array_call();

}  // namespace wavejit::cache_append::program
