// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The dimensions of several parts of a family. Each part draws batches of its own: only where one of its dimensions is
// asked for. What the library does not do of one part keeps no other from being asked, and is told in the end.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
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
    Result<void> all;
    for (const Invariance* part : parts_) {
      const bool asked = std::ranges::any_of(part->dimensions(), [&](const InvarianceDimension& one) {
        return std::ranges::contains(request.dimensions, one.name);
      });
      if (!asked) continue;
      auto ran = part->run(request, engine_with, tell);
      if (ran) continue;
      if (ran.error().code != ExitCode::unsupported) return ran;
      if (all) all = std::move(ran);
    }
    return all;
  }

 private:
  std::vector<const Invariance*> parts_;
};

}  // namespace wavejit::tools
