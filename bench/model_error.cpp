// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "model_error.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

namespace wavejit::bench {
namespace {

ModelErrors read_errors() {
  ModelErrors errors;
  try {
    const auto json = nlohmann::json::parse(std::ifstream(WAVEJIT_MODEL_ERROR));
    for (const auto& [kind, row] : json.items()) {
      errors[kind] = {.anchors = row.at("anchors"),
                      .too_low = row.at("too_low_percent"),
                      .too_high = row.at("too_high_percent"),
                      .root_mean_square = row.at("root_mean_square_percent")};
    }
    static_cast<void>(errors.at("quoted"));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}; ./dev bench timing-model writes it anew\n", WAVEJIT_MODEL_ERROR, error.what());
    std::exit(1);
  }
  return errors;
}

}  // namespace

std::string to_json(const ModelErrors& errors) {
  std::string text;
  for (const auto& [kind, error] : errors) {
    text += fmt::format(
        "{}  \"{}\": {{\n    \"anchors\": {},\n    \"too_low_percent\": {:.1f},\n    \"too_high_percent\": {:.1f},\n"
        "    \"root_mean_square_percent\": {:.1f}\n  }}",
        text.empty() ? "" : ",\n", kind, error.anchors, error.too_low, error.too_high, error.root_mean_square);
  }
  return "{\n" + text + "\n}\n";
}

const ModelErrors& model_errors() {
  static const ModelErrors errors = read_errors();
  return errors;
}

const ModelError& model_error() { return model_errors().at("quoted"); }

}  // namespace wavejit::bench
