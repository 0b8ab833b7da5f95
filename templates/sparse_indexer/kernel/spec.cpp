// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/sparse_indexer/kernel/spec.h"

#include <algorithm>
#include <array>
#include <span>

#include "targets/targets.h"
#include "templates/attention/kernel/cache_encoding.h"
#include "templates/attention/kernel/coverage.h"

namespace wavejit::sparse_indexer {

namespace {

constexpr auto words_of_scores = families::texts_of(scores_words);
constexpr auto words_of_select = families::texts_of(select_words);

}  // namespace

std::string to_text(const ScoresKernel& spec) { return families::text_of_spec(words_of_scores, spec); }
std::string to_text(const SelectKernel& spec) { return families::text_of_spec(words_of_select, spec); }

std::expected<ScoresKernel, std::string> parse_scores(std::string_view text) {
  return families::parse_words(words_of_scores, text);
}
std::expected<SelectKernel, std::string> parse_select(std::string_view text) {
  return families::parse_words(words_of_select, text);
}

std::optional<std::string> refusal_of(const ScoresKernel& spec) {
  if (auto refusal = attention::target_refusal(spec.target, attention::Need::square_of_32, family_name)) return refusal;
  const targets::Target& target = *targets::find_target(spec.target);
  if (spec.widens() && attention::encoding_of(spec.type) != target.fp8)
    return std::string(attention::to_text(spec.type)) + ": " + attention::reads_other_encoding(spec.type, target) +
           "; accepted: bf16, fp16" +
           (target.fp8 == targets::Fp8::none   ? ""
            : target.fp8 == targets::Fp8::fnuz ? ", e4m3_fnuz"
                                               : ", e4m3");
  const auto element = spec.type == DataType::fp16 ? targets::Element::fp16 : targets::Element::bf16;
  const auto& matrix = target.matrix;
  if (std::ranges::none_of(matrix, [&](const targets::MatrixInstruction& row) {
        return row.m == block_heads && row.n == tile_keys && row.element == element;
      }))
    return "target=" + spec.target + " has no matrix instruction of 32x32 for " +
           std::string(attention::to_text(spec.type));
  return std::nullopt;
}
std::optional<std::string> refusal_of(const SelectKernel& spec) {
  return attention::target_refusal(spec.target, attention::Need::waves_of_64, family_name);
}

std::size_t argument_bytes(const ScoresKernel&) { return sizeof(ScoresArguments); }
std::size_t argument_bytes(const SelectKernel&) { return sizeof(SelectArguments); }

std::span<const families::KernelKind> own_kernel_kinds() {
  static constexpr std::array kinds = {families::kind_of<ScoresKernel, parse_scores>,
                                       families::kind_of<SelectKernel, parse_select>};
  return kinds;
}

}  // namespace wavejit::sparse_indexer
