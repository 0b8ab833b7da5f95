// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The words of a kernel spec as rows. A row says what a word is called, in which field it stands, how many bits of a
// shape's code it takes, what it is in the kernel's name, and what `wavejit supported` says of it:
//
//   flag<&AskedWords::lse>({.accepted = "lse", .name = "lse", .supported = "LSE on request"})
//
// A family has one table, a tuple of rows in the order in which specs print them. From it come the text and its parser,
// the lists of what is accepted, the kernel's name, and the bits of the shape's code (shape_bits.h).
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "families/kernel/names.h"
#include "families/kernel/shape_bits.h"
#include "families/kernel/toggles.h"

namespace wavejit::families {

// Nothing: not this row's word. An error: what is accepted in its place.
using Taken = std::optional<std::expected<void, std::string>>;
inline Taken taken_word() { return std::expected<void, std::string>(); }
inline Taken refused_word(const std::string& accepted) { return std::unexpected("accepted" + accepted); }

template <typename Spec>
using HasKernel = std::function<bool(const Spec&)>;

template <typename Spec>
struct SpecWord {
  std::string_view accepted;        // in lists: "lse", "o=fp32", "tile=", "d<n>[/<n>]"
  std::string_view missing = {};    // what a spec without it lacks; empty: it may be left out
  std::string_view name = {};       // in the kernel's name, of a flag that is said
  std::string_view otherwise = {};  // of "key=value": what has no word
  // What `wavejit supported` calls it: "LSE on request", or of several values "dtypes". `beside`: what a flag never
  // stands without.
  std::string_view supported = {};
  void (*beside)(Spec&) = nullptr;
  bool of_problem = false;  // a problem asks for it; else the route has chosen it
  bool described = false;   // of a flag: descriptors say it by the same word
  bool said = true;         // the value of a flag that has the word
  // How it is printed (empty: it is not), what it is in the name, and how it is read.
  std::string (*text)(const SpecWord&, const Spec&) = nullptr;
  std::string (*name_of)(const SpecWord&, const Spec&) = nullptr;
  Taken (*take)(const SpecWord&, Spec&, std::string_view word) = nullptr;
  // Which of its values kernels have beside the words of `plain`: "bf16 fp16"; of a flag that they have: nothing more
  // to say. Nothing: none.
  std::optional<std::string> (*possible)(const SpecWord&, const Spec& plain, const HasKernel<Spec>& has) = nullptr;

