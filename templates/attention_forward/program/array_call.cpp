// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "templates/attention/program/attention_run.h"
#include "templates/attention_forward/program/answers.h"
#include "templates/attention_forward/program/vocabulary.h"

namespace wavejit::attention_forward::program {

namespace {

constexpr FileRow input_rows[] = {
    {.field = "q", .help = "queries [batch, length, heads, head dim]"},
    {.field = "k", .help = "keys [batch, length, kv heads, head dim]"},
    {.field = "v", .help = "values, shaped as the keys but for the head dim"},
};
constexpr FileRow output_rows[] = {
    {.field = "out", .help = "the result [batch, length, heads, head dim of the values], float32"},
    lse_file,
};
constexpr OfferedOptions offered = {.masks = MaskKinds::all, .causal_flags = true, .splits = true};

class ForwardRun final
    : public AttentionRun<wavejit_attention_forward_arguments, WAVEJIT_ATTENTION_FORWARD, wavejit_attention_forward> {
 public:
  ForwardRun() : AttentionRun(input_rows, output_rows, offered) {}

 private:
  void add_own(CLI::App& command) override {
    AttentionRun::add_own(command);
    command.add_flag("--o-fp32", output_fp32_, "the kernel writes O in fp32 and does not round it to --dtype");
  }

  // What the three files must have in common; the library knows the rest.
  std::string accepted_shape(std::size_t i, std::span<const Shape> shapes) const override {
    const Shape& queries = shapes[q];
    const Shape& keys = shapes[k];
    if (i == q) return accepted_queries(queries);
    if (i == v) {
      if (std::ranges::equal(std::span(shapes[v]).first(3), std::span(keys).first(3)) && shapes[v][3] >= 1) return {};
      return fmt::format("k's {}, or another head dim where `wavejit supported` lists two, as 192/128,",
                         tools::to_text(keys));
    }
    if (keys[0] != queries[0]) return fmt::format("q's batch of {}", queries[0]);
    if (keys[3] != queries[3]) return fmt::format("q's head dim of {}", queries[3]);
    if (keys[2] >= 1 && queries[2] % keys[2] == 0) return {};
    return fmt::format("a number of heads that divides q's {}", queries[2]);
  }
  std::int64_t value_dims() const override { return input(v).array.shape[3]; }
  std::int32_t output_type() const override { return output_fp32_ ? WAVEJIT_FP32 : AttentionRun::output_type(); }

  bool output_fp32_ = false;
};

}  // namespace

std::unique_ptr<ArrayCall> make_array_call() { return std::make_unique<ForwardRun>(); }

}  // namespace wavejit::attention_forward::program
