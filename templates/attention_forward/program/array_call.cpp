// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/array_call.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "templates/attention/program/attention_options.h"
#include "templates/attention/program/reference.h"
#include "templates/attention_forward/program/vocabulary.h"
#include "tools/array_run.h"
#include "tools/npy.h"

namespace wavejit::attention_forward::program {

namespace {

enum InputRows : std::size_t { q, k, v, input_count };
constexpr FileRow input_rows[input_count] = {
    {.field = "q", .help = "queries [batch, length, heads, head dim]"},
    {.field = "k", .help = "keys [batch, length, kv heads, head dim]"},
    {.field = "v", .help = "values, shaped as the keys but for the head dim"},
};
enum OutputRows : std::size_t { out, lse };
constexpr FileRow output_rows[] = {
    {.field = "out", .help = "the result [batch, length, heads, head dim of the values], float32"},
    {.field = "lse", .help = "also the log-sum-exp [batch, heads, length], float32", .required = false},
};
const OfferedOptions offered = {.masks = MaskKinds::windows_and_chunks, .causal_flags = true, .splits = true};

// What the three files must have in common; the library knows the rest.
std::string accepted_shape(std::size_t i, std::span<const Shape> shapes) {
  const Shape& queries = shapes[q];
  const Shape& keys = shapes[k];
  const Shape& values = shapes[v];
  if (i == q) return std::ranges::min(queries) < 1 ? "[batch, length, heads, head dim], each at least 1," : "";
  if (i == k) {
    if (keys[0] != queries[0]) return fmt::format("q's batch of {}", queries[0]);
    if (keys[3] != queries[3]) return fmt::format("q's head dim of {}", queries[3]);
    if (keys[2] < 1 || queries[2] % keys[2] != 0)
      return fmt::format("a number of heads that divides q's {}", queries[2]);
    return {};
  }
  if (std::ranges::equal(std::span(values).first(3), std::span(keys).first(3)) && values[3] >= 1) return {};
  return fmt::format("k's {}, or another head dim where `wavejit supported` lists two, as 192/128,", to_text(keys));
}

class AttentionRun final
    : public ArrayRunOf<wavejit_attention_forward_arguments, WAVEJIT_ATTENTION_FORWARD, wavejit_attention_forward> {
 public:
  AttentionRun() : ArrayRunOf(input_rows, output_rows) {}

 private:
  void add_own(CLI::App& command) override {
    options_.add_to(command);
    command.add_flag("--o-fp32", output_fp32_, "the kernel writes O in fp32 and does not round it to --dtype");
  }
  std::vector<NamedFile> own_inputs() const override { return options_.inputs(); }

  Result<void> read_arrays(std::vector<std::string>& notes) override {
    if (auto read = read_halves(input_count, options_.type(), accepted_shape, notes); !read) return read;
    const Shape& queries = input(q).array.shape;
    say(output(out), output_fp32_ ? WAVEJIT_FP32 : type_of(options_.type()),
        {queries[0], queries[1], queries[2], input(v).array.shape[3]});
    if (output(lse).asked()) say(output(lse), WAVEJIT_FP32, {queries[0], queries[2], queries[1]});
    return options_.read(queries, input(k).array.shape);
  }

  void fill(wavejit_attention_forward_arguments& call, CallMemory& memory) override {
    call.q = placed(memory, input(q).array, options_.type());
    call.k = placed(memory, input(k).array, options_.type());
    call.v = placed(memory, input(v).array, options_.type());
    call.o = output(out).tensor();
    if (output(lse).written) call.lse = output(lse).tensor();
    options_.describe(call, memory);
  }

  Comparison check() const override {
    AttentionArrays problem;
    problem.output_fp32 = output_fp32_;
    problem.q = &input(q).array;
    problem.k = &input(k).array;
    problem.v = &input(v).array;
    options_.describe(problem);
    return compare_rows(problem, exact_attention(problem), numbers(output(out)), numbers(output(lse)));
  }

  AttentionOptions options_{offered};
  bool output_fp32_ = false;
};

}  // namespace

std::unique_ptr<ArrayCall> make_array_call() { return std::make_unique<AttentionRun>(); }

}  // namespace wavejit::attention_forward::program
