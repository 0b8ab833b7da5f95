#include "templates/attention_forward/emit.h"

#include <array>

#include "codegen/language/control.h"
#include "codegen/language/convert.h"
#include "codegen/language/matrix.h"
#include "codegen/language/softmax.h"
#include "templates/attention_forward/arguments.h"
#include "templates/attention_forward/mask.h"
#include "templates/attention_forward/output.h"
#include "templates/attention_forward/parameters.h"
#include "templates/attention_forward/tiles.h"
#include "templates/attention_forward/workgroup.h"

namespace wavejit::attention_forward {
namespace {

using language::Accumulator;
using language::Element;
using language::Kernel;
using language::KOrder;
using language::OperandB;
using language::SoftmaxState;
using language::Value;
using language::Values;

// The generic pipeline: 4 waves of 32 query rows walk the key tiles together, one tile after the other.
//
//   Sᵀ = K · Qᵀ      a lane owns a query row (a column of Sᵀ), so that row statistics stay in the lane
//   P  = softmax weights of S, rounded to the storage type in the registers where S stood
//   Oᵀ += Vᵀ · Pᵀ    with the keys in the order in which the score registers hold them: P never crosses lanes
class GenericPipeline {
 public:
  GenericPipeline(Kernel& kernel, const KernelSpec& spec, const LdsPlan& plan)
      : kernel_(kernel),
        spec_(spec),
        plan_(plan),
        matrix_(kernel, 32, 32, spec.dtype == DataType::bf16 ? Element::bf16 : Element::fp16),
        workgroup_(begin_workgroup(kernel, spec)),
        tiles_(make_tiles(kernel, spec, plan, workgroup_, matrix_)),
        softmax_(kernel, workgroup_.scale_log2e) {}

  void emit() {
    State state{.softmax = softmax_.initial(), .outputs = {}, .in_flight = {}};
    for (int block = 0; block < output_blocks(); ++block) state.outputs.push_back(matrix_.zeros());

    Value* any_tile = kernel_.ir().CreateICmpSGT(workgroup_.tiles, kernel_.constant(0));
    Values result = language::if_uniform(kernel_, any_tile, language::Likelihood::even, row_values(state),
                                         [&](const Values&) { return walk_tiles(state); });
    const State end = with_row_values(state, result);

    Value* sum = softmax_.row_sum(end.softmax);
    store_output(kernel_, spec_, workgroup_, matrix_.element(), end.outputs, softmax_.inverse(sum));
    if (spec_.lse) store_log_sum_exp(kernel_, workgroup_, softmax_.log_sum_exp(end.softmax, sum));
  }

 private:
  struct State {
    SoftmaxState softmax;
    std::vector<Accumulator> outputs;  // Oᵀ, 32 dims each
    Values in_flight;                  // the next tile, as far as it waits in registers
  };

  static constexpr int query_fragment_k = 16;
  int output_blocks() const { return spec_.head_dim_v / 32; }
  int score_blocks() const { return spec_.tile_keys / 32; }
  int dim_blocks() const { return spec_.head_dim_qk / query_fragment_k; }

  // The part of the state that outlives the loop, as a flat list for phis, and back.
  static Values row_values(const State& state) {
    Values values = {state.softmax.maximum, state.softmax.shift, state.softmax.half_sum};
    for (const Accumulator& output : state.outputs) values.push_back(output.value);
    return values;
  }
  static State with_row_values(State state, const Values& values) {
    state.softmax = {.maximum = values[0], .shift = values[1], .half_sum = values[2]};
    for (std::size_t block = 0; block < state.outputs.size(); ++block) state.outputs[block].value = values[block + 3];
    return state;
  }

  Values walk_tiles(State state) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    state.in_flight = tiles_->start();
    load_query();

    const std::size_t row_count = row_values(state).size();
    Values initial = row_values(state);
    initial.insert(initial.end(), state.in_flight.begin(), state.in_flight.end());
    initial.push_back(kernel_.constant(0));  // tile
    Values end = language::loop_in_phases(
        kernel_, plan_.buffers, initial, [&](int buffer, const Values& values) -> language::Continued {
          State now = with_row_values(state, values);
          now.in_flight.assign(values.begin() + static_cast<std::ptrdiff_t>(row_count), values.end() - 1);
          Value* tile = values.back();
          Value* next = ir.CreateAdd(tile, kernel_.constant(1));
          Value* has_next = ir.CreateICmpSLT(next, workgroup_.tiles);
          now.in_flight = tiles_->advance(buffer, tile, has_next, now.in_flight);
          now = attend(now, buffer, tile);
          Values after = row_values(now);
          after.insert(after.end(), now.in_flight.begin(), now.in_flight.end());
          after.push_back(next);
          return {.state = after, .more = has_next};
        });
    end.resize(row_count);
    return end;
  }

  // Qᵀ as operand B, in registers for good: column = query row, 16 bytes of it a lane.
  void load_query() {
    llvm::IRBuilder<>& ir = kernel_.ir();
    Value* row = ir.CreateAdd(ir.CreateMul(workgroup_.row, workgroup_.q.row_stride),
                              ir.CreateMul(workgroup_.lane_group, kernel_.constant(16)));
    Value* sign = ir.CreateVectorSplat(4, workgroup_.query_sign);
    std::vector<Value*> loaded;
    for (int block = 0; block < dim_blocks(); ++block) {
      Value* offset = ir.CreateAdd(row, kernel_.constant(block * query_fragment_k * 2));
      loaded.push_back(workgroup_.q.buffer.load(16, offset, kernel_.constant(0)));
    }
    for (Value* dwords : loaded) query_.push_back(matrix_.operand_b(ir.CreateXor(dwords, sign), KOrder::contiguous));
  }

