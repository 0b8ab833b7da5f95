// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/gpu_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "tools/targets.h"
#include "vocabulary/gpus.h"

namespace wavejit::tools {
namespace {

struct GpuRow {
  vocabulary::Gpu product;
  std::string kernels;               // "yes", "partly", "no"
  std::vector<std::string> missing;  // families
};

std::vector<GpuRow> gpu_rows(const Support& support) {
  std::vector<GpuRow> rows;
  for (const vocabulary::Gpu& product : vocabulary::listed_gpus()) {
    GpuRow row = {.product = product, .kernels = "no", .missing = {}};
    for (const SupportRow& family : support.rows) {
      if (family.target != product.target) continue;
      if (family.kernels)
        row.kernels = "yes";
      else
        row.missing.push_back(family.family);
    }
    if (row.kernels == "yes" && !row.missing.empty()) row.kernels = "partly";
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string answer_of(const GpuRow& row, std::string_view quote) {
  if (row.kernels == "yes") return "yes: all families";
  if (row.kernels == "no") return fmt::format("no: no family has kernels for {}", row.product.target);
  std::vector<std::string> quoted;
  quoted.reserve(row.missing.size());
  for (const std::string& family : row.missing) quoted.push_back(fmt::format("{0}{1}{0}", quote, family));
  return fmt::format("partly: all families but {}", joined(quoted, ", "));
}

}  // namespace

std::string gpus_markdown(const Support& support) {
  std::string text = "| GPU | target | kernels |\n|---|---|---|\n";
  for (const GpuRow& row : gpu_rows(support))
    text += fmt::format("| {} | {} | {} |\n", row.product.name, row.product.target, answer_of(row, "`"));
  return text;
}

std::string gpus_text(const Support& support) {
  std::string text;
  for (const GpuRow& row : gpu_rows(support))
    text += fmt::format("{:<26} {:<8} {}\n", row.product.name, row.product.target, answer_of(row, ""));
  return text;
}

std::string gpus_json(const Support& support) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const GpuRow& row : gpu_rows(support))
    rows.push_back({{"gpu", row.product.name},
                    {"target", row.product.target},
                    {"supported", row.kernels},
                    {"families_without_kernels", row.missing}});
  return rows.dump(2) + "\n";
}

}  // namespace wavejit::tools