  // "tile=" of "tile=", "o=" of "o=fp32", "d" of "d<n>"; empty for a word that stands alone.
  constexpr std::string_view key() const {
    const std::size_t number = accepted.find("<n>");
    return accepted.substr(0, number != std::string_view::npos ? number : accepted.find('=') + 1);
  }
  // What stands behind the key.
  std::optional<std::string_view> value_of(std::string_view word) const {
    if (!word.starts_with(key())) return std::nullopt;
    return word.substr(key().size());
  }
};

// A row: its texts, and its fields in a shape's code. None: a problem does not ask for it.
template <typename Spec, typename... Fields>
struct WordRow {
  using BitsOfShape = BitFields<Fields...>;
  SpecWord<Spec> word;
};

// ---- Kinds of rows

// A boolean: the word is there, or it is not. `bits` 0: it stands in no shape.
template <auto field, typename Spec, int bits = 0>
constexpr auto flag(SpecWord<Spec> word) {
  word.text = [](const SpecWord<Spec>& row, const Spec& spec) {
    return spec.*field == row.said ? std::string(row.accepted) : std::string();
  };
  word.name_of = [](const SpecWord<Spec>& row, const Spec& spec) {
    return spec.*field == row.said ? std::string(row.name) : std::string();
  };
  word.take = [](const SpecWord<Spec>& row, Spec& spec, std::string_view text) -> Taken {
    if (text == row.accepted) {
      spec.*field = row.said;
      return taken_word();
    }
    if (row.key().empty() || !text.starts_with(row.key())) return std::nullopt;
    return refused_word(" after '=': " + std::string(row.accepted.substr(row.key().size())) + " (" +
                        std::string(row.otherwise) + ")");
  };
  word.possible = [](const SpecWord<Spec>& row, const Spec& plain,
                     const HasKernel<Spec>& has) -> std::optional<std::string> {
    Spec spec = plain;
    if (row.beside != nullptr) row.beside(spec);
    spec.*field = row.said;
    if (!has(spec)) return std::nullopt;
    return std::string();
  };
  if constexpr (bits == 0) {
    return WordRow<Spec>{word};
  } else {
    word.of_problem = true;
    return WordRow<Spec, Bits<field, bits>>{word};
  }
}

// A value with a name. One that has no name there has no word either.
template <auto field, const auto& names, typename Spec, int bits = 0>
constexpr auto named(SpecWord<Spec> word) {
  word.text = [](const SpecWord<Spec>& row, const Spec& spec) {
    for (const auto& [value, name] : names)
      if (value == spec.*field) return std::string(row.key()) + std::string(name);
    return std::string();
  };
  word.take = [](const SpecWord<Spec>& row, Spec& spec, std::string_view text) -> Taken {
    const auto given = row.value_of(text);
    if (!given) return std::nullopt;
    const auto value = value_in(names, *given);
    if (!value && row.key().empty()) return std::nullopt;
    if (!value)
      return refused_word(" after '=': " + all_of(names) +
                          (row.otherwise.empty() ? "" : " (" + std::string(row.otherwise) + ")"));
    spec.*field = *value;
    return taken_word();
  };
  word.possible = [](const SpecWord<Spec>&, const Spec& plain,
                     const HasKernel<Spec>& has) -> std::optional<std::string> {
    std::optional<std::string> list;
    for (const auto& [value, name] : names) {
      Spec spec = plain;
      spec.*field = value;
      if (has(spec)) list = (list ? *list + " " : std::string()) + std::string(name);
    }
    return list;
  };
  if constexpr (bits == 0) {
    return WordRow<Spec>{word};
  } else {
    word.of_problem = true;
    return WordRow<Spec, Bits<field, bits>>{word};
  }
}

// A positive decimal without sign, leading zeros or anything after it: what is printed, so that one spec has one text.
inline std::optional<int> positive_number(std::string_view text) {
  int value = 0;
  const char* begin = text.data();
  const char* end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc{} || stop != end || value <= 0 || *begin == '0') return std::nullopt;
  return value;
}

// "d<n>", "blocks=<n>".
template <auto field, typename Spec>
constexpr auto number(SpecWord<Spec> word) {
  word.text = [](const SpecWord<Spec>& row, const Spec& spec) {
    return std::string(row.key()) + std::to_string(spec.*field);
  };
  word.name_of = [](const SpecWord<Spec>& row, const Spec& spec) {
    return row.key().ends_with('=') ? std::string() : std::string(row.key()) + std::to_string(spec.*field);
  };
  word.take = [](const SpecWord<Spec>& row, Spec& spec, std::string_view text) -> Taken {
    const auto digits = row.value_of(text);
    const bool a_number = digits && !digits->empty() && digits->front() >= '0' && digits->front() <= '9';
    if (!digits || (!a_number && !row.key().ends_with('='))) return std::nullopt;
    const auto value = positive_number(*digits);
    if (!value) return refused_word(": " + std::string(row.accepted));
    spec.*field = *value;
    return taken_word();
  };
  return WordRow<Spec>{word};
}

// What every spec ends with.
template <typename Spec>
constexpr WordRow<Spec> target_word() {
  return {{.accepted = "target=",
           .missing = "target=<processor>",
           .text = [](const SpecWord<Spec>&, const Spec& spec) { return "target=" + spec.target; },
           .name_of = [](const SpecWord<Spec>&, const Spec& spec) { return spec.target; },
           .take = [](const SpecWord<Spec>& row, Spec& spec, std::string_view word) -> Taken {
             const auto value = row.value_of(word);
             if (!value) return std::nullopt;
             if (value->empty()) return refused_word(": target=<processor>, for example target=gfx950");
             spec.target = *value;
             return taken_word();
           }}};
}
template <typename Spec>
constexpr WordRow<Spec> lowering_word() {
  return named<&Spec::lowering, lowerings, Spec>({.accepted = "lowering=", .missing = "lowering=<name>"});
}

// ---- What comes of a table

namespace detail {
template <typename Table>
struct BitsOfTable;
template <typename... Rows>
struct BitsOfTable<std::tuple<Rows...>> {
  using Type = JoinedBits<typename Rows::BitsOfShape...>;
};
}  // namespace detail
// In the order of the rows.
template <typename Table>
using BitsOfTable = detail::BitsOfTable<std::remove_cvref_t<Table>>::Type;

