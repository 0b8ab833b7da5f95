// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ScoresKernel → IR.
//
// A wave has one row. Its queries stay in registers: rows of matrix instructions are index heads, columns are keys, so
// that a lane has 16 heads of a block for one key, and adds them up by itself. The two lanes of a key have the other
// heads each; one addition joins them. Nothing crosses waves, and no LDS is used.
//
// Keys come from memory into registers, a tile of 32 at a time, two tiles ahead. A lane reads its own key, wherever it
// stands: dense, or in the page that the block table names, whose entry it has asked for two tiles before that. A lane
// whose key the row does not see reads the nearest one that it sees, and its score is −∞.
#include <array>
#include <span>

#include "codegen/language/buffer.h"
#include "codegen/language/control.h"
#include "codegen/language/cross_lane.h"
#include "codegen/language/lane_place.h"
#include "codegen/language/matrix.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/emit/key_pages.h"
#include "templates/sparse_indexer/emit/emit.h"
#include "templates/sparse_indexer/emit/row_keys.h"

namespace wavejit::sparse_indexer {
namespace {

using attention::maximum;
using attention::minimum;
using language::Accumulator;
using language::Buffer;
using language::Kernel;
using language::Value;
using language::Values;

constexpr int load_bytes = 16;                                   // of a lane
constexpr int row_bytes = head_dim * 2;                          // of a head, of a key
constexpr std::size_t steps = row_bytes / (2 * load_bytes);      // loads of a lane that make a key's half
constexpr int step_bytes = row_bytes / static_cast<int>(steps);  // of a key
constexpr int phases = 2;
constexpr unsigned device_space = 1;
constexpr unsigned constant_space = 4;

// What a lane knows of one tile: half of a key, its scale, and the entry of the tile that comes into its place.
struct Tile {
  std::array<Value*, steps> key;
  Value* scale;
  Value* entry;  // of pages, else null
};

class ScoresEmission {
 public:
  ScoresEmission(Kernel& kernel, const ScoresKernel& spec)
      : kernel_(kernel), spec_(spec), unit_(kernel, block_heads, tile_keys, element()) {}

  void emit() {
    place();
    Value* from = maximum(kernel_, first_tile_, first_seen_);
    Value* to = minimum(kernel_, end_tile_, behind_seen_);
    language::if_uniform(kernel_, ir().CreateICmpSLT(from, to), language::Likelihood::even, [&] {
      load_row();
      walk(from, to);
    });
    Value* fills = kernel_.argument_i32(offsetof(ScoresArguments, fill_hidden));
    language::if_uniform(kernel_, ir().CreateICmpNE(fills, kernel_.constant(0)), language::Likelihood::even, [&] {
      fill(first_tile_, minimum(kernel_, end_tile_, first_seen_));
      fill(maximum(kernel_, first_tile_, behind_seen_), end_tile_);
    });
  }

 private:
  llvm::IRBuilder<>& ir() { return kernel_.ir(); }
  targets::Element element() const {
    return spec_.type == DataType::bf16 ? targets::Element::bf16 : targets::Element::fp16;
  }
  std::size_t blocks() const { return static_cast<std::size_t>(spec_.blocks); }
  Value* argument(std::size_t field) { return kernel_.argument_i64(field); }

