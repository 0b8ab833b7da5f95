// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Keys and values in pages of a cache, which a block table names.
#pragma once

#include <cstdint>

#include "families/call/failure.h"
#include "templates/attention/kernel/page_arguments.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention {

// `k` and `v`, one tensor or two of the same pages: sizes agree and strides are in range. `key_length`: of the longest
// sequence.
families::Result<void> check_pages(const wavejit_tensor& k, const wavejit_tensor& v, const wavejit_pages& pages,
                                   std::int64_t key_length);
// Where pages.page_layout is not 0. Needs k and v with sizes that agree.
families::Result<void> check_page_layout(const wavejit_tensor& k, const wavejit_tensor& v, const wavejit_pages& pages,
                                         bool left_padding);
// K and V of vectorised pages: a head of a page as one row, since nothing stands between its elements.
wavejit_tensor in_one_row(const wavejit_tensor& pages);

PageArguments page_arguments(const wavejit_tensor& k, const wavejit_pages& pages);

}  // namespace wavejit::attention
