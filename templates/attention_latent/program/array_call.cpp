// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/program/array_call.h"

#include <fmt/format.h>

#include <string>

#include "templates/attention/program/attention_run.h"
#include "templates/attention_latent/kernel/spec.h"

namespace wavejit::attention_latent::program {
namespace {

using namespace tools;
using attention::program::AttentionRun;

constexpr FileRow input_rows[] = {
    {.field = "q", .help = "absorbed queries [batch, length, heads, 576, 512 or 320], the rope's columns last"},
    {.field = "k", .help = "the cache [batch, length, 1, as many]; its first 512, 512 or 256 columns are the values"},
};
constexpr FileRow output_rows[] = {
    {.field = "out", .help = "the result [batch, length, heads, the values' columns], float32"},
    attention::program::lse_file,
};
constexpr attention::program::OfferedOptions offered = {
    .masks = attention::program::MaskKinds::causal,
    .modifiers = {attention::Modifier::softcap, attention::Modifier::sink},
    .splits = true,
    .scale = "of q·k before the softmax: the model's, as 0.0721688 (1 / sqrt(192)). There is no default",
    .needs_scale = true,
    .type = "bf16"};

// The columns of V for keys of this width; 0: there are no such keys.
std::int64_t value_dims_of(std::int64_t width) {
  for (const auto& [dims, name] : dims_names)
    if (const HeadDims of = head_dims(dims); of.qk == width) return of.v;
  return 0;
}

std::string known_widths() {
  std::string known;
  for (const auto& [dims, name] : dims_names)
    known += (known.empty() ? "" : " or ") + std::to_string(head_dims(dims).qk);
  return known;
}

class LatentRun final
    : public AttentionRun<wavejit_attention_latent_arguments, WAVEJIT_ATTENTION_LATENT, wavejit_attention_latent> {
 public:
  LatentRun() : AttentionRun(input_rows, output_rows, offered) {}

 private:
  std::string accepted_shape(std::size_t i, std::span<const Shape> shapes) const override {
    const Shape& queries = shapes[q];
    const Shape& keys = shapes[k];
    if (i == q) {
      std::string other = attention::program::accepted_queries(queries);
      if (!other.empty() || value_dims_of(queries[3]) != 0) return other;
      return fmt::format("[batch, length, heads, {}]", known_widths());
    }
    if (keys[0] == queries[0] && keys[2] == 1 && keys[3] == queries[3]) return {};
    return fmt::format("[{}, length, 1, {}]", queries[0], queries[3]);
  }
  std::int64_t value_dims() const override { return value_dims_of(input(q).array.shape[3]); }

  // By the definition of the call: what of the model stands before absorption, nobody has given.
  const Array* values_of_keys(Array& values) const override {
    const Array& keys = input(k).array;
    values.shape = {keys.shape[0], keys.shape[1], 1, value_dims()};
    for (auto row = keys.values.begin(); row != keys.values.end(); row += keys.shape[3])
      values.values.insert(values.values.end(), row, row + values.shape[3]);
    return &values;
  }
};

}  // namespace

std::unique_ptr<ArrayCall> make_array_call() { return std::make_unique<LatentRun>(); }

}  // namespace wavejit::attention_latent::program
