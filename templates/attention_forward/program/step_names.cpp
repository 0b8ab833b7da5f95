// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <variant>

#include "templates/attention_forward/emit/dualwave_schedule.h"
#include "templates/attention_forward/emit/interleaved_schedule.h"
#include "templates/attention_forward/program/answers.h"

namespace wavejit::attention_forward::program {
namespace {

using schedule::Product;

// A row by what shows in the code: which products it has.
struct Row {
  std::string name;
  bool scores = false;
  bool output = false;
  bool reads = false;  // LDS, and no product
};

template <typename Acts>
void take_products(const Acts& acts, Row& row) {
  for (const auto& act : acts)
    std::visit(
        [&row](const auto& one) {
          if constexpr (requires { one.product; }) {
            row.scores |= one.product == Product::scores;
            row.output |= one.product == Product::output;
          }
        },
        act);
}

Row row_of(const dualwave::Cluster& cluster) {
  Row row{.name = std::string(dualwave::name_of(cluster))};
  if (const auto* compute = std::get_if<dualwave::Compute>(&cluster)) {
    take_products(compute->acts, row);
    return row;
  }
  for (const auto& act : std::get<dualwave::Memory>(cluster).acts)
    row.reads |= std::holds_alternative<dualwave::Read>(act);
  return row;
}

Row row_of(const interleaved::Step& step) {
  Row row{.name = std::string(step.name)};
  take_products(step.acts, row);
  return row;
}

// The loop over tiles: prologue and drain have parts of the same rows.
std::vector<Row> steady_rows(const ForwardKernel& spec) {
  std::vector<Row> rows;
  const auto add = [&](const auto& steady) {
    for (const auto& each : steady) rows.push_back(row_of(each));
  };
  if (spec.pipeline == Pipeline::dualwave) add(dualwave::schedule_in(dualwave::order_of(spec)).steady);
  if (spec.pipeline == Pipeline::interleaved)
    add(interleaved::schedule_in(interleaved::order_of(spec), interleaved::look_ups_of(spec)).steady);
  return rows;
}

// A product of scores begins at zero, O is added to.
bool has_scores(const tools::CodeStretch& stretch) { return stretch.matrix_from_zero > 0; }
bool multiplies(const tools::CodeStretch& stretch) { return stretch.matrix > 0; }

// The row whose product a stretch has; null: none that is known. A row with both products is what multiplies most:
// prologue and drain have one of them, and the sums of weights begin at zero, too.
const Row* row_of(const tools::CodeStretch& stretch, const std::vector<Row>& rows, unsigned most) {
  if (!multiplies(stretch)) return nullptr;
  for (const Row& row : rows)
    if (row.scores && row.output) return stretch.matrix == most ? &row : nullptr;
  for (const Row& row : rows)
    if ((row.scores || row.output) && row.scores == has_scores(stretch)) return &row;
  return nullptr;
}

std::string name_of(const Row& row, const tools::CodeStretch& stretch) {
  const std::string products = !row.output ? "QK" : row.scores ? "QK, PV" : "PV";
  return row.name + ": " + products + (stretch.transcendental > 0 ? ", softmax" : "");
}

}  // namespace

std::vector<std::string> step_names(const ForwardKernel& spec, std::string_view kernel,
                                    std::span<const tools::CodeStretch> stretches) {
  const std::vector<Row> rows = steady_rows(spec);
  if (rows.empty() || !kernel.contains("_" + std::string(to_text(spec.pipeline)) + "_")) return {};
  if (std::ranges::none_of(stretches, has_scores)) return {};
  const unsigned most = std::ranges::max(stretches, {}, &tools::CodeStretch::matrix).matrix;
  std::vector<std::string> names(stretches.size());
  bool prologue = true;
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    prologue = prologue && !multiplies(stretches[i]);
    if (const Row* row = row_of(stretches[i], rows, most)) {
      names[i] = name_of(*row, stretches[i]);
    } else if (prologue) {
      names[i] = "prologue";
    } else if (stretches[i].lds_reads > 0 && !multiplies(stretches[i]) && i + 1 < stretches.size()) {
      // The schedule reads in the row before the product.
      const Row* product = row_of(stretches[i + 1], rows, most);
      if (product != nullptr && product != rows.data() && (product - 1)->reads) names[i] = (product - 1)->name;
    }
  }
  return names;
}

}  // namespace wavejit::attention_forward::program
