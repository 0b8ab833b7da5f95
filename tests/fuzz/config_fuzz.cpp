// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The environment and the options of an engine: texts separated by zero bytes, dealt out to every variable and field.
// A variable is never an error (but for the device), an option never a crash, and what is chosen can be described.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "forge.h"
#include "runtime/settings/config.h"

namespace {

using wavejit::runtime::Environment;

constexpr std::array variables = {
#define WAVEJIT_OPTION(field, variable, flag, scope, shape, values, standard, help) &Environment::field,
#include "wavejit/options.def"
#undef WAVEJIT_OPTION
    &Environment::xdg_cache_home, &Environment::home};
constexpr std::array options = {
#define WAVEJIT_OPTION(field, variable, flag, scope, shape, values, standard, help) &wavejit_engine_options::field,
#include "wavejit/options.def"
#undef WAVEJIT_OPTION
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using wavejit::fuzz::require;
  std::array<std::string, variables.size() + options.size()> texts;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  for (std::string& text : texts) {
    const std::size_t end = std::min(rest.find('\0'), rest.size());
    text = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  Environment environment;
  for (std::size_t i = 0; i < variables.size(); ++i) environment.*variables[i] = texts[i].c_str();
  const auto from_environment = wavejit::runtime::make_config(nullptr, environment);
  if (from_environment) {
    for (const std::string& line : describe(*from_environment)) require(!line.empty());
  } else {
    require(from_environment.error().status == WAVEJIT_NO_DEVICE);
  }
  wavejit_engine_options given{};
  given.size = sizeof given;
  for (std::size_t i = 0; i < options.size(); ++i) given.*options[i] = texts[variables.size() + i].c_str();
  const auto from_options = wavejit::runtime::make_config(&given, environment);
  require(from_options || !from_options.error().detail.empty());
  return 0;
}
