// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/support_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "tools/letters.h"
#include "wavejit/wavejit.h"

namespace wavejit::tools {

namespace {

// What a family without kernels says: "walk has no kernels for gfx1201: …" (lacks_kernels, templates/attention).
constexpr std::string_view no_kernels = " has no kernels for ";

// "gfx942 (MI300X): attention_forward; dtypes bf16 fp16; …"; nothing where no target stands in front.
std::optional<SupportRow> row_of(const std::string& line) {
  const std::size_t product = line.find(" (");
  const std::size_t family = line.find("): ");
  if (product == std::string::npos || product != line.find(' ') || family == std::string::npos) return std::nullopt;
  SupportRow row{.target = line.substr(0, product),
                 .product = line.substr(product + 2, family - product - 2),
                 .family = {},
                 .facts = {}};
  for (std::size_t at = family + 3; at < line.size();) {
    const std::size_t end = std::min(line.find("; ", at), line.size());
    std::string fact = line.substr(at, end - at);
    if (row.family.empty()) {
      row.family = std::move(fact);
    } else {
      row.facts.push_back(std::move(fact));
    }
    at = end + 2;
  }
  row.kernels = row.facts.empty() || !row.facts.front().contains(no_kernels);
  return row;
}

// "head dims 64 128 256" → "64 128 256"
std::optional<std::string> fact_behind(const SupportRow& row, std::string_view name) {
  for (const std::string& fact : row.facts)
    if (fact.starts_with(name)) return fact.substr(name.size());
  return std::nullopt;
}

// 0: it begins with a word.
int number_in_front(std::string_view text) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// A few words: types other than those of every family, the width of a KV cache's elements, the largest head dim D.
std::string cell_of(const SupportRow& row) {
  if (!row.kernels) return "no";
  std::string cell = "yes";
  if (const auto types = fact_behind(row, "dtypes "); types && *types != "bf16 fp16") {
    cell = *types;
    std::ranges::replace(cell, ' ', '/');
  }
  if (fact_behind(row, "K and V of 8 bits ")) cell += ", 8-bit cache";
  if (const auto dims = fact_behind(row, "head dims ")) {
    std::string numbers = dims->substr(0, dims->find(" ("));
    const std::size_t last = numbers.rfind(' ');
    // Ascending ones, and "multiples of 8 up to 512", go up to the last; latent attention lists widths of models.
    const std::string_view all = numbers;
    if (last != std::string::npos && number_in_front(all) < number_in_front(all.substr(last + 1))) {
      cell += ", D to " + numbers.substr(last + 1);
    } else {
      // "576/512 512 320/256" → "576/512, 512 or 320/256"
      if (last != std::string::npos) numbers.replace(last, 1, " or ");
      for (std::size_t at = numbers.find(' '); at < last && at != std::string::npos; at = numbers.find(' ', at + 2))
        numbers.replace(at, 1, ", ");
      cell += ", D " + numbers;
    }
  }
  return cell;
}

}  // namespace

Support support(std::string_view target) {
  std::pair<std::string, Support> found{small_letters(target), {}};
  const auto take = [](void* context, const char* line) {
    auto& [wanted, all] = *static_cast<std::pair<std::string, Support>*>(context);
    if (auto row = row_of(line)) {
      if (wanted.empty() || wanted == row->target || wanted == small_letters(row->product))
        all.rows.push_back(*std::move(row));
    } else {
      all.everywhere.emplace_back(line);
    }
  };
  static_cast<void>(wavejit_supported(take, &found));  // fails without memory only
  return std::move(found.second);
}

std::string support_text(const Support& support) {
  std::string text;
  std::string_view target;
  for (const SupportRow& row : support.rows) {
    if (row.target != target) text += fmt::format("{}{} ({})\n", text.empty() ? "" : "\n", row.target, row.product);
    target = row.target;
    text += fmt::format("  {}\n", row.family);
    for (const std::string& fact : row.facts) text += fmt::format("    {}\n", fact);
  }
  if (!support.everywhere.empty()) text += "\nall targets\n";
  for (const std::string& fact : support.everywhere) text += fmt::format("  {}\n", fact);
  return text;
}

std::string support_markdown(const Support& support) {
  std::vector<std::string> targets;
  std::vector<std::string> families;
  std::string head = "|";
  std::string line = "|---";
  for (const SupportRow& row : support.rows) {
    if (!std::ranges::contains(families, row.family)) families.push_back(row.family);
    if (std::ranges::contains(targets, row.target)) continue;
    targets.push_back(row.target);
    head += fmt::format(" | {} ({})", row.target, row.product);
    line += "|---";
  }
  std::string text = fmt::format("{} |\n{}|\n", head, line);
  for (const std::string& family : families) {
    text += fmt::format("| `{}`", family);
    for (const std::string& target : targets) {
      const auto row = std::ranges::find_if(
          support.rows, [&](const SupportRow& of) { return of.target == target && of.family == family; });
      text += fmt::format(" | {}", row == support.rows.end() ? "no" : cell_of(*row));
    }
    text += " |\n";
  }
  return text;
}

std::string support_json(const Support& support) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const SupportRow& row : support.rows)
    rows.push_back({{"target", row.target},
                    {"product", row.product},
                    {"family", row.family},
                    {"kernels", row.kernels},
                    {"facts", row.facts}});
  return nlohmann::ordered_json({{"rows", rows}, {"all_targets", support.everywhere}}).dump(2) + "\n";
}

}  // namespace wavejit::tools
