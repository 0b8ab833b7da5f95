// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The words of a descriptor, one row each, in the order in which they are printed, and what they must say together.
#include "templates/sparse_indexer/call/descriptor.h"

#include <algorithm>
#include <string>
#include <utility>

#include "templates/attention/call/described_words.h"

namespace wavejit::sparse_indexer {
namespace {

using families::TakenWord;
using families::Word;
using families::wrong;
using Row = families::DescriptorWord<ProblemDescriptor>;
using WordTable = families::DescriptorWords<ProblemDescriptor>;

constexpr std::string_view types_said = "bf16, fp16, e4m3, e4m3_fnuz, fp32 (scores are given)";

// Which encoding "fp8" would be, nobody says; and no published indexer has e5m2.
Row type_word() {
  static constexpr families::Names<DataType, 5> names = {
      {key_types[0], key_types[1], key_types[2], key_types[3], {DataType::fp32, "fp32"}}};
  Row row = families::name_word<ProblemDescriptor>(std::string(types_said),
                                                   "a data type (bf16, fp16, e4m3, e4m3_fnuz, or fp32 of given scores)",
                                                   names, [](auto& said) -> auto& { return said.type; });
  row.take = [take = std::move(row.take)](ProblemDescriptor& said, const Word& word) -> TakenWord {
    if (word.text == "fp8") return wrong(word, "names no encoding of 8 bits; accepted: " + std::string(types_said));
    if (word.text == "e5m2" || word.text == "e5m2_fnuz") return families::not_yet(word, types_said);
    return take(said, word);
  };
  return row;
}

Row heads_word() {
  Row row =
      families::number_word<ProblemDescriptor>('h', "", 1, max_heads, [](auto& said) -> auto& { return said.heads; });
  row.text = [](const ProblemDescriptor& said) {
    return said.heads == 0 ? std::string() : "h" + std::to_string(said.heads);
  };
  return row;
}

// A number behind a key; 0 is not said.
template <typename Field>
Row sized_word(const std::string& key, std::int64_t most, Field field) {
  return families::value_word<ProblemDescriptor>(
      key, "<n>",
      [most, field](ProblemDescriptor& said, const Word& word, std::string_view value) -> Result<void> {
        const auto number = families::whole_number(value);
        if (!number || *number < 1 || *number > most)
          return wrong(word, "is no number that is accepted: 1 to " + std::to_string(most));
        field(said) = *number;
        return {};
      },
      [field](const ProblemDescriptor& said) {
        return field(said) == 0 ? std::string() : std::to_string(field(said));
      });
}

WordTable make_rows() {
  return {
      type_word(),
      attention::batch_word<ProblemDescriptor>(),
      families::number_word<ProblemDescriptor>('q', "q<rows>", 1, attention::max_length,
                                               [](auto& said) -> auto& { return said.query_length; }),
      families::number_word<ProblemDescriptor>('k', "k<keys>", 1, max_keys,
                                               [](auto& said) -> auto& { return said.key_length; }),
      heads_word(),
      sized_word("page", attention::max_page_size, [](auto& said) -> auto& { return said.page_size; }),
      families::flag_word<ProblemDescriptor>("key_scales", [](auto& said) -> auto& { return said.key_scales; }),
      sized_word("top", max_top_k, [](auto& said) -> auto& { return said.top_k; }),
      families::flag_word<ProblemDescriptor>("scores", [](auto& said) -> auto& { return said.scores; }),
      attention::causal_word<ProblemDescriptor>(max_keys, "row", "keys"),
      attention::window_word<ProblemDescriptor>(max_keys),
      attention::lengths_word<ProblemDescriptor>("k_lengths", max_keys,
                                                 [](auto& said) -> auto& { return said.key_lengths; }),
      attention::seed_word<ProblemDescriptor>(),
  };
}

// What the words must say together, and what follows from them.
Result<void> finish(ProblemDescriptor& said) {
  if (said.type == DataType::fp32) {
    if (said.heads != 0)
      return families::refuse_line("h" + std::to_string(said.heads) + " of given scores", "fp32 without h<n>");
    if (said.page_size != 0) return families::refuse_line("page= of given scores", "fp32 without page=");
    if (said.key_scales) return families::refuse_line("key_scales of given scores", "fp32 without key_scales");
    if (said.top_k == 0) return families::refuse_line("fp32 without top=: scores are given already", "top=<keys>");
    said.scores = false;
  } else if (said.heads == 0) {
    return families::refuse_line("no word gives the index heads", "h<heads>, 1 to " + std::to_string(max_heads));
  }
  // Nothing else is written then.
  if (said.top_k == 0) said.scores = false;
  if (said.page_size > 1 && said.page_size % attention::page_granule != 0)
    return families::refuse_line("page=" + std::to_string(said.page_size),
                                 "1, and multiples of " + std::to_string(attention::page_granule));
  if (said.page_size != 0 && said.key_length > attention::max_paged_length)
    return families::refuse_line("k" + std::to_string(said.key_length) + " in pages",
                                 "up to k" + std::to_string(attention::max_paged_length));
  if (said.batch * said.query_length > max_rows)
    return families::refuse_line("b" + std::to_string(said.batch) + " q" + std::to_string(said.query_length),
                                 "less than 2^31 rows of all");
  if (auto prefix = attention::check_prefix(said.mask, said.key_length); !prefix) return prefix;
  return attention::check_lengths("k_lengths", said.key_lengths, said.batch, said.key_length);
}

using Lines = families::LinesOf<ProblemDescriptor, make_rows, finish>;

}  // namespace

IndexerShape ProblemDescriptor::shape() const {
  IndexerShape shape = {{.scores = type != DataType::fp32, .selects = top_k != 0}};
  if (!shape.scores) return shape;
  shape.type = type;
  shape.set_heads(heads);
  shape.paged = page_size != 0;
  return shape;
}

Result<ProblemDescriptor> parse_descriptor(std::string_view text) { return Lines::read(family_name, text); }

std::string to_text(const ProblemDescriptor& descriptor) { return Lines::text(family_name, descriptor); }

}  // namespace wavejit::sparse_indexer
