// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/program/attention_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "templates/attention/program/modifiers.h"
#include "templates/attention/program/option_texts.h"
#include "tools/array_run.h"
#include "tools/engine_options.h"

namespace wavejit::attention::program {

using tools::bad_shape;
using tools::ExitCode;
using tools::failed;
using tools::Result;

namespace {

// Whether its vector may have a row for each batch.
bool of_batch(const ModifierRow& row) {
  return std::ranges::find(row.extents, Extent::batch_and_head, &ExtentName::extent) != row.extents.end();
}

Result<Vector> read_heads(const ModifierRow& row, const std::string& path, std::int64_t batch, std::int64_t heads) {
  const std::string field(row.word);
  auto vector = tools::read_npy_vector(field, path);
  if (!vector) return vector;
  const std::vector<std::int64_t>& shape = vector->shape;
  if (shape.back() == heads && (shape.size() == 1 || (of_batch(row) && (shape[0] == batch || shape[0] == 1))))
    return vector;
  return bad_shape(field, path, shape,
                   of_batch(row) ? fmt::format("[{0}] or [{1}, {0}]", heads, batch) : fmt::format("[{}]", heads));
}

Result<Array> read_bias(const std::string& path, HalfType type, const Shape& queries, const Shape& keys) {
  auto bias = tools::read_npy("bias", path, type);
  if (!bias) return bias;
  const Shape& shape = bias->shape;
  if ((shape[0] == 1 || shape[0] == queries[0]) && (shape[1] == 1 || shape[1] == queries[2]) &&
      shape[2] == queries[1] && shape[3] == keys[1])
    return bias;
  return bad_shape("bias", path, shape,
                   fmt::format("[{} or 1, {} or 1, {}, {}]", queries[0], queries[2], queries[1], keys[1]));
}

}  // namespace

void AttentionOptions::add_to(CLI::App& command) {
  mask_.add_to(command, "query", offered_.masks);
  if (offered_.causal_flags)
    command
        .add_option("--causal-flags", causal_flags_file_,
                    "with --causal: a number for each sequence; those of 0 have no diagonal, and see all keys")
        ->type_name("FILE.npy");
  for (const ProgramModifier& option : program_modifiers()) {
    if (!offered_.modifiers.has(option.modifier)) continue;
    const std::string name = fmt::format("--{}", row_of(option.modifier).word);
    std::string& text = texts_[index_of(option.modifier)];
    if (option.given == Given::number) {
      add_parsed(command, name, text, "X", option.help, parse_positive, "finite numbers above 0 are");
    } else {
      command.add_option(name, text, option.help)->type_name("FILE.npy");
    }
  }
  if (offered_.splits)
    add_parsed(command, "--splits", splits_, "N|auto", "cut the keys into N parts that are computed side by side",
               parse_splits, "numbers from 1 are, and auto");
  add_parsed(command, "--scale", scale_, "NUMBER", offered_.scale, parse_finite, "finite numbers are, as 0.125");
  if (offered_.needs_scale) command.get_option("--scale")->required();
  tools::add_choice(command, "--dtype", dtype_, {"fp16", "bf16"}, "the kernel's type; inputs are rounded to it")
      ->capture_default_str();
}

Result<void> AttentionOptions::read(const Shape& queries, const Shape& keys) {
  if (auto mask = mask_.check(); !mask) return mask;
  scale_value_ = parse_finite(scale_).value_or(static_cast<float>(1 / std::sqrt(static_cast<double>(queries[3]))));
  for (const ProgramModifier& option : program_modifiers()) {
    if (!given(option.modifier) || option.given == Given::number) continue;
    const std::string& path = texts_[index(option.modifier)];
    if (option.given == Given::scores) {
      auto bias = read_bias(path, type(), queries, keys);
      if (!bias) return std::unexpected(bias.error());
      bias_.emplace(*std::move(bias));
    } else {
      auto vector = read_heads(row_of(option.modifier), path, queries[0], queries[2]);
      if (!vector) return std::unexpected(vector.error());
      vectors_[index(option.modifier)].emplace(*std::move(vector));
    }
  }
  return read_flags(queries[0]);
}

Result<void> AttentionOptions::read_flags(std::int64_t batch) {
  if (causal_flags_file_.empty()) return {};
  if ((mask_.given().bits & WAVEJIT_MASK_CAUSAL) == 0)
    return failed(ExitCode::usage, "--causal-flags " + causal_flags_file_ + " needs --causal");
  const auto flags = tools::read_npy_whole_numbers("causal-flags", causal_flags_file_);
  if (!flags) return std::unexpected(flags.error());
  if (flags->shape.size() != 1 || flags->shape[0] != batch)
    return failed(ExitCode::file,
                  fmt::format("--causal-flags {}: it has {} numbers; {} are accepted, one for each sequence",
                              causal_flags_file_, flags->values.size(), batch));
  for (const std::int64_t flag : flags->values) causal_flags_.push_back(flag != 0 ? 1 : 0);
  return {};
}

std::vector<tools::NamedFile> AttentionOptions::inputs() const {
  std::vector<tools::NamedFile> files;
  for (const ProgramModifier& option : program_modifiers())
    if (given(option.modifier) && option.given != Given::number)
      files.push_back({std::string(row_of(option.modifier).word), texts_[index(option.modifier)]});
  if (!causal_flags_file_.empty()) files.push_back({"causal-flags", causal_flags_file_});
  return files;
}

std::int32_t AttentionOptions::splits() const { return parse_splits(splits_).value_or(0); }

float AttentionOptions::number(Modifier modifier) const {
  return parse_positive(texts_[index(modifier)]).value_or(0.0F);
}

wavejit_tensor AttentionOptions::tensor(Modifier modifier, tools::CallMemory& memory) const {
  if (const auto& heads = vector(modifier))
    return wavejit_dense_tensor(memory.in(heads->values), WAVEJIT_FP32, heads->shape.size() == 2 ? heads->shape[0] : 1,
                                heads->shape.back(), 1, 1);
  // Rows begin at multiples of 8 elements, whatever the number of keys.
  const Shape& shape = bias_->shape;
  const auto columns = static_cast<std::size_t>(shape[3]);
  const std::size_t stride = (columns + 7) / 8 * 8;
  const std::size_t rows = columns == 0 ? 0 : bias_->values.size() / columns;
  std::vector<std::uint16_t> padded(rows * stride);
  for (std::size_t row = 0; row < rows; ++row)
    std::copy_n(&bias_->values[row * columns], columns, &padded[row * stride]);
  wavejit_tensor bias = wavejit_dense_tensor(memory.in(padded), static_cast<wavejit_dtype>(tools::type_of(type())),
                                             shape[0], shape[1], shape[2], static_cast<std::int64_t>(stride));
  bias.sizes[3] = shape[3];
  return bias;
}

// Each modifier has a place of its own in the reference.
void AttentionOptions::describe(AttentionArrays& problem) const {
  problem.type = type();
  problem.scale = scale();
  problem.mask = mask();
  problem.softcap = number(Modifier::softcap);
  if (bias_) problem.bias = &*bias_;
  if (const auto& slopes = vector(Modifier::alibi)) problem.slopes = slopes->values;
  problem.causal_flags = causal_flags_;
  if (const auto& sinks = vector(Modifier::sink)) problem.sinks = sinks->values;
}

}  // namespace wavejit::attention::program
