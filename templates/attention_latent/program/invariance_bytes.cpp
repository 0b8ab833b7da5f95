// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/program/invariance_bytes.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "templates/attention/program/cache_formats.h"
#include "tools/byte_float.h"

namespace wavejit::attention_latent::program {
namespace {

using tools::ByteType;

constexpr std::int64_t rope_columns = 64;
constexpr std::int64_t scaled_group = 128;  // columns of a scale
constexpr std::int64_t raised_group = 64;
constexpr std::int64_t exponent_bytes = 8;  // of a key: seven exponents, and one that nobody looks at
constexpr int exponent_bias = 127;
constexpr std::uint8_t not_a_number = 0xFF;  // as an exponent and in each byte of a scale and of a rope

// A number of columns in bytes; each group of `group` columns has a scale.
struct Columns {
  std::int64_t bytes = 0;
  std::int64_t group = 0;
};
Columns columns_of(const Batch& batch) {
  switch (batch.byte_rows) {
    case ByteRows::scaled:
      return {.bytes = batch.dims - rope_columns, .group = scaled_group};
    case ByteRows::raised:
      return {.bytes = batch.dims - rope_columns, .group = raised_group};
    case ByteRows::none:
    case ByteRows::one_scale:
      break;
  }
  return {.bytes = batch.dims, .group = batch.dims};
}

// Rounds a sequence's keys: [keys][dims] in the call's type, and what they are made of.
void round(const Batch& batch, DrawnSequence& one, float of_all, Draws& draws) {
  const Columns columns = columns_of(batch);
  one.numbers.resize(one.k.size());
  for (std::int64_t key = 0; key < one.keys; ++key) {
    std::vector<float> scales;
    for (std::int64_t first = 0; first < columns.bytes; first += columns.group)
      scales.push_back(batch.byte_rows == ByteRows::one_scale ? of_all
                       : batch.byte_rows == ByteRows::scaled  ? 0.37F + (0.0613F * static_cast<float>(draws.below(16)))
                                                              : std::ldexp(1.0F, static_cast<int>(draws.below(9)) - 5));
    for (std::int64_t column = 0; column < batch.dims; ++column) {
      const auto at = static_cast<std::size_t>((key * batch.dims) + column);
      float number = tools::decode(batch.type, one.k[at]);
      if (column < columns.bytes) {
        number = tools::decode(ByteType::e4m3, tools::encode(ByteType::e4m3, number));
        // Encodings without −0 have 0.
        if (number == 0) number = 0;
        const float product = number * scales[static_cast<std::size_t>(column / columns.group)];
        one.k[at] = tools::encode(batch.type, product);
      }
      one.numbers[at] = number;
    }
    if (batch.byte_rows != ByteRows::one_scale) one.scales.insert(one.scales.end(), scales.begin(), scales.end());
  }
}

// Rows of one format in memory.
class FormatRows {
 public:
  FormatRows(const Batch& batch, const KeyMemory& keys, ByteType type, bool apart, float times)
      : batch_(batch), keys_(keys), type_(type), times_(times), columns_(columns_of(batch)) {
    memory_.columns = batch.byte_rows == ByteRows::scaled   ? columns_.bytes + 16 + (2 * rope_columns)
                      : batch.byte_rows == ByteRows::raised ? columns_.bytes + (2 * rope_columns) + exponent_bytes
                      : apart                               ? batch.dims_v
                                                            : batch.dims;
    const auto rows = static_cast<std::size_t>(keys.outer * keys.inner);
    memory_.k.assign(rows * static_cast<std::size_t>(memory_.columns),
                     batch.byte_rows == ByteRows::one_scale ? tools::nan_of(type) : not_a_number);
    if (apart) memory_.k_rope.assign(rows * static_cast<std::size_t>(batch.dims - batch.dims_v), tools::nan_of(type));
  }

  ByteKeyMemory fill() {
    for (std::size_t row = 0; row < keys_.has.size(); ++row) {
      const auto& [sequence, key] = keys_.has[row];
      const auto at = static_cast<std::int64_t>(row);
      if (batch_.byte_rows == ByteRows::one_scale) {
        if (key >= 0) put_plain(at, sequence, key);
        continue;
      }
      std::uint8_t* const to = memory_.k.data() + place(at);
      if (key < 0) {
        std::fill_n(to, columns_.bytes, tools::nan_of(type_));
        continue;
      }
      for (std::int64_t column = 0; column < columns_.bytes; ++column) to[column] = byte_of(sequence, key, column);
      put_scales(at, sequence, key);
      const std::int64_t rope = columns_.bytes + (batch_.byte_rows == ByteRows::scaled ? 16 : 0);
      const DrawnSequence& of = batch_.sequences[sequence];
      std::memcpy(to + rope, of.k.data() + (key * batch_.dims) + columns_.bytes, 2 * rope_columns);
    }
    return std::move(memory_);
  }

