// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernel arguments of attention_forward where keys and values lie in pages: those of dense keys, then the pages'.
#pragma once

#include "templates/attention/kernel/page_arguments.h"
#include "templates/attention_forward/kernel/arguments.h"

namespace wavejit::attention_forward {

struct PagedArguments {
  Arguments all;
  attention::PageArguments pages;
};

static_assert(sizeof(PagedArguments) == 344);
static_assert(offsetof(PagedArguments, pages) == sizeof(Arguments));

}  // namespace wavejit::attention_forward
