// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The words of a descriptor, one row each, in the order in which they are printed, and what they must say together.
#include <algorithm>
#include <string>

#include "templates/attention/call/described_words.h"
#include "templates/attention/call/tensors.h"
#include "templates/attention_backward/call/descriptor.h"
#include "templates/attention_backward/call/sums.h"
#include "templates/attention_backward/kernel/words.h"

namespace wavejit::attention_backward {
namespace {

using families::Word;
using families::wrong;
using Row = families::DescriptorWord<ProblemDescriptor>;
using Rows = families::DescriptorWords<ProblemDescriptor>;
using Said = ProblemDescriptor;

Row layout_word() {
  return families::value_word<Said>(
      "layout", "bshd|bhsd|packed",
      [](Said& said, const Word& word, std::string_view value) -> Result<void> {
        const auto layout = families::value_in(layouts, value);
        if (!layout) return wrong(word, "is not known; accepted: " + families::all_of(layouts, "layout="));
        said.layout = *layout;
        return {};
      },
      [](const Said& said) {
        return said.layout == Layout::bshd ? std::string() : std::string(families::name_in(layouts, said.layout));
      });
}

Row wide_bias_gradient_word() {
  return families::value_word<Said>(
      "d_bias", "fp32",
      [](Said& said, const Word& word, std::string_view value) -> Result<void> {
        if (value != "fp32") return wrong(word, "is not known; accepted: d_bias (in the type of q), d_bias=fp32");
        said.d_bias_fp32 = true;
        return {};
      },
      [](const Said& said) { return std::string(said.d_bias_fp32 ? "fp32" : ""); });
}

template <typename Field>
Row sums_word(const std::string& key, Field field) {
  return families::value_word<Said>(
      key, "dq|dk_dv|dq,dk_dv",
      [field](Said& said, const Word& word, std::string_view value) -> Result<void> {
        const auto sums = sums_of_text(value);
        if (!sums) return wrong(word, "is not known; accepted behind '=': dq, dk_dv, dq,dk_dv");
        field(said) = *sums;
        return {};
      },
      [field](const Said& said) { return text_of_sums(field(said)); });
}

Rows make_rows() {
  Rows rows = {
      attention::operand_type_word<Said>([](auto& said) -> auto& { return said.asked.dtype; }),
      attention::batch_word<Said>(),
      attention::query_length_word<Said>(max_length),
      attention::key_length_word<Said>(max_length),
      attention::heads_word<Said>(),
      families::pair_word<Said>(
          'd', "d<head dim>", max_head_dim, [](auto& said) -> auto& { return said.asked.head_dim_qk; },
          [](auto& said) -> auto& { return said.asked.head_dim_v; }),
      attention::causal_word<Said>(max_length, "query", "key length"),
      attention::window_word<Said>(max_length),
      layout_word(),
      attention::lengths_word<Said>("q_lengths", max_length, [](auto& said) -> auto& { return said.query_lengths; }),
      attention::lengths_word<Said>("k_lengths", max_length, [](auto& said) -> auto& { return said.key_lengths; }),
      attention::scale_word<Said>(),
  };
  for (const Modifier modifier : attention::described_modifiers)
    if (attention::row_of(modifier).in_code) rows.push_back(attention::modifier_word<Said>(modifier));
  rows.push_back(families::flag_word<Said>("d_lse", [](auto& said) -> auto& { return said.d_lse; }));
  rows.push_back(families::flag_word<Said>("d_sink", [](auto& said) -> auto& { return said.d_sink; }));
  rows.push_back(families::flag_word<Said>("d_bias", [](auto& said) -> auto& { return said.d_bias; }));
  rows.push_back(wide_bias_gradient_word());
  rows.push_back(families::flag_word<Said>("delta", [](auto& said) -> auto& { return said.delta; }));
  for (const auto& word : spec_words<QueryKernel>)
    if (word.described)
      rows.push_back(attention::spec_word<Said>(word, [](auto& said) -> auto& { return said.asked; }));
  rows.push_back(sums_word("sums_before", [](auto& said) -> auto& { return said.sums_before; }));
  rows.push_back(sums_word("sums_behind", [](auto& said) -> auto& { return said.sums_behind; }));
  rows.push_back(attention::seed_word<Said>());
  return rows;
}

// What the words must say together.
Result<void> finish(const Said& said) {
  if (said.query_heads % said.kv_heads != 0)
    return families::refuse_line("h" + std::to_string(said.query_heads) + "/" + std::to_string(said.kv_heads),
                                 "kv heads that divide the query heads");
  if (!attention::has_code(said.asked.head_dims()))
    return std::unexpected(attention::head_dims_without_code(said.asked.head_dims()));
  if (auto good = attention::check_prefix(said.mask, said.key_length); !good) return good;
  const bool packed = said.layout == Layout::packed;
  if (!said.query_lengths.empty() && !packed)
    return families::refuse_line("q_lengths without layout=packed", "layout=packed beside it");
  if (auto good = attention::check_lengths("q_lengths", said.query_lengths, said.batch, said.query_length, true); !good)
    return good;
  if (auto good = attention::check_lengths("k_lengths", said.key_lengths, said.batch, said.key_length, packed); !good)
    return good;
  const bool gradient = said.d_bias || said.d_bias_fp32;
  if ((gradient || said.asked.bias_fp32) && !said.of(Modifier::bias).there)
    return families::refuse_line("d_bias or bias_type without a bias", "bias=bh|b|h|1 beside it");
  if (said.d_bias && said.d_bias_fp32) return families::refuse_line("d_bias beside d_bias=fp32", "one of them");
  if (said.delta && said.asked.output_fp32)
    return families::refuse_line("delta beside o=fp32", "one of them: a delta stands in the place of o");
  if ((said.sums_before | said.sums_behind) != 0 && !said.asked.gradients_fp32)
    return families::refuse_line(said.sums_before != 0 ? "sums_before" : "sums_behind",
                                 "gradients=fp32 beside it: sums are fp32");
  return {};
}

using Lines = families::LinesOf<Said, make_rows, finish>;

}  // namespace

Result<ProblemDescriptor> parse_descriptor(std::string_view text) { return Lines::read(family_name, text); }

std::string to_text(const ProblemDescriptor& descriptor) { return Lines::text(family_name, descriptor); }

}  // namespace wavejit::attention_backward
