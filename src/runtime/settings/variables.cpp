// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/settings/variables.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

#include "runtime/settings/pipeline_words.h"
#include "vocabulary/nearest_word.h"

namespace wavejit::runtime {
namespace {

// Read by libwavejit_simgpu.so (docs/environment.md).
constexpr std::array<std::string_view, 20> of_simulated_gpu = {"WAVEJIT_SIM_SCHEDULE",
                                                               "WAVEJIT_SIM_SEED",
                                                               "WAVEJIT_SIM_CHECK",
                                                               "WAVEJIT_SIM_ARRIVAL",
                                                               "WAVEJIT_SIM_ENGINE",
                                                               "WAVEJIT_SIM_TRANSLATE_AFTER",
                                                               "WAVEJIT_SIM_MATRIX",
                                                               "WAVEJIT_SIM_THREADS",
                                                               "WAVEJIT_SIM_TRANSCENDENTALS",
                                                               "WAVEJIT_SIM_INSTRUCTION_LIMIT",
                                                               "WAVEJIT_SIM_TARGET",
                                                               "WAVEJIT_SIM_QUEUE_PATIENCE",
                                                               "WAVEJIT_SIM_CYCLES",
                                                               "WAVEJIT_SIM_REPORT",
                                                               "WAVEJIT_SIM_SUMMARY",
                                                               "WAVEJIT_SIM_IGNORE",
                                                               "WAVEJIT_SIM_DRIVER_FILES",
                                                               "WAVEJIT_SIM_RULES",
                                                               "WAVEJIT_SIM_WARM",
                                                               "WAVEJIT_SIM_EVENT_COST"};

// What `./dev`, the tests and the benchmarks are told with. A program that they start finds them, too.
constexpr std::array<std::string_view, 12> prefixes_of_the_tree = {
    "WAVEJIT_TEST_", "WAVEJIT_WITHOUT_",   "WAVEJIT_DEBIAN_13", "WAVEJIT_SKIP_INSTALL",
    "WAVEJIT_HIP_",  "WAVEJIT_DEV_",       "WAVEJIT_KEEP_ROOT", "WAVEJIT_MIRROR",
    "WAVEJIT_TREE_", "WAVEJIT_EMPTY_HIP_", "WAVEJIT_PROGRAM",   "WAVEJIT_PASSES"};

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

// "WAVEJIT_STAGGER" of "stagger".
std::string variable_like(std::string_view word) {
  std::string name = "WAVEJIT_";
  for (const char letter : word)
    name += letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
  return name;
}

}  // namespace

std::vector<std::string> strange_variables(const std::vector<std::string>& names,
                                           std::span<const std::string_view> of_runtime) {
  std::vector<std::string> strangers;
  for (const std::string& name : names) {
    const auto begins = [&](std::string_view prefix) { return name.starts_with(prefix); };
    if (!name.starts_with("WAVEJIT_") || is_one_of(name, of_runtime) || is_one_of(name, of_simulated_gpu) ||
        std::ranges::any_of(prefixes_of_the_tree, begins))
      continue;
    strangers.push_back(name);
  }
  std::ranges::sort(strangers);
  return strangers;
}

std::string warning_of(std::string_view stranger, std::span<const std::string_view> of_runtime) {
  for (const PipelineWord& word : known_pipeline_words()) {
    if (stranger == variable_like(word.name))
      return std::string(stranger) + " is no variable of wavejit and ignored; write WAVEJIT_PIPELINE=\"auto " +
             std::string(word.example) + "\"";
  }
  std::string_view nearest;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (const auto& names : {of_runtime, std::span<const std::string_view>(of_simulated_gpu)}) {
    for (const std::string_view name : names) {
      const std::size_t away = vocabulary::mistakes_between(stranger, name);
      if (away >= least) continue;
      least = away;
      nearest = name;
    }
  }
  return std::string(stranger) + " is no variable of wavejit and ignored; the nearest is " + std::string(nearest);
}

}  // namespace wavejit::runtime
