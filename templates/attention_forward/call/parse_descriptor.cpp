// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the words of a descriptor say, and what is wrong with those that say nothing.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "families/call/words.h"
#include "families/kernel/names.h"
#include "templates/attention_forward/call/descriptor.h"
#include "templates/attention_forward/call/descriptor_words.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::attention_forward {
namespace {

using families::finite_number;
using families::Names;
using families::not_yet;
using families::place;
using families::whole_number;
using families::Word;
using families::wrong;

// What a word says; each may be said once.
enum class Slot : std::uint8_t {
  dtype,
  batch,
  query_length,
  key_length,
  heads,
  head_dim,
  causal,
  window,
  lse,
  output,
  bias_type,
  layout,
  query_lengths,
  query_rows,
  key_lengths,
  total_keys,
  first_keys,
  scale,
  modifiers,  // and so many more as there are rows
  splits = modifiers + modifier_count,
  invariance,
  seed,
  inputs
};
constexpr std::size_t slot_count = static_cast<std::size_t>(Slot::inputs) + 1;

constexpr std::array<std::pair<Slot, std::string_view>, 6> required = {{{Slot::dtype, "a data type (fp16, bf16)"},
                                                                        {Slot::batch, "b<batch>"},
                                                                        {Slot::query_length, "q<query length>"},
                                                                        {Slot::key_length, "k<key length>"},
                                                                        {Slot::heads, "h<query heads>[/<kv heads>]"},
                                                                        {Slot::head_dim, "d<head dim>"}}};

constexpr Slot slot_of(Modifier modifier) {
  return static_cast<Slot>(static_cast<std::size_t>(Slot::modifiers) + static_cast<std::size_t>(modifier));
}

std::string accepted_words() {
  std::string words =
      "fp16, bf16, b<n>, q<n>[..<n>], k<n>[..<n>], h<n>[/<n>], d<n>[/<n>], causal[=<prefix>], window=<left>,<right>, "
      "lse, o=fp32, "
      "layout=bshd|bhsd|packed|paged:<n>[:nhd|hnd|vectorised|vectorised_keys], q_lengths=<n,…>, q_rows=<n>, "
      "k_lengths=<n,…>, k_total=<n>, "
      "first_keys[=<n,…>], scale=<x>, ";
  for (const Modifier modifier : described_modifiers) words += std::string(row_of(modifier).accepted) + ", ";
  return words +
         "bias_type=fp32, splits=<n>|auto, invariance=batch|none, seed=<n>, inputs=normal|uniform|adversarial:<name>";
}

// Words of the grammar that no kernel of this version does, with what may stand in their place.
struct Later {
  std::string_view word;
  std::string_view accepted;
};
constexpr std::array<Later, 10> later_dtypes = {{{"fp32", "fp16, bf16"},
                                                 {"f32", "fp16, bf16"},
                                                 {"fp64", "fp16, bf16"},
                                                 {"tf32", "fp16, bf16"},
                                                 {"fp8", "fp16, bf16"},
                                                 {"bf8", "fp16, bf16"},
                                                 {"e4m3", "fp16, bf16"},
                                                 {"e5m2", "fp16, bf16"},
                                                 {"fp8_e4m3", "fp16, bf16"},
                                                 {"fp8_e5m2", "fp16, bf16"}}};

constexpr std::string_view accepted_pages =
    "layout=paged:<keys of a page, 1 or a multiple of 16 up to 8192>, with :nhd (the default), :hnd, or, not of pages "
    "of 1 key, :vectorised or :vectorised_keys behind it";
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

class Parser {
 public:
  Result<void> take(const Word& word) {
    const auto slot = take_word(word);
    if (!slot) return std::unexpected(slot.error());
    bool& seen = seen_[static_cast<std::size_t>(*slot)];
    if (seen) return wrong(word, "says again what an earlier word said; accepted: each once");
    seen = true;
    return {};
  }