  State attend(State state, int buffer, Value* tile) {
    std::vector<Accumulator> scores = multiply_keys(buffer);
    apply_mask(kernel_, spec_, workgroup_, tile, scores);
    state.softmax = softmax_.raise_maximum(state.softmax, scores, state.outputs);
    state.softmax = softmax_.weigh(state.softmax, scores);
    accumulate_values(buffer, scores, state.outputs);
    return state;
  }

  // Sᵀ: raw scores, k in blocks of 16 from dim 0 upward.
  std::vector<Accumulator> multiply_keys(int buffer) {
    std::vector<Accumulator> scores(static_cast<std::size_t>(score_blocks()), matrix_.zeros());
    struct Step {
      int key_block;
      int dim_block;
    };
    std::vector<Step> steps;
    for (int dim_block = 0; dim_block < dim_blocks(); ++dim_block)
      for (int key_block = 0; key_block < score_blocks(); ++key_block) steps.push_back({key_block, dim_block});
    ahead(
        steps, reads_ahead, [&](const Step& step) { return tiles_->keys(buffer, step.key_block, step.dim_block); },
        [&](const Step& step, const language::OperandA& keys) {
          Accumulator& sum = scores[static_cast<std::size_t>(step.key_block)];
          sum = matrix_.mma(keys, query_[static_cast<std::size_t>(step.dim_block)], sum);
        });
    return scores;
  }

  // Oᵀ += Vᵀ · Pᵀ, keys in blocks of 16 from key 0 of the tile upward.
  void accumulate_values(int buffer, const std::vector<Accumulator>& weights, std::vector<Accumulator>& outputs) {
    struct Step {
      int dim_block;
      int key_block;
    };
    std::vector<Step> steps;
    for (int key_block = 0; key_block < spec_.tile_keys / 16; ++key_block)
      for (int dim_block = 0; dim_block < output_blocks(); ++dim_block) steps.push_back({dim_block, key_block});
    OperandB packed;
    ahead(
        steps, reads_ahead,
        [&](const Step& step) { return tiles_->values_transposed(buffer, step.dim_block, step.key_block); },
        [&](const Step& step, const language::OperandA& values) {
          if (step.dim_block == 0) packed = pack_weights(weights, step.key_block);
          Accumulator& sum = outputs[static_cast<std::size_t>(step.dim_block)];
          sum = matrix_.mma(values, packed, sum);
        });
  }

  // Eight score registers are one operand fragment: a 16-key block in accumulator-row order.
  OperandB pack_weights(const std::vector<Accumulator>& weights, int key_block) {
    const Accumulator& part = weights[static_cast<std::size_t>(key_block / 2)];
    const std::vector<Value*> dwords = language::convert_packed(kernel_, part.value, key_block % 2 * 8, 8,
                                                                matrix_.element(), language::NanInput::irrelevant);
    return matrix_.operand_b(language::gather_dwords(kernel_, dwords), KOrder::accumulator_rows);
  }

  // LDS reads run this many fragments ahead of the matrix instructions that consume them.
  static constexpr std::size_t reads_ahead = 4;
  template <typename Step, typename Read, typename Use>
  static void ahead(const std::vector<Step>& steps, std::size_t distance, Read read, Use use) {
    std::vector<language::OperandA> fragments;
    for (std::size_t index = 0; index < steps.size(); ++index) {
      while (fragments.size() < std::min(steps.size(), index + distance))
        fragments.push_back(read(steps[fragments.size()]));
      use(steps[index], fragments[index]);
    }
  }

  Kernel& kernel_;
  const KernelSpec& spec_;
  const LdsPlan& plan_;
  language::MatrixUnit matrix_;
  Workgroup workgroup_;
  std::unique_ptr<Tiles> tiles_;
  language::Softmax softmax_;
  std::vector<OperandB> query_;
};

}  // namespace

std::string kernel_name(const KernelSpec& spec) {
  std::string name = "attention_forward_";
  name += to_text(spec.dtype);
  name += "_d" + std::to_string(spec.head_dim_qk);
  if (spec.mask == Mask::causal) name += "_causal";
  if (spec.lse) name += "_lse";
  return name + "_" + spec.target;
}

std::expected<std::unique_ptr<llvm::Module>, std::string> emit(const KernelSpec& spec, const targets::Target& target,
                                                               llvm::LLVMContext& context) {
  if (spec.target != target.id)
    return std::unexpected("the spec is for target=" + spec.target + ", not for " + std::string(target.id));
  const auto resources = resources_of(spec);
  if (!resources) return std::unexpected(resources.error());

  const LdsPlan plan = lds_plan(spec, target);
  Kernel kernel(context, target,
                {.name = kernel_name(spec),
                 .threads = resources->threads,
                 .waves_per_simd = target.vgprs_per_simd_lane / resources->vgpr_budget,
                 .argument_bytes = sizeof(Arguments)});
  GenericPipeline(kernel, spec, plan).emit();
  return kernel.finish();
}

}  // namespace wavejit::attention_forward
