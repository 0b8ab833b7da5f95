// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GPUs by the names that they are sold under, and which target each is: also those that no kernels are written for, so
// that a question for one is answered with its target.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

struct Gpu {
  std::string_view name;    // "MI325X"
  std::string_view target;  // "gfx942"
};

// Those that are listed, in the table's order.
std::vector<Gpu> listed_gpus();
// By its name in any case, with spaces and hyphens or without: "mi325x", "rx9070", "RX 9070". Nothing: it is none.
std::optional<Gpu> gpu_of_name(std::string_view name);
// The sentence for a user who names a GPU where a target is asked for: "MI300X is gfx942", or "MI250 is gfx90a, which has
// no kernels". No value if the name is no GPU's.
std::optional<std::string> target_of_named_gpu(std::string_view name);

}  // namespace wavejit::vocabulary
