// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Archives: every record that is accepted leads to bytes inside, and those are parsed too.
#include <cstdint>

#include "forge.h"

namespace {

void check(std::span<const std::byte> bytes) {
  const auto records = wavejit::cache::parse_archive(bytes);
  if (!records) {
    wavejit::fuzz::require(!records.error().empty());
    return;
  }
  for (const wavejit::cache::ArchiveRecord& record : *records) {
    wavejit::fuzz::require(record.offset <= bytes.size() && record.bytes <= bytes.size() - record.offset);
    (void)wavejit::cache::parse(bytes.subspan(record.offset, record.bytes));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  check(bytes);
  check(wavejit::fuzz::with_archive_checksum(bytes));
  return 0;
}
