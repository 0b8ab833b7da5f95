// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_merge/program/array_call.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "templates/attention_merge/program/reference.h"
#include "tools/all_cores.h"
#include "tools/array_run.h"
#include "tools/engine_options.h"
#include "tools/npy.h"
#include "tools/stored_numbers.h"

namespace wavejit::attention_merge::program {
namespace {

using namespace tools;
using tools::Result;

double half_unit(std::int32_t type, double magnitude) {
  if (const auto half = half_of(type)) return half_ulp(*half, magnitude);
  return (std::fabs(magnitude) * 0x1p-24) + 0x1p-150;
}

// What f32 leaves of a weight below its LSE: as many roundings of it as the checker of attention allows a score.
double error_of_weights(double largest_lse) { return score_roundings * 0x1p-24 * (1 + largest_lse); }

enum InputRows : std::size_t { o, lse };
constexpr FileRow input_rows[] = {
    {.field = "o", .help = "O of each part [batch, tokens, heads, dims], one to eight files", .several = true},
    {.field = "lse", .help = "LSE of each part [batch, heads, tokens], in the same order", .several = true},
};
enum OutputRows : std::size_t { out, out_lse };
constexpr FileRow output_rows[] = {
    {.field = "out", .help = "the merged O, shaped as a part's, float32"},
    {.field = "out-lse", .help = "the merged LSE [batch, heads, tokens], float32", .required = false},
};

struct Part {
  StoredArray o;           // [batch, tokens, heads, dims]
  std::vector<float> lse;  // [batch, heads, tokens]
};

class MergeRun final
    : public ArrayRunOf<wavejit_attention_merge_arguments, WAVEJIT_ATTENTION_MERGE, wavejit_attention_merge> {
 public:
  MergeRun() : ArrayRunOf(input_rows, output_rows) {}

 private:
  void add_own(CLI::App& command) override {
    add_choice(command, "--dtype", parts_type_, {"fp32", "fp16", "bf16"}, "of the parts' O, which are rounded to it")
        ->capture_default_str();
    add_choice(command, "--result", type_, {"fp32", "fp16", "bf16"},
               "what the kernel rounds O to: fp32, or --dtype, or any with --dtype fp32")
        ->capture_default_str();
  }

  Result<void> read_arrays(std::vector<std::string>& notes) override {
    const std::vector<std::string>& o_files = input(o).paths;
    const std::vector<std::string>& lse_files = input(lse).paths;
    if (o_files.size() > WAVEJIT_MAX_ATTENTION_PARTS || o_files.size() != lse_files.size())
      return failed(ExitCode::usage, fmt::format("--o has {} files and --lse {}; 1 to {} of both are accepted",
                                                 o_files.size(), lse_files.size(), WAVEJIT_MAX_ATTENTION_PARTS));
    for (std::size_t number = 0; number < o_files.size(); ++number) {
      auto of_part = read_stored("o", o_files[number], parts_type_, notes);
      if (!of_part) return std::unexpected(of_part.error());
      if (number == 0) shape_ = of_part->shape;
      if (std::ranges::min(of_part->shape) < 1 || of_part->shape != shape_)
        return bad_shape("o", o_files[number], of_part->shape,
                         number == 0 ? "[batch, tokens, heads, dims], each at least 1,"
                                     : fmt::format("{}, that of the first part,", text_of(shape_)));
      auto of_rows = read_shaped(read_npy_row_numbers, "lse", lse_files[number], lse_shape());
      if (!of_rows) return std::unexpected(of_rows.error());
      parts_.push_back({.o = *std::move(of_part), .lse = *std::move(of_rows)});
    }
    say(output(out), type_named(type_), {shape_.begin(), shape_.end()});
    if (with_lse()) say(output(out_lse), WAVEJIT_FP32, lse_shape());
    return {};
  }

  void fill(wavejit_attention_merge_arguments& call, CallMemory& memory) override {
    call.part_count = static_cast<std::int32_t>(parts_.size());
    for (std::size_t number = 0; number < parts_.size(); ++number) {
      call.parts[number].o =
          wavejit_dense_tensor(memory.in(parts_[number].o.bytes), static_cast<wavejit_dtype>(type_named(parts_type_)),
                               shape_[0], shape_[1], shape_[2], shape_[3]);
      call.parts[number].lse =
          wavejit_dense_tensor(memory.in(parts_[number].lse), WAVEJIT_FP32, shape_[0], shape_[2], shape_[1], 1);
    }
    call.o = output(out).tensor();
    if (with_lse()) call.lse = output(out_lse).tensor();
  }

  // The LSE is compared as one more element behind those of its row.
  Comparison check() const override {
    std::vector<MergedRow> exact(rows());
    std::vector<std::vector<double>> bounds(rows());
    on_all_cores(rows(), [&](std::size_t row) { judge_by(row, exact[row], bounds[row]); });
    const std::vector<float> merged_rows = numbers(output(out));
    const std::vector<float> merged_lse = numbers(output(out_lse));
    BoundChecker checker;
    for (std::size_t row = 0; row < rows(); ++row) {
      const std::span<const float> merged_o = std::span(merged_rows).subspan(row * dims(), dims());
      std::vector<float> result(merged_o.begin(), merged_o.end());
      if (with_lse()) {
        result.push_back(merged_lse[lse_place(row)]);
        exact[row].o.push_back(exact[row].lse);
      }
      const auto number = static_cast<std::int64_t>(row);
      checker.row({.sequence = number / (shape_[1] * shape_[2]),
                   .token = number / shape_[2] % shape_[1],
                   .head = number % shape_[2]},
                  exact[row].o, bounds[row], result);
    }
    return checker.comparison();
  }

  bool with_lse() const { return output(out_lse).asked(); }
  std::size_t rows() const { return static_cast<std::size_t>(shape_[0] * shape_[1] * shape_[2]); }
  std::size_t dims() const { return static_cast<std::size_t>(shape_[3]); }
  std::vector<std::int64_t> lse_shape() const { return {shape_[0], shape_[2], shape_[1]}; }
  // The place of a row [batch][token][head] in [batch][head][token].
  std::size_t lse_place(std::size_t row) const {
    const auto tokens = static_cast<std::size_t>(shape_[1]);
    const auto heads = static_cast<std::size_t>(shape_[2]);
    return (((row / (tokens * heads)) * heads + (row % heads)) * tokens) + (row / heads % tokens);
  }

  void judge_by(std::size_t row, MergedRow& exact, std::vector<double>& bounds) const {
    std::vector<PartRow> of_row;
    double largest = 0;
    for (const Part& part : parts_) {
      const double log_sum = static_cast<double>(part.lse[lse_place(row)]);
      of_row.push_back({.o = std::span(part.o.values).subspan(row * dims(), dims()), .lse = log_sum});
      if (std::isfinite(log_sum)) largest = std::max(largest, std::fabs(log_sum));
    }
    exact = merged(of_row);
    const double of_weights = error_of_weights(largest);
    for (std::size_t dim = 0; dim < dims(); ++dim) {
      double magnitude = 0;
      for (const PartRow& part : of_row)
        if (const double weight = std::exp(part.lse - exact.lse); weight > 0)
          magnitude += weight * std::fabs(static_cast<double>(part.o[dim]));
      const double of_sum = of_weights * magnitude;
      bounds.push_back(of_sum + half_unit(type_named(type_), std::fabs(exact.o[dim]) + of_sum));
    }
    if (with_lse()) bounds.push_back(of_weights);
  }

  std::string parts_type_ = "fp32";
  std::string type_ = "fp32";
  Shape shape_{};
  std::vector<Part> parts_;
};

}  // namespace

std::unique_ptr<ArrayCall> make_array_call() { return std::make_unique<MergeRun>(); }

}  // namespace wavejit::attention_merge::program
