// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/program/tuning.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <vector>

#include "families/call/words.h"
#include "targets/targets.h"
#include "templates/attention_backward/call/descriptor.h"
#include "templates/attention_backward/kernel/tiles.h"

namespace wavejit::attention_backward::program {
namespace {

using tools::Candidate;

constexpr std::string_view tile_name = "tile_queries";

std::vector<int> tiles_of(const std::string& target_name) {
  std::vector<int> tiles;
  for (const int tile : tile_sizes)
    if (has_tile(*targets::find_target(target_name), tile)) tiles.push_back(tile);
  return tiles;
}

// The grid of the dK/dV kernel, which takes longer.
Grid grid_of(const tools::Problem& problem) {
  const auto descriptor = parse_descriptor(problem.text());
  return descriptor ? descriptor->shape().keys_grid() : Grid::some;
}

class GradientTuning : public tools::Tuning {
 public:
  std::vector<Parameter> parameters() const override {
    return {{tile_name, "rows of a workgroup of dQ, keys of a workgroup of dK and dV; 64: two waves share their keys"}};
  }
  std::string_view usual_parameters() const override { return tile_name; }
  std::string values(std::string_view /*parameter*/, const std::string& target) const override {
    return fmt::format("  {}: {}\n", target, fmt::join(tiles_of(target), ", "));
  }

  std::vector<Candidate> candidates(const std::vector<std::string>& /*parameters*/, const std::string& target,
                                    const tools::Problem& problem) const override {
    std::vector<Candidate> chosen = {{}};
    const int usual = default_tile(*targets::find_target(target), grid_of(problem));
    for (const int tile : tiles_of(target))
      if (tile != usual) chosen.push_back({.values = {{std::string(tile_name), std::to_string(tile)}}});
    return chosen;
  }
  tools::NamedValues engine_options(const Candidate& candidate) const override {
    const std::string_view tile = candidate.value(tile_name);
    if (tile.empty()) return {};
    return {{"pipeline", fmt::format("auto {}={}", tile_name, tile)}};
  }

  std::vector<std::string> groups() const override {
    std::vector<std::string> names;
    for (const auto& [grid, name] : grids) names.emplace_back(name);
    return names;
  }
  std::string group_of(const tools::Problem& problem) const override {
    return std::string(families::name_in(grids, grid_of(problem)));
  }
  std::string group_text(const std::string& group) const override { return fmt::format("{} workgroups", group); }
  std::string_view group_field() const override { return "workgroups"; }

  // Both kernels are pinned alike, and the spec of the first does not say what the second one's waves share.
  tools::Choice choice_of(const tools::Tried& tried) const override {
    const Grid grid = families::value_in(grids, tried.group).value_or(Grid::some);
    const std::string pinned = fmt::format("{}=", tile_name);
    const int tile = tried.candidate.starts_with(pinned)
                         ? static_cast<int>(families::whole_number(tried.candidate.substr(pinned.size())).value_or(0))
                         : default_tile(*targets::find_target(tried.target), grid);
    return {.text = fmt::format("{} keys", tile), .fields = {{std::string(tile_name), tile}}};
  }

  std::string table_comment() const override {
    return "// Made by `wavejit tune`, from what the clock of the simulated GPU predicts (docs/tune.md); a test compares. Keys\n"
           "// of a workgroup of the dK/dV kernel, and rows of one of dQ, by how many workgroups a launch has. Pairs that do not\n"
           "// stand here go by the target's abilities.\n";
  }
  std::string table_row(const std::string& target, const std::string& group,
                        const tools::Choice& choice) const override {
    return fmt::format("{{\"{}\", Grid::{}, {}}},", target, group, choice.fields.front().second.get<int>());
  }
};

}  // namespace

const tools::Tuning& gradient_tuning() { return tools::only<GradientTuning>(); }

}  // namespace wavejit::attention_backward::program
