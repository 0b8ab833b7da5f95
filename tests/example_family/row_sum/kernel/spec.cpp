// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/example_family/row_sum/kernel/spec.h"

#include <array>
#include <span>
#include <tuple>

#include "families/kernel/spec_words.h"
#include "targets/targets.h"

namespace wavejit::row_sum {

namespace {
// Text, parser and lists of what is accepted come from these rows, in the order of the text.
constexpr auto words = families::texts_of(std::tuple{
    families::named<&RowSumKernel::dtype, data_types, RowSumKernel>(
        {.accepted = "fp32, fp16", .missing = "data type (fp32 or fp16)", .supported = "dtypes"}),
    families::target_word<RowSumKernel>(),
    families::lowering_word<RowSumKernel>(),
});
}  // namespace

std::string to_text(const RowSumKernel& spec) { return families::text_of_spec(words, spec); }
std::expected<RowSumKernel, std::string> parse_spec(std::string_view text) {
  return families::parse_words(words, text);
}

// Every target of the table has what it takes.
std::optional<std::string> refusal_of(const RowSumKernel& spec) {
  if (targets::find_target(spec.target) != nullptr) return std::nullopt;
  return "target=" + spec.target + " is not in the target table; accepted: " + targets::known_targets();
}

std::size_t argument_bytes(const RowSumKernel&) { return sizeof(Arguments); }

std::span<const families::KernelKind> own_kernel_kinds() {
  static constexpr std::array kinds = {families::kind_of<RowSumKernel, parse_spec>};
  return kinds;
}

}  // namespace wavejit::row_sum
