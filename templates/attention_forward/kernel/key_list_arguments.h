// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a kernel of listed keys reads beside its other arguments, and what its grid then is.
//
// Workgroups: x = query of all sequences (batch · query_length), y = tile of a kv head's query heads, z = kv head
// (split keys: split · kv heads + kv head).
#pragma once

#include <cstddef>

#include "templates/attention/kernel/key_list_arguments.h"
#include "templates/attention_forward/kernel/paged_arguments.h"

namespace wavejit::attention_forward {

// Where they stand, whether keys stand in pages or not.
struct KeyListedArguments {
  PagedArguments all;
  attention::KeyListArguments lists;
};

inline constexpr std::size_t key_lists_at = offsetof(KeyListedArguments, lists);

static_assert(sizeof(KeyListedArguments) == 416);
static_assert(key_lists_at == sizeof(PagedArguments));

}  // namespace wavejit::attention_forward
