// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Key texts: kernel specs, which print back to a text that means the same; digests; and what lock files say.
#include <cstdint>
#include <string_view>

#include "cache/digest.h"
#include "cache/lock.h"
#include "forge.h"
#include "templates/attention_forward/call/spec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using wavejit::fuzz::require;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto spec = wavejit::attention_forward::parse_spec(text)) {
    const std::string canonical = to_text(*spec);
    const auto again = wavejit::attention_forward::parse_spec(canonical);
    require(again.has_value() && to_text(*again) == canonical);
  }
  if (const auto digest = wavejit::cache::parse_digest(text)) require(digest->hex() == text);
  const std::string holder = wavejit::cache::holder_text(text);
  require(!holder.empty() && holder.find('\n') == std::string::npos);
  return 0;
}
