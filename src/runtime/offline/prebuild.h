// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Fills a cache ahead of time: no GPU, no HIP, several compiles at once. Or says whether it is filled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/libraries/codegen_library.h"
#include "runtime/settings/config.h"
#include "runtime/settings/failure.h"

namespace wavejit::runtime {

struct PrebuildProgress {
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  std::uint64_t compiled = 0;
  std::uint64_t copied = 0;
  std::uint64_t present = 0;
  std::uint64_t failed = 0;
  std::uint64_t refused = 0;
  const std::string* kernel_spec = nullptr;  // the one that just finished
  const std::string* failure = nullptr;
  const std::string* descriptor = nullptr;  // a line that was refused
  std::size_t line = 0;
  const std::string* target = nullptr;  // of such a line; null: it is no descriptor
};
using PrebuildTell = std::function<void(const PrebuildProgress&)>;

enum class PrebuildMode : std::uint8_t { compile, verify, verify_on_device };

struct PrebuildRequest {
  std::vector<std::string> descriptors;
  bool everything = false;   // every supported combination without modifiers instead of the descriptors
  std::string_view targets;  // comma-separated, or "all"
  int jobs = 0;              // 0: all cores
  bool whole = true;         // a line without a kernel: then nothing is compiled
  int shard = 1;             // of the kernels, by their digest
  int shards = 1;
  PrebuildMode mode = PrebuildMode::compile;
  std::optional<std::string> output = std::nullopt;  // folder or archive; nothing: the configured cache
  bool archive = false;
};

// `tell` is called from worker threads, one call at a time. The failure is that of the first kernel that failed, else
// that of the first line that was refused.
Result<void> prebuild(const Config& config, const PrebuildRequest& request, CodegenLibrary& codegen,
                      const PrebuildTell& tell);

}  // namespace wavejit::runtime
