// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/program/tuning.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "families/call/words.h"
#include "targets/targets.h"
#include "templates/attention_backward/call/descriptor.h"
#include "templates/attention_backward/kernel/tiles.h"
#include "tools/pin_tuning.h"

namespace wavejit::attention_backward::program {
namespace {

constexpr std::string_view tile_name = "tile_queries";
constexpr std::string_view help =
    "rows of a workgroup of dQ, keys of a workgroup of dK and dV; 64: two waves share their keys";

// The grid of the dK/dV kernel, which takes longer.
Grid grid_of(const tools::Problem& problem) {
  const auto descriptor = parse_descriptor(problem.text());
  return descriptor ? descriptor->shape().keys_grid() : Grid::some;
}

class GradientTuning : public tools::PinTuning {
 public:
  GradientTuning() : PinTuning(tile_name, help, {}, tools::names_in(grids)) {}

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

  std::string table_row(const std::string& target, const std::string& group,
                        const tools::Choice& choice) const override {
    return fmt::format("{{\"{}\", Grid::{}, {}}},", target, group, choice.fields.front().second.get<int>());
  }

 protected:
  std::vector<std::string> values_on(const std::string& target) const override {
    std::vector<std::string> tiles;
    for (const int tile : tile_sizes)
      if (has_tile(*targets::find_target(target), tile)) tiles.push_back(std::to_string(tile));
    return tiles;
  }
  std::string usual_value(const std::string& target, const tools::Problem& problem) const override {
    return std::to_string(default_tile(*targets::find_target(target), grid_of(problem)));
  }
  std::string what_rows_say() const override {
    return "Keys\n// of a workgroup of the dK/dV kernel, and rows of one of dQ, by how many workgroups a launch has. "
           "Pairs that do not\n// stand here go by the target's abilities.\n";
  }
};

}  // namespace

const tools::Tuning& gradient_tuning() { return tools::only<GradientTuning>(); }

}  // namespace wavejit::attention_backward::program
