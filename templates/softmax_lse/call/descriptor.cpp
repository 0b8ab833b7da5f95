// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/softmax_lse/call/descriptor.h"

#include <algorithm>
#include <array>
#include <set>

#include "families/call/words.h"

namespace wavejit::softmax_lse {
namespace {

using families::whole_number;
using families::Word;
using families::wrong;

constexpr const char* accepted_words =
    "fp32, fp16, bf16, b<n>, h<n>, q<n>, k<n>, weights=fp32|fp16|bf16|none, causal[=<prefix>], window=<left>,<right>, "
    "lse, k_lengths=<n,…>, scale=<x>, unaligned, seed=<n>";

struct Size {
  char letter;
  std::int64_t most;
  std::int64_t ProblemDescriptor::* field;
};
constexpr std::array<Size, 4> sizes = {{{'b', max_batch, &ProblemDescriptor::batch},
                                        {'h', max_heads, &ProblemDescriptor::heads},
                                        {'q', max_length, &ProblemDescriptor::query_length},
                                        {'k', max_length, &ProblemDescriptor::key_length}}};

class Parser {
 public:
  Result<void> take(const Word& word) {
    const auto slot = take_word(word);
    if (!slot) return std::unexpected(slot.error());
    if (!seen_.insert(*slot).second) return wrong(word, "says again what an earlier word said; accepted: each once");
    return {};
  }

  Result<ProblemDescriptor> finish() {
    for (const auto& [slot, what] : {std::pair{"dtype", "a data type (fp32, fp16, bf16)"},
                                     {"b", "b<batch>"},
                                     {"h", "h<heads>"},
                                     {"q", "q<rows>"},
                                     {"k", "k<keys>"}})
      if (!seen_.contains(slot))
        return fail(WAVEJIT_INVALID_ARGUMENT, std::string("descriptor: a word is missing; accepted: ") + what);
    const auto refuse = [](const std::string& what, const std::string& accepted) {
      return fail(WAVEJIT_INVALID_ARGUMENT, "descriptor: " + what + "; accepted: " + accepted);
    };
    if (!seen_.contains("weights")) result_.weights = result_.scores;
    if (!result_.weights && !result_.lse) return refuse("weights=none without lse", "lse beside it, or weights");
    if (auto prefix = attention::check_prefix(result_.mask, result_.key_length); !prefix)
      return std::unexpected(std::move(prefix.error()));
    if (!result_.key_lengths.empty()) {
      if (std::ssize(result_.key_lengths) != result_.batch)
        return refuse("k_lengths: " + std::to_string(result_.key_lengths.size()) + " lengths",
                      std::to_string(result_.batch) + ", one for each of b" + std::to_string(result_.batch));
      const std::int64_t most = std::ranges::max(result_.key_lengths);
      if (most > result_.key_length)
        return refuse(
            "k_lengths: the longest is " + std::to_string(most),
            "up to " + std::to_string(result_.key_length) + ", as k" + std::to_string(result_.key_length) + " says");
    }
    // Said by the keys already, or of no kernel.
    const DataType weights = result_.weights.value_or(result_.scores);
    if (access_of(result_.scores, weights, result_.key_length, false) == Access::elements ||
        access_of(result_.scores, weights, result_.key_length, true) == Access::vectors)
      result_.unaligned = false;
    return std::move(result_);
  }

 private:
  using Slot = Result<std::string>;

