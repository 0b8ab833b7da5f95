// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/published_models.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/letters.h"

namespace wavejit::tools {
namespace {

constexpr std::string_view published_text =
#include "tools/published_models.inc"
    ;

}  // namespace

const std::vector<PublishedModel>& published_models() {
  static const std::vector<PublishedModel> all = [] {
    std::vector<PublishedModel> models;
    for (const nlohmann::json& row : nlohmann::json::parse(published_text))
      models.push_back({.name = row.at("model"), .seen = row.at("seen"), .config = row.at("config").dump()});
    return models;
  }();
  return all;
}

const PublishedModel* published_model(std::string_view name) {
  const std::vector<PublishedModel>& all = published_models();
  const auto found = std::ranges::find_if(
      all, [&](const PublishedModel& model) { return small_letters(model.name) == small_letters(name); });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace wavejit::tools
