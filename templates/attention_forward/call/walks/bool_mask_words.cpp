// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/call/walks/bool_mask_words.h"

#include <string>
#include <string_view>

#include "families/kernel/names.h"
#include "templates/attention_forward/call/walks/bool_mask.h"

namespace wavejit::attention_forward {
namespace {

constexpr families::Names<attention::Extent, 4> mask_extents = {{{attention::Extent::one, "1"},
                                                                 {attention::Extent::head, "h"},
                                                                 {attention::Extent::batch, "b"},
                                                                 {attention::Extent::batch_and_head, "bh"}}};

}  // namespace

families::DescriptorWord<ProblemDescriptor> bool_mask_word() {
  return families::value_word<ProblemDescriptor>(
      "bool_mask", "1|h|b|bh",
      [](ProblemDescriptor& said, const families::Word& word, std::string_view value) -> Result<void> {
        const auto extent = families::value_in(mask_extents, value);
        if (!extent)
          return families::wrong(word, "is not known; accepted: " + families::all_of(mask_extents, "bool_mask="));
        said.bool_mask = *extent;
        said.shape.bool_mask = said.shape.block_lists = true;
        return {};
      },
      [](const ProblemDescriptor& said) {
        return said.bool_mask == attention::Extent::none ? std::string()
                                                         : std::string(families::name_in(mask_extents, said.bool_mask));
      });
}

Result<void> finish_bool_mask(const ProblemDescriptor& said) {
  if (const auto beside = beside_bool_mask(said.shape, said.lists.rows != 0, said.shape.listed))
    return fail(WAVEJIT_UNSUPPORTED, "descriptor: bool_mask beside " + beside->text());
  return {};
}

Result<void> finish_bias_by_tile(const ProblemDescriptor& said) {
  if (!said.of(Modifier::bias).there)
    return fail(WAVEJIT_INVALID_ARGUMENT, "descriptor: bias_by_tile without a bias; accepted: bias=bh|b|h|1 beside it");
  if (const auto beside = beside_bias_by_tile(said.shape, said.lists.rows != 0, said.shape.listed))
    return fail(WAVEJIT_UNSUPPORTED, "descriptor: bias_by_tile beside " + beside->text());
  return {};
}

}  // namespace wavejit::attention_forward