// The texts of all rows, one behind the other.
template <typename... Rows>
constexpr auto texts_of(const std::tuple<Rows...>& table) {
  return std::apply([](const auto&... row) { return std::array{row.word...}; }, table);
}

template <typename Spec, std::size_t count>
std::string text_of_spec(const std::array<SpecWord<Spec>, count>& words, const Spec& spec) {
  std::string text(Spec::kernel);
  for (const SpecWord<Spec>& word : words)
    if (const std::string one = word.text(word, spec); !one.empty()) text += " " + one;
  return text;
}

// What a problem asks for, in words: "fp16 d128 causal lse".
template <typename Spec, std::size_t count>
std::string text_of_problem(const std::array<SpecWord<Spec>, count>& words, const Spec& spec) {
  std::string text;
  for (const SpecWord<Spec>& word : words) {
    if (!word.of_problem) continue;
    const std::string one = word.text(word, spec);
    if (!one.empty()) text += (text.empty() ? "" : " ") + one;
  }
  return text;
}

// "attention_forward_fp16_d128_causal_lse_128x64_gfx950"
template <typename Spec, std::size_t count>
std::string name_of_kernel(const std::array<SpecWord<Spec>, count>& words, const Spec& spec) {
  std::string name(Spec::kernel);
  for (const SpecWord<Spec>& word : words) {
    if (word.name_of == nullptr) continue;
    if (const std::string one = word.name_of(word, spec); !one.empty()) name += "_" + one;
  }
  return name;
}

// What no row takes: all that are accepted, or, of "key=value", the keys.
template <typename Spec, std::size_t count>
std::string accepted_instead(const std::array<SpecWord<Spec>, count>& words, std::string_view instead_of) {
  const bool keys_only = instead_of.contains('=');
  std::string list;
  for (const SpecWord<Spec>& word : words) {
    const std::string_view one = keys_only ? word.accepted.substr(0, word.accepted.find('=')) : word.accepted;
    if (keys_only && one == word.accepted) continue;
    list += (list.empty() ? "" : ", ") + std::string(one);
  }
  return (keys_only ? "accepted before '=': " : "accepted: ") + list;
}

// What `wavejit supported` says of the rows: "; dtypes bf16 fp16; LSE on request". `plain` has a kernel.
template <typename Spec, std::size_t count>
std::string supported_words(const std::array<SpecWord<Spec>, count>& words, const Spec& plain,
                            const HasKernel<Spec>& has) {
  std::string line;
  std::string_view last;
  for (const SpecWord<Spec>& word : words) {
    if (word.supported.empty() || word.possible == nullptr) continue;
    const auto values = word.possible(word, plain, has);
    if (!values) continue;
    if (word.supported != last) line += "; " + std::string(word.supported);
    if (!values->empty()) line += " " + *values;
    last = word.supported;
  }
  return line;
}

// Words may come in any order; none may be missing or twice. The error names the word, its position and what is
// accepted.
template <typename Spec, std::size_t count>
std::expected<Spec, std::string> parse_words(const std::array<SpecWord<Spec>, count>& words, std::string_view text) {
  std::size_t position = 0;
  const auto next = [&] {
    while (position < text.size() && text[position] == ' ') ++position;
    const std::size_t start = position;
    while (position < text.size() && text[position] != ' ') ++position;
    return text.substr(start, position - start);
  };
  std::size_t number = 1;
  const auto refuse = [&](std::string_view word, const std::string& why) {
    return std::unexpected("kernel spec: word " + std::to_string(number) + " '" + std::string(word) + "': " + why);
  };
  if (const std::string_view first = next(); first != Spec::kernel)
    return refuse(first, "accepted: " + std::string(Spec::kernel));
  Spec spec;
  std::array<bool, count> seen{};
  for (std::string_view word = next(); !word.empty(); word = next()) {
    ++number;
    Taken taken;
    std::size_t row = 0;
    for (; row < count; ++row) {
      taken = words[row].take(words[row], spec, word);
      if (taken) break;
    }
    if (!taken) return refuse(word, accepted_instead(words, word));
    if (!*taken) return refuse(word, taken->error());
    if (std::exchange(seen[row], true))
      return refuse(word, "says again what an earlier word said; accepted: each thing once");
  }
  for (std::size_t i = 0; i < count; ++i)
    if (!seen[i] && !words[i].missing.empty())
      return std::unexpected("kernel spec: no word gives the " + std::string(words[i].missing));
  return spec;
}

}  // namespace wavejit::families
