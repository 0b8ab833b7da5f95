// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/program/tuning.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "targets/targets.h"
#include "templates/attention_latent/call/descriptor.h"
#include "templates/attention_latent/kernel/rows.h"

namespace wavejit::attention_latent::program {
namespace {

using tools::Candidate;

constexpr std::string_view help = "rows of a workgroup, a row being a head of a query";

// Whether workgroups have 128 rows depends on the number of compute units (call/splits.cpp), so no table has it.
bool is_tried(Rows rows) { return rows != Rows::r128; }

RowCount count_of_rows(const tools::Problem& problem) {
  const auto descriptor = parse_descriptor(problem.text());
  return descriptor && descriptor->problem().shape.rows != Rows::r32 ? RowCount::more : RowCount::up_to_32;
}

class LatentTuning : public tools::Tuning {
 public:
  std::vector<Parameter> parameters() const override { return {{tile_pin, help}}; }
  std::string_view usual_parameters() const override { return tile_pin; }
  std::string values(std::string_view /*parameter*/, const std::string& target) const override {
    std::string all;
    for (const auto& [rows, name] : rows_names)
      if (is_tried(rows)) all += fmt::format("{}{}", all.empty() ? "" : ", ", name);
    return fmt::format("  {}: {}\n", target, all);
  }

  std::vector<Candidate> candidates(const std::vector<std::string>& /*parameters*/, const std::string& target,
                                    const tools::Problem& problem) const override {
    std::vector<Candidate> chosen = {{}};
    const Rows usual = default_rows(*targets::find_target(target), count_of_rows(problem));
    for (const auto& [rows, name] : rows_names)
      if (rows != usual && is_tried(rows)) chosen.push_back({.values = {{std::string(tile_pin), std::string(name)}}});
    return chosen;
  }
  tools::NamedValues engine_options(const Candidate& candidate) const override {
    const std::string_view rows = candidate.value(tile_pin);
    if (rows.empty()) return {};
    return {{"pipeline", fmt::format("auto {}={}", tile_pin, rows)}};
  }

  std::vector<std::string> groups() const override {
    std::vector<std::string> names;
    for (const auto& [count, name] : row_counts) names.emplace_back(name);
    return names;
  }
  std::string group_of(const tools::Problem& problem) const override {
    return std::string(families::name_in(row_counts, count_of_rows(problem)));
  }
  std::string group_text(const std::string& group) const override { return fmt::format("sequences of {} rows", group); }
  std::string_view group_field() const override { return "sequence_rows"; }

  tools::Choice choice_of(const tools::Tried& tried) const override {
    const auto spec = parse_walk_kernel(tried.kernel_spec);
    if (!spec) return {};
    const int rows = attention_latent::count_of(spec->rows);
    return {.text = fmt::format("{} rows", rows), .fields = {{std::string(tile_pin), rows}}};
  }

  std::string table_comment() const override {
    return "// Made by `wavejit tune`, from what the clock of the simulated GPU predicts (docs/tune.md); a test "
           "compares. Rows of a\n"
           "// workgroup, by the rows of a sequence. Pairs that do not stand here have as few as hold the rows.\n";
  }
  std::string table_row(const std::string& target, const std::string& group,
                        const tools::Choice& choice) const override {
    return fmt::format("{{\"{}\", RowCount::{}, Rows::r{}}},", target, group, choice.fields.front().second.get<int>());
  }
};

}  // namespace

const tools::Tuning& latent_tuning() {
  static const LatentTuning only;
  return only;
}

}  // namespace wavejit::attention_latent::program
