// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Caches of 8 bits: their scales, and rows of latent attention that have scales of their own.
#pragma once

#include "templates/cache_append/call/problem.h"

namespace wavejit::cache_append {

// Whether the cache has rows of latent attention: K and V go into one tensor of 656 or 584 columns; else none.
Scales rows_of(const wavejit_cache_append_arguments& call);
// What the bytes of a call's cache are counted in.
Scales scales_of(const wavejit_cache_append_arguments& call);

// k_cache where it has such rows; k and v have been looked at.
Result<void> check_latent_rows(const wavejit_cache_append_arguments& call, Scales rows);
Result<void> check_scales(const wavejit_cache_append_arguments& call);

// How a launch has the scales of K (0) or V (1).
ScaleSide scale_side(const wavejit_cache_append_arguments& call, Scales scales, int side);

}  // namespace wavejit::cache_append
