// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/hot_loops.h"

#include <algorithm>
#include <format>

#include "analysis/kernel_code.h"
#include "analysis/steady_state.h"
#include "kernels/facts.h"
#include "targets/targets.h"
#include "timing/timing.h"

namespace wavejit::tests {
namespace {

constexpr HotLoop loops[] = {
    {"generic_gfx942",
     "attention_forward bf16 d128 causal lse pipeline=generic tile=128x64 o_store=scalar target=gfx942 lowering=llvm",
     "Four waves share the tiles of K and V in LDS. Reads of a tile, its products, then softmax: nothing overlaps within "
     "a wave."},
    {"few_rows_gfx950",
     "attention_forward bf16 d128 causal lse pipeline=generic tile=32x64 o_store=permlane target=gfx950 lowering=llvm",
     "One wave of 32 rows reads K and V from memory into registers: no barrier, and loads of the next tile between the "
     "products."},
    {"interleaved_gfx942",
     "attention_forward bf16 d128 causal lse pipeline=interleaved tile=128x64 o_store=scalar target=gfx942 "
     "lowering=llvm",
     "The softmax of one tile stands between the matrix instructions of the next."},
    {"dualwave_gfx950",
     "attention_forward bf16 d128 causal lse pipeline=dualwave tile=256x64 o_store=permlane target=gfx950 lowering=llvm",
     "Two groups of waves take turns at the matrix pipe: clusters of matrix instructions, clusters of softmax, a barrier "
     "between, and LDS DMA of the tile after the next."},
    {"pages_gfx942",
     "attention_forward bf16 d128 causal split=1024 paged pipeline=interleaved tile=128x64 o_store=scalar "
     "target=gfx942 lowering=llvm",
     "Decode over pages: page numbers are loaded ahead and become addresses by scalar instructions."},
    {"waves_of_32_gfx1201",
     "attention_forward bf16 d128 causal lse pipeline=generic tile=128x64 o_store=scalar target=gfx1201 lowering=llvm",
     "WMMA of 16 rows by 16 keys, with gfx12's own wait counters."},
    {"latent_gfx950", "attention_latent bf16 d576/512 mask=causal rows=32 pages=none parts target=gfx950 lowering=llvm",
     "512 columns of the output in accumulation registers; keys are read from LDS twice, as K and transposed as V."},
    {"indexer_gfx950", "sparse_scores bf16 heads=32 target=gfx950 lowering=llvm",
     "Scores of all heads by matrix instructions, then the weighted sum of what is above zero."},
    {"gradient_of_queries_gfx950", "attention_backward_dq bf16 d128 mask=causal blocks=2 target=gfx950 lowering=llvm",
     "S and dP again, then dQ: three products of each tile of keys."},
    {"gradient_of_keys_gfx942",
     "attention_backward_dkdv bf16 d128 mask=causal blocks=1 runs=one target=gfx942 lowering=llvm",
     "S and dP again, then dV and dK: four products of each tile of rows."},
};

// Without how far a branch goes: that is the business of the code around the loop.
std::string line_of(std::string text) {
  if (text.starts_with("s_cbranch") || text.starts_with("s_branch")) text.resize(std::min(text.find(' '), text.size()));
  return text + "\n";
}

}  // namespace

std::span<const HotLoop> hot_loops() { return loops; }

std::expected<std::string, std::string> text_of(const HotLoop& loop) {
  const auto spec = families::parse_spec(loop.spec);
  if (!spec) return std::unexpected(spec.error());
  const CompiledKernel kernel = known_kernel(*spec);
  if (!kernel.error.empty()) return std::unexpected(kernel.error);
  const auto code = analysis::KernelCode::read(kernel.code_object);
  if (!code) return std::unexpected(code.error());
  const timing::Timing* const timing = timing::find_timing(*targets::find_target(spec->target()));
  if (timing == nullptr) return std::unexpected("no timing for " + std::string(spec->target()));
  const auto steady = analysis::find_steady_state(*code, *timing);
  if (!steady) return std::unexpected(steady.error());
  const analysis::Counts& counts = steady->counts;
  std::string text = std::format("# {}\n# {}\n", loop.spec, loop.why);
  text += std::format(
      "# One turn: {} instructions, {} of them matrix instructions; {} cycles of the matrix pipe, {} of "
      "the vector issue port.\n",
      steady->path.size(), counts.count(analysis::Kind::matrix), counts.matrix_cycles, counts.port_cycles);
  for (const simgpu::Instruction* instruction : steady->path) text += line_of(code->text(*instruction));
  return text;
}

}  // namespace wavejit::tests
