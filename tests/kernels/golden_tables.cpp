// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/golden_tables.h"

#include <algorithm>
#include <cstdlib>
#include <format>
#include <fstream>
#include <sstream>

#include "families/call/family.h"
#include "kernels/facts.h"
#include "targets/targets.h"

namespace wavejit::tests {
namespace {

std::vector<families::KernelSpec> forward_specs() {
  std::vector<families::KernelSpec> specs;
  for (const auto& spec : all_kernel_specs()) specs.emplace_back(spec);
  return specs;
}

std::string path_of(std::string_view name) { return std::format("{}/{}.txt", WAVEJIT_GOLDEN_FOLDER, name); }

// Targets in part have kernels of all families in one table, whose lines say which.
std::vector<families::KernelSpec> specs_of_other_targets() {
  std::vector<families::KernelSpec> specs;
  std::ifstream file(path_of("other_targets"));
  for (std::string line; std::getline(file, line);)
    if (const auto spec = families::parse_spec(line.substr(0, line.find(": ")))) specs.push_back(*spec);
  return specs;
}

// What prebuild makes without a list.
std::vector<families::KernelSpec> every_spec(const families::Family& family) {
  std::vector<families::KernelSpec> specs;
  for (const targets::Target& target : targets::complete_targets())
    for (const families::Shape& shape : family.every_shape(target, {}))
      if (const auto route = family.route(shape, target, {}))
        for (const families::RoutedKernel& kernel : route->kernels)
          if (!std::ranges::contains(specs, kernel.spec)) specs.push_back(kernel.spec);
  return specs;
}

std::vector<GoldenTable> all_tables() {
  std::vector<GoldenTable> tables = {
      {"attention_forward", forward_specs},          {"splits", split_kernel_specs},
      {"softmax_lse", softmax_kernel_specs},         {"cache_append", append_kernel_specs},
      {"sparse_indexer", indexer_kernel_specs},      {"attention_latent", latent_kernel_specs},
      {"attention_backward", backward_kernel_specs}, {"other_targets", specs_of_other_targets},
  };
  for (const families::Family* family : families::registered())
    if (!std::ranges::contains(tables, family->name(), &GoldenTable::name))
      tables.push_back({family->name(), [family] { return every_spec(*family); }});
  return tables;
}

using Facts = std::map<std::string, long>;

// The fields behind the colon: "spec: instructions=… matrix=…".
Facts fields_of(const std::string& line) {
  Facts facts;
  std::istringstream words(line.substr(std::min(line.size(), line.find(": ") + 1)));
  for (std::string word; words >> word;)
    if (const std::size_t equal = word.find('='); equal != std::string::npos)
      facts[word.substr(0, equal)] = std::strtol(word.c_str() + equal + 1, nullptr, 10);
  return facts;
}

long waves_of_a_simd(std::string_view target, Facts& facts) {
  const targets::Target* const found = targets::find_target(target);
  if (found == nullptr || facts["vgprs"] == 0) return 0;
  const long handed_out = found->vgprs_handed_out;
  const long taken = (facts["vgprs"] + handed_out - 1) / handed_out * handed_out;
  return std::min<long>(found->waves_per_simd, found->vgprs_per_simd_lane / taken);
}

bool is_near(long before, long now) { return std::abs(now - before) * 50 <= before; }

}  // namespace

std::span<const GoldenTable> golden_tables() {
  static const std::vector<GoldenTable> tables = all_tables();
  return tables;
}

std::map<std::string, std::string> golden_lines(const GoldenTable& table) {
  std::map<std::string, std::string> lines;
  std::ifstream file(path_of(table.name));
  for (std::string line; std::getline(file, line);) lines[line.substr(0, line.find(':'))] = line;
  return lines;
}

ComparedFacts compare_facts(std::string_view target, const std::string& golden, const std::string& now) {
  Facts before = fields_of(golden);
  Facts facts = fields_of(now);
  ComparedFacts compared;
  if (before.size() != facts.size() || facts.empty()) {
    compared.broken.push_back(std::format("{}, was {}", now, golden));
    return compared;
  }
  before["waves_of_a_simd"] = waves_of_a_simd(target, before);
  facts["waves_of_a_simd"] = waves_of_a_simd(target, facts);
  for (const auto& [name, value] : facts) {
    const long was = before[name];
    if (value == was) continue;
    const std::string text = std::format("{}={}, was {}", name, value, was);
    const bool is_count = name == "instructions" || name == "vgprs" || name == "agprs";
    (is_count && is_near(was, value) ? compared.drifted : compared.broken).push_back(text);
  }
  return compared;
}

}  // namespace wavejit::tests
