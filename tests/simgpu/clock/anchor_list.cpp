// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "anchors.h"

namespace wavejit::simgpu::testing {
namespace {

struct AnchorFile {
  std::vector<Anchor> anchors;
  std::vector<FormerAnchor> former;
};

AnchorFile read_file() {
  AnchorFile file;
  try {
    const auto json = nlohmann::json::parse(std::ifstream(WAVEJIT_ANCHORS));
    for (const auto& row : json.at("anchors")) {
      file.anchors.push_back(
          {.kind = row.at("kind"),
           .id = row.at("id"),
           .target = row.at("target"),
           .what = row.at("what"),
           .unit = row.at("unit"),
           .published = row.at("published"),
           .source = row.at("source"),
           .before = row.at("before").is_null() ? std::nullopt : std::optional(row.at("before").get<double>()),
           .differs = row.at("differs")});
    }
    for (const auto& row : json.at("left")) file.former.push_back({.what = row.at("what"), .why = row.at("why")});
  } catch (const nlohmann::json::exception& error) {
    std::fprintf(stderr, "%s: %s\n", WAVEJIT_ANCHORS, error.what());
    std::exit(1);
  }
  return file;
}

const AnchorFile& anchor_file() {
  static const AnchorFile file = read_file();
  return file;
}

}  // namespace

double Anchor::error(double predicted) const {
  return unit == "% of cycles" ? predicted - published : 100 * (predicted - published) / published;
}

const std::vector<Anchor>& anchors() { return anchor_file().anchors; }

const std::vector<FormerAnchor>& former_anchors() { return anchor_file().former; }

}  // namespace wavejit::simgpu::testing
