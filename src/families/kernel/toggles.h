// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a caller may force of kernels, whatever their family: the options of wavejit_engine_options that choose code or
// launch arguments, as values. A family takes those that it knows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "families/kernel/names.h"

namespace wavejit::families {

// Who turns the IR into machine code: the LLVM inside libwavejit_codegen.so, or the installed ROCm's comgr.
enum class Lowering : std::uint8_t { llvm, comgr };
// How an output leaves the registers: lane halves swapped so that each lane stores 16 contiguous bytes, or 8-byte
// pieces.
enum class OutputStore : std::uint8_t { permlane, scalar };
// How a kernel walks its tiles. generic: 4 waves in step, or 1 or 2 for few query rows. dualwave: 8 waves in two
// groups, one computing while the other moves data. interleaved: 4 waves, each with its softmax in the shadow of its
// own matrix instructions.
enum class Pipeline : std::uint8_t { generic, dualwave, interleaved };
inline constexpr Pipeline all_pipelines[] = {Pipeline::generic, Pipeline::dualwave, Pipeline::interleaved};

inline constexpr Names<Lowering, 2> lowerings = {{{Lowering::llvm, "llvm"}, {Lowering::comgr, "comgr"}}};
inline constexpr Names<OutputStore, 2> output_stores = {
    {{OutputStore::permlane, "permlane"}, {OutputStore::scalar, "scalar"}}};
inline constexpr Names<Pipeline, 3> pipelines = {
    {{Pipeline::generic, "generic"}, {Pipeline::dualwave, "dualwave"}, {Pipeline::interleaved, "interleaved"}}};

inline std::string_view to_text(Lowering lowering) { return name_in(lowerings, lowering); }
inline std::string_view to_text(OutputStore store) { return name_in(output_stores, store); }
inline std::string_view to_text(Pipeline pipeline) { return name_in(pipelines, pipeline); }

// Of keys, that a call or an option may ask for.
inline constexpr std::int32_t max_splits = 0xFFFF;

struct Toggles {
  std::optional<OutputStore> output_store = std::nullopt;  // nothing: the target's own
  Lowering lowering = Lowering::llvm;
  std::optional<Pipeline> pipeline = std::nullopt;  // nothing: by target and query length
  // Of the dual-wave pipeline; others have neither.
  bool stagger = true;
  bool raised_priority = true;
  // What a developer pins, in options only and behind the pipeline's name: "dualwave ladder=early". `wavejit tune`
  // tries it (docs/tune.md). 0, empty: what the family prefers.
  int tile_queries = 0;
  std::optional<bool> paired_tiles = std::nullopt;  // two query tiles a workgroup
  std::string ladder =
      {};  // NOLINT(readability-redundant-member-init): with it, an initializer warns of no missing field

  // From here on launch arguments, no code.
  bool lazy_rescale = true;  // off: sums follow a row's maximum at once
  // Heads of one kv head on one die. Nothing: where several heads share one and the dies divide them (a guess: K and V
  // then stay in one die's L2; the published remap lost on causal masks, but it moved query tiles too).
  std::optional<bool> xcd_swizzle = std::nullopt;
  std::optional<std::int32_t> kv_splits = std::nullopt;  // of calls that do not say; nothing: auto

  bool pins() const { return pipeline.has_value() || tile_queries != 0 || paired_tiles.has_value() || !ladder.empty(); }
};

}  // namespace wavejit::families
