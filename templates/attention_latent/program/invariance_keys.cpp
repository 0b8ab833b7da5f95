// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/program/invariance_keys.h"

#include <algorithm>

namespace wavejit::attention_latent::program {

KeyMemory place_keys(const Batch& batch, std::span<const RowsOf> pieces, const KeyPlaces& places) {
  std::vector<std::int64_t> lengths;
  for (const RowsOf& piece : pieces) lengths.push_back(keys_of(batch, piece));
  KeyMemory memory{attention::program::placed_keys(lengths, places, batch.number)};
  // The exponents behind all rows are multiples of 16 bytes with an even number of them.
  if (batch.byte_rows == ByteRows::raised) memory.inner += memory.inner % 2;
  const auto rows = static_cast<std::size_t>(memory.outer * memory.inner);
  memory.has.resize(rows);
  const std::uint16_t garbage = attention::program::bits_of(places.garbage, batch.type);
  const std::int64_t rope = batch.dims - batch.dims_v;
  const std::int64_t columns = places.apart ? batch.dims_v : batch.dims;
  memory.k.assign(rows * static_cast<std::size_t>(columns), garbage);
  if (places.apart) memory.k_rope.assign(rows * static_cast<std::size_t>(rope), garbage);
  for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
    const DrawnSequence& of = batch.sequences[pieces[piece].sequence];
    for (std::int64_t key = 0; key < lengths[piece]; ++key) {
      const attention::program::KeySlot at = memory.slot(piece, key);
      const std::int64_t to = (at.outer * memory.inner) + at.row;
      const std::int64_t of_sequence = places.reversed ? lengths[piece] - 1 - key : key;
      memory.has[static_cast<std::size_t>(to)] = {.sequence = pieces[piece].sequence, .key = of_sequence};
      const auto from = of.k.begin() + (of_sequence * batch.dims);
      std::copy_n(from, columns, memory.k.begin() + (to * columns));
      if (places.apart) std::copy_n(from + batch.dims_v, rope, memory.k_rope.begin() + (to * rope));
    }
  }
  return memory;
}

}  // namespace wavejit::attention_latent::program
