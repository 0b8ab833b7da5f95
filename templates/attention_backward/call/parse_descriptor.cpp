// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <set>
#include <string>

#include "families/call/words.h"
#include "templates/attention/call/mask_words.h"
#include "templates/attention_backward/call/descriptor.h"

namespace wavejit::attention_backward {
namespace {

using families::whole_number;
using families::Word;
using families::wrong;

constexpr std::string_view accepted_words =
    "fp16, bf16, b<n>, q<n>, k<n>, h<n>[/<n>], d<n>[/<n>], causal[=<prefix>], window=<left>,<right>, "
    "layout=bshd|bhsd|packed, q_lengths=<n,…>, k_lengths=<n,…>, scale=<x>, alibi=h|bh, softcap=<x>, d_lse, "
    "d_sink, delta, o=fp32, gradients=fp32, seed=<n>";

Failure bad_line(const std::string& what, const std::string& accepted) {
  return {WAVEJIT_INVALID_ARGUMENT, "descriptor: " + what + "; accepted: " + accepted};
}

class Parser {
 public:
  Result<void> take(const Word& word) {
    const auto slot = take_word(word);
    if (!slot) return std::unexpected(slot.error());
    if (!seen_.insert(*slot).second) return wrong(word, "says again what an earlier word said; accepted: each once");
    return {};
  }

  Result<ProblemDescriptor> finish() {
    for (const auto& [slot, what] : {std::pair{"dtype", "a data type (fp16, bf16)"},
                                     {"b", "b<batch>"},
                                     {"q", "q<query length>"},
                                     {"k", "k<key length>"},
                                     {"h", "h<query heads>[/<kv heads>]"},
                                     {"d", "d<head dim>"}})
      if (!seen_.contains(slot)) return std::unexpected(bad_line("a word is missing", what));
    if (result_.query_heads % result_.kv_heads != 0)
      return std::unexpected(
          bad_line("h" + std::to_string(result_.query_heads) + "/" + std::to_string(result_.kv_heads),
                   "kv heads that divide the query heads"));
    if (auto good = attention::check_prefix(result_.mask, result_.key_length); !good)
      return std::unexpected(std::move(good.error()));
    if (!result_.query_lengths.empty() && result_.layout != Layout::packed)
      return std::unexpected(bad_line("q_lengths without layout=packed", "layout=packed beside it"));
    if (auto good = check_list("q_lengths", result_.query_lengths, result_.query_length, true); !good)
      return std::unexpected(std::move(good.error()));
    if (auto good = check_list("k_lengths", result_.key_lengths, result_.key_length, result_.layout == Layout::packed);
        !good)
      return std::unexpected(std::move(good.error()));
    if (result_.delta && result_.output_fp32)
      return std::unexpected(bad_line("delta beside o=fp32", "one of them: a delta stands in the place of o"));
    return std::move(result_);
  }

 private:
  using Slot = Result<std::string>;

  Result<void> check_list(const std::string& name, const std::vector<std::int64_t>& lengths, std::int64_t longest,
                          bool exactly) const {
    if (lengths.empty()) return {};
    if (std::ssize(lengths) != result_.batch)
      return std::unexpected(
          bad_line(name + ": " + std::to_string(lengths.size()) + " lengths",
                   std::to_string(result_.batch) + ", one for each of b" + std::to_string(result_.batch)));
    const std::int64_t most = std::ranges::max(lengths);
    if (exactly ? most == longest : most <= longest) return {};
    return std::unexpected(bad_line(name + ": the longest is " + std::to_string(most),
                                    (exactly ? "" : "up to ") + std::to_string(longest)));
  }

  Slot take_word(const Word& word) {
    const std::string_view text = word.text;
    if (const auto dtype = families::value_in(attention::operand_types, text)) {
      result_.dtype = *dtype;
      return "dtype";
    }
    for (const auto& [name, flag] : {std::pair{"causal", &result_.mask.causal},
                                     {"d_lse", &result_.d_lse},
                                     {"d_sink", &result_.d_sink},
                                     {"delta", &result_.delta}}) {
      if (text != name) continue;
      *flag = true;
      return std::string(text);
    }
    if (const std::size_t equals = text.find('='); equals != std::string_view::npos)
      return take_assignment(word, text.substr(0, equals), text.substr(equals + 1));
    if (text.size() > 1 && text[1] >= '0' && text[1] <= '9') return take_number(word, text.front(), text.substr(1));
    return wrong(word, "is not known; accepted: " + std::string(accepted_words));
  }

