// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The text of the option `pipeline`: a pipeline's name, and behind it words for developers. "dualwave stagger=off".
#pragma once

#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace wavejit::runtime {

struct PipelineWords {
  std::string name = "auto";
  // How kernels that can do it do it, as the user wrote it: "stagger=off o_store=scalar". What is so by default is no
  // word. A family reads them (families/kernel/toggles.h).
  std::string ways;
  // Words that pin a kernel: "ladder=early". `wavejit tune` tries them (docs/tune.md), and each family defines which it
  // accepts (families::check_pins).
  std::string pinned;
  bool lazy_rescale = true;
  std::optional<bool> xcd_swizzle;  // nothing: auto

  bool operator==(const PipelineWords&) const = default;
};

// Without a name it is "auto". The error is what stands behind "is".
std::expected<PipelineWords, std::string> parse_pipeline(std::string_view text);
std::string to_text(const PipelineWords& words);

// A word that this file knows, with a value that is not the default: "stagger=off".
struct PipelineWord {
  std::string_view name;
  std::string_view example;
};
std::span<const PipelineWord> known_pipeline_words();

}  // namespace wavejit::runtime
