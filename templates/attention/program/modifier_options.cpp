// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/program/modifier_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "templates/attention/kernel/modifiers.h"
#include "templates/attention/program/modifiers.h"
#include "templates/attention/program/option_texts.h"
#include "tools/engine_options.h"

namespace wavejit::attention::program {

namespace {

std::optional<float> parse_positive(const std::string& text) {
  const auto value = parse_number<float>(text);
  return value && std::isfinite(*value) && *value > 0 ? value : std::nullopt;
}

// auto: the engine's choice.
std::optional<std::int32_t> parse_splits(const std::string& text) {
  if (text == "auto") return 0;
  const auto value = parse_number<std::int32_t>(text);
  return value && *value >= 1 ? value : std::nullopt;
}

Result<void> check_vector(const char* field, const std::string& path, const Vector& vector, std::int64_t batch,
                          std::int64_t heads, bool of_batch) {
  const bool right = vector.shape.back() == heads &&
                     (vector.shape.size() == 1 || (of_batch && (vector.shape[0] == batch || vector.shape[0] == 1)));
  if (right) return {};
  return failed(ExitCode::file,
                fmt::format("--{} {}: its shape is [{}{}]; [{}]{} accepted", field, path,
                            vector.shape.size() == 2 ? fmt::format("{}, ", vector.shape[0]) : "", vector.shape.back(),
                            heads, of_batch ? fmt::format(" and [{}, {}] are", batch, heads) : " is"));
}

wavejit_tensor slopes_tensor(const DeviceArray& memory, std::int64_t batches, std::int64_t heads) {
  return wavejit_dense_tensor(memory.data(), WAVEJIT_FP32, batches, heads, 1, 1);
}

std::int64_t rows_of(const Vector& vector) { return vector.shape.size() == 2 ? vector.shape[0] : 1; }

Result<DeviceArray> copied(wavejit_engine* engine, const void* data, std::size_t bytes) {
  auto memory = DeviceArray::allocate(engine, bytes);
  if (!memory) return memory;
  if (auto done = memory->copy_in(data); !done) return std::unexpected(done.error());
  return memory;
}

// Whether its vector may have a row for each batch.
bool of_batch(const ModifierRow& row) {
  return std::ranges::find(row.extents, Extent::batch_and_head, &ExtentName::extent) != row.extents.end();
}

}  // namespace

void ModifierOptions::add_to(CLI::App& command, bool splits) {
  mask_.add_to(command, "query", MaskKinds::all);
  command
      .add_option("--causal-flags", causal_flags_file_,
                  "with --causal: a number for each sequence; those of 0 have no diagonal, and see all keys")
      ->type_name("FILE.npy");
  for (const ProgramModifier& option : program_modifiers()) {
    const std::string name = fmt::format("--{}", row_of(option.modifier).word);
    std::string& text = texts_[index_of(option.modifier)];
    if (option.given == Given::number) {
      add_parsed(command, name, text, "X", option.help, parse_positive, "finite numbers above 0 are");
    } else {
      command.add_option(name, text, option.help)->type_name("FILE.npy");
    }
  }
  if (!splits) return;
  add_parsed(command, "--splits", splits_, "N|auto", "cut the keys into N parts that are computed side by side",
             parse_splits, "numbers from 1 are, and auto");
}

Result<void> ModifierOptions::read(HalfType type, const Shape& queries, const Shape& keys) {
  for (const ProgramModifier& option : program_modifiers()) {
    const ModifierRow& row = row_of(option.modifier);
    const std::string field(row.word);
    const std::string& path = text_of(option.modifier);
    if (path.empty() || option.given == Given::number) continue;
    if (option.given == Given::scores) {
      auto bias = read_npy(field, path, type);
      if (!bias) return std::unexpected(bias.error());
      const Shape& shape = bias->shape;
      if ((shape[0] != 1 && shape[0] != queries[0]) || (shape[1] != 1 && shape[1] != queries[2]) ||
          shape[2] != queries[1] || shape[3] != keys[1]) {
        return failed(ExitCode::file,
                      fmt::format("--{} {}: its shape is {}; [{} or 1, {} or 1, {}, {}] is accepted", field, path,
                                  tools::to_text(shape), queries[0], queries[2], queries[1], keys[1]));
      }
      bias_.emplace(std::move(*bias));
      continue;
    }
    auto vector = read_npy_vector(field, path);
    if (!vector) return std::unexpected(vector.error());
    if (auto right = check_vector(field.c_str(), path, *vector, queries[0], queries[2], of_batch(row)); !right)
      return right;
    vectors_[index_of(option.modifier)].emplace(std::move(*vector));
  }
  return read_flags(queries[0]);
}

Result<void> ModifierOptions::read_flags(std::int64_t batch) {
  if (causal_flags_file_.empty()) return {};
  const auto flags = tools::read_npy_whole_numbers("causal-flags", causal_flags_file_);
  if (!flags) return std::unexpected(flags.error());
  if (flags->shape.size() != 1 || flags->shape[0] != batch)
    return failed(ExitCode::file,
                  fmt::format("--causal-flags {}: it has {} numbers; {} are accepted, one for each sequence",
                              causal_flags_file_, flags->values.size(), batch));
  for (const std::int64_t flag : flags->values) causal_flags_.push_back(flag != 0 ? 1 : 0);
  return {};
}

Result<ModifiersOnDevice> ModifierOptions::copy_to(wavejit_engine* engine) const {
  ModifiersOnDevice arrays;
  if (bias_) {
    // Rows begin at multiples of 8 elements, whatever the number of keys.
    const auto columns = static_cast<std::size_t>(bias_->shape[3]);
    const std::size_t stride = (columns + 7) / 8 * 8;
    arrays.bias_row_stride = static_cast<std::int64_t>(stride);
    const std::size_t rows = columns == 0 ? 0 : bias_->values.size() / columns;
    std::vector<std::uint16_t> padded(rows * stride);
    for (std::size_t row = 0; row < rows; ++row)
      std::copy_n(&bias_->values[row * columns], columns, &padded[row * stride]);
    auto memory = copied(engine, padded.data(), padded.size() * 2);
    if (!memory) return std::unexpected(memory.error());
    arrays.tensors[index_of(Modifier::bias)].emplace(std::move(*memory));
  }
  for (std::size_t i = 0; i < modifier_count; ++i) {
    if (!vectors_[i]) continue;
    auto made = copied(engine, vectors_[i]->values.data(), vectors_[i]->values.size() * sizeof(float));
    if (!made) return std::unexpected(made.error());
    arrays.tensors[i].emplace(std::move(*made));
  }
  if (!causal_flags_.empty()) {
    auto made = copied(engine, causal_flags_.data(), causal_flags_.size());
    if (!made) return std::unexpected(made.error());
    arrays.causal_flags.emplace(std::move(*made));
  }
  return arrays;
}

std::int32_t ModifierOptions::splits() const { return parse_splits(splits_).value_or(0); }

float ModifierOptions::number(Modifier modifier) const { return parse_positive(text_of(modifier)).value_or(0.0F); }

wavejit_tensor ModifierOptions::tensor(Modifier modifier, std::int32_t type, const ModifiersOnDevice& arrays) const {
  const std::size_t i = index_of(modifier);
  if (vectors_[i]) return slopes_tensor(*arrays.tensors[i], rows_of(*vectors_[i]), vectors_[i]->shape.back());
  const Shape& shape = bias_->shape;
  wavejit_tensor bias = wavejit_dense_tensor(arrays.tensors[i]->data(), WAVEJIT_DTYPE_NONE, shape[0], shape[1],
                                             shape[2], arrays.bias_row_stride);
  bias.dtype = type;
  bias.sizes[3] = shape[3];
  return bias;
}

// Each modifier has a place of its own in the reference.
void ModifierOptions::describe(AttentionArrays& problem) const {
  problem.mask = mask_.given();
  problem.softcap = parse_positive(text_of(Modifier::softcap)).value_or(0.0F);
  if (bias_) problem.bias = &*bias_;
  if (const auto& slopes = vectors_[index_of(Modifier::alibi)]) problem.slopes = slopes->values;
  problem.causal_flags = causal_flags_;
  if (const auto& sinks = vectors_[index_of(Modifier::sink)]) problem.sinks = sinks->values;
}

}  // namespace wavejit::attention::program
