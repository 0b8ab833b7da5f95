// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GPUs by the names that they are sold under, and which target each is: also those that no kernels are written for, so
// that a question for one is answered with its target.
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace wavejit::vocabulary {

struct GpusOfTarget {
  std::string_view target;        // "gfx90a"
  std::string_view architecture;  // "CDNA 2"
  // "Instinct MI210, MI250 and MI250X", as refusals name them; empty: the target has kernels.
  std::string_view refused = {};
  // "MI250X", "MI250", "MI210": what `wavejit supported --gpus` lists; empty names behind them.
  std::array<std::string_view, 3> listed = {};
};

// Targets with kernels first.
std::span<const GpusOfTarget> gpus_by_target();

}  // namespace wavejit::vocabulary
