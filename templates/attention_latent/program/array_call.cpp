// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/program/array_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "templates/attention/program/attention_options.h"
#include "templates/attention/program/reference.h"
#include "templates/attention_latent/kernel/spec.h"
#include "tools/array_run.h"
#include "tools/npy.h"

namespace wavejit::attention_latent::program {
namespace {

using namespace tools;
using attention::program::AttentionOptions;

enum InputRows : std::size_t { q, k, input_count };
constexpr FileRow input_rows[input_count] = {
    {.field = "q", .help = "absorbed queries [batch, length, heads, 576, 512 or 320], the rope's columns last"},
    {.field = "k", .help = "the cache [batch, length, 1, as many]; its first 512, 512 or 256 columns are the values"},
};
enum OutputRows : std::size_t { out, lse };
constexpr FileRow output_rows[] = {
    {.field = "out", .help = "the result [batch, length, heads, the values' columns], float32"},
    {.field = "lse", .help = "also the log-sum-exp [batch, heads, length], float32", .required = false},
};
const attention::program::OfferedOptions offered = {
    .masks = attention::program::MaskKinds::causal,
    .modifiers = {attention::Modifier::softcap, attention::Modifier::sink},
    .splits = true,
    .scale = "of q·k before the softmax: the model's, as 0.0721688 (1 / sqrt(192)). There is no default",
    .needs_scale = true,
    .type = "bf16"};

// The columns of V for keys of this width; 0: there are no such keys.
std::int64_t value_dims(std::int64_t width) {
  for (const auto& [dims, name] : dims_names)
    if (const HeadDims of = head_dims(dims); of.qk == width) return of.v;
  return 0;
}

std::string accepted_shape(std::size_t i, std::span<const Shape> shapes) {
  const Shape& queries = shapes[q];
  const Shape& keys = shapes[k];
  if (i == k)
    return keys[0] == queries[0] && keys[2] == 1 && keys[3] == queries[3]
               ? ""
               : fmt::format("[{}, length, 1, {}]", queries[0], queries[3]);
  if (std::ranges::min(queries) < 1) return "[batch, length, heads, columns], each at least 1,";
  if (value_dims(queries[3]) != 0) return {};
  std::string known;
  for (const auto& [dims, name] : dims_names)
    known += (known.empty() ? "" : " or ") + std::to_string(head_dims(dims).qk);
  return fmt::format("[batch, length, heads, {}]", known);
}

class LatentRun final
    : public ArrayRunOf<wavejit_attention_latent_arguments, WAVEJIT_ATTENTION_LATENT, wavejit_attention_latent> {
 public:
  LatentRun() : ArrayRunOf(input_rows, output_rows) {}

 private:
  void add_own(CLI::App& command) override { options_.add_to(command); }
  std::vector<NamedFile> own_inputs() const override { return options_.inputs(); }

  Result<void> read_arrays(std::vector<std::string>& notes) override {
    if (auto read = read_halves(input_count, options_.type(), accepted_shape, notes); !read) return read;
    const Shape& queries = input(q).array.shape;
    say(output(out), type_of(options_.type()), {queries[0], queries[1], queries[2], value_dims(queries[3])});
    if (output(lse).asked()) say(output(lse), WAVEJIT_FP32, {queries[0], queries[2], queries[1]});
    return options_.read(queries, input(k).array.shape);
  }

  void fill(wavejit_attention_latent_arguments& call, CallMemory& memory) override {
    call.q = placed(memory, input(q).array, options_.type());
    call.k = placed(memory, input(k).array, options_.type());
    call.o = output(out).tensor();
    if (output(lse).written) call.lse = output(lse).tensor();
    options_.describe(call, memory);
  }

  // By the definition of the call: what of the model stands before absorption, nobody has given.
  Comparison check() const override {
    const Array& keys = input(k).array;
    Array values = {.shape = {keys.shape[0], keys.shape[1], 1, output(out).shape[3]}, .values = {}};
    for (auto row = keys.values.begin(); row != keys.values.end(); row += keys.shape[3])
      values.values.insert(values.values.end(), row, row + values.shape[3]);
    attention::program::AttentionArrays problem = {.q = &input(q).array, .k = &keys, .v = &values};
    options_.describe(problem);
    return compare_rows(problem, exact_attention(problem), numbers(output(out)), numbers(output(lse)));
  }

  AttentionOptions options_{offered};
};

}  // namespace

std::unique_ptr<ArrayCall> make_array_call() { return std::make_unique<LatentRun>(); }

}  // namespace wavejit::attention_latent::program
