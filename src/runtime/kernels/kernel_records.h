// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What each kernel of an engine cost to get: for the statistics as JSON.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/settings/clock.h"
#include "wavejit/wavejit.h"

namespace wavejit::runtime {

struct KernelRecord {
  std::string spec_text;
  std::string key;
  std::string descriptor;  // the problem that asked first
  wavejit_origin origin = WAVEJIT_ORIGIN_NONE;
  std::uint64_t thread = 0;  // gettid
  Phases phases;
};

// Safe from any thread.
class KernelRecords {
 public:
  void add(KernelRecord record) {
    const std::scoped_lock lock(mutex_);
    records_.push_back(std::move(record));
  }
  std::vector<KernelRecord> all() const {
    const std::scoped_lock lock(mutex_);
    return records_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<KernelRecord> records_;
};

}  // namespace wavejit::runtime
