// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_merge/kernel/spec.h"

#include <array>
#include <span>

#include "targets/targets.h"
#include "templates/attention/kernel/output_scale.h"

namespace wavejit::attention_merge {

namespace {
constexpr auto words = families::texts_of(word_table);
}  // namespace

std::string to_text(const MergeKernel& spec) { return families::text_of_spec(words, spec); }
std::expected<MergeKernel, std::string> parse_spec(std::string_view text) { return families::parse_words(words, text); }

std::optional<std::string> refusal_of(const MergeKernel& spec) {
  const targets::Target* target = targets::find_target(spec.target);
  if (target == nullptr)
    return "target=" + spec.target + " is not in the target table; accepted: " + targets::known_targets();
  if (auto refusal = attention::refusal_of_output(spec.out, *target, "out=")) return refusal;
  if (is_narrow(spec.out)) return std::nullopt;
  if (spec.out != spec.parts && spec.out != DataType::fp32 && spec.parts != DataType::fp32)
    return "out=" + std::string(families::name_in(output_types, spec.out)) + " of parts in " +
           std::string(families::name_in(output_types, spec.parts)) +
           "; accepted: their type, fp32, and types of 8 bits";
  return std::nullopt;
}

std::size_t argument_bytes(const MergeKernel& /*spec*/) { return sizeof(Arguments); }

std::span<const families::KernelKind> own_kernel_kinds() {
  static constexpr std::array kinds = {families::kind_of<MergeKernel, parse_spec>};
  return kinds;
}

}  // namespace wavejit::attention_merge
