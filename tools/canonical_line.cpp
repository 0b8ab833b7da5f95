// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/canonical_line.h"

#include "wavejit/wavejit.h"

namespace wavejit::tools {

Result<std::string> canonical_line(const std::string& descriptor) {
  std::string text;
  const auto keep = [](void* to, const char* line) { *static_cast<std::string*>(to) = line; };
  if (auto described = checked(wavejit_describe(descriptor.c_str(), keep, &text)); !described)
    return std::unexpected(described.error());
  return text;
}

}  // namespace wavejit::tools
