// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/emit/walk.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "codegen/language/carried.h"
#include "codegen/language/control.h"
#include "codegen/language/convert.h"
#include "codegen/language/lane_place.h"
#include "codegen/language/loads_first.h"
#include "codegen/language/matrix.h"
#include "codegen/language/private_memory.h"
#include "codegen/language/softmax.h"
#include "templates/attention/emit/listed_keys.h"
#include "templates/attention/emit/modifiers.h"
#include "templates/attention/emit/query.h"
#include "templates/attention/emit/tile_walk.h"
#include "templates/attention_latent/emit/key_ring.h"
#include "templates/attention_latent/emit/merge_if_last.h"
#include "templates/attention_latent/emit/rows.h"
#include "templates/attention_latent/emit/tile_weights.h"
#include "templates/attention_latent/emit/workgroup.h"

namespace wavejit::attention_latent {
namespace {

using attention::TileInterval;
using language::Accumulator;
using language::Element;
using language::Kernel;
using language::KOrder;
using language::OperandA;
using language::OperandB;
using language::PartStatistics;
using language::SoftmaxState;
using language::Value;
using language::Values;

// Four waves walk the tiles of keys together. A wave has 32 rows. Waves that share rows each have all scores of these
// rows (key_ring.h: computed by themselves or by a neighbour) and a share of O's columns:
//
//   Sᵀ = K · Qᵀ      a lane owns a row (a column of Sᵀ), so that its statistics stay in the lane
//   P  = softmax weights of S, rounded to the storage type in the registers where S stood
//   Oᵀ += Vᵀ · Pᵀ    of the wave's share of V's columns
class Walk {
 public:
  Walk(Kernel& kernel, const WalkKernel& spec)
      : kernel_(kernel),
        spec_(spec),
        wave_(language::wave_shape(kernel)),
        matrix_(kernel, wave_.rows, wave_.rows, spec.dtype == DataType::bf16 ? Element::bf16 : Element::fp16),
        workgroup_(begin_workgroup(kernel, spec)),
        modifiers_(kernel, spec.modifiers, spec.dtype, score_fields, workgroup_),
        ring_(make_key_ring(kernel, spec, workgroup_, matrix_)),
        softmax_(kernel, modifiers_.softmax_scale(), workgroup_.rescale_threshold),
        walk_(kernel, workgroup_.first_tile, workgroup_.tiles, spec.chunk_keys() / attention::tile_keys) {
    walk_.prepare_chunks();
    // Registers have no room for R, the sum of earlier chunks: memory holds its O, and then its m and l.
    if (!spec.parts) merged_memory_.emplace(kernel, statistics_at() + statistics_bytes);
  }

  void emit() {
    State end = walk_tiles();
    settle(end.outputs);
    const PartStatistics part = {.maximum = end.softmax.maximum, .sum = softmax_.row_sum(end.softmax)};
    if (spec_.parts) {
      store_part(kernel_, spec_, workgroup_, walk_.chunk_of(walk_.last()), part, end.outputs);
      if (spec_.merged) merge_if_last(kernel_, spec_, workgroup_, modifiers_.softmax_scale());
      return;
    }
    // A row of one chunk is not merged. The two branches have stores of their own, because registers have no room for R
    // beside O.
    Value* several = walk_.several_chunks();
    language::if_uniform(kernel_, kernel_.ir().CreateNot(several), language::Likelihood::even, [&] {
      store_rows(kernel_, spec_, workgroup_, softmax_, part, end.outputs.front().layout, matrix_.element(),
                 [&](int block, int r, int) { return quad_of(end, block, r); });
    });
    language::if_uniform(kernel_, several, language::Likelihood::even, [&] {
      const PartStatistics row = merge_into_memory(end, part);
      Value* place = merged_memory_->place();
      store_rows(kernel_, spec_, workgroup_, softmax_, row, end.outputs.front().layout, matrix_.element(),
                 [&](int, int, int at) { return merged_quad(place, at); });
    });
  }

 private:
  struct State {
    Value* place = nullptr;  // of the tile in the walk
    SoftmaxState softmax;
    std::vector<Accumulator> outputs;  // Oᵀ of the chunk, a block of the wave's dims each
    Values carried;                    // of the ring
    void each(this auto& state, auto visit) {
      visit(state.place);
      visit(state.softmax);
      visit(state.outputs);
      visit(state.carried);
    }
  };