 private:
  std::uint8_t byte_of(std::size_t sequence, std::int64_t key, std::int64_t column) const {
    return tools::encode(type_,
                         batch_.sequences[sequence].numbers[static_cast<std::size_t>((key * batch_.dims) + column)]);
  }
  void put_plain(std::int64_t row, std::size_t sequence, std::int64_t key) {
    for (std::int64_t column = 0; column < batch_.dims; ++column) {
      const bool is_rope = column >= memory_.columns;
      std::vector<std::uint8_t>& to = is_rope ? memory_.k_rope : memory_.k;
      const std::int64_t width = is_rope ? batch_.dims - memory_.columns : memory_.columns;
      to[static_cast<std::size_t>((row * width) + (is_rope ? column - memory_.columns : column))] =
          byte_of(sequence, key, column);
    }
  }
  // Where a key's bytes begin. Exponents stand behind all rows of a page, or of a tensor's outer row.
  std::int64_t place(std::int64_t row) const {
    if (batch_.byte_rows == ByteRows::scaled) return row * memory_.columns;
    return (row / keys_.inner * keys_.inner * memory_.columns) +
           (row % keys_.inner * (memory_.columns - exponent_bytes));
  }
  void put_scales(std::int64_t row, std::size_t sequence, std::int64_t key) {
    const std::int64_t groups = columns_.bytes / columns_.group;
    const float* const scales = batch_.sequences[sequence].scales.data() + (key * groups);
    for (std::int64_t group = 0; group < groups; ++group) {
      const float scale = scales[group] * times_;
      if (batch_.byte_rows == ByteRows::scaled) {
        std::memcpy(memory_.k.data() + place(row) + columns_.bytes + (group * 4), &scale, sizeof scale);
        continue;
      }
      const std::int64_t exponents = (((row / keys_.inner) + 1) * keys_.inner * memory_.columns) -
                                     ((keys_.inner - (row % keys_.inner)) * exponent_bytes);
      memory_.k[static_cast<std::size_t>(exponents + group)] =
          static_cast<std::uint8_t>(std::ilogb(scale) + exponent_bias);
    }
  }

  const Batch& batch_;
  const KeyMemory& keys_;
  ByteType type_;
  float times_;
  Columns columns_;
  ByteKeyMemory memory_;
};

}  // namespace

void make_cached(Batch& batch) {
  constexpr std::uint64_t of_bytes = 31;
  Draws draws(batch.number + of_bytes);
  switch (batch.number % 3) {
    case 0:
      batch.byte_rows = ByteRows::one_scale;
      break;
    case 1:
      batch.byte_rows = ByteRows::scaled;
      break;
    default:
      batch.byte_rows = ByteRows::raised;
  }
  if (batch.byte_rows != ByteRows::one_scale) {
    batch.type = tools::HalfType::bf16;
    batch.dims_v = 512;
    batch.dims = batch.byte_rows == ByteRows::scaled ? 576 : 512;
  }
  batch.k_scale = std::ldexp(1.0F, static_cast<int>(draws.below(5)) - 2);
  for (DrawnSequence& one : batch.sequences) {
    one.q = attention::program::drawn_halves(batch.type, draws, one.rows * batch.heads * batch.dims);
    one.k = attention::program::drawn_halves(batch.type, draws, one.keys * batch.dims);
    round(batch, one, batch.k_scale, draws);
  }
}

std::string cache_text(const Batch& batch) {
  switch (batch.byte_rows) {
    case ByteRows::one_scale:
      return "cache=e4m3 cache_scales=1";
    case ByteRows::scaled:
      return "cache=e4m3 row_scales=128";
    case ByteRows::raised:
      return "cache=e4m3 row_scales=64";
    case ByteRows::none:
      break;
  }
  return "";
}

ByteKeyMemory in_bytes(const Batch& batch, const KeyMemory& keys, bool apart, const std::string& target, bool doubled) {
  const std::int32_t format = attention::program::format_on(target, ByteType::e4m3);
  const float times = doubled ? 2.0F : 1.0F;
  ByteKeyMemory memory = FormatRows(batch, keys, *tools::byte_type_of(format), apart, times).fill();
  memory.format = static_cast<wavejit_dtype>(format);
  if (batch.byte_rows == ByteRows::one_scale) memory.k_scale = {batch.k_scale * times};
  return memory;
}

}  // namespace wavejit::attention_latent::program
