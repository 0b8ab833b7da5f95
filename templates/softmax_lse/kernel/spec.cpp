// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/softmax_lse/kernel/spec.h"

#include <array>
#include <span>

#include "targets/targets.h"
#include "templates/attention/kernel/canon.h"

namespace wavejit::softmax_lse {

namespace {
constexpr auto words = families::texts_of(word_table);
}  // namespace

std::string to_text(const SoftmaxKernel& spec) { return families::text_of_spec(words, spec); }
std::expected<SoftmaxKernel, std::string> parse_spec(std::string_view text) {
  return families::parse_words(words, text);
}

std::optional<std::string> refusal_of(const SoftmaxKernel& spec) {
  const targets::Target* target = targets::find_target(spec.target);
  if (target == nullptr)
    return "target=" + spec.target + " is not in the target table; accepted: " + targets::known_targets();
  if (spec.access == Access::elements && spec.scores == DataType::fp32 && spec.weights == DataType::fp32)
    return "access=elements of fp32 tensors; accepted: access=vectors, which takes fp32 rows of every kind";
  return std::nullopt;
}

std::size_t argument_bytes(const SoftmaxKernel&) { return sizeof(Arguments); }

Rows rows_of(std::int64_t keys) {
  return keys <= std::int64_t{tiles_of_workgroup} * attention::tile_keys ? Rows::resident : Rows::streamed;
}

Access access_of(DataType scores, DataType weights, std::int64_t keys, bool unaligned) {
  const bool narrow = scores != DataType::fp32 || weights != DataType::fp32;
  return narrow && (unaligned || keys % 2 != 0) ? Access::elements : Access::vectors;
}

std::span<const families::KernelKind> own_kernel_kinds() {
  static constexpr std::array kinds = {families::kind_of<SoftmaxKernel, parse_spec>};
  return kinds;
}

}  // namespace wavejit::softmax_lse