  int output_blocks() const { return dims_of_wave(spec_) / wave_.rows; }
  int dim_blocks() const { return spec_.dims_k() / wave_.fragment_k(); }

  // Moves the query, as operands, into registers of accumulation.
  void take_query(const Values& loaded) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    Values query = loaded;
    // In short walks the sign of the scale is tested: it is seldom negative, and the change of signs would take 144
    // instructions even if it changed nothing.
    if (spec_.listed) {
      Value* changes = ir.CreateICmpNE(workgroup_.query_sign, kernel_.constant(0));
      query = language::if_uniform(kernel_, changes, language::Likelihood::rarely, query, [&](const Values& before) {
        Values changed;
        for (const OperandB& operand : attention::query_operands(kernel_, workgroup_, matrix_, before))
          changed.push_back(operand.value);
        return changed;
      });
      for (Value* value : query) query_.push_back(matrix_.operand_b(value, KOrder::contiguous));
    } else {
      query_ = attention::query_operands(kernel_, workgroup_, matrix_, query);
    }
    for (OperandB& operand : query_) operand.value = language::in_accumulation_registers(kernel_, operand.value);
  }

  State walk_tiles() {
    std::vector<Accumulator> outputs;
    const Values carried = ring_->start(walk_, [&](const Values& query) {
      outputs = no_outputs();
      if (!spec_.parts) begin_merged();
      take_query(query);
    });
    const State start{.place = walk_.first(), .softmax = softmax_.initial(), .outputs = outputs, .carried = carried};
    language::loads_first(kernel_, ring_->first_loads());

    const Values end = language::loop_in_phases(
        kernel_, ring_->buffers(), language::carried(start),
        [&](int buffer, const Values& values) {
          State state = language::state_of(start, values);
          // Opaque to what would carry the tile's byte offsets round the loop in vector registers.
          Value* place = kernel_.uniform(state.place);
          state.carried = ring_->whole(buffer, place, walk_, state.carried);
          state = attend(std::move(state), buffer, place);
          state.place = walk_.ahead(place, 1);
          // After the last tile of a short walk nothing is fetched.
          if (spec_.listed && ring_->may_end_unreleased())
            state.carried = language::if_uniform(
                kernel_, walk_.exists(state.place), language::Likelihood::even, state.carried,
                [&](const Values& carried) { return ring_->release(buffer, place, walk_, carried); });
          else
            state.carried = ring_->release(buffer, place, walk_, state.carried);
          return language::carried(state);
        },
        [&](const Values& values) { return walk_.exists(language::state_of(start, values).place); });
    return language::state_of(start, end);
  }

  State attend(State state, int buffer, Value* place) {
    Value* tile = walk_.tile_at(place);
    end_chunk(state, place);
    ReadAhead keys(key_steps(), [&](const Step& step) { return ring_->keys(buffer, step.keys, step.dims); });
    const std::size_t of_values = value_steps().size() / 2;
    auto behind_scores = ring_->fetches_behind_scores(place, walk_, state.carried);
    const bool in_two = !behind_scores.empty();
    Fetches early(ring_->fetches(buffer, place, walk_, state.carried), key_steps().size() + (in_two ? 0 : of_values));
    Fetches late(std::move(behind_scores), of_values);
    std::vector<Accumulator> scores = multiply_keys(keys, early);
    Fetches& fetches = in_two ? late : early;
    // The first fragments of V are read while the softmax runs.
    ring_->begin_values(buffer);
    ReadAhead values(value_steps(), [&](const Step& step) { return ring_->values(buffer, step.dims, step.keys); });
    modifiers_.apply(tile, {}, scores);
    if (Value* named = ring_->named()) attention::hide_unnamed(kernel_, named, workgroup_.lane_group, scores);
    state.softmax = raise_maximum(state.softmax, scores, state.outputs);
    // Weights are computed between products only if a product takes fewer than 16 keys. Where it takes 16, walks wait
    // for memory anyway (bench/predicted_latent.md), and a wave with its rows' whole O has no registers for weights
    // beside scores. Walks that look up each key do not have them either.
    if (matrix_.steps() > 1 && !spec_.layout().single_keys) {
      accumulate_while_weighing(values, scores, state, fetches);
      return state;
    }
    state.softmax = softmax_.weigh(state.softmax, scores);
    accumulate_values(values, scores, state.outputs, fetches);
    return state;
  }

