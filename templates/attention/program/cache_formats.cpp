// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/program/cache_formats.h"

#include <algorithm>
#include <string>

#include "targets/targets.h"
#include "templates/attention/kernel/types.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention::program {

std::string e4m3_of(std::string_view target) {
  const targets::Target* found = targets::find_target(target);
  if (found == nullptr) return {};
  for (const attention::DataType type : {attention::DataType::e4m3, attention::DataType::e4m3_fnuz})
    if (attention::encoding_of(type) == found->fp8) return std::string(attention::to_text(type));
  return {};
}

std::int32_t format_on(std::string_view target, tools::ByteType type) {
  if (type == tools::ByteType::i8) return WAVEJIT_INT8;
  const bool fnuz = e4m3_of(target).ends_with("fnuz");
  if (type == tools::ByteType::e5m2) return fnuz ? WAVEJIT_E5M2_FNUZ : WAVEJIT_E5M2;
  return fnuz ? WAVEJIT_E4M3_FNUZ : WAVEJIT_E4M3;
}

std::string with_cache_of(std::string_view target, const std::string& descriptor, tools::EightBits kind) {
  const std::string format =
      kind == tools::EightBits::integers ? std::string(attention::to_text(attention::DataType::i8)) : e4m3_of(target);
  const bool has_eight_bits = std::ranges::any_of(std::initializer_list<const char*>{" cache=", " queries=", " qk="},
                                                  [&](const char* word) { return descriptor.contains(word); });
  return format.empty() || has_eight_bits ? descriptor : descriptor + " cache=" + format;
}

}  // namespace wavejit::attention::program