  Slot take_word(const Word& word) {
    const std::string_view text = word.text;
    if (const auto dtype = families::value_in(data_types, text)) {
      result_.scores = *dtype;
      return "dtype";
    }
    if (text == "causal") {
      result_.mask.causal = true;
      return "causal";
    }
    for (const auto& [name, field] :
         {std::pair{"lse", &ProblemDescriptor::lse}, {"unaligned", &ProblemDescriptor::unaligned}}) {
      if (text != name) continue;
      result_.*field = true;
      return name;
    }
    if (const std::size_t equals = text.find('='); equals != std::string_view::npos)
      return take_assignment(word, text.substr(0, equals), text.substr(equals + 1));
    for (const Size& size : sizes) {
      if (text.front() != size.letter || text.size() < 2 || text[1] < '0' || text[1] > '9') continue;
      const auto value = whole_number(text.substr(1));
      std::string letter(1, size.letter);
      if (!value || *value < 1 || *value > size.most) {
        std::string why = "is out of range; accepted: " + letter;
        return wrong(word, why.append("1 to ").append(letter).append(std::to_string(size.most)));
      }
      result_.*size.field = *value;
      return letter;
    }
    return wrong(word, std::string("is not known; accepted: ") + accepted_words);
  }

  Slot take_assignment(const Word& word, std::string_view key, std::string_view value) {
    if (key == "weights") {
      const auto dtype = families::value_in(data_types, value);
      if (!dtype && value != "none")
        return wrong(word, "is not known; accepted: " + families::all_of(data_types, "weights=") + ", weights=none");
      result_.weights = dtype;
      return "weights";
    }
    const auto slot_if = [&](Result<void> taken) -> Slot {
      if (!taken) return std::unexpected(std::move(taken.error()));
      return std::string(key);
    };
    if (key == "causal") return slot_if(attention::take_causal(word, value, max_length, "row", "keys", result_.mask));
    if (key == "window") return slot_if(attention::take_window(word, value, max_length, result_.mask));
    if (key == "k_lengths") return slot_if(attention::take_lengths(word, value, max_length, result_.key_lengths));
    if (key == "scale") return slot_if(attention::take_scale(word, value, result_.scale));
    if (key == "seed") return slot_if(attention::take_seed(word, value, result_.seed));
    return wrong(word, std::string("is not known; accepted: ") + accepted_words);
  }

  ProblemDescriptor result_;
  std::set<std::string, std::less<>> seen_;
};

}  // namespace

SoftmaxShape ProblemDescriptor::shape() const {
  const DataType written = weights.value_or(scores);
  return {{.scores = scores,
           .weights = written,
           .rows = rows_of(key_length),
           .access = access_of(scores, written, key_length, unaligned)}};
}

Result<ProblemDescriptor> parse_descriptor(std::string_view text) {
  if (text.size() > families::max_descriptor_bytes)
    return fail(WAVEJIT_INVALID_ARGUMENT, "descriptor: " + std::to_string(text.size()) + " bytes; accepted: up to " +
                                              std::to_string(families::max_descriptor_bytes));
  const std::vector<Word> words = families::words_of(text);
  if (words.empty() || words.front().text != KernelSpec::family)
    return fail(WAVEJIT_INVALID_ARGUMENT, (words.empty() ? std::string("descriptor: empty") : place(words.front())) +
                                              "; accepted first word: " + std::string(KernelSpec::family));
  Parser parser;
  for (std::size_t i = 1; i < words.size(); ++i)
    if (auto taken = parser.take(words[i]); !taken) return std::unexpected(std::move(taken.error()));
  return parser.finish();
}

std::string to_text(const ProblemDescriptor& descriptor) {
  std::string text(KernelSpec::family);
  const auto word = [&](std::string_view name, std::string_view value = {}) {
    text += ' ';
    text += name;
    text += value;
  };
  word(families::name_in(data_types, descriptor.scores));
  for (const Size& size : sizes) word(std::string(1, size.letter), std::to_string(descriptor.*size.field));
  if (descriptor.weights != descriptor.scores)
    word("weights=", descriptor.weights ? families::name_in(data_types, *descriptor.weights) : "none");
  text += attention::to_text(descriptor.mask);
  if (descriptor.lse) word("lse");
  if (!descriptor.key_lengths.empty()) word("k_lengths=", attention::to_text(descriptor.key_lengths));
  if (!descriptor.scale.empty()) word("scale=", descriptor.scale);
  if (descriptor.unaligned) word("unaligned");
  if (!descriptor.seed.empty()) word("seed=", descriptor.seed);
  return text;
}

}  // namespace wavejit::softmax_lse
