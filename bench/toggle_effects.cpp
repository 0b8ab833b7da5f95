// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "toggle_effects.h"

#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <string_view>

#include "outside_kernels.h"
#include "steady_run.h"
#include "targets/targets.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::bench {
namespace {

using attention_forward::ForwardKernel;
using attention_forward::Pipeline;

constexpr int keys = 2048;

ForwardKernel fastest(std::string_view target, int head_dim) {
  const targets::Target& row = *targets::find_target(target);
  ForwardKernel spec;
  spec.target = target;
  spec.dtype = attention_forward::DataType::bf16;
  spec.head_dim_qk = spec.head_dim_v = head_dim;
  spec.pipeline = attention_forward::default_pipeline(row, attention_forward::QueryRows::more);
  spec.tile_queries = attention_forward::default_tile_queries(row, spec.pipeline, attention_forward::QueryRows::more,
                                                              {head_dim, head_dim});
  spec.output_store = attention_forward::default_output_store(row);
  return spec;
}

std::optional<SteadyRun> run(const SteadyRequest& request) {
  auto result = run_steady(request);
  if (result) return std::move(*result);
  fmt::print(stderr, "{}: {}\n", to_text(request.spec), result.error());
  return std::nullopt;
}

// What is left of the throughput at the power limit, where a GPU whose pipes idle clocks higher.
std::string throughput_at_cap(const ForwardKernel& spec, const SteadyRun& on, const SteadyRun& off) {
  const auto rate = [&](const SteadyRun& each) -> std::optional<double> {
    const auto ghz = clock_at_cap(spec.target, each.tile_matrix_cycles() / each.tile_cycles());
    return ghz ? std::optional(*ghz / each.tile_cycles()) : std::nullopt;
  };
  const auto before = rate(on);
  const auto after = rate(off);
  return before && after ? fmt::format("{:+.1f} %", 100 * (*after / *before - 1)) : "not known";
}

std::string row(std::string_view toggle, const ForwardKernel& spec, const SteadyRun& on, const SteadyRun& off,
                std::string_view published) {
  return fmt::format("| {} | {} {} d{} | {:.0f} | {:.0f} | {:+.1f} % | {} | {} |\n", toggle, spec.target,
                     to_text(spec.pipeline), spec.head_dim_qk, on.tile_cycles(), off.tile_cycles(),
                     100 * (off.tile_cycles() - on.tile_cycles()) / on.tile_cycles(), throughput_at_cap(spec, on, off),
                     published);
}

}  // namespace

std::string toggle_effects() {
  std::string text = fmt::format(
      "\n## Toggles\n\n"
      "bf16, {} keys, no mask: cycles of a compute unit for a tile of 64 keys, with what is named and without it.\n\n"
      "| what | kernel | with | without | without it takes | throughput at the power limit | published |\n"
      "|---|---|---|---|---|---|---|\n",
      keys);
  std::string stagger;
  for (const auto& [target, head_dim] : {std::pair("gfx950", 128), std::pair("gfx950", 64), std::pair("gfx942", 128)}) {
    const ForwardKernel spec = fastest(target, head_dim);
    const auto plain = run({.spec = spec, .keys = keys});
    const auto growing = run({.spec = spec, .keys = keys, .growing_scores = true});
    const auto apart = run({.spec = spec, .keys = keys, .common_head = false});
    if (!plain || !growing || !apart) return {};
    if (spec.pipeline == Pipeline::dualwave) {
      ForwardKernel toggled = spec;
      toggled.stagger = false;
      const auto in_step = run({.spec = toggled, .keys = keys});
      toggled = spec;
      toggled.raised_priority = false;
      const auto equal = run({.spec = toggled, .keys = keys});
      if (!in_step || !equal) return {};
      text += row("stagger", spec, *plain, *in_step,
                  "FlyDSL's kernel, head dim 128: −15 % of throughput, +38 % of cycles by the law of the power limit; "
                  "phases of a GEMM's two groups, 256 x 256: 2.5 to 4.8 % (TLX, MI350)");
      text += row("setprio around softmax's cluster", spec, *plain, *equal,
                  "helps around softmax; costs 0.5 to 1.9 % around plain matrix runs");
      stagger +=
          fmt::format("| d{} | {:.0f} | {:.0f} | {:.0f} | {:.0f} | {:.0f} |\n", head_dim, in_step->tile_matrix_cycles(),
                      in_step->tile_lds_cycles(), in_step->tile_matrix_cycles() + in_step->tile_lds_cycles(),
                      in_step->tile_cycles(), plain->tile_cycles());
    }
    text += row("lazy rescale (against scores that make every tile rescale)", spec, *plain, *growing,
                "FlyDSL's kernel: +39 % (thread traces of MI355X), AMD's: +11.5 %");
    text += row("workgroups of a die at one head (XCD swizzle; against a head each)", spec, *plain, *apart,
                "2 to 7 % for sharers of K and V on one die; not for causal masks, where it cost 7.4 %");
  }
  text +=
      "\n### What the stagger is worth\n\n"
      "With both groups in step, every wave of the compute unit reads LDS at once and multiplies at once, "
      "with a barrier of all between. So the times of both phases add up: a tile takes the sum, or more. "
      "The published loss is 15 % of throughput, at a power limit where idle pipes raise the clock: "
      "by the law of that limit 38 % of cycles. The clock says more than that for [FlyDSL's own "
      "kernel](#flydsls-dual-wave-attention), too: between the phases whose times it adds up, the GPU hides something.\n\n"
      "| kernel | matrix pipe | LDS banks | sum | in step, predicted | staggered, predicted |\n"
      "|---|---|---|---|---|---|\n" +
      stagger;
  return text;
}

}  // namespace wavejit::bench
