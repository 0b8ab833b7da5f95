// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where a call of this family gives the modifiers of scores (templates/attention/kernel/modifiers.h).
#pragma once

#include "templates/attention/kernel/modifiers.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention_forward {

using namespace attention;

using ModifierFields = attention::ModifierFields<wavejit_attention_forward_arguments>;

inline constexpr std::array<ModifierFields, modifier_count> modifier_fields = {{
    {.modifier = Modifier::softcap, .number = &wavejit_attention_forward_arguments::softcap},
    {.modifier = Modifier::bias, .tensor = &wavejit_attention_forward_arguments::bias},
    {.modifier = Modifier::alibi, .tensor = &wavejit_attention_forward_arguments::alibi},
    {.modifier = Modifier::sink, .tensor = &wavejit_attention_forward_arguments::sink},
}};
static_assert(bind_all(modifier_fields));

constexpr const ModifierFields& fields_of(Modifier modifier) {
  return modifier_fields[static_cast<std::size_t>(modifier)];
}

}  // namespace wavejit::attention_forward
