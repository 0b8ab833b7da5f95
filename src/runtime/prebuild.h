// Fills a cache ahead of time: no GPU, no HIP, several compiles at once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/codegen_library.h"
#include "runtime/config.h"
#include "runtime/failure.h"

namespace wavejit::runtime {

struct PrebuildProgress {
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  std::uint64_t compiled = 0;
  std::uint64_t present = 0;
  std::uint64_t failed = 0;
  const std::string* kernel_spec = nullptr;  // the one that just finished
  const std::string* failure = nullptr;
};

struct PrebuildRequest {
  std::vector<std::string> descriptors;
  bool everything = false;   // every supported combination instead of the descriptors
  std::string_view targets;  // comma-separated
  int jobs = 0;              // 0: all cores
};

// Everything asked for is checked before anything is compiled. `progress` is called from worker threads, one call at a
// time.
Result<void> prebuild(const Config& config, const PrebuildRequest& request, CodegenLibrary& codegen,
                      const std::function<void(const PrebuildProgress&)>& progress);

}  // namespace wavejit::runtime
