// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/dualwave_products.h"

#include <memory>

#include "codegen/language/control.h"
#include "codegen/language/lane_place.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/emit/query.h"

namespace wavejit::attention_forward::dualwave {

using language::Accumulator;
using language::Strand;
using language::Value;

Products::Products(language::Kernel& kernel, const ForwardKernel& spec, const language::MatrixUnit& matrix,
                   LineTiles& tiles, const language::Softmax& softmax)
    : kernel_(kernel),
      spec_(spec),
      wave_(language::wave_shape(kernel)),
      matrix_(matrix),
      tiles_(tiles),
      softmax_(softmax) {
  if (spec.narrow_queries) bytes_.emplace(kernel, spec);
}

void Products::take_query(const Workgroup& workgroup, const language::Values& loaded) {
  if (bytes_) {
    query_bytes_ = bytes_->query(loaded, workgroup.query_sign);
  } else {
    query_ = query_operands(kernel_, workgroup, matrix_, loaded, query_numbers(spec_));
  }
}

// In the order in which the products take them.
void Products::read(Stream stream, int buffer) {
  read_.clear();
  if (stream == Stream::keys) {
    for (int dims = 0; dims < blocks_of_dims(spec_.head_dim_qk, wave_.fragment_k()); ++dims)
      for (int keys = 0; keys < 2; ++keys) read_.push_back(tiles_.keys().rows(buffer, keys, dims));
    return;
  }
  for (int keys = 0; keys < spec_.tile_keys / wave_.fragment_k(); ++keys)
    for (int dims = 0; dims < blocks_of_dims(spec_.head_dim_v, wave_.rows); ++dims)
      read_.push_back(tiles_.values().transposed(buffer, dims, keys));
}

void Products::read_last_values(Value* buffer) {
  Value* from = tiles_.values().transposed_start(buffer);
  read_.clear();
  for (int keys = 0; keys < spec_.tile_keys / wave_.fragment_k(); ++keys)
    for (int dims = 0; dims < blocks_of_dims(spec_.head_dim_v, wave_.rows); ++dims)
      read_.push_back(tiles_.values().transposed(from, dims, keys));
}

void Products::read_bytes(Stream stream, const State& state) {
  if (stream == Stream::keys) {
    key_bytes_.clear();
    for (int step = 0; step < bytes_->key_steps(); ++step)
      key_bytes_.push_back(bytes_->keys(tiles_.keys(), state.read_starts[0], step));
  } else {
    value_bytes_.clear();
    for (int step = 0; step < bytes_->value_steps(); ++step)
      value_bytes_.push_back(bytes_->values(tiles_.values(), state.read_starts[1], step));
  }
}

void Products::make_read_starts(State& state, std::size_t ahead) {
  const auto image = [&](std::size_t tile) { return state.images[tile % state.images.size()]; };
  state.read_starts = {tiles_.keys().rows_start(image(ahead)), tiles_.values().transposed_start_in(image(ahead - 1))};
  language::pin(kernel_, state.read_starts);
}

// Dims in blocks of 16 upward; both accumulators in turn, so that neighbours do not wait for each other.
Strand Products::multiply_keys() {
  scores.assign(2, matrix_.zeros());
  Strand strand;
  if (bytes_) {
    for (int step = 0; step < bytes_->key_steps(); ++step)
      strand.add([this, step] {
        bytes_->multiply_keys(key_bytes_[static_cast<std::size_t>(step)], query_bytes_, scores, step);
      });
    return strand;
  }
  for (std::size_t step = 0; step < read_.size(); ++step) {
    strand.add([this, step] {
      Accumulator& sum = scores[step % 2];
      sum = matrix_.mma(read_[step], query_[step / 2], sum);
    });
  }
  return strand;
}

// The sum of the weights is issued first, so that it has finished when the last product has.
Strand Products::multiply_value_bytes(State& state) {
  Strand strand;
  auto sums = std::make_shared<Accumulator>();
  strand.add([this, sums, &state] { *sums = bytes_->matrix().column_sums(packed_bytes, state.softmax.scale); });
  for (std::size_t step = 0; step < state.outputs.size(); ++step) {
    strand.add([this, step, sums, &state] {
      Accumulator& output = state.outputs[step];
      output = bytes_->matrix().mma(value_bytes_[step], packed_bytes, output, state.softmax.scale);
      if (step + 1 != state.outputs.size()) return;
      Value* sum = bytes_->matrix().of_columns(*sums);
      state.softmax.sums[0] = softmax_.accumulated(state.softmax.sums[0], sum);
    });
  }
  return strand;
}

// Keys in blocks of 16 upward.
Strand Products::multiply_values(State& state) {
  if (bytes_) return multiply_value_bytes(state);
  std::vector<Accumulator>& outputs = state.outputs;
  Strand strand;
  for (std::size_t step = 0; step < read_.size(); ++step) {
    strand.add([this, step, &outputs] {
      Accumulator& sum = outputs[step % outputs.size()];
      sum = matrix_.mma(read_[step], packed[step / outputs.size()], sum);
    });
  }
  return strand;
}

}  // namespace wavejit::attention_forward::dualwave
