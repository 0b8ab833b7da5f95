// What one compiled attention_forward kernel is: the words of a problem that change code, plus what the route chose.
//
// A spec is a value with a canonical text; that text (with target, lowering, generator and LLVM version) is the cache
// key:
//
//   attention_forward fp16 d128 causal lse pipeline=generic tile=128x64 o_store=permlane target=gfx950 lowering=llvm
//
// Sizes that change per request (batch, heads, lengths, strides, scale, pointers) are kernel arguments (arguments.h)
// and never stand here. No LLVM in this header: the runtime and the code generator share it.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "templates/attention_forward/call/modifiers.h"

namespace wavejit::attention_forward {

enum class DataType : std::uint8_t { bf16, fp16 };
// causal: keys up to the row's diagonal. window: keys between two distances from it, either of which may be unlimited
// (a causal window is one with no keys beyond the diagonal).
enum class Mask : std::uint8_t { none, causal, window };
// How O leaves the registers: lane halves swapped so that each lane stores 16 contiguous bytes, or 8-byte pieces.
enum class OutputStore : std::uint8_t { permlane, scalar };
// generic: 4 waves in step, or 1 or 2 for few query rows. dualwave: 8 waves in two groups, one computing while the
// other moves data. interleaved: 4 waves, each with its softmax in the shadow of its own matrix instructions.
enum class Pipeline : std::uint8_t { generic, dualwave, interleaved };
inline constexpr Pipeline all_pipelines[] = {Pipeline::generic, Pipeline::dualwave, Pipeline::interleaved};
// Who turns the IR into machine code: the LLVM inside libwavejit_codegen.so, or the installed ROCm's comgr.
enum class Lowering : std::uint8_t { llvm, comgr };

struct KernelSpec {
  DataType dtype = DataType::fp16;
  int head_dim_qk = 128;
  int head_dim_v = 128;
  Mask mask = Mask::none;
  bool lse = false;
  // What scores pass through before the mask: rows of modifiers.h that change code.
  Modifiers modifiers = {};  // NOLINT(readability-redundant-member-init): for initializers
  // 0, or: keys are cut at multiples of so many keys, counted from key 0, and a workgroup leaves partial results in the
  // workspace (attention_combine merges them). A multiple of tile_keys.
  int split_keys = 0;
  Pipeline pipeline = Pipeline::generic;
  int tile_queries = 128;  // query rows a workgroup owns
  int tile_keys = 64;      // canonical arithmetic fixes 64 (docs/canonical-arithmetic.md)
  OutputStore output_store = OutputStore::scalar;
  std::string target;  // processor name: a row of the target table
  Lowering lowering = Lowering::llvm;
  // pipeline=dualwave only; neither shows in results. Written only when off: "stagger=off setprio=off".
  bool stagger = true;          // the second group of waves runs one cluster behind
  bool raised_priority = true;  // s_setprio around the clusters that compute most
  // A name in ladders.h, empty for the standard one, which has no word. Shows in no result either: for developers.
  // NOLINTNEXTLINE(readability-redundant-member-init): with it, an initializer warns of no missing field
  std::string ladder = {};

  // Scores are modified: softmax then works on s · c + modifiers instead of raw scores (docs/canonical-arithmetic.md).
  bool modified() const { return modifiers.any(); }
  bool has(Modifier modifier) const { return modifiers.has(modifier); }

  bool operator==(const KernelSpec&) const = default;
};

// Canonical text: one line, words in a fixed order. parse_spec(to_text(spec)) == spec.
std::string to_text(const KernelSpec& spec);
// The error names the word, its position and what is accepted. Words may come in any order; none may be missing or
// twice.
std::expected<KernelSpec, std::string> parse_spec(std::string_view text);

std::string_view to_text(DataType dtype);
std::string_view to_text(OutputStore store);
std::string_view to_text(Pipeline pipeline);
std::string_view to_text(Lowering lowering);

}  // namespace wavejit::attention_forward
