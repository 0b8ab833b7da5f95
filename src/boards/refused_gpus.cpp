// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "boards/board.h"
#include "targets/targets.h"
#include "vocabulary/gpus.h"

namespace wavejit::boards {
namespace {

// "CDNA 3, CDNA 4 and RDNA 4"
std::string architectures_with_kernels() {
  std::vector<std::string_view> names;
  for (const vocabulary::GpusOfTarget& gpus : vocabulary::gpus_by_target())
    if (gpus.refused.empty() && !std::ranges::contains(names, gpus.architecture)) names.push_back(gpus.architecture);
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text.append(i == 0 ? "" : i + 1 == names.size() ? " and " : ", ").append(names[i]);
  return text;
}

}  // namespace

std::optional<std::string> why_no_kernels(std::string_view id) {
  const std::string_view processor = id.substr(0, id.find_first_of(":@"));
  const auto gpus = vocabulary::gpus_by_target();
  const auto known = std::ranges::find(gpus, processor, &vocabulary::GpusOfTarget::target);
  if (known == gpus.end() || known->refused.empty()) return std::nullopt;
  return "(" + std::string(known->refused) + ") has no kernels: it is " + std::string(known->architecture) +
         ", and they are written for " + architectures_with_kernels() +
         (targets::find_target(processor) == nullptr ? "" : "; it is compiled for and inspected only");
}

std::string why_no_board(std::string_view id) {
  if (auto why = why_no_kernels(id)) return *std::move(why);
  if (const auto told = vocabulary::target_of_named_gpu(id)) return "is a GPU's name, not a target: " + *told;
  return targets::find_target(id) == nullptr ? "is not known" : "is compiled and inspected only";
}

}  // namespace wavejit::boards