  Result<ProblemDescriptor> finish() {
    for (const auto& [slot, what] : required) {
      if (!seen_[static_cast<std::size_t>(slot)])
        return fail(WAVEJIT_INVALID_ARGUMENT, "descriptor: a word is missing; accepted: " + std::string(what));
    }
    if (result_.query_heads % result_.kv_heads != 0) {
      return fail(WAVEJIT_INVALID_ARGUMENT, "descriptor: h" + std::to_string(result_.query_heads) + "/" +
                                                std::to_string(result_.kv_heads) +
                                                "; accepted: kv heads that divide the query heads");
    }
    result_.shape.set_rows(rows_of(result_, result_.query_length));
    AttentionShape& shape = result_.shape;
    shape.whole_tiles = !shape.vectorised && holds_whole_tiles(result_.page_size, shape.first_keys);
    if (shape.bias_fp32 && !result_.of(Modifier::bias).there)
      return fail(WAVEJIT_INVALID_ARGUMENT,
                  "descriptor: bias_type=fp32 without a bias; accepted: bias=bh|b|h|1 beside it");
    if (auto lengths = check_lengths(result_); !lengths) return std::unexpected(std::move(lengths.error()));
    const MaskWords& mask = result_.mask;
    result_.shape.mask = choose_mask(mask.causal, mask.window.has_value(), mask.left(), mask.right()).mask;
    if (auto prefix = check_prefix(mask, result_.key_length); !prefix)
      return std::unexpected(std::move(prefix.error()));
    return std::move(result_);
  }

 private:
  Result<Slot> take_word(const Word& word) {
    const std::string_view text = word.text;
    if (text == "fp16" || text == "bf16") {
      result_.shape.dtype = text == "bf16" ? DataType::bf16 : DataType::fp16;
      return Slot::dtype;
    }
    if (text == "causal") {
      result_.mask.causal = true;
      return Slot::causal;
    }
    for (const ModifierRow& row : modifier_rows) {
      if (text != row.word || row.is_number || !row.extents.empty()) continue;
      result_.add(row.modifier, Extent::one);
      return slot_of(row.modifier);
    }
    if (text == "first_keys") {
      result_.shape.first_keys = true;
      return Slot::first_keys;
    }
    if (text == "lse") {
      result_.shape.lse = true;
      return Slot::lse;
    }
    for (const Later& later : later_dtypes)
      if (later.word == text) return not_yet(word, later.accepted);
    if (const std::size_t equals = text.find('='); equals != std::string_view::npos)
      return take_assignment(word, text.substr(0, equals), text.substr(equals + 1));
    if (text.size() > 1 && is_digit(text[1])) return take_number(word, text.front(), text.substr(1));
    return wrong(word, "is not known; accepted: " + accepted_words());
  }

  static Result<std::int64_t> size(const Word& word, std::string_view text, std::int64_t least, std::int64_t most) {
    const auto value = whole_number(text);
    if (!value || *value < least || *value > most) {
      return wrong(word, "is out of range; accepted: " + std::string(1, word.text.front()) + std::to_string(least) +
                             " to " + std::string(1, word.text.front()) + std::to_string(most));
    }
    return *value;
  }

  Result<Slot> take_number(const Word& word, char letter, std::string_view digits) {
    switch (letter) {
      case 'b':
        return set(result_.batch, size(word, digits, 1, max_batch), Slot::batch);
      case 'q':
        return range(word, digits, 1, result_.least_query_length, result_.query_length, Slot::query_length);
      case 'k':
        return range(word, digits, 0, result_.least_key_length, result_.key_length, Slot::key_length);
      case 'h':
        return pair(word, digits, max_heads, result_.query_heads, result_.kv_heads, Slot::heads);
      case 'd': {
        std::int64_t qk = 0;
        std::int64_t v = 0;
        auto slot = pair(word, digits, max_head_dim, qk, v, Slot::head_dim);
        result_.shape.head_dim_qk = static_cast<int>(qk);
        result_.shape.head_dim_v = static_cast<int>(v);
        return slot;
      }
      default:
        return wrong(word, "is not known; accepted: " + accepted_words());
    }
  }

