// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/softmax_lse/kernel/spec.h"

#include <array>
#include <span>

#include "targets/targets.h"
#include "templates/attention/kernel/canon.h"

namespace wavejit::softmax_lse {

std::string to_text(const KernelSpec& spec) {
  std::string text(KernelSpec::kernel);
  text += " ";
  text += families::name_in(data_types, spec.scores);
  text += " weights=";
  text += families::name_in(data_types, spec.weights);
  text += " rows=";
  text += families::name_in(rows_names, spec.rows);
  text += " access=";
  text += families::name_in(access_names, spec.access);
  text += " target=" + spec.target + " lowering=";
  text += to_text(spec.lowering);
  return text;
}

std::expected<KernelSpec, std::string> parse_spec(std::string_view text) {
  // One text a spec: what to_text prints, word for word.
  for (const targets::Target& target : targets::all_targets())
    for (const auto& [scores, scores_name] : data_types)
      for (const auto& [weights, weights_name] : data_types)
        for (const auto& [rows, rows_name] : rows_names)
          for (const auto& [access, access_name] : access_names)
            for (const auto& [lowering, lowering_name] : families::lowerings) {
              KernelSpec spec = {.scores = scores,
                                 .weights = weights,
                                 .rows = rows,
                                 .access = access,
                                 .target = std::string(target.id),
                                 .lowering = lowering};
              if (to_text(spec) == text) return spec;
            }
  return std::unexpected("kernel spec '" + std::string(text) +
                         "'; accepted: softmax_lse <fp32|fp16|bf16> weights=<fp32|fp16|bf16> "
                         "rows=<resident|streamed> access=<vectors|elements> target=<processor> "
                         "lowering=<llvm|comgr>");
}

std::optional<std::string> refusal_of(const KernelSpec& spec) {
  const targets::Target* target = targets::find_target(spec.target);
  if (target == nullptr)
    return "target=" + spec.target + " is not in the target table; accepted: " + targets::known_targets();
  if (target->wave_size != 64)
    return "target=" + spec.target + " has waves of " + std::to_string(target->wave_size) + " lanes; accepted: 64";
  if (spec.access == Access::elements && spec.scores == DataType::fp32 && spec.weights == DataType::fp32)
    return "access=elements of fp32 tensors; accepted: access=vectors, which takes fp32 rows of every kind";
  return std::nullopt;
}

std::size_t argument_bytes(const KernelSpec&) { return sizeof(Arguments); }

Rows rows_of(std::int64_t keys) {
  return keys <= std::int64_t{tiles_of_workgroup} * attention::tile_keys ? Rows::resident : Rows::streamed;
}

Access access_of(DataType scores, DataType weights, std::int64_t keys, bool unaligned) {
  const bool narrow = scores != DataType::fp32 || weights != DataType::fp32;
  return narrow && (unaligned || keys % 2 != 0) ? Access::elements : Access::vectors;
}

std::span<const families::KernelKind> own_kernel_kinds() {
  static constexpr std::array kinds = {families::kind_of<KernelSpec, parse_spec>};
  return kinds;
}

}  // namespace wavejit::softmax_lse
