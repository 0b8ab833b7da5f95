// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The words of a descriptor, one row each, in the order in which they are printed, and what they must say together.
#include "templates/attention/call/described_words.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "families/kernel/names.h"
#include "templates/attention/call/hints.h"
#include "templates/attention/call/tensors.h"
#include "templates/attention_forward/call/descriptor.h"
#include "templates/attention_forward/call/descriptor_words.h"
#include "templates/attention_forward/call/key_lists.h"
#include "templates/attention_forward/call/splits.h"
#include "templates/attention_forward/call/walks/bool_mask_words.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_forward/kernel/rules.h"
#include "templates/attention_forward/kernel/words.h"

namespace wavejit::attention_forward {
namespace {

using families::behind_key;
using families::not_yet;
using families::TakenWord;
using families::whole_number;
using families::Word;
using families::wrong;
using Row = families::DescriptorWord<ProblemDescriptor>;
using Rows = families::DescriptorWords<ProblemDescriptor>;
using Said = ProblemDescriptor;

// Words of the grammar that no kernel of this version does.
constexpr std::array<std::string_view, 10> later_types = {"fp32", "f32",  "fp64", "tf32",     "fp8",
                                                          "bf8",  "e4m3", "e5m2", "fp8_e4m3", "fp8_e5m2"};
Row later_type_word() {
  return {.accepted = {}, .take = [](Said&, const Word& word) -> TakenWord {
            if (!std::ranges::contains(later_types, word.text)) return std::nullopt;
            return not_yet(word, "fp16, bf16");
          }};
}

// "q7", "q1..4096".
template <typename Least, typename Most>
Row range_word(char letter, const std::string& missing, std::int64_t least, Least from, Most to) {
  return {.accepted = std::string(1, letter) + "<n>[..<n>]",
          .missing = missing,
          .take = [letter, least, from, to](Said& said, const Word& word) -> TakenWord {
            const auto digits = families::behind_letter(word, letter);
            if (!digits) return std::nullopt;
            const std::size_t dots = digits->find("..");
            const auto first = families::sized_number(word, digits->substr(0, dots), least, max_length);
            if (!first) return std::unexpected(first.error());
            to(said) = *first;
            if (dots == std::string_view::npos) return Result<void>();
            const auto last = families::sized_number(word, digits->substr(dots + 2), *first, max_length);
            if (!last) return std::unexpected(last.error());
            to(said) = *last;
            if (*first != *last) from(said) = *first;
            return Result<void>();
          },
          .text =
              [letter, from, to](const Said& said) {
                return letter + (from(said) ? std::to_string(*from(said)) + ".." : "") + std::to_string(to(said));
              }};
}

constexpr std::string_view accepted_pages =
    "layout=paged:<keys of a page, 1 or a multiple of 16 up to 8192>, with :nhd (the default), :hnd, or, not of pages "
    "of 1 key, :vectorised or :vectorised_keys behind it";

// ":<keys>[:nhd|hnd|vectorised|vectorised_keys]"
Result<void> take_pages(Said& said, const Word& word, std::string_view value) {
  if (!value.starts_with(':')) return wrong(word, "has no page size; accepted: " + std::string(accepted_pages));
  value.remove_prefix(1);
  const std::size_t colon = value.find(':');
  const auto size = whole_number(value.substr(0, colon));
  const std::string_view order = colon == std::string_view::npos ? "nhd" : value.substr(colon + 1);
  if (size != 1 && (!size || *size < page_granule || *size > max_page_size || *size % page_granule != 0))
    return wrong(word, "is no page size; accepted: " + std::string(accepted_pages));
  const bool vectorised = order == vectorised_word || order == vectorised_keys_word;
  if (vectorised ? size == 1 : order != "nhd" && order != "hnd")
    return wrong(word, "has an order that such pages do not have; accepted: " + std::string(accepted_pages));
  said.layout = Layout::paged;
  said.page_size = *size;
  said.page_heads_first = order == "hnd";
  said.shape.paged = true;
  said.shape.single_keys = *size == 1;
  said.shape.vectorised = vectorised;
  said.values_by_keys = order == vectorised_keys_word;
  return {};
}
Result<void> take_layout(Said& said, const Word& word, std::string_view value) {
  if (value.starts_with(paged_word)) return take_pages(said, word, value.substr(paged_word.size()));
  const auto layout = families::value_in(layouts, value);
  if (!layout) return wrong(word, "is not known; accepted: " + families::all_of(layouts, "layout="));
  said.layout = *layout;
  return {};
}
std::string layout_text(const Said& said) {
  if (said.layout == Layout::bshd) return {};
  if (said.layout != Layout::paged) return std::string(families::name_in(layouts, said.layout));
  return std::string(paged_word) + ":" + std::to_string(said.page_size) +
         (said.page_heads_first   ? ":hnd"
          : said.values_by_keys   ? ":" + std::string(vectorised_keys_word)
          : said.shape.vectorised ? ":" + std::string(vectorised_word)
                                  : "");
}

// Left padding, with or without its numbers.
Row first_keys_word() {
  return {.accepted = "first_keys[=<n,…>]",
          .take = [](Said& said, const Word& word) -> TakenWord {
            const auto numbers = behind_key(word, "first_keys");
            if (!numbers && word.text != "first_keys") return std::nullopt;
            said.shape.first_keys = true;
            if (!numbers) return Result<void>();
            return take_lengths(word, *numbers, max_length, said.first_keys);
          },
          .text =
              [](const Said& said) {
                if (!said.shape.first_keys) return std::string();
                return (said.first_keys.empty() ? "first_keys" : "first_keys=") + attention::to_text(said.first_keys);
              }};
}

constexpr families::Names<attention::Extent, 5> scale_extents = {{{attention::Extent::one, "1"},
                                                                  {attention::Extent::head, "h"},
                                                                  {attention::Extent::batch, "b"},
                                                                  {attention::Extent::batch_and_head, "bh"},
                                                                  {attention::Extent::token_and_head, "token"}}};

Row rows_of_queries_word() {
  return families::value_word<Said>(
      "q_rows", "<n>",
      [](Said& said, const Word& word, std::string_view value) -> Result<void> {
        const auto rows = whole_number(value);
        if (!rows || *rows < 1 || *rows > max_length)
          return wrong(word, "is no number of rows; accepted: q_rows=<rows of all packed queries together>");
        said.query_rows = rows;
        return {};
      },
      [](const Said& said) { return said.query_rows ? std::to_string(*said.query_rows) : std::string(); });
}
Row total_keys_word() {
  return families::value_word<Said>(
      "k_total", "<n>",
      [](Said& said, const Word& word, std::string_view value) -> Result<void> {
        const auto keys = whole_number(value);
        if (!keys || *keys < 1)
          return wrong(word, "is no number of keys; accepted: k_total=<the most that all sequences have together>");
        said.total_keys = keys;
        return {};
      },
      [](const Said& said) { return said.total_keys ? std::to_string(*said.total_keys) : std::string(); });
}

constexpr std::string_view accepted_lists =
    "lists=<rows>x<keys> of 64 or 128, with :<percent of all blocks, 1 to 100> behind it";

// "64x64[:10]"
Result<void> take_lists(Said& said, const Word& word, std::string_view value) {
  const auto wrong_lists = [&] { return wrong(word, "is none; accepted: " + std::string(accepted_lists)); };
  const std::size_t colon = value.find(':');
  const std::string_view sizes = value.substr(0, colon);
  const std::size_t by = sizes.find('x');
  if (by == std::string_view::npos) return wrong_lists();
  const auto is_size = [](const std::optional<std::int64_t>& size) { return size == 64 || size == 128; };
  const auto rows = whole_number(sizes.substr(0, by));
  const auto keys = whole_number(sizes.substr(by + 1));
  if (!is_size(rows) || !is_size(keys)) return wrong_lists();
  DescribedLists lists{.rows = static_cast<std::int32_t>(*rows), .keys = static_cast<std::int32_t>(*keys)};
  const std::string_view rest = colon == std::string_view::npos ? std::string_view() : value.substr(colon);
  if (!rest.empty()) {
    const auto percent = whole_number(rest.substr(1));
    if (!percent || *percent < 1 || *percent > 100) return wrong_lists();
    lists.percent = static_cast<std::int32_t>(*percent);
  }
  said.lists = lists;
  said.shape.block_lists = true;
  return {};
}
std::string lists_text(const Said& said) {
  const DescribedLists& lists = said.lists;
  if (lists.rows == 0) return {};
  return std::to_string(lists.rows) + "x" + std::to_string(lists.keys) +
         (lists.percent != 0 ? ":" + std::to_string(lists.percent) : "");
}

// "2048[:slots][:heads][:mixed]"
Result<void> take_top_k(Said& said, const Word& word, std::string_view value) {
  const std::string accepted = "top_k=1 to top_k=" + std::to_string(attention::max_top_k) +
                               ", with :slots, :heads and :mixed behind it, in this order";
  const std::size_t colon = value.find(':');
  const auto count = whole_number(value.substr(0, colon));
  if (!count || *count < 1 || *count > attention::max_top_k)
    return wrong(word, "is no length of lists; accepted: " + accepted);
  std::string_view rest = colon == std::string_view::npos ? std::string_view() : value.substr(colon);
  const auto has = [&](std::string_view flag) {
    if (!rest.starts_with(flag)) return false;
    rest.remove_prefix(flag.size());
    return true;
  };
  said.top_k = *count;
  said.shape.listed = true;
  said.shape.slots = has(":slots");
  said.list_each_head = has(":heads");
  said.mixed_lists = has(":mixed");
  if (!rest.empty()) return wrong(word, "is not known; accepted: " + accepted);
  return {};
}
std::string top_k_text(const Said& said) {
  if (said.top_k == 0) return {};
  return std::to_string(said.top_k) + (said.shape.slots ? ":slots" : "") + (said.list_each_head ? ":heads" : "") +
         (said.mixed_lists ? ":mixed" : "");
}

Row splits_word() {
  return families::value_word<Said>(
      "splits", "<n>|auto",
      [](Said& said, const Word& word, std::string_view value) -> Result<void> {
        const auto count = value == "auto" ? std::optional<std::int64_t>(0) : whole_number(value);
        if (!count || *count > max_splits || (*count == 0 && value != "auto"))
          return wrong(
              word, "is no number of splits; accepted: splits=auto, splits=1 to splits=" + std::to_string(max_splits));
        said.splits = *count;
        return {};
      },
      [](const Said& said) {
        return said.splits < 0 ? std::string() : said.splits == 0 ? "auto" : std::to_string(said.splits);
      });
}

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}
Row inputs_word() {
  return families::value_word<Said>(
      "inputs", "normal|uniform|adversarial:<name>",
      [](Said& said, const Word& word, std::string_view value) -> Result<void> {
        constexpr std::string_view adversarial = "adversarial:";
        const bool known = value == "normal" || value == "uniform" ||
                           (value.starts_with(adversarial) && is_name(value.substr(adversarial.size())));
        if (!known)
          return wrong(word, "is not known; accepted: inputs=normal, inputs=uniform, inputs=adversarial:<name>");
        said.inputs = value;
        return {};
      },
      [](const Said& said) { return said.inputs; });
}

// Flags of kernel specs that descriptors say by the same word, in the specs' order: those in front of the modifiers,
// or those behind them.
void add_flags(Rows& rows, bool behind_modifiers) {
  bool behind = false;
  for (const SpecWord& word : spec_words) {
    behind |= std::ranges::contains(modifier_rows, word.accepted, &ModifierRow::word);
    if (!word.described || behind != behind_modifiers) continue;
    rows.push_back(attention::spec_word<Said>(word, [](auto& said) -> auto& { return said.shape.words(); }));
  }
}

Rows make_rows() {
  const auto add_all = [](Rows& to, std::vector<Row> more) {
    for (Row& one : more) to.push_back(std::move(one));
  };
  Rows rows;
  add_all(rows,
          {attention::operand_type_word<Said>([](auto& said) -> auto& { return said.shape.dtype; }), later_type_word(),
           attention::batch_word<Said>(),
           range_word(
               'q', "q<query length>", 1, [](auto& said) -> auto& { return said.least_query_length; },
               [](auto& said) -> auto& { return said.query_length; }),
           range_word(
               'k', "k<key length>", 0, [](auto& said) -> auto& { return said.least_key_length; },
               [](auto& said) -> auto& { return said.key_length; }),
           attention::heads_word<Said>(),
           families::pair_word<Said>(
               'd', "d<head dim>", max_head_dim, [](auto& said) -> auto& { return said.shape.head_dim_qk; },
               [](auto& said) -> auto& { return said.shape.head_dim_v; }),
           attention::causal_word<Said>(max_length, "query", "key length"), attention::window_word<Said>(max_length)});
  for (const attention::MaskKind& kind : attention::mask_kinds) rows.push_back(attention::kind_word<Said>(kind));
  add_flags(rows, false);
  add_all(
      rows,
      {families::value_word<Said>("layout", "bshd|bhsd|packed|paged:<n>[:nhd|hnd|vectorised|vectorised_keys]",
                                  take_layout, layout_text),
       attention::lengths_word<Said>("q_lengths", max_length, [](auto& said) -> auto& { return said.query_lengths; }),
       rows_of_queries_word(),
       attention::lengths_word<Said>("k_lengths", max_length, [](auto& said) -> auto& { return said.key_lengths; }),
       total_keys_word(), first_keys_word(),
       attention::cache_word<Said>([](auto& said) -> auto& { return said.shape.cache; }),
       attention::cache_scales_word<Said>(scale_extents, "1|h|b|bh|token"),
       families::value_word<Said>("lists", "<rows>x<keys>[:<percent>]", take_lists, lists_text)});
  for (const attention::Hint& hint : attention::hints) rows.push_back(attention::hint_word<Said>(hint));
  add_all(rows, {families::value_word<Said>("top_k", "<n>[:slots][:heads][:mixed]", take_top_k, top_k_text),
                 attention::second_top_k_word<Said>(), bool_mask_word(), attention::scale_word<Said>()});
  for (const Modifier modifier : described_modifiers) rows.push_back(attention::modifier_word<Said>(modifier));
  add_flags(rows, true);
  add_all(rows, {splits_word(), attention::launches_word<Said>(), attention::seed_word<Said>(), inputs_word()});
  return rows;
}

const Rows& descriptor_rows() {
  static const Rows rows = make_rows();
  return rows;
}

Result<void> finish_key_lists(ProblemDescriptor& said) {
  AttentionShape& shape = said.shape;
  auto beside = beside_key_lists(shape);
  if (!beside && said.has_range()) beside = {.word = "a range of lengths", .accepted = "one length"};
  if (beside) return fail(WAVEJIT_UNSUPPORTED, "descriptor: top_k beside " + beside->text());
  const bool has_lengths = !said.query_lengths.empty() || !said.key_lengths.empty() || said.query_rows.has_value();
  if (shape.slots && (said.mask.causal || has_lengths || said.layout == Layout::packed))
    return fail(WAVEJIT_INVALID_ARGUMENT,
                "descriptor: top_k with :slots; accepted: neither causal nor packed queries nor lengths beside slots, "
                "which have no order");
  if (said.second_top_k != 0 && !shape.slots)
    return fail(WAVEJIT_INVALID_ARGUMENT, "descriptor: second_top_k=" + std::to_string(said.second_top_k) +
                                              "; accepted: top_k=<n>:slots beside it");
  if (said.second_top_k != 0)
    if (const AttentionProblem problem = problem_of(said); parts_of_lists(problem) > most_parts_of_lists(problem))
      return fail(WAVEJIT_INVALID_ARGUMENT, "descriptor: second_top_k=" + std::to_string(said.second_top_k) +
                                                "; accepted: both lists of up to " +
                                                std::to_string(most_parts_of_lists(problem)) + " chunks of " +
                                                std::to_string(list_chunk_keys) + " entries together");
  shape.mask = Mask::none;
  shape.whole_tiles = false;
  shape.set_rows(rows_of_key_lists(static_cast<std::uint32_t>(said.query_heads / said.kv_heads)));
  return {};
}

Result<void> check_hints_without_lists(std::uint32_t given) {
  for (const attention::Hint& hint : attention::hints)
    if ((given & hint.bit & ~attention::hints_of(false)) != 0)
      return fail(WAVEJIT_INVALID_ARGUMENT,
                  "descriptor: " + std::string(hint.word) + " without lists; accepted: lists=<rows>x<keys> beside it");
  return {};
}

// What the words must say together, and what follows from them.
Result<void> finish(ProblemDescriptor& said) {
  if (said.query_heads % said.kv_heads != 0) {
    return fail(WAVEJIT_INVALID_ARGUMENT, "descriptor: h" + std::to_string(said.query_heads) + "/" +
                                              std::to_string(said.kv_heads) +
                                              "; accepted: kv heads that divide the query heads");
  }
  AttentionShape& shape = said.shape;
  if (shape.bias_by_tile && bias_goes_by_tile(said.query_length)) shape.block_lists = true;
  if (shape.bool_mask) shape.block_lists = makes_walks_of_mask(said, said.query_length);
  if (const HeadDims dims{shape.head_dim_qk, shape.head_dim_v}; !attention::has_code(dims))
    return std::unexpected(attention::head_dims_without_code(dims));
  shape.set_rows(rows_of(said, said.query_length));
  shape.whole_tiles = !shape.vectorised && holds_whole_tiles(said.page_size, shape.first_keys);
  if (shape.bias_fp32 && !said.of(Modifier::bias).there)
    return fail(WAVEJIT_INVALID_ARGUMENT,
                "descriptor: bias_type=fp32 without a bias; accepted: bias=bh|b|h|1 beside it");
  shape.token_scales = said.cache_scales == attention::Extent::token_and_head;
  if (shape.integers && said.cache_scales != attention::Extent::none && !shape.token_scales)
    return fail(WAVEJIT_INVALID_ARGUMENT,
                "descriptor: qk=i8 with cache_scales of heads or sequences, which are arguments of every such kernel; "
                "accepted: cache_scales=token, or no word");
  if (!shape.narrow_queries && !shape.integers)
    if (auto words = attention::check_cache_words(shape.cache, said.cache_scales, ", queries=e4m3, qk=i8"); !words)
      return words;
  // As calls are refused, whose strides say it.
  if (shape.trans_any() && shape.moves_whole_rows())
    return fail(WAVEJIT_UNSUPPORTED, "descriptor: " + std::string(trans_is_dense));
  if (auto lengths = check_lengths(said); !lengths) return lengths;
  const MaskWords& mask = said.mask;
  if (auto kind = attention::check_mask_kind(mask); !kind) return kind;
  shape.mask = choose_mask(mask).mask;
  if (shape.causal_flags && (shape.mask != Mask::causal || mask.window))
    return fail(WAVEJIT_UNSUPPORTED, "descriptor: causal_flags; accepted: causal beside it, and no other mask");
  if (said.lists.rows == 0)
    if (auto good = check_hints_without_lists(said.hints); !good) return good;
  if (shape.bool_mask)
    if (auto good = finish_bool_mask(said); !good) return good;
  if (shape.bias_by_tile) {
    if (auto good = finish_bias_by_tile(said); !good) return good;
    shape.bias_by_tile = shape.block_lists;
  }
  if (shape.listed)
    if (auto good = finish_key_lists(said); !good) return good;
  if (!shape.listed && said.second_top_k != 0)
    return fail(WAVEJIT_INVALID_ARGUMENT, "descriptor: second_top_k=" + std::to_string(said.second_top_k) +
                                              "; accepted: top_k=<n>:slots beside it");
  return check_prefix(mask, said.key_length);
}

}  // namespace

Result<ProblemDescriptor> parse_descriptor(std::string_view text) {
  return families::read_line(text, family_word, descriptor_rows(), finish);
}

std::string to_text(const ProblemDescriptor& descriptor) {
  return families::line_of(family_word, descriptor_rows(), descriptor);
}

}  // namespace wavejit::attention_forward
