// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A row of scores as a wave has it: its queries and weights in registers, which keys it sees, and what it makes of a
// tile of keys.
//
// Rows of matrix instructions are index heads, columns are keys, so that a lane has 16 heads of a block for one key,
// and adds them up by itself. The two lanes of a key have the other heads each; one addition joins them.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "codegen/language/buffer.h"
#include "codegen/language/kernel.h"
#include "codegen/language/matrix.h"
#include "templates/sparse_indexer/emit/row_keys.h"

namespace wavejit::sparse_indexer {

inline constexpr int load_bytes = 16;  // of a lane
inline constexpr int load_bits = 4;
static_assert(load_bytes == 1 << load_bits);
inline constexpr int row_bytes = head_dim * 2;                          // of a head, of a key, as they are multiplied
inline constexpr std::size_t steps = row_bytes / (2 * load_bytes);      // loads of a lane that make a key's half
inline constexpr int step_bytes = row_bytes / static_cast<int>(steps);  // of a key
inline constexpr int tile_bits = 5;
static_assert(tile_keys == 1 << tile_bits);

// What a lane has of a key: 16 bytes of each step, those of its half.
using KeyHalf = std::array<language::Value*, steps>;

// Bytes of memory that hold `bytes` bytes of a row as the kernel multiplies it: half if elements have 8 bits.
constexpr int stored_bytes(const ScoresKernel& spec, int bytes) { return spec.widens() ? bytes / 2 : bytes; }
constexpr int stored_bits(const ScoresKernel& spec) {
  return spec.widens() ? load_bits - 1 : load_bits;
}  // of load_bytes
// 8 elements of a row as products take them, from stored_bytes(spec, load_bytes) of memory.
language::Value* widened(language::Kernel& kernel, const ScoresKernel& spec, language::Value* stored);

// Tiles up to key `keys` − 1.
language::Value* tiles_of(language::Kernel& kernel, language::Value* keys);

class ScoreRow {
 public:
  ScoreRow(language::Kernel& kernel, const ScoresKernel& spec);

  // Which row of which sequence, what it sees, and where its scores go: nowhere, with `exists` that is false.
  void place(language::Value* batch, language::Value* row, language::Value* exists = nullptr);
  // Queries and weights.
  void load();

  std::vector<language::Accumulator> multiply(const KeyHalf& key);
  // Σ relu(q · k) · w: a chain over the lane's heads from 0, ascending, then the other lane's. NaN stays NaN.
  language::Value* sum_of(const std::vector<language::Accumulator>& products);
  // Both, a block's heads added up between the products of the next one.
  language::Value* multiplied_sum_of(const KeyHalf& key);
  void store(language::Value* tile, language::Value* score);
  // −∞ for the keys of tiles from … to − 1, two tiles at a time.
  void fill(language::Value* from, language::Value* to);

  language::Value* half() const { return half_; }      // of a key's lanes: 0, 1
  language::Value* column() const { return column_; }  // key of a tile
  const RowKeys& seen() const { return seen_; }
  // Tiles that the row sees something of.
  language::Value* first_seen() const { return first_seen_; }
  language::Value* behind_seen() const { return behind_seen_; }

 private:
  llvm::IRBuilder<>& ir() { return kernel_.ir(); }
  language::Value* argument(std::size_t field) { return kernel_.argument_i64(field); }
  std::size_t blocks() const { return static_cast<std::size_t>(spec_.blocks); }
  void load_weights(language::Value* heads);
  void multiply_step(const KeyHalf& key, std::size_t block, std::size_t step, language::Accumulator& product);
  // Adds registers first … first + count − 1 of a block.
  language::Value* with_heads(language::Value* sum, const language::Accumulator& product, std::size_t block, int first,
                              int count);
  language::Value* of_both_lanes(language::Value* sum);

  language::Kernel& kernel_;
  const ScoresKernel& spec_;
  language::MatrixUnit unit_;
  // Uniform, but for the lane's own half_ and column_.
  language::Value* batch_ = nullptr;
  language::Value* row_ = nullptr;
  language::Value* half_ = nullptr;
  language::Value* column_ = nullptr;
  RowKeys seen_{};
  language::Value* first_seen_ = nullptr;
  language::Value* behind_seen_ = nullptr;
  std::optional<language::Buffer> scores_;
  language::Values queries_;  // [block][step]
  language::Values weights_;  // [block][register]
  language::Values exists_;   // of the last block's registers, where it is cut
};

}  // namespace wavejit::sparse_indexer
