// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/program/cache_formats.h"

#include <algorithm>
#include <string>

#include "targets/targets.h"
#include "templates/attention/kernel/types.h"

namespace wavejit::attention::program {

std::string e4m3_of(std::string_view target) {
  const targets::Target* found = targets::find_target(target);
  if (found == nullptr) return {};
  for (const attention::DataType type : {attention::DataType::e4m3, attention::DataType::e4m3_fnuz})
    if (attention::encoding_of(type) == found->fp8) return std::string(attention::to_text(type));
  return {};
}

std::string with_cache_of(std::string_view target, const std::string& descriptor, tools::EightBits kind) {
  const std::string format =
      kind == tools::EightBits::integers ? std::string(attention::to_text(attention::DataType::i8)) : e4m3_of(target);
  const bool has_eight_bits = std::ranges::any_of(std::initializer_list<const char*>{" cache=", " queries=", " qk="},
                                                  [&](const char* word) { return descriptor.contains(word); });
  return format.empty() || has_eight_bits ? descriptor : descriptor + " cache=" + format;
}

}  // namespace wavejit::attention::program
