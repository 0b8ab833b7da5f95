// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where code objects come from: the disk cache, else the compiler, whose work is published. Knows no device: engines
// load what it hands out, prebuild only wants it published.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cache/cache.h"
#include "families/kernel/kernel_spec.h"
#include "runtime/libraries/codegen_library.h"
#include "runtime/settings/clock.h"
#include "runtime/settings/config.h"
#include "runtime/settings/failure.h"
#include "runtime/settings/logging.h"

namespace wavejit::runtime {

struct KernelBinary {
  std::vector<std::byte> code_object;
  std::string kernel_name;
  std::uint32_t kernarg_bytes = 0;
  std::size_t layer_index = 0;  // of what came from the cache
  bool on_disk = false;         // the next process finds it
  // What a cache entry and its code object's notes disagree on; empty: nothing.
  std::string contradiction = {};  // NOLINT(readability-redundant-member-init): for initializers
};

// The layers that a configuration names: packaged read-only ones first, the user's folder, memory. open_remote
// adds the remote one where it is needed (remote_library.h).
cache::CacheOptions cache_options(const Config& config, Logger& logger);

// Safe from any thread.
class KernelSource {
 public:
  KernelSource(const Config& config, CodegenLibrary& codegen, Logger& logger);

  // Spec text + generator + identity of the lowering. Fails only for a lowering that is not on this machine.
  Result<cache::Key> key_of(const families::KernelSpec& spec);
  // A verified entry; every fault is a miss. `first_layer` goes on behind an entry that the loader refused.
  std::optional<KernelBinary> from_disk(const cache::Key& key, Phases& phases, std::size_t first_layer = 0);

  struct Compiled {
    KernelBinary binary;
    cache::PublishResult publish;
    bool by_others = false;  // another process or engine published it while we waited for our turn
  };
  // `fresh` compiles here and now, whatever others publish.
  enum class Wanted : std::uint8_t { anybodys, fresh };
  Result<Compiled> compile(const families::KernelSpec& spec, const cache::Key& key, Phases& phases,
                           Wanted wanted = Wanted::anybodys);

  cache::Cache& cache() { return cache_; }
  const cache::Cache& cache() const { return cache_; }

 private:
  CodegenLibrary& codegen_;
  Logger& logger_;
  // Once a process: that the packaged kernels are another version's.
  void tell_of_other_version(const cache::Key& key);

  CompileMode mode_;
  std::string packaged_archive_;  // empty: it is not asked
  std::once_flag packaged_judged_;
  cache::Cache cache_;
};

}  // namespace wavejit::runtime
