// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <optional>
#include <utility>

#include "boards/board.h"
#include "targets/targets.h"

namespace wavejit::boards {
namespace {

struct RefusedGpu {
  std::string_view target;
  std::string_view products;
  std::string_view architecture;
};

// Sources: AMD's lists of GPUs that ROCm and HIP know, and LLVM's of AMDGPU processors.
constexpr RefusedGpu refused_gpus[] = {
    {"gfx900", "Radeon RX Vega 56 and 64", "Vega"},
    {"gfx906", "Instinct MI50 and MI60, Radeon VII", "Vega"},
    {"gfx908", "Instinct MI100", "CDNA 1"},
    {"gfx90a", "Instinct MI210, MI250 and MI250X", "CDNA 2"},
    {"gfx1010", "Radeon RX 5700 XT", "RDNA 1"},
    {"gfx1030", "Radeon RX 6800, RX 6800 XT and RX 6900 XT", "RDNA 2"},
    {"gfx1031", "Radeon RX 6700 XT", "RDNA 2"},
    {"gfx1032", "Radeon RX 6600 and RX 6600 XT", "RDNA 2"},
    {"gfx1100", "Radeon RX 7900 XTX, RX 7900 XT and PRO W7900", "RDNA 3"},
    {"gfx1101", "Radeon RX 7800 XT and RX 7700 XT", "RDNA 3"},
    {"gfx1102", "Radeon RX 7600", "RDNA 3"},
    {"gfx1103", "Radeon 780M", "RDNA 3"},
    {"gfx1150", "Radeon 890M", "RDNA 3.5"},
    {"gfx1151", "Radeon 8060S", "RDNA 3.5"},
};

}  // namespace

std::optional<std::string> why_no_kernels(std::string_view id) {
  const std::string_view processor = id.substr(0, id.find_first_of(":@"));
  const auto* const known = std::ranges::find(refused_gpus, processor, &RefusedGpu::target);
  if (known == std::end(refused_gpus)) return std::nullopt;
  return "(" + std::string(known->products) + ") has no kernels: it is " + std::string(known->architecture) +
         ", and they are written for CDNA 3, CDNA 4 and RDNA 4" +
         (targets::find_target(processor) == nullptr ? "" : "; it is compiled for and inspected only");
}

std::string why_no_board(std::string_view id) {
  if (auto why = why_no_kernels(id)) return *std::move(why);
  return targets::find_target(id) == nullptr ? "is not known" : "is compiled and inspected only";
}

}  // namespace wavejit::boards