  // If the tile at `place` begins a chunk that is not the walk's first, writes the part of the chunk before it.
  void end_chunk(State& state, Value* place) {
    const Values values = language::carried(state);
    const Values after = language::if_uniform(
        kernel_, walk_.begins_chunk(place), language::Likelihood::rarely, values, [&](const Values& before) {
          State at = language::state_of(state, before);
          settle(at.outputs);
          const PartStatistics part = {.maximum = at.softmax.maximum, .sum = softmax_.row_sum(at.softmax)};
          if (spec_.parts) {
            Value* chunk = kernel_.ir().CreateSub(walk_.chunk_of(place), kernel_.constant(1));
            store_part(kernel_, spec_, workgroup_, chunk, part, at.outputs);
          } else {
            merge_into_memory(at, part);
          }
          at.softmax = softmax_.initial();
          at.outputs = no_outputs();
          return language::carried(at);
        });
    state = language::state_of(state, after);
  }

  static constexpr int statistics_bytes = 16;  // m, l, and two unused dwords
  int statistics_at() const { return output_blocks() * wave_.registers() * static_cast<int>(sizeof(float)); }
  void store_statistics(Value* place, const PartStatistics& of) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    Value* both = llvm::PoisonValue::get(kernel_.vector(kernel_.i32(), 2));
    both = ir.CreateInsertElement(both, ir.CreateBitCast(of.maximum, kernel_.i32()), std::uint64_t{0});
    both = ir.CreateInsertElement(both, ir.CreateBitCast(of.sum, kernel_.i32()), std::uint64_t{1});
    merged_memory_->store(place, statistics_at(), both);
  }
  // Calls use(block, r, at) for each four floats of O, in the order in which the lane holds them.
  template <typename Use>
  void for_each_quad(Use use) {
    constexpr int quad = 4;
    for (int block = 0; block < output_blocks(); ++block)
      for (int r = 0; r < wave_.registers(); r += quad)
        use(block, r, ((block * wave_.registers()) + r) * static_cast<int>(sizeof(float)));
  }
  // Sets the merged O to 0 where several chunks will be merged.
  void begin_merged() {
    language::if_uniform(kernel_, walk_.several_chunks(), language::Likelihood::even, [&] {
      Value* place = merged_memory_->place();
      Value* zeros = llvm::Constant::getNullValue(kernel_.vector(kernel_.i32(), 4));
      for_each_quad([&](int, int, int at) { merged_memory_->store(place, at, zeros); });
      store_statistics(place, {.maximum = softmax_.initial().maximum, .sum = kernel_.constant(0.0F)});
    });
  }
  Value* quad_of(const State& state, int block, int r) {
    return kernel_.ir().CreateShuffleVector(state.outputs[static_cast<std::size_t>(block)].value,
                                            {r, r + 1, r + 2, r + 3});
  }
  Value* merged_quad(Value* place, int at) {
    return kernel_.ir().CreateBitCast(merged_memory_->load(place, at, 4), kernel_.vector(kernel_.f32(), 4));
  }
  // Merges the part into R; the result's O goes to memory.
  PartStatistics merge_into_memory(const State& state, const PartStatistics& part) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    Value* place = merged_memory_->place();
    Value* both = ir.CreateBitCast(merged_memory_->load(place, statistics_at(), 2), kernel_.vector(kernel_.f32(), 2));
    const language::MergeWeights weights =
        softmax_.merge_weights(ir.CreateExtractElement(both, std::uint64_t{0}), part.maximum);
    const PartStatistics row = {
        .maximum = weights.maximum,
        .sum = softmax_.merged(weights, ir.CreateExtractElement(both, std::uint64_t{1}), part.sum)};
    store_statistics(place, row);
    for_each_quad([&](int block, int r, int at) {
      Value* four = softmax_.merged(weights, merged_quad(place, at), quad_of(state, block, r));
      merged_memory_->store(place, at, kernel_.ir().CreateBitCast(four, kernel_.vector(kernel_.i32(), 4)));
    });
    return row;
  }

  // One fragment product: which block of keys, which block of dims.
  struct Step {
    int keys;
    int dims;
  };
  // The steps alternate between the two accumulators of the scores, so that neighbours do not wait for each other.
  std::vector<Step> key_steps() const {
    std::vector<Step> steps;
    for (int dims = 0; dims < dim_blocks(); ++dims)
      for (int keys = 0; keys < ring_->key_blocks_of_wave(); ++keys) steps.push_back({keys, dims});
    return steps;
  }
  std::vector<Step> value_steps() const {
    std::vector<Step> steps;
    for (int keys = 0; keys < attention::tile_keys / wave_.fragment_k(); ++keys)
      for (int dims = 0; dims < output_blocks(); ++dims) steps.push_back({keys, dims});
    return steps;
  }

  // LDS reads that run a few fragments ahead of the matrix instructions that consume them.
  class ReadAhead {
   public:
    ReadAhead(std::vector<Step> steps, std::function<OperandA(const Step&)> read)
        : steps_(std::move(steps)), read_(std::move(read)) {
      fill(distance);
    }
    // Calls use(step, fragment) for every step in order.
    template <typename Use>
    void consume(Use use) {
      for (std::size_t index = 0; index < steps_.size(); ++index) {
        fill(index + distance);
        use(steps_[index], fragments_[index]);
      }
    }

   private:
    static constexpr std::size_t distance = 4;
    void fill(std::size_t count) {
      while (fragments_.size() < std::min(count, steps_.size())) fragments_.push_back(read_(steps_[fragments_.size()]));
    }
    std::vector<Step> steps_;
    std::function<OperandA(const Step&)> read_;
    std::vector<OperandA> fragments_;
  };

  // Spreads fetches evenly over `products` products: those of the scores and half of those of O. More fetches in a row
  // would fill memory's queue, and the last ones must arrive before the next tile.
  class Fetches {
   public:
    Fetches(std::vector<std::function<void()>> all, std::size_t products) : all_(std::move(all)), products_(products) {}
    void after_product() {
      ++done_;
      for (; fetched_ < all_.size() && fetched_ * products_ < done_ * all_.size(); ++fetched_) all_[fetched_]();
    }

   private:
    std::vector<std::function<void()>> all_;
    std::size_t products_;
    std::size_t done_ = 0;
    std::size_t fetched_ = 0;
  };

  // Sᵀ = K · Qᵀ: the raw scores of the wave's own keys, dims in blocks of 16 from dim 0 upward; then those of all keys.
  std::vector<Accumulator> multiply_keys(ReadAhead& reads, Fetches& fetches) {
    std::vector<Accumulator> scores(static_cast<std::size_t>(ring_->key_blocks_of_wave()), matrix_.zeros());
    reads.consume([&](const Step& step, const OperandA& keys) {
      Accumulator& sum = scores[static_cast<std::size_t>(step.keys)];
      sum = matrix_.mma(ring_->widened(keys), query_[static_cast<std::size_t>(step.dims)], sum);
      fetches.after_product();
    });
    return ring_->all_scores(std::move(scores));
  }

  // Oᵀ += Vᵀ · Pᵀ, keys in blocks of 16 from key 0 of the tile upward.
  void accumulate_values(ReadAhead& reads, const std::vector<Accumulator>& weights, std::vector<Accumulator>& outputs,
                         Fetches& fetches) {
    OperandB packed;
    reads.consume([&](const Step& step, const OperandA& read) {
      if (step.dims == 0) packed = pack_weights(weights, step.keys);
      const OperandA values = ring_->widened(read);
      Accumulator& sum = outputs[static_cast<std::size_t>(step.dims)];
      sum = multiplied(values, values.value != read.value, packed, sum, static_cast<std::size_t>(step.dims));
      fetches.after_product();
    });
  }

  Accumulator multiplied(const OperandA& values, bool fresh, const OperandB& weights, const Accumulator& sum,
                         std::size_t block) {
    if (!stands_apart(block)) return matrix_.mma(values, weights, sum);
    return fresh ? matrix_.mma_apart_of_fresh(values, weights, sum) : matrix_.mma_apart(values, weights, sum);
  }

  // The same from scores, whose weights are computed between the products.
  void accumulate_while_weighing(ReadAhead& reads, const std::vector<Accumulator>& scores, State& state,
                                 Fetches& fetches) {
    constexpr int slots_of_shadow = 6;  // of one product
    TileWeights weights(kernel_, softmax_, matrix_, state.softmax, scores);
    OperandB packed;
    reads.consume([&](const Step& step, const OperandA& values) {
      if (step.dims == 0) packed = weights.of(step.keys);
      Accumulator& sum = state.outputs[static_cast<std::size_t>(step.dims)];
      for (int product = 0; product < matrix_.steps(); ++product) {
        sum = matrix_.mma_step(values, packed, sum, product);
        const bool last = product + 1 == matrix_.steps();
        weights.write(last ? slots_of_shadow - ring_->slots_of_values() : slots_of_shadow);
      }
      fetches.after_product();
    });
    state.softmax = weights.finish();
  }

  // If a wave has its rows' whole O, vector registers cannot hold it: the last blocks lie beside the query in registers
  // of accumulation, as many as fit there.
  std::size_t blocks_apart() const {
    if (waves_of_rows(spec_) > 1) return 0;
    const int query_registers = dim_blocks() * wave_.operand_bytes / static_cast<int>(sizeof(float));
    const int left = (kernel_.target().vgprs_per_simd_lane / 2) - query_registers;
    return static_cast<std::size_t>(std::min(left / wave_.registers(), output_blocks() / 2));
  }
  bool stands_apart(std::size_t block) const {
    return block + blocks_apart() >= static_cast<std::size_t>(output_blocks());
  }
  std::vector<Accumulator> no_outputs() const {
    std::vector<Accumulator> outputs(static_cast<std::size_t>(output_blocks()), matrix_.zeros());
    for (std::size_t block = 0; block < outputs.size(); ++block)
      if (stands_apart(block))
        outputs[block].value = language::in_accumulation_registers(kernel_, outputs[block].value);
    return outputs;
  }
  // Called before any instruction but a product reads them.
  void settle(std::vector<Accumulator>& outputs) const {
    if (blocks_apart() != 0) matrix_.settle(std::span(outputs).last(blocks_apart()));
  }
  SoftmaxState raise_maximum(const SoftmaxState& state, const std::vector<Accumulator>& scores,
                             std::vector<Accumulator>& outputs) const {
    if (blocks_apart() == 0) return softmax_.raise_maximum(state, scores, outputs);
    return softmax_.raise_maximum(state, scores, outputs, [&](std::span<Value*> values, Value* factor) {
      std::vector<Accumulator> at = outputs;
      for (std::size_t block = 0; block < values.size(); ++block) at[block].value = values[block];
      settle(at);
      for (std::size_t block = 0; block < values.size(); ++block) {
        values[block] = softmax_.rescaled(at[block].value, factor);
        if (stands_apart(block)) values[block] = language::in_accumulation_registers(kernel_, values[block]);
      }
    });
  }

  // Eight score registers are one operand fragment: a 16-key block in accumulator-row order.
  OperandB pack_weights(const std::vector<Accumulator>& weights, int key_block) {
    const Accumulator& part = weights[static_cast<std::size_t>(key_block / 2)];
    const std::vector<Value*> dwords =
        language::convert_packed(kernel_, part.value, key_block % 2 * wave_.slots(), wave_.slots(), matrix_.element(),
                                 language::NanInput::irrelevant);
    return matrix_.operand_b(language::gather_dwords(kernel_, dwords), KOrder::accumulator_rows);
  }

  Kernel& kernel_;
  const WalkKernel& spec_;
  targets::WaveShape wave_;
  language::MatrixUnit matrix_;
  Workgroup workgroup_;
  attention::ScoreModifiers modifiers_;
  std::unique_ptr<KeyRing> ring_;
  language::Softmax softmax_;
  TileInterval walk_;
  std::optional<language::PrivateMemory> merged_memory_;
  std::vector<OperandB> query_;
};

}  // namespace

void emit_walk(Kernel& kernel, const WalkKernel& spec) { Walk(kernel, spec).emit(); }

}  // namespace wavejit::attention_latent