  Slot take_number(const Word& word, char letter, std::string_view digits) {
    const auto in_range = [&](std::string_view number, std::int64_t least, std::int64_t most) -> Result<std::int64_t> {
      const auto value = whole_number(number);
      if (value && *value >= least && *value <= most) return *value;
      const std::string name(1, letter);
      return wrong(word,
                   "is out of range; accepted: " + name + std::to_string(least) + " to " + name + std::to_string(most));
    };
    std::int64_t* destination = letter == 'b'   ? &result_.batch
                                : letter == 'q' ? &result_.query_length
                                : letter == 'k' ? &result_.key_length
                                                : nullptr;
    if (destination != nullptr) {
      const auto value = in_range(digits, letter == 'k' ? 0 : 1, letter == 'b' ? max_batch : max_length);
      if (!value) return std::unexpected(value.error());
      *destination = *value;
      return std::string(1, letter);
    }
    if (letter != 'h' && letter != 'd') return wrong(word, "is not known; accepted: " + std::string(accepted_words));
    const std::size_t slash = digits.find('/');
    const std::int64_t most = letter == 'h' ? max_heads : max_head_dim;
    const auto first = in_range(digits.substr(0, slash), 1, most);
    if (!first) return std::unexpected(first.error());
    const auto second = slash == std::string_view::npos ? first : in_range(digits.substr(slash + 1), 1, most);
    if (!second) return std::unexpected(second.error());
    if (letter == 'h') {
      result_.query_heads = *first;
      result_.kv_heads = *second;
    } else {
      result_.head_dim_qk = static_cast<int>(*first);
      result_.head_dim_v = static_cast<int>(*second);
    }
    return std::string(1, letter);
  }

  Slot take_assignment(const Word& word, std::string_view key, std::string_view value) {
    if (key == "causal")
      return slot_if(attention::take_causal(word, value, max_length, "query", "key length", result_.mask), key);
    if (key == "window") return slot_if(attention::take_window(word, value, max_length, result_.mask), key);
    if (key == "q_lengths")
      return slot_if(attention::take_lengths(word, value, max_length, result_.query_lengths), key);
    if (key == "k_lengths") return slot_if(attention::take_lengths(word, value, max_length, result_.key_lengths), key);
    if (key == "scale") return slot_if(attention::take_scale(word, value, result_.scale), key);
    if (key == "seed") return slot_if(attention::take_seed(word, value, result_.seed), key);
    if (key == "layout") {
      const auto layout = families::value_in(layouts, value);
      if (!layout) return wrong(word, "is not known; accepted: " + families::all_of(layouts, "layout="));
      result_.layout = *layout;
      return "layout";
    }
    if (key == "alibi") {
      for (const attention::ExtentName& each : attention::alibi_extents)
        if (each.name == value) result_.alibi = each.extent;
      if (result_.alibi == attention::Extent::none) return wrong(word, "is not known; accepted: alibi=h, alibi=bh");
      return "alibi";
    }
    if (key == "softcap") {
      const auto cap = families::finite_number(value);
      if (!cap || *cap <= 0) return wrong(word, "is no cap; accepted: softcap=<positive number>");
      result_.softcap = value;
      return "softcap";
    }
    if (key == "bias") return families::not_yet(word, "no bias, alibi=h|bh");
    if (key == "gradients" || key == "o") {
      if (value != "fp32")
        return wrong(word, "is not known; accepted: " + std::string(key) + "=fp32 (the type of q has no word)");
      (key == "o" ? result_.output_fp32 : result_.gradients_fp32) = true;
      return std::string(key);
    }
    return wrong(word, "is not known; accepted: " + std::string(accepted_words));
  }

  // The word is one of its own kind.
  static Slot slot_if(Result<void> taken, std::string_view name) {
    if (!taken) return std::unexpected(std::move(taken.error()));
    return std::string(name);
  }

  ProblemDescriptor result_;
  std::set<std::string, std::less<>> seen_;
};

}  // namespace

Result<ProblemDescriptor> parse_descriptor(std::string_view text) {
  if (text.size() > families::max_descriptor_bytes)
    return fail(WAVEJIT_INVALID_ARGUMENT, "descriptor: " + std::to_string(text.size()) + " bytes; accepted: up to " +
                                              std::to_string(families::max_descriptor_bytes));
  const std::vector<Word> words = families::words_of(text);
  if (words.empty() || words.front().text != family_name)
    return fail(WAVEJIT_INVALID_ARGUMENT,
                (words.empty() ? std::string("descriptor: empty") : families::place(words.front())) +
                    "; accepted first word: " + std::string(family_name));
  Parser parser;
  for (std::size_t i = 1; i < words.size(); ++i)
    if (auto taken = parser.take(words[i]); !taken) return std::unexpected(std::move(taken.error()));
  return parser.finish();
}

}  // namespace wavejit::attention_backward
