// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/offline/explain.h"

#include <algorithm>
#include <utility>

#include "boards/board.h"
#include "boards/known_products.h"
#include "families/call/family.h"
#include "runtime/kernels/kernel_source.h"
#include "runtime/libraries/remote_library.h"

namespace wavejit::runtime {
namespace {

Result<boards::Board> choose_target(const Config& config, std::string_view name) {
  if (name.empty()) {
    if (!config.device.value.simulated) {
      return fail(WAVEJIT_INVALID_ARGUMENT, "target is not given and device = " + to_text(config.device.value) +
                                                " does not tell it without being opened; accepted: a target (" +
                                                boards::known_products() + ") or WAVEJIT_DEVICE=sim:<target>");
    }
    name = config.device.value.target;
  }
  const auto target = boards::find_board(name);
  if (!target) {
    return fail(WAVEJIT_INVALID_ARGUMENT, "target = \"" + std::string(name) + "\" " + boards::why_no_board(name) +
                                              "; accepted: " + boards::known_products() +
                                              ", and boards of them: <target>@<dies>x<compute units of a die>");
  }
  return *target;
}

// Labels of one width, so that a terminal shows two columns.
std::string row(std::string_view label, std::string_view text) {
  std::string line(label);
  line.resize(std::max<std::size_t>(9, line.size() + 1), ' ');
  return line + std::string(text);
}

std::string where(KernelSource& source, const cache::Key& key) {
  if (source.cache().mode() == cache::Mode::off) return "the disk cache is off";
  const auto hit = source.cache().lookup(key);
  return hit ? "on disk (" + hit->layer() + ")" : "not on disk";
}

std::string where_remotely(const Config& config, const cache::Key& key) {
  auto remote = open_remote(config);
  if (!remote) return remote.error();
  const std::string name = remote->name;
  std::string problem;
  cache::CacheOptions options;
  options.mode = cache::Mode::read_only;
  options.remote = *std::move(remote);
  options.on_event = [&](const cache::Event& event) { problem = event.what; };
  cache::Cache fleet(std::move(options));
  if (fleet.remote_has(key)) return name + " has it";
  return problem.empty() ? name + " has it not" : problem;
}

}  // namespace

Result<std::vector<std::string>> explain(const Config& config, std::string_view descriptor, std::string_view target,
                                         CodegenLibrary& codegen) {
  auto problem = families::parse_problem(descriptor);
  if (!problem) return std::unexpected(std::move(problem.error()));
  auto row_of_target = choose_target(config, target);
  if (!row_of_target) return std::unexpected(std::move(row_of_target.error()));
  const families::Toggles toggles = toggles_of(config);
  const auto shape = (*problem)->shape(*row_of_target, toggles);
  if (!shape) return std::unexpected(shape.error());
  auto route = shape->family->route(*shape, *row_of_target, toggles);
  if (!route) return std::unexpected(std::move(route.error()));
  const families::Explanation why = shape->family->explain(*shape, *row_of_target, toggles);

  Logger logger(config.log_level.value, log_sink(config));
  // Looks at the machine's own layers; a lookup through the remote one would publish what it finds.
  Config local = config;
  local.cache_remote = {};
  KernelSource source(local, codegen, logger);

  std::vector<std::string> lines = {
      row("problem", (*problem)->text()),
      row("target", boards::board_name(*row_of_target) + " (" + std::string(row_of_target->product) + ")"),
      row("route", why.description),
  };
  for (const families::Note& note : (*problem)->notes(*row_of_target, toggles))
    lines.push_back(row(note.label, note.text));
  std::vector<cache::Key> keys;
  for (const families::RoutedKernel& kernel : route->kernels) {
    auto key = source.key_of(kernel.spec);
    if (!key) return std::unexpected(std::move(key.error()));
    lines.push_back(row(kernel.label, kernel.spec.text()));
    lines.push_back(row("key", key->hex() + "  " + where(source, *key)));
    if (keys.empty()) {
      lines.push_back(row("key text", key->text()));
      lines.push_back(row("cost", why.cost));
    }
    keys.push_back(*std::move(key));
  }
  if (config.cache_remote.value) {
    // In the order of the keys.
    for (const cache::Key& one : keys) lines.push_back(row("remote", where_remotely(config, one)));
  }
  for (const families::Refusal& refusal : why.refused)
    lines.push_back(row("refused", refusal.kernel + ": " + refusal.reason));
  for (const std::string& setting : describe(config)) lines.push_back(row("setting", setting));
  for (const std::string& warning : config.warnings) lines.push_back(row("warning", warning));
  return lines;
}

Result<std::vector<std::string>> kernels_of(const Config& config, std::string_view descriptor,
                                            std::string_view target) {
  auto problem = families::parse_problem(descriptor);
  if (!problem) return std::unexpected(std::move(problem.error()));
  auto row_of_target = choose_target(config, target);
  if (!row_of_target) return std::unexpected(std::move(row_of_target.error()));
  const families::Toggles toggles = toggles_of(config);
  const auto shape = (*problem)->shape(*row_of_target, toggles);
  if (!shape) return std::unexpected(shape.error());
  const auto route = shape->family->route(*shape, *row_of_target, toggles);
  if (!route) return std::unexpected(route.error());
  std::vector<std::string> specs;
  for (const families::RoutedKernel& kernel : route->kernels) specs.push_back(kernel.spec.text());
  return specs;
}

std::vector<std::string> supported() {
  std::vector<std::string> lines;
  for (const boards::Board& target : boards::all_products()) {
    for (const families::Family* family : families::registered()) {
      const auto lacking = family->lacks(target);
      lines.push_back(std::string(target.id) + " (" + std::string(target.product) +
                      "): " + std::string(family->name()) + (lacking ? "; " + *lacking : family->supported(target)));
    }
  }
  for (const families::Family* family : families::registered())
    for (std::string& line : family->supported_everywhere()) lines.push_back(std::move(line));
  return lines;
}

}  // namespace wavejit::runtime
