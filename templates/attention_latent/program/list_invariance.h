// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The dimensions of attention_latent with lists, behind those without: what may change about a call without showing.
#pragma once

#include "templates/attention/program/list_laboratory.h"
#include "templates/attention_latent/program/latent_arrays.h"
#include "tools/invariance/invariance.h"

namespace wavejit::attention_latent::program {

// Dense arrays with a list for each query, columns together; the last, which is none of V's, is cleared.
attention::program::ListedQueries listed_queries(const LatentArrays& arrays);

const tools::Invariance& invariance_with_lists();

}  // namespace wavejit::attention_latent::program
