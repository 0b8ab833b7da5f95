// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/sparse_indexer/program/tuning.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "targets/targets.h"
#include "templates/sparse_indexer/call/descriptor.h"
#include "templates/sparse_indexer/kernel/rows.h"
#include "tools/pin_tuning.h"

namespace wavejit::sparse_indexer::program {
namespace {

constexpr std::string_view help = "rows that read a tile of keys together";

RowCount count_of(const tools::Problem& problem) {
  const auto descriptor = parse_descriptor(problem.text());
  return descriptor ? count_of_rows(descriptor->query_length) : RowCount::one;
}

class IndexerTuning : public tools::PinTuning {
 public:
  IndexerTuning() : PinTuning(tile_pin, help, tools::names_in(sharing_names), tools::names_in(row_counts)) {}

  std::string group_of(const tools::Problem& problem) const override {
    return std::string(families::name_in(row_counts, count_of(problem)));
  }

  tools::Choice choice_of(const tools::Tried& tried) const override {
    const auto spec = parse_scores(tried.kernel_spec);
    if (!spec) return {};
    const std::string_view rows = families::name_in(sharing_names, spec->shared);
    return {.text = fmt::format("tiles of keys for {} rows", rows),
            .fields = {{std::string(tile_pin), spec->shared ? scores_waves : 1}}};
  }

  std::string table_row(const std::string& target, const std::string& group,
                        const tools::Choice& choice) const override {
    return fmt::format("{{\"{}\", RowCount::{}, {}}},", target, group, choice.fields.front().second.get<int>() > 1);
  }

 protected:
  std::string usual_value(const std::string& target, const tools::Problem& problem) const override {
    return std::string(
        families::name_in(sharing_names, default_sharing(*targets::find_target(target), count_of(problem))));
  }
  std::string what_rows_say() const override {
    return "Whether four\n// rows share keys, by the rows of a sequence. Pairs that do not stand here share where there "
           "are four.\n";
  }
};

}  // namespace

const tools::Tuning& indexer_tuning() { return tools::only<IndexerTuning>(); }

}  // namespace wavejit::sparse_indexer::program
