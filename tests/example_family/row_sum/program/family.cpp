// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// row_sum as the program's tools know it (tools/family.h): a descriptor → an input, the call, the sums in float64.
#include <numeric>
#include <vector>

#include "tests/example_family/row_sum/api/row_sum.h"
#include "tests/example_family/row_sum/call/call.h"
#include "tools/array_problem.h"
#include "tools/canonical_line.h"

namespace wavejit::row_sum::program {
namespace {

using namespace tools;

struct Sizes {
  bool wide = false;  // float, else fp16
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

class RowSum : public Family {
 public:
  std::string_view name() const override { return "row_sum"; }
  std::string_view grammar() const override { return "row_sum <fp32|fp16> r<rows> c<columns>"; }
  std::string_view example() const override { return "row_sum fp16 r1000 c256"; }
  std::vector<std::string> listed() const override { return {"row_sum fp32 r1 c4", "row_sum fp16 r300 c68"}; }

  Result<std::unique_ptr<Problem>> parse(const std::string& descriptor) const override {
    ArrayProblem problem;
    const auto parsed = parsed_line(descriptor, problem.text, parse_descriptor);
    if (!parsed) return std::unexpected(parsed.error());
    const Sizes sizes = {
        .wide = parsed->shape.dtype == DataType::fp32, .rows = parsed->rows, .columns = parsed->columns};

    std::vector<float> values = seeded_values(1, static_cast<std::size_t>(sizes.rows * sizes.columns));
    std::vector<std::uint16_t> halves;
    if (!sizes.wide) {
      for (float& value : values) {
        halves.push_back(encode(HalfType::fp16, static_cast<double>(value)));
        value = decode(HalfType::fp16, halves.back());
      }
    }
    problem.inputs = {sizes.wide ? bytes_of(values) : bytes_of(halves)};
    problem.rows = sizes.rows;
    problem.launch = [sizes](wavejit_engine* engine, std::span<void* const> inputs, void* output,
                             wavejit_call_report* report) {
      wavejit_row_sum_arguments call{};
      call.head.size = sizeof call;
      call.head.family = WAVEJIT_ROW_SUM;
      call.input = inputs[0];
      call.output = output;
      call.rows = sizes.rows;
      call.columns = sizes.columns;
      call.dtype = sizes.wide ? WAVEJIT_FP32 : WAVEJIT_FP16;
      call.head.report = report;
      return checked(wavejit_row_sum(engine, &call, nullptr));
    };
    problem.exact = [values, columns = sizes.columns](std::int64_t row) {
      const auto begin = values.begin() + row * columns;
      return std::vector<double>{std::accumulate(begin, begin + columns, 0.0)};
    };
    problem.allowed = 1e-4;
    return make_problem(std::move(problem));
  }
};

}  // namespace

const tools::Family& family() {
  static const RowSum only;
  return only;
}

}  // namespace wavejit::row_sum::program
