// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `wavejit run` of attention from rows of queries to O and LSE: a family says its files, which of the options it has,
// which shapes it accepts and how wide values are. The last input is that of the values, or of keys that hold them.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <vector>

#include "templates/attention/program/attention_options.h"
#include "templates/attention/program/reference.h"
#include "tools/array_run.h"

namespace wavejit::attention::program {

inline constexpr tools::FileRow lse_file = {
    .field = "lse", .help = "also the log-sum-exp [batch, heads, length], float32", .required = false};

// Queries [batch, length, heads, head dim] in the words of errors.
inline std::string accepted_queries(const Shape& queries) {
  return std::ranges::min(queries) < 1 ? "[batch, length, heads, head dim], each at least 1," : "";
}

template <typename Call, wavejit_family family, auto launch_call>
class AttentionRun : public tools::ArrayRunOf<Call, family, launch_call> {
 protected:
  static constexpr std::size_t q = 0;
  static constexpr std::size_t k = 1;
  static constexpr std::size_t v = 2;

  // Outputs: O, then LSE.
  AttentionRun(std::span<const tools::FileRow> inputs, std::span<const tools::FileRow> outputs,
               const OfferedOptions& offered)
      : tools::ArrayRunOf<Call, family, launch_call>(inputs, outputs), count_(inputs.size()), options_(offered) {}

  virtual std::string accepted_shape(std::size_t i, std::span<const Shape> shapes) const = 0;
  virtual std::int64_t value_dims() const = 0;
  virtual std::int32_t output_type() const { return tools::type_of(options_.type()); }
  // Makes V of the reference; null: it is the third input.
  virtual const Array* values_of_keys(Array& /*values*/) const { return nullptr; }

  void add_own(CLI::App& command) override { options_.add_to(command); }

 private:
  std::vector<tools::NamedFile> own_inputs() const final { return options_.inputs(); }

  tools::Result<void> read_arrays(std::vector<std::string>& notes) final {
    const auto accepted = [this](std::size_t i, std::span<const Shape> shapes) { return accepted_shape(i, shapes); };
    if (auto read = this->read_halves(count_, options_.type(), accepted, notes); !read) return read;
    const Shape& queries = this->input(q).array.shape;
    this->say(this->output(0), output_type(), {queries[0], queries[1], queries[2], value_dims()});
    if (this->output(1).asked()) this->say(this->output(1), WAVEJIT_FP32, {queries[0], queries[2], queries[1]});
    return options_.read(queries, this->input(k).array.shape);
  }

  void fill(Call& call, tools::CallMemory& memory) final {
    call.q = this->placed(memory, this->input(q).array, options_.type());
    call.k = this->placed(memory, this->input(k).array, options_.type());
    if constexpr (requires { call.v; }) call.v = this->placed(memory, this->input(v).array, options_.type());
    call.o = this->output(0).tensor();
    if (this->output(1).written) call.lse = this->output(1).tensor();
    options_.describe(call, memory);
  }

  Comparison check() const final {
    Array made;
    const Array* values = values_of_keys(made);
    AttentionArrays problem;
    problem.output_fp32 = output_type() == WAVEJIT_FP32;
    problem.q = &this->input(q).array;
    problem.k = &this->input(k).array;
    problem.v = values != nullptr ? values : &this->input(v).array;
    options_.describe(problem);
    return compare_rows(problem, exact_attention(problem), this->numbers(this->output(0)),
                        this->numbers(this->output(1)));
  }

  std::size_t count_;
  AttentionOptions options_;
};

}  // namespace wavejit::attention::program
