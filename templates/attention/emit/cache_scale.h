// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The scales of a cache of 8 bits, once for every kernel (docs/canonical-arithmetic.md).
#pragma once

#include <cstddef>

#include "codegen/language/kernel.h"

namespace wavejit::attention {

// The scale of a kv head of a sequence, f32, uniform. `at`: where the kernel's arguments have a CacheScale.
language::Value* cache_scale(language::Kernel& kernel, std::size_t at, language::Value* batch,
                             language::Value* kv_head);

// `number`: the bits of what a raw score is multiplied with. Bits come back, in a scalar register.
language::Value* with_key_scale(language::Kernel& kernel, language::Value* number, language::Value* key_scale);

}  // namespace wavejit::attention
