// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a probe's answer says.
#pragma once

#include <cstdint>
#include <span>

#include "tools/doctor/finding.h"
#include "tools/doctor/probe.h"

namespace wavejit::tools::doctor {

// `simulated`: what the simulated GPU answered, as it is built; empty: there is none here.
Finding check(const Probe& probe, std::span<const std::uint32_t> words, std::span<const std::uint32_t> answer,
              std::span<const std::uint32_t> simulated);

// What a probe is apart from its answer.
Finding finding_of(const Probe& probe);

}  // namespace wavejit::tools::doctor
