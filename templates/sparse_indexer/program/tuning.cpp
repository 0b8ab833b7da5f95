// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/sparse_indexer/program/tuning.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "targets/targets.h"
#include "templates/sparse_indexer/call/descriptor.h"
#include "templates/sparse_indexer/kernel/rows.h"

namespace wavejit::sparse_indexer::program {
namespace {

using tools::Candidate;

constexpr std::string_view help = "rows that read a tile of keys together";

RowCount count_of(const tools::Problem& problem) {
  const auto descriptor = parse_descriptor(problem.text());
  return descriptor ? count_of_rows(descriptor->query_length) : RowCount::one;
}

class IndexerTuning : public tools::Tuning {
 public:
  std::vector<Parameter> parameters() const override { return {{tile_pin, help}}; }
  std::string_view usual_parameters() const override { return tile_pin; }
  std::string values(std::string_view /*parameter*/, const std::string& target) const override {
    std::string all;
    for (const auto& [shared, name] : sharing_names) all += fmt::format("{}{}", all.empty() ? "" : ", ", name);
    return fmt::format("  {}: {}\n", target, all);
  }

  std::vector<Candidate> candidates(const std::vector<std::string>& /*parameters*/, const std::string& target,
                                    const tools::Problem& problem) const override {
    std::vector<Candidate> chosen = {{}};
    const bool usual = default_sharing(*targets::find_target(target), count_of(problem));
    for (const auto& [shared, name] : sharing_names)
      if (shared != usual) chosen.push_back({.values = {{std::string(tile_pin), std::string(name)}}});
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
    return std::string(families::name_in(row_counts, count_of(problem)));
  }
  std::string group_text(const std::string& group) const override { return fmt::format("sequences of {} rows", group); }
  std::string_view group_field() const override { return "sequence_rows"; }

  tools::Choice choice_of(const tools::Tried& tried) const override {
    const auto spec = parse_scores(tried.kernel_spec);
    if (!spec) return {};
    const std::string_view rows = families::name_in(sharing_names, spec->shared);
    return {.text = fmt::format("tiles of keys for {} rows", rows),
            .fields = {{std::string(tile_pin), spec->shared ? scores_waves : 1}}};
  }

  std::string table_comment() const override {
    return "// Made by `wavejit tune`, from what the clock of the simulated GPU predicts (docs/tune.md); a test "
           "compares. Whether four\n"
           "// rows share keys, by the rows of a sequence. Pairs that do not stand here share where there are four.\n";
  }
  std::string table_row(const std::string& target, const std::string& group,
                        const tools::Choice& choice) const override {
    return fmt::format("{{\"{}\", RowCount::{}, {}}},", target, group, choice.fields.front().second.get<int>() > 1);
  }
};

}  // namespace

const tools::Tuning& indexer_tuning() {
  static const IndexerTuning only;
  return only;
}

}  // namespace wavejit::sparse_indexer::program
