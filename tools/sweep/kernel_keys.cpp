// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/sweep/kernel_keys.h"

#include <string_view>

namespace wavejit::tools::sweep {
namespace {

constexpr std::string_view key_label = "key      ";

// "key      08c2388953fe5fba…  not on disk"
void take(void* context, const char* line) {
  std::string_view text = line;
  if (!text.starts_with(key_label)) return;
  text.remove_prefix(key_label.size());
  static_cast<std::string*>(context)->append(text.substr(0, text.find(' '))).append(" ");
}

}  // namespace

std::string kernel_keys(const wavejit_engine* engine, const std::string& pipeline, const std::string& descriptor) {
  const std::string target = wavejit_engine_target(engine);
  const std::string device = "sim:" + target;  // which is not opened
  wavejit_engine_options options{};
  options.size = sizeof options;
  options.device = device.c_str();
  options.pipeline = pipeline.c_str();
  std::string keys;
  if (wavejit_explain(&options, descriptor.c_str(), target.c_str(), take, &keys) != WAVEJIT_OK) return {};
  return keys;
}

}  // namespace wavejit::tools::sweep