  // Which row and which tiles the wave has; ends those that have none.
  void place() {
    Value* shift = kernel_.argument_i32(offsetof(ScoresArguments, rows_shift));
    Value* one = kernel_.constant(1);
    Value* in_group = ir().CreateAnd(kernel_.wave(), ir().CreateSub(ir().CreateShl(one, shift), one));
    row_ = ir().CreateAdd(kernel_.argument_i32(offsetof(ScoresArguments, rows.first_row)),
                          ir().CreateAdd(ir().CreateShl(kernel_.workgroup_x(), shift), in_group));
    batch_ = ir().CreateAdd(kernel_.argument_i32(offsetof(ScoresArguments, rows.first_batch)), kernel_.workgroup_z());
    half_ = language::group_of_lane(kernel_, kernel_.lane());
    column_ = language::row_of_lane(kernel_, kernel_.lane());
    language::leave_if(kernel_,
                       ir().CreateICmpSGE(row_, kernel_.argument_i32(offsetof(ScoresArguments, rows.end_row))));

    Value* runs = ir().CreateLShr(kernel_.constant(scores_waves), shift);
    Value* run = ir().CreateAdd(ir().CreateMul(kernel_.workgroup_y(), runs), ir().CreateLShr(kernel_.wave(), shift));
    Value* tiles = kernel_.argument_i32(offsetof(ScoresArguments, wave_tiles));
    first_tile_ = ir().CreateMul(run, tiles);
    key_length_ = kernel_.argument_i32(offsetof(ScoresArguments, rows.key_length));
    end_tile_ = minimum(kernel_, ir().CreateAdd(first_tile_, tiles), tiles_of(key_length_));

    seen_ = keys_of_row(kernel_, offsetof(ScoresArguments, rows), batch_, row_);
    first_seen_ = ir().CreateLShr(seen_.begin, tile_bits);
    behind_seen_ = ir().CreateSelect(ir().CreateICmpSLT(seen_.begin, seen_.end), tiles_of(seen_.end), first_seen_);
    Value* row_of_scores = moved(kernel_, argument(offsetof(ScoresArguments, scores)), batch_,
                                 argument(offsetof(ScoresArguments, scores_batch_stride)));
    row_of_scores = moved(kernel_, row_of_scores, row_, argument(offsetof(ScoresArguments, scores_row_stride)));
    scores_.emplace(kernel_, row_of_scores, ir().CreateShl(key_length_, 2));
  }

  static constexpr int tile_bits = 5;
  static_assert(tile_keys == 1 << tile_bits);
  Value* tiles_of(Value* keys) {
    return ir().CreateLShr(ir().CreateAdd(keys, kernel_.constant(tile_keys - 1)), tile_bits);
  }

  // Queries and weights of the row, and where its keys stand.
  void load_row() {
    Value* heads = kernel_.argument_i32(offsetof(ScoresArguments, heads));
    Value* stride = kernel_.argument_i32(offsetof(ScoresArguments, queries_head_stride));
    Value* base = moved(kernel_, argument(offsetof(ScoresArguments, queries)), batch_,
                        argument(offsetof(ScoresArguments, queries_batch_stride)));
    base = moved(kernel_, base, row_, argument(offsetof(ScoresArguments, queries_row_stride)));
    const Buffer queries(kernel_, base, language::slice_bytes(kernel_, heads, stride, row_bytes));
    Value* lane = ir().CreateAdd(ir().CreateMul(column_, stride), ir().CreateShl(half_, 4));
    for (int block = 0; block < spec_.blocks; ++block)
      for (std::size_t step = 0; step < steps; ++step) {
        Value* at = ir().CreateAdd(lane, kernel_.constant(static_cast<int>(step) * step_bytes));
        queries_.push_back(queries.load(load_bytes, at, ir().CreateMul(stride, kernel_.constant(block * block_heads))));
      }
    load_weights(heads);
    if (spec_.paged) load_table();
    load_places();
  }

  // Of lane group h and register r: head 32 · block + 8 ⌊r / 4⌋ + 4 h + r mod 4.
  void load_weights(Value* heads) {
    Value* base = moved(kernel_, argument(offsetof(ScoresArguments, weights)), batch_,
                        argument(offsetof(ScoresArguments, weights_batch_stride)));
    base = moved(kernel_, base, row_, argument(offsetof(ScoresArguments, weights_row_stride)));
    const Buffer weights(kernel_, base, ir().CreateShl(heads, 2));
    const language::AccumulatorLayout layout = unit_.accumulator_layout();
    Value* of_half = ir().CreateMul(half_, kernel_.constant(layout.row_block));
    const int registers = layout.registers();
    for (int block = 0; block < spec_.blocks; ++block)
      for (int r = 0; r < registers; r += layout.row_block) {
        Value* head = ir().CreateAdd(of_half, kernel_.constant((block * block_heads) + layout.row_of_register(r)));
        Value* at = ir().CreateShl(head, 2);
        Value* zero = kernel_.constant(0);
        if (!spec_.cut) {
          Value* four = weights.load(load_bytes, at, zero);
          for (std::uint64_t each = 0; each < 4; ++each)
            weights_.push_back(ir().CreateBitCast(ir().CreateExtractElement(four, each), kernel_.f32()));
          continue;
        }
        for (int each = 0; each < layout.row_block; ++each) {
          Value* one = weights.load(4, ir().CreateAdd(at, kernel_.constant(4 * each)), zero);
          weights_.push_back(ir().CreateBitCast(one, kernel_.f32()));
          if (block + 1 == spec_.blocks)
            exists_.push_back(ir().CreateICmpSLT(ir().CreateAdd(head, kernel_.constant(each)), heads));
        }
      }
  }

