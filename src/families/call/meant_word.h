// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What somebody meant who misspelt a word of a descriptor.
#pragma once

#include <string>
#include <string_view>

namespace wavejit::families {

// " (did you mean 'causal'?)" for "causl", or nothing where no word is near. `list`: what is accepted, as messages have it,
// "causal[=<prefix>], softcap=<x>, bias=none|bh". The key of "key=value" is compared where no such value is near.
[[gnu::cold]] std::string did_you_mean(std::string_view given, std::string_view list);

}  // namespace wavejit::families
