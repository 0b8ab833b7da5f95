// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/program/tuning.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "targets/targets.h"
#include "templates/attention_latent/call/descriptor.h"
#include "templates/attention_latent/kernel/rows.h"
#include "tools/pin_tuning.h"

namespace wavejit::attention_latent::program {
namespace {

constexpr std::string_view help = "rows of a workgroup, a row being a head of a query";

// Whether workgroups have 128 rows depends on the number of compute units (call/splits.cpp), so no table has it.
std::vector<std::string> tried_rows() {
  std::vector<std::string> tried;
  for (const auto& [rows, name] : rows_names)
    if (rows != Rows::r128) tried.emplace_back(name);
  return tried;
}

RowCount count_of_rows(const tools::Problem& problem) {
  const auto descriptor = parse_descriptor(problem.text());
  return descriptor && descriptor->problem().shape.rows != Rows::r32 ? RowCount::more : RowCount::up_to_32;
}

class LatentTuning : public tools::PinTuning {
 public:
  LatentTuning() : PinTuning(tile_pin, help, tried_rows(), tools::names_in(row_counts)) {}

  std::string group_of(const tools::Problem& problem) const override {
    return std::string(families::name_in(row_counts, count_of_rows(problem)));
  }

  tools::Choice choice_of(const tools::Tried& tried) const override {
    const auto spec = parse_walk_kernel(tried.kernel_spec);
    if (!spec) return {};
    const int rows = attention_latent::count_of(spec->rows);
    return {.text = fmt::format("{} rows", rows), .fields = {{std::string(tile_pin), rows}}};
  }

  std::string table_row(const std::string& target, const std::string& group,
                        const tools::Choice& choice) const override {
    return fmt::format("{{\"{}\", RowCount::{}, Rows::r{}}},", target, group, choice.fields.front().second.get<int>());
  }

 protected:
  std::string usual_value(const std::string& target, const tools::Problem& problem) const override {
    return std::string(
        families::name_in(rows_names, default_rows(*targets::find_target(target), count_of_rows(problem))));
  }
  std::string what_rows_say() const override {
    return "Rows of a\n// workgroup, by the rows of a sequence. Pairs that do not stand here have as few as hold the "
           "rows.\n";
  }
};

}  // namespace

const tools::Tuning& latent_tuning() { return tools::only<LatentTuning>(); }

}  // namespace wavejit::attention_latent::program
