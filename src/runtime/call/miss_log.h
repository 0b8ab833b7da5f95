// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The file in which a running engine notes what was not there: a problem descriptor a line, for `wavejit prebuild`
// later.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "families/call/family.h"
#include "runtime/settings/logging.h"

namespace wavejit::runtime {

// Safe from any thread; several processes may append to one file. What cannot be written is one warning, never an
// error.
class MissLog {
 public:
  MissLog(std::string path, Logger& logger) : path_(std::move(path)), logger_(logger) {}

  // A line a shape.
  void note(const families::Shape& shape, std::string_view line) noexcept;

 private:
  // Empty, or what to warn of, once.
  std::string append(std::string line);

  std::string path_;  // empty: none
  Logger& logger_;
  std::mutex mutex_;
  std::set<std::pair<const families::Family*, std::uint64_t>> noted_;
  bool warned_ = false;
};

}  // namespace wavejit::runtime
