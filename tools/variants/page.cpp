// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/variants/page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tools/targets.h"
#include "tools/variants/routes.h"
#include "vocabulary/nearest_word.h"

namespace wavejit::tools {
namespace {

constexpr const char* not_there = "not there yet";

std::string descriptor_of(const Variants& variants, const Variant& variant, const std::string& target,
                          const std::string& type, const std::string& dim) {
  return with(with(with(std::string(variant.descriptor), "type", type), "dim", dim), "format",
              variants.format_of(target));
}
std::string example_of(const Variants& variants, const Variant& variant) {
  return descriptor_of(variants, variant, known_targets().back(), variants.types().front(),
                       variants.head_dims().front());
}

// Reasons of refusals, numbered: a table says "refused (1)", and they stand below it.
class Notes {
 public:
  int number_of(const std::string& reason) {
    const auto found = std::ranges::find(reasons_, reason);
    if (found != reasons_.end()) return static_cast<int>(found - reasons_.begin()) + 1;
    reasons_.push_back(reason);
    return static_cast<int>(reasons_.size());
  }
  std::string text() const {
    std::string text;
    for (std::size_t i = 0; i < reasons_.size(); ++i) text += fmt::format("\n({}) {}\n", i + 1, reasons_[i]);
    return text;
  }

 private:
  std::vector<std::string> reasons_;
};

// A route, or its refusal: by number where there are notes.
std::string text_of(const RouteAnswer& route, Notes* notes) {
  if (route.found) return route.text;
  return notes == nullptr ? "refused: " + route.reason : fmt::format("refused ({})", notes->number_of(route.reason));
}

// Head dims that take one way, and that way.
struct Way {
  std::vector<std::string> dims;
  RouteAnswer route;
};

std::vector<Way> ways_of(const Variants& variants, const Variant& variant, const std::string& target,
                         const std::string& type) {
  std::vector<Way> ways;
  for (const std::string& dim : variants.head_dims()) {
    // Families without head dims have one way.
    if (variant.descriptor.find("{dim}") == std::string::npos && !ways.empty()) break;
    RouteAnswer route = route_of(descriptor_of(variants, variant, target, type, dim), target);
    const auto same = std::ranges::find_if(ways, [&](const Way& way) {
      return way.route.found == route.found && way.route.text == route.text && way.route.reason == route.reason;
    });
    if (same != ways.end()) {
      same->dims.push_back(dim);
    } else {
      ways.push_back({.dims = {dim}, .route = std::move(route)});
    }
  }
  return ways;
}

bool has_dims(const Variant& variant) { return variant.descriptor.find("{dim}") != std::string::npos; }

// "64 128: dualwave 256x64; 192/128 256: generic 128x64"
std::string cell(const Variants& variants, const Variant& variant, const std::string& target, const std::string& type,
                 Notes* notes) {
  std::vector<std::string> parts;
  for (const Way& way : ways_of(variants, variant, target, type)) {
    const std::string what = text_of(way.route, notes);
    parts.push_back(has_dims(variant) ? fmt::format("{}: {}", fmt::join(way.dims, " "), what) : what);
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

// By types; those that go the same way together.
std::vector<std::pair<std::string, std::string>> cells(const Variants& variants, const Variant& variant,
                                                       const std::string& target, Notes* notes) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const std::string& type : variants.types()) {
    std::string text = cell(variants, variant, target, type, notes);
    const auto same = std::ranges::find(all, text, &std::pair<std::string, std::string>::second);
    if (same != all.end()) {
      same->first += ", " + type;
    } else {
      all.emplace_back(type, std::move(text));
    }
  }
  return all;
}

std::string support_text(const Variants& variants, const Variant& variant, const std::string& target,
                         Notes* notes = nullptr) {
  if (variant.descriptor.empty()) return not_there;
  const auto all = cells(variants, variant, target, notes);
  if (all.size() == 1) return all.front().second;
  std::vector<std::string> parts;
  parts.reserve(all.size());
  for (const auto& [types, text] : all) parts.push_back(fmt::format("{}: {}", types, text));
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string text_of(const Variants& variants, const Variant& variant, const std::vector<std::string>& targets) {
  std::string text = fmt::format("{}: {}\n  {}\n", variant.name, variant.title, variant.meaning);
  if (variant.descriptor.empty()) {
    text += fmt::format("  {}. {}\n", not_there, variant.instead);
  } else {
    text += fmt::format("  as a descriptor  {}\n", example_of(variants, variant));
    for (const std::string& target : targets)
      text += fmt::format("  {:<16} {}\n", target, support_text(variants, variant, target));
  }
  const std::vector<std::string> names = variants.peers();
  for (std::size_t i = 0; i < names.size() && i < variant.peers.size(); ++i)
    text += fmt::format("  {:<16} {}\n", names[i].substr(0, names[i].find(' ')), variant.peers[i]);
  return text;
}

std::string support_matrix(const Variants& variants, std::span<const Variant> all) {
  std::string text = "| variant |";
  std::string line = "|---|";
  for (const std::string& target : known_targets()) {
    text += fmt::format(" {} |", target);
    line += "---|";
  }
  for (const std::string& peer : variants.peers()) {
    text += fmt::format(" {} |", peer);
    line += "---|";
  }
  text += "\n" + line + "\n";
  Notes notes;
  for (const Variant& variant : all) {
    text += fmt::format("| {} |", variant.title);
    for (const std::string& target : known_targets())
      text += fmt::format(" {} |", support_text(variants, variant, target, &notes));
    for (const std::string_view peer : variant.peers) text += fmt::format(" {} |", peer);
    text += "\n";
  }
  return text + notes.text();
}

std::string grid(const Variants& variants, const std::string& target) {
  std::string text = fmt::format("### {}\n\n| layout |", target);
  std::string line = "|---|";
  for (const GridWord& modifier : variants.modifiers()) {
    text += fmt::format(" {} |", modifier.title);
    line += "---|";
  }
  text += "\n" + line + "\n";
  Notes notes;
  for (const GridWord& layout : variants.layouts()) {
    text += fmt::format("| {} |", layout.title);
    for (const GridWord& modifier : variants.modifiers()) {
      const std::string descriptor =
          with(with(with(variants.grid_descriptor(), "layout", layout.words), "modifier", modifier.words), "type",
               variants.types().front());
      const RouteAnswer route = route_of(descriptor, target);
      text += fmt::format(" {} |",
                          text_of(route, &notes).substr(0, route.found ? route.text.find(' ') : std::string::npos));
    }
    text += "\n";
  }
  return text + notes.text() + "\n";
}

std::string tree(const Variants& variants, std::span<const Variant> all) {
  std::string text;
  int number = 1;
  const auto ask = [&](std::string_view question, std::string_view variant) {
    text += fmt::format("{}. {} **{}**\n", number++, question, variant);
  };
  for (const Variant& variant : all)
    if (!variant.question.empty()) ask(variant.question, variant.name);
  for (const Branch& branch : variants.decision_tree()) ask(branch.question, branch.variant);
  return text;
}

const Variant* find(std::span<const Variant> all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &Variant::name);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

Result<std::string> variants_text(const Variants& variants, std::span<const Variant> all, const std::string& name,
                                  const std::vector<std::string>& targets) {
  if (!name.empty()) {
    const Variant* variant = find(all, name);
    if (variant != nullptr) return text_of(variants, *variant, targets);
    std::vector<std::string> names;
    names.reserve(all.size());
    for (const Variant& each : all) names.emplace_back(each.name);
    return failed(ExitCode::usage, fmt::format("variant '{}' is not known{}", name,
                                               vocabulary::meant_or_list(name, names, "`wavejit variants`")));
  }
  std::string text;
  for (const Variant& variant : all) text += (text.empty() ? "" : "\n") + text_of(variants, variant, targets);
  return text;
}

std::string variants_page(const Variants& variants, std::span<const Variant> all) {
  std::string text =
      "# Variants of attention\n\n"
      "Made by `wavejit variants --markdown` from the tables that the route itself asks; a test holds this page against them.\n"
      "Head dims stand before the pipeline and the tile (query rows × keys) that a call of them takes. "
      "Where a kernel is refused, the reason stands.\n"
      "Whether something runs well is another question: the pages of predictions in [bench](../bench) "
      "say what the clock thinks of it. None of it has run on an AMD GPU.\n"
      "Targets of which some families have no kernels, such as gfx1201, have no column: `wavejit variants --target gfx1201` tells theirs.\n\n"
      "## Which one?\n\n"
      "The first question that is answered with yes decides.\n\n";
  text += tree(variants, all) + "\n## What there is\n\n";
  text += fmt::format("What {} have was read from their sources and documents, not tried.\n\n",
                      fmt::join(variants.peers(), " and "));
  text += support_matrix(variants, all) + "\n## What each is\n\n";
  for (const Variant& variant : all) {
    text += fmt::format("**{}** (`{}`). {}", variant.title, variant.name, variant.meaning);
    text += variant.descriptor.empty() ? fmt::format(" {}: {}\n\n", "Not there yet", variant.instead)
                                       : fmt::format("\n\n    {}\n\n", example_of(variants, variant));
  }
  text +=
      fmt::format("## Layouts and modifiers\n\nThe pipeline that `{}` takes. All of these words can be combined.\n\n",
                  with(with(with(variants.grid_descriptor(), "layout", "[layout]"), "modifier", "[modifier]"), "type",
                       variants.types().front()));
  for (const std::string& target : known_targets()) text += grid(variants, target);
  return text;
}

}  // namespace wavejit::tools
