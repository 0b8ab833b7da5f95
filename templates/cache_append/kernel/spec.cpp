// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/cache_append/kernel/spec.h"

#include <span>

#include "targets/targets.h"
#include "templates/attention/kernel/coverage.h"

namespace wavejit::cache_append {

namespace {

// What a cache may hold on a target.
std::optional<std::string> cache_refusal(const AppendKernel& spec, const targets::Target& target) {
  const std::string cache = "cache=" + std::string(to_text(spec.cache));
  if (!is_narrow(spec.cache)) {
    if (spec.cache != spec.source)
      return cache + " of " + std::string(to_text(spec.source)) +
             "; accepted: cache=" + std::string(to_text(spec.source)) + ", and types of 8 bits";
    if (spec.scales != Scales::none) return cache + " with scales; accepted: scales of 8 bits";
    return std::nullopt;
  }
  if (!attention::reads(target, spec.cache)) {
    std::string accepted;
    for (const auto& [type, name] : attention::data_types)
      if (is_narrow(type) && attention::reads(target, type)) accepted += ", " + std::string(name);
    return cache + " on " + std::string(target.id) + "; accepted: " + accepted.substr(2);
  }
  if (spec.scales == Scales::none)
    return cache + " without scales; accepted: " + families::all_of(scale_names, "scales=");
  if (!in_rows(spec.scales)) return std::nullopt;
  if (!has_rows(target))
    return "scales=" + std::string(families::name_in(scale_names, spec.scales)) + ", a latent of " +
           std::to_string(latent_row(spec.scales).latent_dims) + " dims, has no kernel where waves have " +
           std::to_string(target.wave_size) + " lanes, as on " + std::string(target.id) +
           "; accepted: scales=heads, tokens";
  const bool e4m3 = spec.cache == DataType::e4m3 || spec.cache == DataType::e4m3_fnuz;
  if (!e4m3 || spec.source != DataType::bf16 || spec.key_access != Access::vectors ||
      spec.value_access != Access::vectors)
    return cache + " in rows with scales of their own, of " + std::string(to_text(spec.source)) +
           "; accepted: e4m3 of bf16, in vectors";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> refusal_of(const AppendKernel& spec) {
  if (auto unknown = attention::unknown_target(spec.target)) return unknown;
  if (auto refusal = cache_refusal(spec, *targets::find_target(spec.target))) return refusal;
  if ((spec.rotary == Rotary::none) != (spec.angles == Angles::none))
    return spec.rotary == Rotary::none ? "angles without rotary; accepted: rotary=halves or interleaved beside it"
                                       : "rotary without angles; accepted: " + families::all_of(angle_names, "angles=");
  if (spec.queries != Access::none && spec.rotary == Rotary::none)
    return "queries without rotary; accepted: rotary=halves or interleaved beside it";
  return std::nullopt;
}

std::size_t argument_bytes(const AppendKernel& spec) {
  if (spec.angles == Angles::base) return sizeof(BaseArguments);
  return is_narrow(spec.cache) ? sizeof(NarrowArguments) : sizeof(Arguments);
}

std::span<const families::KernelKind> own_kernel_kinds() { return families::only_kernel_kind<AskedWords>(); }

}  // namespace wavejit::cache_append
