// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/cache_append/kernel/spec.h"

#include <array>
#include <span>

#include "targets/targets.h"

namespace wavejit::cache_append {

namespace {
constexpr auto words = families::texts_of(word_table);
}  // namespace

std::string to_text(const AppendKernel& spec) { return families::text_of_spec(words, spec); }
std::expected<AppendKernel, std::string> parse_spec(std::string_view text) {
  return families::parse_words(words, text);
}

std::optional<std::string> refusal_of(const AppendKernel& spec) {
  const targets::Target* target = targets::find_target(spec.target);
  if (target == nullptr)
    return "target=" + spec.target + " is not in the target table; accepted: " + targets::known_targets();
  if (target->wave_size != 64)
    return "target=" + spec.target + " has waves of " + std::to_string(target->wave_size) + " lanes; accepted: 64";
  if (spec.cache != spec.source)
    return "cache=" + std::string(to_text(spec.cache)) + " of " + std::string(to_text(spec.source)) +
           "; accepted: cache=" + std::string(to_text(spec.source));
  if ((spec.rotary == Rotary::none) != (spec.angles == Angles::none))
    return spec.rotary == Rotary::none ? "angles without rotary; accepted: rotary=halves or interleaved beside it"
                                       : "rotary without angles; accepted: " + families::all_of(angle_names, "angles=");
  if (spec.queries != Access::none && spec.rotary == Rotary::none)
    return "queries without rotary; accepted: rotary=halves or interleaved beside it";
  return std::nullopt;
}

std::size_t argument_bytes(const AppendKernel& spec) {
  return spec.angles == Angles::base ? sizeof(BaseArguments) : sizeof(Arguments);
}

std::span<const families::KernelKind> own_kernel_kinds() {
  static constexpr std::array kinds = {families::kind_of<AppendKernel, parse_spec>};
  return kinds;
}

}  // namespace wavejit::cache_append
