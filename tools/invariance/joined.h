// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The dimensions of several parts of a family. Each part draws batches of its own: only where one of its dimensions is
// asked for.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "tools/invariance/invariance.h"

namespace wavejit::tools {

class JoinedInvariance final : public Invariance {
 public:
  JoinedInvariance(std::initializer_list<const Invariance*> parts) : parts_(parts) {}

  std::vector<InvarianceDimension> dimensions() const override {
    std::vector<InvarianceDimension> told;
    for (const Invariance* part : parts_)
      for (InvarianceDimension& one : part->dimensions()) told.push_back(std::move(one));
    return told;
  }

  Result<void> run(const InvarianceRequest& request, const EngineWith& engine_with,
                   const std::function<void(Pair)>& tell) const override {
    for (const Invariance* part : parts_) {
      const bool asked = std::ranges::any_of(part->dimensions(), [&](const InvarianceDimension& one) {
        return std::ranges::contains(request.dimensions, one.name);
      });
      if (!asked) continue;
      if (auto ran = part->run(request, engine_with, tell); !ran) return ran;
    }
    return {};
  }

 private:
  std::vector<const Invariance*> parts_;
};

}  // namespace wavejit::tools
