#include "model_error.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

namespace wavejit::bench {
namespace {

ModelError read_error() {
  try {
    const auto json = nlohmann::json::parse(std::ifstream(WAVEJIT_MODEL_ERROR));
    return {.kernels = json.at("kernels"),
            .too_low = json.at("too_low_percent"),
            .too_high = json.at("too_high_percent"),
            .root_mean_square = json.at("root_mean_square_percent")};
  } catch (const nlohmann::json::exception& error) {
    fmt::print(stderr, "{}: {}; ./dev bench timing-model writes it anew\n", WAVEJIT_MODEL_ERROR, error.what());
    std::exit(1);
  }
}

}  // namespace

std::string ModelError::to_json() const {
  return fmt::format(
      "{{\n  \"kernels\": {},\n  \"too_low_percent\": {:.1f},\n  \"too_high_percent\": {:.1f},\n"
      "  \"root_mean_square_percent\": {:.1f}\n}}\n",
      kernels, too_low, too_high, root_mean_square);
}

const ModelError& model_error() {
  static const ModelError error = read_error();
  return error;
}

}  // namespace wavejit::bench
