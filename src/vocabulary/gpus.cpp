// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "vocabulary/gpus.h"

#include <algorithm>
#include <cctype>

namespace wavejit::vocabulary {
namespace {

// Sources: the GPU specifications of ROCm's documentation (rocm.docs.amd.com, reference/gpu-specs, column "LLVM target
// name"), AMD's lists of GPUs that ROCm and HIP know, and the table of processors of LLVM's AMDGPUUsage.
constexpr GpusOfTarget table[] = {
    {.target = "gfx942", .architecture = "CDNA 3", .listed = {"MI300X", "MI300A", "MI325X"}},
    {.target = "gfx950", .architecture = "CDNA 4", .listed = {"MI350X", "MI355X"}},
    {.target = "gfx1201", .architecture = "RDNA 4", .listed = {"Radeon AI PRO R9700", "RX 9070 XT", "RX 9070"}},
    {.target = "gfx1200", .architecture = "RDNA 4", .listed = {"RX 9060 XT", "RX 9060"}},
    {.target = "gfx900", .architecture = "Vega", .refused = "Radeon RX Vega 56 and 64"},
    {.target = "gfx906", .architecture = "Vega", .refused = "Instinct MI50 and MI60, Radeon VII"},
    {.target = "gfx908", .architecture = "CDNA 1", .refused = "Instinct MI100"},
    {.target = "gfx90a",
     .architecture = "CDNA 2",
     .refused = "Instinct MI210, MI250 and MI250X",
     .listed = {"MI250X", "MI250", "MI210"}},
    {.target = "gfx1010", .architecture = "RDNA 1", .refused = "Radeon RX 5700 XT"},
    {.target = "gfx1030", .architecture = "RDNA 2", .refused = "Radeon RX 6800, RX 6800 XT and RX 6900 XT"},
    {.target = "gfx1031", .architecture = "RDNA 2", .refused = "Radeon RX 6700 XT"},
    {.target = "gfx1032", .architecture = "RDNA 2", .refused = "Radeon RX 6600 and RX 6600 XT"},
    {.target = "gfx1100",
     .architecture = "RDNA 3",
     .refused = "Radeon RX 7900 XTX, RX 7900 XT and PRO W7900",
     .listed = {"RX 7900 XTX", "RX 7900 XT"}},
    {.target = "gfx1101", .architecture = "RDNA 3", .refused = "Radeon RX 7800 XT and RX 7700 XT"},
    {.target = "gfx1102", .architecture = "RDNA 3", .refused = "Radeon RX 7600"},
    {.target = "gfx1103", .architecture = "RDNA 3", .refused = "Radeon 780M"},
    {.target = "gfx1150", .architecture = "RDNA 3.5", .refused = "Radeon 890M"},
    {.target = "gfx1151",
     .architecture = "RDNA 3.5",
     .refused = "Radeon 8060S",
     .listed = {"Strix Halo (Ryzen AI Max)"}},
};

// Letters and digits alone, without the words that stand before every Radeon's name and what is in brackets.
std::string bare(std::string_view name) {
  std::string letters;
  for (const char letter : name.substr(0, name.find(" (")))
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0)
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  for (const std::string_view word : {"radeon", "aipro"})
    if (letters.starts_with(word)) letters.erase(0, word.size());
  return letters;
}

}  // namespace

std::span<const GpusOfTarget> gpus_by_target() { return table; }

std::vector<Gpu> listed_gpus() {
  std::vector<Gpu> gpus;
  for (const GpusOfTarget& of_target : table)
    for (const std::string_view name : of_target.listed)
      if (!name.empty()) gpus.push_back({.name = name, .target = of_target.target});
  return gpus;
}

std::optional<Gpu> gpu_of_name(std::string_view name) {
  const std::string asked = bare(name);
  for (const Gpu& gpu : listed_gpus())
    if (bare(gpu.name) == asked) return gpu;
  return std::nullopt;
}

std::optional<std::string> target_of_named_gpu(std::string_view name) {
  const auto gpu = gpu_of_name(name);
  if (!gpu) return std::nullopt;
  const auto* const of_target = std::ranges::find(table, gpu->target, &GpusOfTarget::target);
  return std::string(gpu->name) + " is " + std::string(gpu->target) +
         (of_target->refused.empty() ? "" : ", which has no kernels");
}

}  // namespace wavejit::vocabulary
