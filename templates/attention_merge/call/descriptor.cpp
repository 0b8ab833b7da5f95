// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The words of a descriptor, one row each, in the order in which they are printed, and what they must say together.
#include "templates/attention_merge/call/descriptor.h"

#include <string>
#include <utility>

#include "templates/attention/call/described_words.h"

namespace wavejit::attention_merge {
namespace {

using families::Word;
using families::wrong;

// What words have said so far.
struct Said : ProblemDescriptor {
  bool says_out = false;
};
using Row = families::DescriptorWord<Said>;
using WordTable = families::DescriptorWords<Said>;

Row parts_word() {
  Row row = families::value_word<Said>(
      "parts", "<n>",
      [](Said& said, const Word& word, std::string_view value) -> Result<void> {
        const auto count = families::sized_number(word, value, 1, max_parts);
        if (!count) return std::unexpected(count.error());
        said.count = *count;
        return {};
      },
      [](const Said& said) { return std::to_string(said.count); });
  row.missing = "parts=<n>";
  return row;
}

Row out_word() {
  return families::value_word<Said>(
      "out", "<bf16|fp16|fp32|e4m3|e4m3_fnuz|i8>",
      [](Said& said, const Word& word, std::string_view value) -> Result<void> {
        const auto named = families::value_in(output_types, value);
        if (!named) return wrong(word, "is not known; accepted: " + families::all_of(output_types, "out="));
        said.out = *named;
        said.says_out = true;
        return {};
      },
      [](const Said& said) {
        return said.out == said.parts ? std::string() : std::string(families::name_in(output_types, said.out));
      });
}

WordTable make_rows() {
  return {
      families::name_word<Said>("bf16, fp16, fp32", "a data type of the parts (bf16, fp16, fp32)", part_types,
                                [](auto& said) -> auto& { return said.parts; }),
      attention::batch_word<Said>(),
      families::number_word<Said>('q', "q<tokens>", 1, max_tokens, [](auto& said) -> auto& { return said.tokens; }),
      families::number_word<Said>('h', "h<heads>", 1, max_heads, [](auto& said) -> auto& { return said.heads; }),
      families::number_word<Said>('d', "d<dims>", 1, max_dims, [](auto& said) -> auto& { return said.dims; }),
      parts_word(),
      out_word(),
      families::flag_word<Said>("stacked", [](auto& said) -> auto& { return said.stacked; }),
      families::flag_word<Said>("lse", [](auto& said) -> auto& { return said.lse; }),
      families::flag_word<Said>("empty", [](auto& said) -> auto& { return said.empty; }),
      attention::seed_word<Said>(),
  };
}

// What the words must say together, and what follows from them.
Result<void> finish(Said& said) {
  if (!said.says_out) said.out = said.parts;
  if (said.dims % dims_of_lane != 0) return families::refuse_line("d" + std::to_string(said.dims), "multiples of 8");
  if (said.batch > max_tokens / said.tokens) return families::refuse_line("b · q beyond 2^31 - 1", "fewer tokens");
  if (!said.stacked && std::cmp_greater(said.count, max_stacks))
    return families::refuse_line("parts=" + std::to_string(said.count) + " in tensors of their own",
                                 "up to " + std::to_string(max_stacks) + ", more with stacked");
  if (said.stacked && said.count == 1)
    return families::refuse_line("stacked with one part", "parts=2 and more beside it");
  return {};
}

using Lines = families::LinesOf<Said, make_rows, finish>;

}  // namespace

Result<ProblemDescriptor> parse_descriptor(std::string_view text) { return Lines::read(MergeKernel::family, text); }

std::string to_text(const ProblemDescriptor& descriptor) { return Lines::text(MergeKernel::family, Said{descriptor}); }

}  // namespace wavejit::attention_merge
