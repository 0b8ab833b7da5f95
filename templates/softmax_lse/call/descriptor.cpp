// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The words of a descriptor, one row each, in the order in which they are printed, and what they must say together.
#include "templates/softmax_lse/call/descriptor.h"

#include <algorithm>
#include <string>
#include <utility>

#include "templates/attention/call/described_words.h"

namespace wavejit::softmax_lse {
namespace {

using families::Word;
using families::wrong;
// What words have said so far.
struct Said : ProblemDescriptor {
  bool says_weights = false;
};
using Row = families::DescriptorWord<Said>;
using WordTable = families::DescriptorWords<Said>;

// The weights have the scores' type where no word says another.
Row weights_word() {
  return families::value_word<Said>(
      "weights", "fp32|fp16|bf16|none",
      [](Said& said, const Word& word, std::string_view value) -> Result<void> {
        const auto type = families::value_in(data_types, value);
        if (!type && value != "none")
          return wrong(word, "is not known; accepted: " + families::all_of(data_types, "weights=") + ", weights=none");
        said.weights = type;
        said.says_weights = true;
        return {};
      },
      [](const Said& said) {
        if (said.weights == said.scores) return std::string();
        return std::string(said.weights ? families::name_in(data_types, *said.weights) : "none");
      });
}

WordTable make_rows() {
  return {
      families::name_word<Said>("fp32, fp16, bf16", "a data type (fp32, fp16, bf16)", data_types,
                                [](auto& said) -> auto& { return said.scores; }),
      attention::batch_word<Said>(),
      families::number_word<Said>('h', "h<heads>", 1, max_heads, [](auto& said) -> auto& { return said.heads; }),
      families::number_word<Said>('q', "q<rows>", 1, max_length, [](auto& said) -> auto& { return said.query_length; }),
      families::number_word<Said>('k', "k<keys>", 1, max_length, [](auto& said) -> auto& { return said.key_length; }),
      weights_word(),
      attention::causal_word<Said>(max_length, "row", "keys"),
      attention::window_word<Said>(max_length),
      families::flag_word<Said>("lse", [](auto& said) -> auto& { return said.lse; }),
      attention::lengths_word<Said>("k_lengths", max_length, [](auto& said) -> auto& { return said.key_lengths; }),
      attention::scale_word<Said>(),
      families::flag_word<Said>("unaligned", [](auto& said) -> auto& { return said.unaligned; }),
      attention::seed_word<Said>(),
  };
}

// What the words must say together, and what follows from them.
Result<void> finish(Said& said) {
  if (!said.says_weights) said.weights = said.scores;
  if (!said.weights && !said.lse) return families::refuse_line("weights=none without lse", "lse beside it, or weights");
  if (auto prefix = attention::check_prefix(said.mask, said.key_length); !prefix) return prefix;
  if (auto lengths = attention::check_lengths("k_lengths", said.key_lengths, said.batch, said.key_length); !lengths)
    return lengths;
  // Said by the keys already, or of no kernel.
  const DataType weights = said.weights.value_or(said.scores);
  if (access_of(said.scores, weights, said.key_length, false) == Access::elements ||
      access_of(said.scores, weights, said.key_length, true) == Access::vectors)
    said.unaligned = false;
  return {};
}

using Lines = families::LinesOf<Said, make_rows, finish>;

}  // namespace

SoftmaxShape ProblemDescriptor::shape() const {
  const DataType written = weights.value_or(scores);
  return {{.scores = scores,
           .weights = written,
           .rows = rows_of(key_length),
           .access = access_of(scores, written, key_length, unaligned)}};
}

Result<ProblemDescriptor> parse_descriptor(std::string_view text) { return Lines::read(SoftmaxKernel::family, text); }

std::string to_text(const ProblemDescriptor& descriptor) {
  return Lines::text(SoftmaxKernel::family, Said{descriptor});
}

}  // namespace wavejit::softmax_lse
