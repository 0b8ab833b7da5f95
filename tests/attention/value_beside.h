// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls that rows name with `beside=`: each must have the row's bits. Each runs once, with every check.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attention/modified.h"
#include "attention/value_rows.h"

namespace wavejit::tests {

// Engines of one target, each opened when it is first asked for.
class RowEngines {
 public:
  explicit RowEngines(std::string target) : target_(std::move(target)) {}
  const Pipelines& pipelines() {
    if (!pipelines_) pipelines_ = std::make_unique<Pipelines>(target_);
    return *pipelines_;
  }
  // "generic,chunk_waves=4": a pipeline and words behind it. Empty: as the engine chooses.
  const Engine& pinned(const std::string& words);
  // The one that the row runs on, if it is one.
  const Engine& of(const ValueRow& row) { return pinned(row.word("pinned")); }

 private:
  std::string target_;
  std::unique_ptr<Pipelines> pipelines_;
  std::map<std::string, std::unique_ptr<Engine>> pinned_;
};

// Throws for a name that no call has.
void expect_bits_beside(const std::string& name, RowEngines& engines, const ValueRow& row, const AttentionCase& which,
                        const AttentionOutput& output);

}  // namespace wavejit::tests