  void load_table() {
    granule_shift_ = kernel_.argument_i32(offsetof(ScoresArguments, granule_shift));
    granules_of_page_ = page_argument(offsetof(attention::PageArguments, granules_of_page));
    multiplier_ = page_argument(offsetof(attention::PageArguments, page_multiplier));
    last_page_ = ir().CreateSub(page_argument(offsetof(attention::PageArguments, pages)), kernel_.constant(1));
    Value* past = ir().CreateSub(ir().CreateShl(kernel_.constant(1), granule_shift_), kernel_.constant(1));
    Value* granules = ir().CreateLShr(ir().CreateAdd(seen_.end, past), granule_shift_);
    const Buffer none(kernel_, kernel_.ir().getInt64(0), kernel_.constant(0));
    const attention::Slice no_slice = {.buffer = none, .row_stride = kernel_.constant(0)};
    const attention::KeyTensors tensors = {.k = no_slice,
                                           .v = no_slice,
                                           .batch = batch_,
                                           .first_slot = kernel_.constant(0),
                                           .last_key = ir().CreateSub(seen_.end, kernel_.constant(1)),
                                           .page_arguments = offsetof(ScoresArguments, pages)};
    const attention::TableRow row = attention::table_row_of(kernel_, tensors, granules, granules_of_page_, multiplier_);
    table_.emplace(kernel_, row.base, ir().CreateShl(row.live, 2));
  }
  Value* page_argument(std::size_t field) { return kernel_.argument_i32(offsetof(ScoresArguments, pages) + field); }

  // Where keys and their scales begin. Keys without scales have those of one number in the code object.
  void load_places() {
    const auto base_of = [&](Value* base, std::size_t batch_stride) {
      return spec_.paged ? base : moved(kernel_, base, batch_, argument(batch_stride));
    };
    keys_ = base_of(argument(offsetof(ScoresArguments, keys)), offsetof(ScoresArguments, keys_batch_stride));
    auto* one = new llvm::GlobalVariable(kernel_.module(), kernel_.f32(), true, llvm::GlobalValue::InternalLinkage,
                                         llvm::ConstantFP::get(ir().getFloatTy(), 1.0), "one", nullptr,
                                         llvm::GlobalValue::NotThreadLocal, constant_space);
    one->setAlignment(llvm::Align(4));
    Value* scales = argument(offsetof(ScoresArguments, key_scales));
    scales_ =
        ir().CreateSelect(ir().CreateIsNotNull(scales), base_of(scales, offsetof(ScoresArguments, scales_batch_stride)),
                          ir().CreatePtrToInt(one, kernel_.i64()));
  }

  // Per lane: its key of a tile, or the nearest that the row sees.
  Value* key_of(Value* tile) {
    Value* key = ir().CreateAdd(ir().CreateShl(tile, tile_bits), column_);
    Value* last = ir().CreateSub(seen_.end, kernel_.constant(1));
    return maximum(kernel_, minimum(kernel_, key, last), seen_.begin);
  }
  // Per lane: in which column of the table the page of its key stands.
  Value* column_of(Value* key) {
    return attention::divided(kernel_, ir().CreateLShr(key, granule_shift_), multiplier_);
  }
  Value* entry_of(Value* tile) {
    if (!spec_.paged) return nullptr;
    return table_->load(4, ir().CreateShl(column_of(key_of(tile)), 2), kernel_.constant(0));
  }

