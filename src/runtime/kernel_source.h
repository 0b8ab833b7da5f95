// Where code objects come from: the disk cache, else the compiler, whose work is published. Knows no device: engines
// load what it hands out, prebuild only wants it published.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/cache.h"
#include "runtime/clock.h"
#include "runtime/codegen_library.h"
#include "runtime/config.h"
#include "runtime/failure.h"
#include "runtime/logging.h"
#include "templates/families/spec.h"

namespace wavejit::runtime {

struct KernelBinary {
  std::vector<std::byte> code_object;
  std::string kernel_name;
  std::uint32_t kernarg_bytes = 0;
};

// The layers that a configuration names, packaged read-only ones first (there are none yet), the user's last.
cache::CacheOptions cache_options(const Config& config, Logger& logger);

// Safe from any thread.
class KernelSource {
 public:
  KernelSource(const Config& config, CodegenLibrary& codegen, Logger& logger);

  // Spec text + generator + identity of the lowering. Fails only for a lowering that is not on this machine.
  Result<cache::Key> key_of(const families::KernelSpec& spec);
  // A verified entry; every fault is a miss.
  std::optional<KernelBinary> from_disk(const cache::Key& key, Phases& phases);

  struct Compiled {
    KernelBinary binary;
    cache::PublishResult publish;
  };
  Result<Compiled> compile(const families::KernelSpec& spec, const cache::Key& key, Phases& phases);

  cache::Cache& cache() { return cache_; }
  const cache::Cache& cache() const { return cache_; }

 private:
  CodegenLibrary& codegen_;
  Logger& logger_;
  CompileMode mode_;
  cache::Cache cache_;
};

}  // namespace wavejit::runtime
