// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The reference walk of lists: the kernels of dense keys over a list's keys in its order, with chunks of 256.
//
// Dense chunks have 1,024 keys. So the keys of a list's chunk stand at the beginning of one, and what fills it up is a
// key whose score is −∞, as is a hole of the list: it has −∞ behind V's columns, where queries have 2. Such a key
// changes nothing of a row (docs/canonical-arithmetic.md).
#pragma once

#include "templates/attention_latent/program/latent_arrays.h"

namespace wavejit::attention_latent::program {

// The last column, which is none of V's, is 2 in queries and 0 in keys: what both walks must have.
void clear_last_column(LatentArrays& arrays);

// The walk of one query (`token` among all) over dense keys, columns together and cleared as above.
LatentArrays dense_walk_of(const LatentArrays& listed, std::int64_t token);

}  // namespace wavejit::attention_latent::program
