// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which one word of a spec to name where it is too much.
#pragma once

#include <string>

#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::attention_forward {

struct WordInTheWay {
  std::string word;
  std::string accepted;  // what would do in its place
};

// The first word without which alone `fits` holds. Where no single word is enough, the last of those that have to go
// together; what is accepted then says all of them.
WordInTheWay word_in_the_way(const ForwardKernel& spec, bool (*fits)(const ForwardKernel& spec));

}  // namespace wavejit::attention_forward
