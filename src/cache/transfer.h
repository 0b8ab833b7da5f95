// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Entries from one place to another: from a cache to a folder or an archive that is shipped, and back. What is copied
// was verified as for a load.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "cache/cache.h"
#include "cache/remote_store.h"

namespace wavejit::cache {

struct TransferResult {
  std::uint64_t copied = 0;
  std::uint64_t present = 0;  // the destination has them already; of archives: met a second time
  std::uint64_t damaged = 0;  // left behind
  std::uint64_t failed = 0;   // could not be written
  std::uint64_t bytes = 0;    // of what was copied
  std::string first_failure;
};

// Every whole entry of `from` for one of `targets` (empty: all) is published to `to`. The error: `from` could not be
// read to its end.
std::expected<TransferResult, std::string> copy_entries(Cache& from, Cache& to,
                                                        const std::vector<std::string>& targets);
// The same into one archive, which appears under its name when it is whole and not before; the first of two layers with
// one key counts. The same entries give the same bytes.
std::expected<TransferResult, std::string> pack_entries(Cache& from, const std::string& archive,
                                                        const std::vector<std::string>& targets);

// The same to a remote layer; entries that it has are sent again. The error: it does not answer, or `from` could not be
// read to its end.
std::expected<TransferResult, std::string> push_entries(Cache& from, RemoteStore& to,
                                                        const std::vector<std::string>& targets);
// What a remote layer has, to `to`; each is verified as for a load.
std::expected<TransferResult, std::string> pull_entries(RemoteStore& from, Cache& to,
                                                        const std::vector<std::string>& targets);
// One archive of these keys and no others, each once, looked for in `from` and its layers. If one of them is not there,
// it is named and nothing is written. The same keys give the same bytes.
std::expected<void, std::string> pack_keys(Cache& from, const std::string& archive, std::vector<Key> keys);

// Whether entries could be published to `to` now, or an archive be written under this name: asked before hours of
// compiling. Makes nothing.
std::expected<void, std::string> check_writable(Cache& to);
std::expected<void, std::string> check_archive_place(Cache& from, const std::string& archive);

}  // namespace wavejit::cache