  static Result<Slot> slot_if(Result<void> taken, Slot slot) {
    if (!taken) return std::unexpected(std::move(taken.error()));
    return slot;
  }

  // "<n>" or "<n>..<n>".
  static Result<Slot> range(const Word& word, std::string_view text, std::int64_t least,
                            std::optional<std::int64_t>& from, std::int64_t& to, Slot slot) {
    const std::size_t dots = text.find("..");
    if (dots == std::string_view::npos) return set(to, size(word, text, least, max_length), slot);
    auto first = size(word, text.substr(0, dots), least, max_length);
    if (!first) return std::unexpected(std::move(first.error()));
    auto last = size(word, text.substr(dots + 2), *first, max_length);
    if (!last) return std::unexpected(std::move(last.error()));
    to = *last;
    if (*first != *last) from = *first;
    return slot;
  }

  static Result<Slot> set(std::int64_t& destination, Result<std::int64_t> value, Slot slot) {
    if (!value) return std::unexpected(std::move(value.error()));
    destination = *value;
    return slot;
  }

  // "<n>" for both or "<n>/<n>".
  static Result<Slot> pair(const Word& word, std::string_view text, std::int64_t most, std::int64_t& first,
                           std::int64_t& second, Slot slot) {
    const std::size_t slash = text.find('/');
    auto left = size(word, text.substr(0, slash), 1, most);
    if (!left) return std::unexpected(std::move(left.error()));
    first = second = *left;
    if (slash == std::string_view::npos) return slot;
    return set(second, size(word, text.substr(slash + 1), 1, most), slot);
  }

  Result<Slot> take_assignment(const Word& word, std::string_view key, std::string_view value) {
    if (key == "causal")
      return slot_if(take_causal(word, value, max_length, "query", "key length", result_.mask), Slot::causal);
    if (key == "window") return slot_if(take_window(word, value, max_length, result_.mask), Slot::window);
    if (key == "q_lengths")
      return slot_if(take_lengths(word, value, max_length, result_.query_lengths), Slot::query_lengths);
    if (key == "q_rows") {
      const auto rows = whole_number(value);
      if (!rows || *rows < 1 || *rows > max_length)
        return wrong(word, "is no number of rows; accepted: q_rows=<rows of all packed queries together>");
      result_.query_rows = rows;
      return Slot::query_rows;
    }
    if (key == "k_lengths")
      return slot_if(take_lengths(word, value, max_length, result_.key_lengths), Slot::key_lengths);
    if (key == "k_total") {
      const auto keys = whole_number(value);
      if (!keys || *keys < 1)
        return wrong(word, "is no number of keys; accepted: k_total=<the most that all sequences have together>");
      result_.total_keys = keys;
      return Slot::total_keys;
    }
    if (key == "first_keys") {
      result_.shape.first_keys = true;
      return slot_if(take_lengths(word, value, max_length, result_.first_keys), Slot::first_keys);
    }
    if (key == "o") {
      if (value != "fp32") return wrong(word, "is not known; accepted: o=fp32 (the type of q has no word)");
      result_.shape.output_fp32 = true;
      return Slot::output;
    }
    if (key == "bias_type") {
      if (value != "fp32") return wrong(word, "is not known; accepted: bias_type=fp32 (the type of q has no word)");
      result_.shape.bias_fp32 = true;
      return Slot::bias_type;
    }
    if (key == "layout") {
      if (value.starts_with(paged_word)) return take_pages(word, value.substr(paged_word.size()));
      return take_name(word, layouts, value, result_.layout, Slot::layout);
    }
    for (const ModifierRow& row : modifier_rows)
      if (key == row.word && (row.is_number || !row.extents.empty())) return take_modifier(word, row, value);
    if (key == "splits") {
      const auto count = value == "auto" ? std::optional<std::int64_t>(0) : whole_number(value);
      if (!count || *count > max_splits || (*count == 0 && value != "auto"))
        return wrong(word,
                     "is no number of splits; accepted: splits=auto, splits=1 to splits=" + std::to_string(max_splits));
      result_.splits = *count;
      return Slot::splits;
    }
    if (key == "scale") return slot_if(take_scale(word, value, result_.scale), Slot::scale);
    if (key == "seed") return slot_if(take_seed(word, value, result_.seed), Slot::seed);
    if (key == "inputs") {
      constexpr std::string_view adversarial = "adversarial:";
      const bool known = value == "normal" || value == "uniform" ||
                         (value.starts_with(adversarial) && is_name(value.substr(adversarial.size())));
      if (!known)
        return wrong(word, "is not known; accepted: inputs=normal, inputs=uniform, inputs=adversarial:<name>");
      result_.inputs = value;
      return Slot::inputs;
    }
    if (key == "invariance") {
      if (value != "batch" && value != "none")
        return wrong(word, "is not known; accepted: invariance=batch, invariance=none");
      result_.invariance = value;
      return Slot::invariance;
    }
    return wrong(word, "is not known; accepted: " + accepted_words());
  }

