// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What people do with a cache besides calling kernels: look at its layers, sweep it, copy entries. No device, no
// compiler.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cache/cache.h"
#include "cache/transfer.h"
#include "runtime/settings/config.h"
#include "runtime/settings/failure.h"

namespace wavejit::runtime {

struct CacheLayer {
  std::string name;
  std::string path;
  bool writable = false;
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  std::uint64_t damaged = 0;
  std::uint64_t limit_bytes = 0;
  std::string state;  // of the remote one
};
// In the order in which they are asked, each entry verified.
Result<std::vector<CacheLayer>> describe_cache(const Config& config);

// `any_age`: also what was published within the minimum age.
Result<cache::SweepResult> sweep_cache(const Config& config, bool any_age);

struct CacheCopy {
  std::string from;     // folder or archive; empty: the configured cache
  std::string to;       // folder or archive; empty: the cache's own folder
  std::string targets;  // comma-separated; empty: all
  bool archive = false;
  wavejit_cache_remote remote = WAVEJIT_CACHE_NO_REMOTE;
};
Result<cache::TransferResult> copy_cache(const Config& config, const CacheCopy& copy);

}  // namespace wavejit::runtime