  Tile load(Value* tile, Value* entry) {
    Value* key = key_of(tile);
    Value* row = key;
    Value* address = keys_;
    Value* scale = scales_;
    if (spec_.paged) {
      Value* page = ir().CreateBinaryIntrinsic(llvm::Intrinsic::umin, entry, last_page_);
      Value* before = ir().CreateShl(ir().CreateMul(column_of(key), granules_of_page_), granule_shift_);
      row = ir().CreateSub(key, before);
      address = moved(kernel_, address, page, argument(offsetof(ScoresArguments, keys_batch_stride)));
      scale = moved(kernel_, scale, page, argument(offsetof(ScoresArguments, scales_batch_stride)));
    }
    address = moved(kernel_, address, row, argument(offsetof(ScoresArguments, keys_row_stride)));
    address = ir().CreateAdd(address, ir().CreateZExt(ir().CreateShl(half_, 4), kernel_.i64()));
    scale = moved(kernel_, scale, row, argument(offsetof(ScoresArguments, scales_row_stride)));
    Tile loaded{};
    for (std::size_t step = 0; step < steps; ++step)
      loaded.key[step] = language::load_lanes(
          kernel_, ir().CreateAdd(address, ir().getInt64(step * static_cast<std::uint64_t>(step_bytes))), load_bytes);
    loaded.scale =
        ir().CreateAlignedLoad(kernel_.f32(), ir().CreateIntToPtr(scale, ir().getPtrTy(device_space)), llvm::Align(4));
    return loaded;
  }

  void walk(Value* from, Value* to) {
    const auto plus = [&](Value* tile, int more) { return ir().CreateAdd(tile, kernel_.constant(more)); };
    std::array<Value*, phases> first{};
    for (int phase = 0; phase < phases; ++phase) first[static_cast<std::size_t>(phase)] = entry_of(plus(from, phase));
    Values state = {from};
    for (int phase = 0; phase < phases; ++phase) {
      Tile tile = load(plus(from, phase), first[static_cast<std::size_t>(phase)]);
      tile.entry = entry_of(plus(from, phases + phase));
      put(state, tile);
    }
    language::loop_in_phases(
        kernel_, phases, state,
        [&](int phase, const Values& at) {
          Values next = at;
          const Tile tile = tile_in(at, phase);
          const std::vector<Accumulator> products = multiply(tile);
          // The next but one takes its place.
          Tile later = load(plus(at[0], phases), tile.entry);
          later.entry = entry_of(plus(at[0], 2 * phases));
          put_at(next, phase, later);
          store(at[0], ir().CreateFMul(sum_of(products), tile.scale));
          next[0] = plus(at[0], 1);
          return next;
        },
        [&](const Values& at) { return ir().CreateICmpSLT(at[0], to); });
  }

  std::size_t values_of_tile() const { return steps + (spec_.paged ? 2 : 1); }
  void put(Values& state, const Tile& tile) const {
    state.insert(state.end(), tile.key.begin(), tile.key.end());
    state.push_back(tile.scale);
    if (spec_.paged) state.push_back(tile.entry);
  }
  std::size_t place_in(int phase) const { return 1 + (static_cast<std::size_t>(phase) * values_of_tile()); }
  void put_at(Values& state, int phase, const Tile& tile) const {
    Values values;
    put(values, tile);
    std::ranges::copy(values, state.begin() + static_cast<std::ptrdiff_t>(place_in(phase)));
  }
  Tile tile_in(const Values& state, int phase) const {
    const std::size_t at = place_in(phase);
    Tile tile{};
    for (std::size_t step = 0; step < steps; ++step) tile.key[step] = state[at + step];
    tile.scale = state[at + steps];
    tile.entry = spec_.paged ? state[at + steps + 1] : nullptr;
    return tile;
  }

  std::vector<Accumulator> multiply(const Tile& tile) {
    std::vector<Accumulator> products(blocks(), unit_.zeros());
    for (std::size_t step = 0; step < steps; ++step) {
      const language::OperandB keys = unit_.operand_b(tile.key[step], language::KOrder::contiguous);
      for (std::size_t block = 0; block < blocks(); ++block) {
        const language::OperandA heads =
            unit_.operand_a(queries_[(block * steps) + step], language::KOrder::contiguous);
        products[block] = unit_.mma(heads, keys, products[block]);
      }
    }
    return products;
  }

