// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem descriptors: what is accepted prints back to a text that means the same; errors are one line.
#include <cstdint>
#include <string>
#include <string_view>

#include "forge.h"
#include "templates/attention_backward/call/descriptor.h"
#include "templates/attention_forward/call/descriptor.h"
#include "templates/attention_latent/call/descriptor.h"
#include "templates/attention_merge/call/descriptor.h"
#include "templates/cache_append/call/descriptor.h"
#include "templates/softmax_lse/call/descriptor.h"
#include "templates/sparse_indexer/call/descriptor.h"

namespace {

using wavejit::fuzz::require;

template <typename Descriptor>
void check(const Descriptor& descriptor, Descriptor (*parse)(std::string_view)) {
  if (!descriptor) {
    require(!descriptor.error().detail.empty());
    return;
  }
  const std::string canonical = to_text(*descriptor);
  const auto again = parse(canonical);
  require(again.has_value() && to_text(*again) == canonical);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check(wavejit::attention_forward::parse_descriptor(text), wavejit::attention_forward::parse_descriptor);
  check(wavejit::attention_backward::parse_descriptor(text), wavejit::attention_backward::parse_descriptor);
  check(wavejit::attention_latent::parse_descriptor(text), wavejit::attention_latent::parse_descriptor);
  check(wavejit::softmax_lse::parse_descriptor(text), wavejit::softmax_lse::parse_descriptor);
  check(wavejit::attention_merge::parse_descriptor(text), wavejit::attention_merge::parse_descriptor);
  check(wavejit::cache_append::parse_descriptor(text), wavejit::cache_append::parse_descriptor);
  check(wavejit::sparse_indexer::parse_descriptor(text), wavejit::sparse_indexer::parse_descriptor);
  return 0;
}
