// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Refusals name the words that stand in the way and what would do. Random problems that a target has no kernel for are
// changed as their refusal says, word by word, and each of them then has kernels.
#include "families/call/obstacles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <random>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "boards/board.h"
#include "families/call/family.h"

namespace wavejit::families {
namespace {

using Line = std::vector<std::string>;  // the words of a descriptor

std::string text_of(const Line& line) {
  std::string text;
  for (const std::string& word : line) text += (text.empty() ? "" : " ") + word;
  return text;
}

// Nothing: it has kernels. `by_route`: it is a descriptor that the checks of words take.
struct Answer {
  std::string refusal;
  bool by_route = false;
};

Answer ask(const std::string& text, const boards::Board& board) {
  const auto problem = parse_problem(text);
  if (!problem) return {problem.error().detail};
  const auto shape = (*problem)->shape(board, {});
  if (!shape) return {shape.error().detail};
  const auto route = shape->family->route(*shape, board, {});
  if (route) return {};
  return {route.error().detail, true};
}

std::string refusal_on(const std::string& text, std::string_view target) {
  return ask(text, *boards::find_product(target)).refusal;
}

// ---- What a refusal advises, done to a descriptor

void drop(Line& line, std::string_view beginning) {
  std::erase_if(line, [&](const std::string& word) { return word.starts_with(beginning); });
}
bool has(const Line& line, std::string_view beginning) {
  return std::ranges::any_of(line, [&](const std::string& word) { return word.starts_with(beginning); });
}
void put(Line& line, std::string_view beginning, const std::string& word) {
  for (std::string& each : line)
    if (each.starts_with(beginning)) {
      each = word;
      return;
    }
  line.push_back(word);
}

using Edit = std::function<void(Line& line, const std::string& value)>;

void set_mask(Line& line, const std::string& mask) {
  for (const char* each : {"causal_flags", "causal", "window=", "chunked="}) drop(line, each);
  if (mask == "causal") line.emplace_back("causal");
  if (mask == "window") line.emplace_back("window=64,64");
}

void leave_out(Line& line, const std::string& what) {
  static const std::map<std::string, std::vector<std::string>> words = {
      {"softcap", {"softcap"}},
      {"bias", {"bias"}},
      {"alibi", {"alibi"}},
      {"lse", {"lse"}},
      {"scores=fp16", {"scores="}},
      {"causal_flags", {"causal_flags"}},
      {"bias_by_tile", {"bias_by_tile"}},
      {"the bool mask", {"bool_mask"}},
      {"the list of key blocks", {"lists="}},
      {"the list of keys", {"top_k", "second_top_k"}},
      {"first_keys", {"first_keys"}},
  };
  const auto found = words.find(what);
  ASSERT_NE(found, words.end()) << "nobody knows how to leave '" << what << "' out";
  for (const std::string& word : found->second) {
    ASSERT_TRUE(has(line, word) || word == "second_top_k") << text_of(line) << " has no " << what;
    drop(line, word);
  }
}

void set_cache(Line& line, const std::string& type) {
  drop(line, "cache=");
  const bool wide = type == "16 bits" || type == "bf16" || type == "fp16";
  if (!wide) line.push_back("cache=" + type);
  if (wide && !has(line, "qk=i8")) drop(line, "cache_scales=");
}

void set_pages(Line& line, const std::string& what) {
  if (what == "keys without pages") drop(line, "layout=paged");
  for (std::string& word : line)
    if (word.starts_with("layout=paged")) word = what == "16 keys" ? "layout=paged:16" : "layout=paged:64";
}

// "head dim", and what its values do.
const std::vector<std::pair<std::string, Edit>>& edits() {
  static const std::vector<std::pair<std::string, Edit>> all = {
      {"head dim ", [](Line& line, const std::string& value) { put(line, "d", "d" + value); }},
      {"a cache in ", set_cache},
      {"a scale for each ", [](Line& line, const std::string&) { put(line, "cache_scales=", "cache_scales=h"); }},
      {"tensors in ",
       [](Line& line, const std::string&) {
         drop(line, "queries=e4m3");
         if (!has(line, "cache=") && !has(line, "qk=")) drop(line, "cache_scales=");
       }},
      {"q+k in ",
       [](Line& line, const std::string&) {
         drop(line, "qk=i8");
         drop(line, "scores=");
         if (!has(line, "cache=")) drop(line, "cache_scales=");
       }},
      {"q in ",
       [](Line& line, const std::string&) {
         drop(line, "q=fp32");
         if (has(line, "cache=")) drop(line, "queries=e4m3");
         for (std::string& word : line)
           if (word == "queries=e4m3") word = "cache=e4m3";
       }},
      {"o in ", [](Line& line, const std::string&) { drop(line, "o=fp32"); }},
      {"a bias in ", [](Line& line, const std::string&) { drop(line, "bias_type="); }},
      {"gradients in ", [](Line& line, const std::string&) { drop(line, "gradients="); }},
      {"mask ", set_mask},
      {"keys without pages", [](Line& line, const std::string&) { drop(line, "layout=paged"); }},
      {"pages of ", set_pages},
      {"tensors whose dims are contiguous", [](Line& line, const std::string&) { drop(line, "trans_"); }},
      {"queries+keys in ", [](Line& line, const std::string& value) { line[1] = value; }},
      {"bf16", [](Line& line, const std::string&) { line[1] = "bf16"; }},
  };
  return all;
}

std::vector<std::string> split(std::string_view text, std::string_view between) {
  std::vector<std::string> parts;
  for (const auto part : std::views::split(text, between)) parts.emplace_back(part.begin(), part.end());
  return parts;
}
// "a, b or c"
std::vector<std::string> listed(std::string text) {
  for (const std::string_view last : {" or ", " and "})
    if (const std::size_t at = text.rfind(last); at != std::string::npos) text.replace(at, last.size(), ", ");
  return text.empty() ? std::vector<std::string>{""} : split(text, ", ");
}

// The lines that "use head dim 64 or 128" stands for, without "use".
std::vector<Line> used(const Line& line, const std::string& way) {
  std::vector<Line> lines;
  for (const auto& [beginning, edit] : edits()) {
    if (!way.starts_with(beginning)) continue;
    for (const std::string& value : listed(way.substr(beginning.size()))) {
      lines.push_back(line);
      edit(lines.back(), value);
      EXPECT_NE(lines.back(), line) << "'" << way << "' changes nothing";
    }
    return lines;
  }
  ADD_FAILURE() << "nobody knows what '" << way << "' is";
  return lines;
}

struct Told {
  std::string head;
  std::string advice;
};
Told parts_of(const std::string& refusal) {
  const std::string told = refusal.substr(0, refusal.find(before_reason));
  std::size_t at = told.find("; leave ");
  if (at == std::string::npos) at = told.find("; use ");
  if (at == std::string::npos) return {};
  return {told.substr(0, at), told.substr(at + 2)};
}

// All descriptors that a refusal's advice makes of one.
std::vector<Line> advised(const Line& line, std::string advice) {
  for (const std::string pair : {"q and k", "queries and keys"})
    if (const std::size_t at = advice.find(pair); at != std::string::npos)
      advice.replace(at + pair.find(' '), std::string_view(" and ").size(), "+");
  std::vector<Line> lines;
  const bool single_use = advice.starts_with("use ");
  const std::size_t out = advice.find(" out");
  // Two changes that are made together.
  const bool both = single_use ? advice.contains(" and ")
                               : advice.substr(0, out).contains(" and ") || advice.substr(out).starts_with(" out and ");
  Line together = line;
  if (!single_use) {
    for (const std::string& name : listed(advice.substr(6, out - 6))) {
      lines.push_back(line);
      leave_out(lines.back(), name);
      if (both) leave_out(together, name);
    }
    advice = advice.substr(out + 4);
    advice = advice.substr(std::min(advice.size(), advice.find("use ")));
  }
  if (advice.starts_with("use ")) {
    for (const std::string& way : split(advice.substr(4), both ? " and " : ", or ")) {
      std::vector<Line> more = used(both ? together : line, way);
      if (both && !more.empty()) together = more.front();
      lines.insert(lines.end(), more.begin(), more.end());
    }
  }
  return both ? std::vector<Line>{together} : lines;
}

// ---- Random problems

// One of each group, or, where it begins with nothing, none.
using Groups = std::vector<std::vector<std::string>>;

const std::vector<Groups>& families_of_lines() {
  static const std::vector<std::string> caches = {"", "", "cache=e4m3", "cache=e5m2", "cache=e4m3_fnuz", "cache=i8"};
  static const std::vector<Groups> all = {
      {{"attention_forward"},
       {"bf16", "fp16"},
       {"b2"},
       {"q1", "q3", "q100", "q700"},
       {"k64", "k3000"},
       {"h8/2", "h4"},
       {"d64", "d128", "d192/128", "d256", "d96", "d80", "d200", "d128/256", "d264"},
       {"", "causal", "window=64,0", "chunked=128"},
       {"", "", "", "causal_flags"},
       {"", "", "", "queries=e4m3", "q=fp32", "qk=i8"},
       {"", "", "", "scores=fp16"},
       {"", "lse"},
       {"", "", "o=fp32"},
       {"", "", "", "", "trans_k", "trans_q", "trans_o"},
       {"", "", "layout=paged:16", "layout=paged:64", "layout=paged:1", "layout=paged:64:vectorised", "layout=packed"},
       {"", "", "", "first_keys"},
       caches,
       {"", "", "cache_scales=token"},
       {"", "", "", "lists=64x64", "top_k=48", "bool_mask=1"},
       {"", "", "bias=1"},
       {"", "", "", "alibi=h"},
       {"", "", "softcap=30"},
       {"", "", "", "bias_type=fp32"},
       {"", "", "", "bias_by_tile"}},
      {{"attention_backward"},
       {"bf16", "fp16"},
       {"b1"},
       {"q64"},
       {"k64"},
       {"h2"},
       {"d64", "d96", "d128", "d192/128", "d256", "d512"},
       {"", "causal", "window=64,64"},
       {"", "bias=1"},
       {"", "alibi=h"},
       {"", "softcap=30"},
       {"", "gradients=fp32"},
       {"", "o=fp32"}},
      {{"attention_latent"},
       {"bf16", "fp16"},
       {"b2"},
       {"q1", "q4"},
       {"k64", "k3000"},
       {"h16"},
       {"d576/512", "d512", "d320/256"},
       {"", "causal"},
       {"", "layout=paged:16", "layout=paged:64", "layout=paged:1"},
       caches,
       {"", "", "row_scales=128", "row_scales=64"},
       {"", "", "top_k=48"},
       {"", "softcap=30"}},
      {{"sparse_indexer"}, {"bf16", "fp16", "e4m3", "e4m3_fnuz"}, {"b1"}, {"q16"}, {"k512"}, {"h32"}, {"top=64"}},
      {{"cache_append"},
       {"bf16", "fp16"},
       {"b1"},
       {"q16"},
       {"h8"},
       {"d64", "d128"},
       {"page=16"},
       {"", "cache=e4m3", "cache=e5m2", "cache=e4m3_fnuz", "cache=i8"},
       {"", "cache_scales=token"}},
  };
  return all;
}

Line random_line(const Groups& groups, std::mt19937& random) {
  Line line;
  for (const auto& group : groups) {
    const std::string& word = group[random() % group.size()];
    if (!word.empty()) line.push_back(word);
  }
  return line;
}

std::size_t words_named(std::string head) {
  head = head.substr(0, head.find(" has no kernel"));
  if (head.starts_with("queries and keys in ")) return 1;
  for (const std::string_view between : {" with ", " and "})
    if (const std::size_t at = head.find(between); at != std::string::npos) head.replace(at, between.size(), ", ");
  return split(head, ", ").size();
}

TEST(Obstacles, ChangesThatARefusalNamesHaveKernels) {
  constexpr int lines_a_family = 1000;
  for (const Groups& groups : families_of_lines()) {
    std::mt19937 random(7);  // NOLINT(bugprone-random-generator-seed): the same lines every time
    std::size_t refused = 0;
    std::size_t told = 0;
    int failures = 0;
    std::size_t changes = 0;
    std::set<std::string> untold;
    for (int i = 0; i < lines_a_family; ++i) {
      const Line line = random_line(groups, random);
      for (const boards::Board& board : boards::all_products()) {
        const Answer answer = ask(text_of(line), board);
        if (!answer.by_route || answer.refusal.contains(" has no kernels for ")) continue;
        ++refused;
        const auto [head, advice] = parts_of(answer.refusal);
        if (advice.empty()) {
          untold.insert(answer.refusal);
          continue;
        }
        ++told;
        EXPECT_LE(words_named(head), most_words_in_the_way) << answer.refusal;
        for (const Line& changed : advised(line, advice)) {
          ++changes;
          const std::string left = ask(text_of(changed), board).refusal;
          if (left.empty()) continue;
          EXPECT_EQ(left, "") << text_of(line) << " on " << board.id << ": " << answer.refusal << "\n  "
                              << text_of(changed);
          if (++failures > 12) return;
        }
      }
    }
    RecordProperty(groups.front().front() + "_refused", static_cast<int>(refused));
    RecordProperty(groups.front().front() + "_changes", static_cast<int>(changes));
    EXPECT_GT(changes, 0U) << groups.front().front();
    EXPECT_EQ(told, refused) << groups.front().front() << ", for example " << (untold.empty() ? "" : *untold.begin());
  }
}

TEST(Obstacles, AreNamedBeforeWhatWouldDoAndTheReason) {
  struct Said {
    std::string line;
    std::string_view target;
    std::string told;
  };
  const std::vector<Said> all = {
      {"attention_forward bf16 b1 q512 k512 h8 d256 cache=e4m3_fnuz causal window=100,0 bias=1 softcap=50 layout=paged:16",
       "gfx942",
       "head dim 256 with softcap and bias has no kernel on gfx942; leave softcap or bias out, or use head dim 192/128, 128 "
       "or 64; reason: a bias leaves too few registers for the rest on gfx942"},
      {"attention_forward bf16 b1 q512 k512 h8 d96 cache=i8", "gfx950",
       "head dim 96 with a cache in i8 has no kernel on gfx950; use head dim 64, 128, 192/128 or 256, or a cache in 16 "
       "bits; reason: cache= has no kernel with head dim 96, which tiles pad"},
      {"attention_forward bf16 b1 q512 k512 h8 d128 queries=e4m3 softcap=5", "gfx950",
       "queries=e4m3 with softcap has no kernel on gfx950; leave softcap out, or use q in 16 bits; reason: softcap has "
       "no kernel beside queries=e4m3"},
      // Whichever modifier is left out, the other one is in the way.
      {"attention_forward bf16 b1 q512 k512 h8 d256 qk=i8 cache_scales=token trans_q trans_k trans_v trans_o causal "
       "chunked=300 softcap=50 alibi=h",
       "gfx942",
       "head dim 256 with a scale for each token and qk=i8 has no kernel on gfx942; use head dim 64, or a scale for each "
       "head, or q and k in 16 bits; reason: softcap leaves too few registers for the rest on gfx942"},
      // The rule's own words.
      {"attention_forward bf16 b1 q512 k512 h8 d128 lists=64x64", "gfx1201",
       "a list of key blocks has no kernel where waves have 32 lanes, as on gfx1201; leave the list of key blocks out"},
      {"attention_forward bf16 b1 q512 k512 h8 d264", "gfx950",
       "head dim 264 has no kernel on gfx950; use head dim 256, 192/128, 128 or 64"},
      {"attention_forward bf16 b1 q512 k512 h8 d104 cache=e4m3", "gfx942",
       "a cache in e4m3 has no kernel on gfx942; use a cache in 16 bits; reason: cache=e4m3: gfx942 reads the FNUZ "
       "encoding"},
      // Two words at once.
      {"attention_forward bf16 b1 q512 k512 h8 d256 layout=paged:64:vectorised", "gfx1201",
       "head dim 256 with a vectorised cache has no kernel on gfx1201; use head dim 192/128 and pages of rows; reason: "},
      {"attention_backward bf16 b1 q64 k64 h2 d96", "gfx950",
       "head dim 96 has no kernel on gfx950; use head dim 64, 128, 192/128 or 256"},
      {"attention_backward bf16 b1 q64 k64 h2 d256 causal", "gfx1201",
       "head dim 256 has no kernel on gfx1201; use head dim 128 or 64; reason: d256 takes more than the 256 registers"},
      {"attention_latent bf16 b1 q1 k512 h16 d576/512 cache=e4m3", "gfx942",
       "a cache in e4m3 has no kernel on gfx942; use a cache in e4m3_fnuz, e5m2_fnuz, i8 or 16 bits; reason: cache=e4m3: "
       "gfx942 reads the FNUZ encoding"},
      {"sparse_indexer e4m3 b1 q16 k512 h32 top=64", "gfx942",
       "queries and keys in e4m3 has no kernel on gfx942; use queries and keys in e4m3_fnuz, bf16 or fp16; reason: "},
      {"cache_append bf16 b1 q16 h8 d128 page=16 cache=e4m3", "gfx942",
       "a cache in e4m3 has no kernel on gfx942; use a cache in e4m3_fnuz, e5m2_fnuz, i8 or bf16; reason: "},
      // And three.
      {"attention_forward fp16 b1 q100 k300 h8 d256 layout=paged:64:vectorised scores=fp16 bias=bh", "gfx1201",
       "head dim 256 with scores=fp16 and a vectorised cache has no kernel on gfx1201; leave scores=fp16 out and use head dim "
       "192/128 and pages of rows; reason: "},
      // Nothing helps.
      {"attention_latent bf16 b1 q1 k512 h16 d576/512", "gfx1201", "attention_latent has no kernels for gfx1201: "},
  };
  for (const auto& [line, target, told] : all) {
    const std::string refusal = refusal_on(line, target);
    EXPECT_TRUE(refusal.starts_with(told)) << line << "\n  " << refusal << "\n  " << told;
  }
}

}  // namespace
}  // namespace wavejit::families