  template <typename Enum, std::size_t count>
  static Result<Slot> take_name(const Word& word, const Names<Enum, count>& names, std::string_view value,
                                Enum& destination, Slot slot) {
    const auto found = families::value_in(names, value);
    if (!found) {
      const std::string_view key = word.text.substr(0, word.text.find('=') + 1);
      return wrong(word, "is not known; accepted: " + families::all_of(names, key));
    }
    destination = *found;
    return slot;
  }

  Result<Slot> take_modifier(const Word& word, const ModifierRow& row, std::string_view value) {
    const std::string key = std::string(row.word) + "=";
    if (row.is_number) {
      const auto given = finite_number(value);
      if (!given || *given <= 0) return wrong(word, "is no cap; accepted: " + key + "<positive number>");
      result_.add(row.modifier, Extent::none, std::string(value));
      return slot_of(row.modifier);
    }
    std::string accepted;
    for (const ExtentName& each : row.extents) {
      if (each.name == value) {
        if (each.extent != Extent::none) result_.add(row.modifier, each.extent);
        return slot_of(row.modifier);
      }
      accepted += (accepted.empty() ? "" : ", ") + key + std::string(each.name);
    }
    return wrong(word, "is not known; accepted: " + accepted);
  }

  // ":<keys>[:nhd|hnd|vectorised|vectorised_keys]"
  Result<Slot> take_pages(const Word& word, std::string_view value) {
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
    result_.layout = Layout::paged;
    result_.page_size = *size;
    result_.page_heads_first = order == "hnd";
    result_.shape.paged = true;
    result_.shape.single_keys = *size == 1;
    result_.shape.vectorised = vectorised;
    result_.values_by_keys = order == vectorised_keys_word;
    return Slot::layout;
  }

  ProblemDescriptor result_;
  std::array<bool, slot_count> seen_{};
};

}  // namespace

Result<ProblemDescriptor> parse_descriptor(std::string_view text) {
  if (text.size() > families::max_descriptor_bytes) {
    return fail(WAVEJIT_INVALID_ARGUMENT, "descriptor: " + std::to_string(text.size()) + " bytes; accepted: up to " +
                                              std::to_string(families::max_descriptor_bytes));
  }
  const std::vector<Word> words = families::words_of(text);
  if (words.empty() || words.front().text != family_word) {
    return fail(WAVEJIT_INVALID_ARGUMENT, (words.empty() ? std::string("descriptor: empty") : place(words.front())) +
                                              "; accepted first word: " + std::string(family_word));
  }
  Parser parser;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (auto taken = parser.take(words[i]); !taken) return std::unexpected(std::move(taken.error()));
  }
  return parser.finish();
}

}  // namespace wavejit::attention_forward
