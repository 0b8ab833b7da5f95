// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/kernel/walks/mask_lists/spec.h"

#include <tuple>

#include "families/kernel/spec_words.h"
#include "targets/targets.h"
#include "templates/attention/kernel/coverage.h"
#include "templates/attention_forward/kernel/walks/mask_lists/arguments.h"

namespace wavejit::attention_mask_lists {
namespace {

using Word = families::SpecWord<MaskListsKernel>;

constexpr auto words = families::texts_of(std::tuple{
    families::named<&MaskListsKernel::elements, attention::wide_types, MaskListsKernel>(
        {.accepted = "bias=",
         .otherwise = "bytes of a bool mask have no word",
         .name_of =
             [](const Word&, const MaskListsKernel& spec) {
               return spec.reads_bias() ? "bias_" + std::string(attention::to_text(spec.elements)) : std::string();
             }}),
    families::target_word<MaskListsKernel>(),
    families::lowering_word<MaskListsKernel>(),
});

}  // namespace

std::string to_text(const MaskListsKernel& spec) { return families::text_of_spec(words, spec); }
std::expected<MaskListsKernel, std::string> parse_spec(std::string_view text) {
  return families::parse_words(words, text);
}
std::string kernel_name(const MaskListsKernel& spec) { return families::name_of_kernel(words, spec); }

std::size_t argument_bytes(const MaskListsKernel&) { return sizeof(Arguments); }

std::optional<std::string> refusal_of(const MaskListsKernel& spec) {
  const targets::Target* target = targets::find_target(spec.target);
  if (target == nullptr)
    return "target=" + spec.target + " is not in the target table; accepted: " + targets::known_targets();
  return attention::lacks_kernels(*target, attention::Need::waves_of_64, MaskListsKernel::kernel);
}

MaskListsKernel mask_of(const attention_forward::ForwardKernel& walker) {
  return {.elements = walker.bias_by_tile ? walker.bias_type() : attention::DataType::i8,
          .target = walker.target,
          .lowering = walker.lowering};
}

}  // namespace wavejit::attention_mask_lists
