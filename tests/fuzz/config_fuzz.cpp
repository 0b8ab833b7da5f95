// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The environment and the options of an engine: texts separated by zero bytes, dealt out to every variable and field.
// A variable is never an error (but for the device), an option never a crash, and what is chosen can be described.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "forge.h"
#include "runtime/config.h"

namespace {

using wavejit::runtime::Environment;

constexpr std::array variables = {&Environment::device,
                                  &Environment::cache_directory,
                                  &Environment::cache_mode,
                                  &Environment::cache_layers,
                                  &Environment::cache_limit,
                                  &Environment::cache_lock_wait,
                                  &Environment::lowering,
                                  &Environment::compile,
                                  &Environment::output_store,
                                  &Environment::log_level,
                                  &Environment::pipeline,
                                  &Environment::stagger,
                                  &Environment::setprio,
                                  &Environment::lazy_rescale,
                                  &Environment::xcd_swizzle,
                                  &Environment::kv_splits,
                                  &Environment::xdg_cache_home,
                                  &Environment::home,
                                  &Environment::cache_remote,
                                  &Environment::cache_remote_key_file,
                                  &Environment::cache_remote_connect_timeout,
                                  &Environment::cache_remote_timeout};
constexpr std::array options = {&wavejit_engine_options::device,
                                &wavejit_engine_options::cache_directory,
                                &wavejit_engine_options::cache_mode,
                                &wavejit_engine_options::cache_layers,
                                &wavejit_engine_options::cache_limit,
                                &wavejit_engine_options::cache_lock_wait,
                                &wavejit_engine_options::output_store,
                                &wavejit_engine_options::kv_splits,
                                &wavejit_engine_options::log_level,
                                &wavejit_engine_options::cache_remote,
                                &wavejit_engine_options::cache_remote_timeout};

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
