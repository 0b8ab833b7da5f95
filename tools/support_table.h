// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What `wavejit supported` prints: the library's lines (wavejit_supported) as rows, and the rows as text, Markdown, JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wavejit::tools {

// One family on one target.
struct SupportRow {
  std::string target;              // "gfx942"
  std::string product;             // "MI300X"
  std::string family;              // "attention_forward"
  std::vector<std::string> facts;  // "dtypes bf16 fp16", "LSE on request", …
  bool kernels = true;             // false: there are none, and facts has the reason
};

struct Support {
  std::vector<SupportRow> rows;
  std::vector<std::string> everywhere;  // facts of all targets, "lengths: queries 1 or more, …"
};

// From the library. `target`: an id or a product's name in any case ("gfx942", "mi300x"); empty: all.
Support support(std::string_view target = {});

// A heading for each target and family, a fact a line.
std::string support_text(const Support& support);
// Families down, targets across, cells of a few words: the README's table.
std::string support_markdown(const Support& support);
std::string support_json(const Support& support);

}  // namespace wavejit::tools
