// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How a kernel of this family walks its tiles, and how its output leaves.
#pragma once

#include <cstdint>
#include <string_view>

#include "families/kernel/names.h"

namespace wavejit::attention_forward {

// generic: 4 waves in step, or 1 or 2 for few query rows. dualwave: 8 waves in two groups, one computing while the
// other moves data. interleaved: 4 waves, each with its softmax in the shadow of its own matrix instructions.
enum class Pipeline : std::uint8_t { generic, dualwave, interleaved };
inline constexpr Pipeline all_pipelines[] = {Pipeline::generic, Pipeline::dualwave, Pipeline::interleaved};

// Lane halves swapped so that each lane stores 16 contiguous bytes, or 8-byte pieces.
enum class OutputStore : std::uint8_t { permlane, scalar };

inline constexpr families::Names<OutputStore, 2> output_stores = {
    {{OutputStore::permlane, "permlane"}, {OutputStore::scalar, "scalar"}}};
inline constexpr families::Names<Pipeline, 3> pipelines = {
    {{Pipeline::generic, "generic"}, {Pipeline::dualwave, "dualwave"}, {Pipeline::interleaved, "interleaved"}}};

inline std::string_view to_text(OutputStore store) { return families::name_in(output_stores, store); }
inline std::string_view to_text(Pipeline pipeline) { return families::name_in(pipelines, pipeline); }

}  // namespace wavejit::attention_forward