  // Σ relu(q · k) · w: a chain over the lane's heads from 0, ascending, then the other lane's. NaN stays NaN.
  Value* sum_of(const std::vector<Accumulator>& products) {
    Value* zero = kernel_.constant(0.0F);
    Value* sum = zero;
    const int registers = unit_.accumulator_layout().registers();
    for (int block = 0; block < spec_.blocks; ++block)
      for (int r = 0; r < registers; ++r) {
        Value* product =
            ir().CreateExtractElement(products[static_cast<std::size_t>(block)].value, static_cast<std::uint64_t>(r));
        Value* hidden = ir().CreateFCmpOLT(product, zero);
        if (spec_.cut && block + 1 == spec_.blocks)
          hidden = ir().CreateOr(hidden, ir().CreateNot(exists_[static_cast<std::size_t>(r)]));
        Value* positive = ir().CreateSelect(hidden, zero, product);
        const int place = (block * registers) + r;
        Value* weight = weights_[static_cast<std::size_t>(place)];
        sum = ir().CreateIntrinsic(llvm::Intrinsic::fma, {kernel_.f32()}, {positive, weight, sum});
      }
    const auto [low, high] = language::both_halves(kernel_, sum);
    return ir().CreateFAdd(low, high);
  }

  void store(Value* tile, Value* score) {
    Value* key = ir().CreateAdd(ir().CreateShl(tile, tile_bits), column_);
    Value* seen = ir().CreateAnd(ir().CreateICmpSGE(key, seen_.begin), ir().CreateICmpSLT(key, seen_.end));
    Value* bits = ir().CreateSelect(seen, ir().CreateBitCast(score, kernel_.i32()), ir().getInt32(minus_infinity_bits));
    Value* first = ir().CreateICmpEQ(half_, kernel_.constant(0));
    scores_->store(bits, ir().CreateSelect(first, ir().CreateShl(key, 2), ir().getInt32(nowhere)), kernel_.constant(0));
  }

  // −∞ for the keys of tiles from … to − 1, two tiles at a time.
  void fill(Value* from, Value* to) {
    language::if_uniform(kernel_, ir().CreateICmpSLT(from, to), language::Likelihood::even, [&] {
      Value* behind = ir().CreateShl(to, tile_bits);
      language::loop_in_phases(
          kernel_, 1, {from},
          [&](int, const Values& at) {
            Value* key = ir().CreateAdd(ir().CreateShl(at[0], tile_bits), kernel_.lane());
            Value* offset =
                ir().CreateSelect(ir().CreateICmpSLT(key, behind), ir().CreateShl(key, 2), ir().getInt32(nowhere));
            scores_->store(ir().getInt32(minus_infinity_bits), offset, kernel_.constant(0));
            return Values{ir().CreateAdd(at[0], kernel_.constant(2))};
          },
          [&](const Values& at) { return ir().CreateICmpSLT(at[0], to); });
    });
  }

  Kernel& kernel_;
  const ScoresKernel& spec_;
  language::MatrixUnit unit_;
  // Uniform, but for the lane's own half_ and column_.
  Value* row_ = nullptr;
  Value* batch_ = nullptr;
  Value* half_ = nullptr;
  Value* column_ = nullptr;
  Value* first_tile_ = nullptr;
  Value* end_tile_ = nullptr;
  Value* key_length_ = nullptr;
  RowKeys seen_{};
  Value* first_seen_ = nullptr;  // tiles
  Value* behind_seen_ = nullptr;
  std::optional<Buffer> scores_;
  std::optional<Buffer> table_;
  Value* keys_ = nullptr;
  Value* scales_ = nullptr;
  Value* granule_shift_ = nullptr;
  Value* granules_of_page_ = nullptr;
  Value* multiplier_ = nullptr;
  Value* last_page_ = nullptr;
  Values queries_;  // [block][step]
  Values weights_;  // [block][register]
  Values exists_;   // of the last block's registers, where it is cut
};

}  // namespace

families::EmittedModule emit(const ScoresKernel& spec, const targets::Target& target, llvm::LLVMContext& context) {
  Kernel kernel(context, target,
                {.name = families::name_of_kernel(families::texts_of(scores_words), spec),
                 .threads = scores_threads,
                 .waves_per_simd = scores_waves_per_simd(spec.blocks),
                 .argument_bytes = sizeof(ScoresArguments)});
  // Ids are made where they are first asked for: here, where every block can see them.
  (void)kernel.wave();
  (void)kernel.lane();
  ScoresEmission(kernel, spec).emit();
  return kernel.finish();
}

std::span<const families::KernelEmitter> emitters() {
  static constexpr std::array all = {families::emitter_of<ScoresKernel>, families::emitter_of<SelectKernel>};
  return all;
}

}  // namespace wavejit::sparse_indexer
