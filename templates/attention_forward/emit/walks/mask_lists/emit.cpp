// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/walks/mask_lists/emit.h"

#include <array>
#include <utility>

#include "codegen/language/buffer.h"
#include "codegen/language/control.h"
#include "codegen/language/cross_lane.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/emit/sequence.h"
#include "templates/attention/kernel/marked_tile.h"
#include "templates/attention_forward/kernel/walks/mask_lists/arguments.h"

namespace wavejit::attention_mask_lists {
namespace {

using attention::block_rows;
using attention::minimum;
using attention::tile_keys;
using language::Buffer;
using language::far_outside;
using language::Kernel;
using language::Value;

constexpr int entry_bytes = 4;
constexpr int row_bytes = 8;  // of bits
// A lane has 16 keys of a row, so that four lanes have a row of the tile, and 16 rows are one load of 16 bytes a lane.
// All loads of a block are on their way before the first of them is waited for.
constexpr int load_bytes = 16;
constexpr int keys_of_lane = load_bytes;
constexpr int lanes_of_row = tile_keys / keys_of_lane;
constexpr int rows_of_load = threads / lanes_of_row;
constexpr int loads = block_rows / rows_of_load;
constexpr int bytes_of_lane = keys_of_lane / 8;  // of bits
constexpr int bits_of_lane = (1 << keys_of_lane) - 1;
static_assert(lanes_of_row * bytes_of_lane == row_bytes, "lanes' bits stand side by side");

// Four bytes as four bits: whether each is not 0. Its low seven bits carry into the eighth, and a product brings the
// four eighths side by side, no two of its terms to the same place.
Value* bits_of_bytes(Kernel& kernel, Value* bytes) {
  llvm::IRBuilder<>& ir = kernel.ir();
  constexpr std::uint32_t low_bits = 0x7F7F7F7F;
  constexpr std::uint32_t gathers = 0x00204081;  // bits 7, 15, 23, 31 to 28, 29, 30, 31
  constexpr int first_gathered = 28;
  Value* carried = ir.CreateAdd(ir.CreateAnd(bytes, ir.getInt32(low_bits)), ir.getInt32(low_bits));
  Value* eighths = ir.CreateAnd(ir.CreateOr(carried, bytes), ir.getInt32(~low_bits));
  return ir.CreateLShr(ir.CreateMul(eighths, ir.getInt32(gathers)), first_gathered);
}

// Keys of a bias that a lane loads at once.
constexpr int keys_of_bias_lane(attention::DataType type) { return load_bytes / attention::bytes_of(type); }
// All elements of a dword are −∞; all bits but signs.
constexpr std::uint32_t hidden_dword(attention::DataType type) {
  return type == attention::DataType::fp32   ? 0xFF800000U
         : type == attention::DataType::bf16 ? 0xFF80FF80U
                                             : 0xFC00FC00U;
}
constexpr std::uint32_t magnitudes(attention::DataType type) {
  return type == attention::DataType::fp32 ? 0x7FFFFFFFU : 0x7FFF7FFFU;
}

constexpr attention::SequenceFields sequence_fields = {.query_starts = offsetof(Arguments, query_starts),
                                                       .query_rows = offsetof(Arguments, query_rows),
                                                       .query_length = offsetof(Arguments, query_length),
                                                       .key_starts = offsetof(Arguments, key_starts),
                                                       .key_lengths = offsetof(Arguments, key_lengths),
                                                       .key_rows = offsetof(Arguments, key_rows),
                                                       .key_length = offsetof(Arguments, key_length)};

// A wave looks at one block of rows and one tile of keys.
class Looker {
 public:
  // `elements`: the type of a bias; i8: a bool mask, which has bytes.
  Looker(Kernel& kernel, attention::DataType elements)
      : kernel_(kernel),
        ir_(kernel.ir()),
        elements_(elements),
        tile_(kernel.workgroup_x()),
        block_(kernel.workgroup_y()) {}

  void emit() {
    (void)kernel_.lane();
    Value* heads = number(offsetof(Arguments, heads));
    Value* place = kernel_.workgroup_z();
    batch_ = kernel_.uniform(ir_.CreateUDiv(place, heads));
    head_ = ir_.CreateSub(place, ir_.CreateMul(batch_, heads));
    const attention::Sequence sequence = attention::sequence_of(kernel_, sequence_fields, batch_);
    Value* first_row = ir_.CreateMul(block_, kernel_.constant(block_rows));
    // After a sequence's last row a unit may still have lists; they have no entries.
    Value* rows = attention::maximum(kernel_, ir_.CreateSub(sequence.query_length, first_row), kernel_.constant(0));
    rows_ = minimum(kernel_, rows, kernel_.constant(block_rows));
    const bool is_bias = elements_ != attention::DataType::i8;
    if (is_bias) {
      look_at_bias(ir_.CreateAdd(sequence.query_start, first_row));
    } else {
      look(ir_.CreateAdd(sequence.query_start, first_row));
    }
    // The number among all tiles of all blocks.
    number_ = ir_.CreateMul(ir_.CreateAdd(ir_.CreateMul(place, number(offsetof(Arguments, blocks))), block_),
                            number(offsetof(Arguments, tiles)));
    number_ = ir_.CreateAdd(number_, tile_);
    has_whole_ = ir_.CreateIsNotNull(kernel_.argument_i64(offsetof(Arguments, whole)));
    is_whole_ = ir_.CreateAnd(has_whole_, ir_.CreateAnd(sees_all_, sees_some_));
    if (!is_bias) store_bits();
    store_entries();
  }

 private:
  Value* number(std::size_t field) { return kernel_.argument_i32(field); }
  Value* wide(Value* value) { return ir_.CreateZExt(value, kernel_.i64()); }

  // The mask's rows of a block, from the block's first key on; each is `row_bytes` long. Null: one byte for each key.
  Buffer bytes_of_block(Value* first_row, Value* row_bytes = nullptr) {
    const auto step = [&](Value* index, std::size_t stride) {
      return ir_.CreateMul(wide(index), kernel_.argument_i64(stride));
    };
    Value* row_stride = number(offsetof(Arguments, mask_row_stride));
    Value* base = kernel_.argument_i64(offsetof(Arguments, mask));
    base = ir_.CreateAdd(base, step(batch_, offsetof(Arguments, mask_batch_stride)));
    base = ir_.CreateAdd(base, step(head_, offsetof(Arguments, mask_head_stride)));
    base = ir_.CreateAdd(base, ir_.CreateMul(wide(first_row), wide(row_stride)));
    Value* other_rows = attention::maximum(kernel_, ir_.CreateSub(rows_, kernel_.constant(1)), kernel_.constant(0));
    return {kernel_, base,
            ir_.CreateAdd(ir_.CreateMul(other_rows, row_stride),
                          row_bytes != nullptr ? row_bytes : number(offsetof(Arguments, key_length)))};
  }

  // Rows are padded to 8 elements, and begin at multiples of as many. Rows that are not there are the last that is.
  void look_at_bias(Value* first_row) {
    constexpr int granule = 8;
    constexpr int dwords = load_bytes / 4;
    const int element_bytes = attention::bytes_of(elements_);
    const int keys = keys_of_bias_lane(elements_);
    const int lanes = tile_keys / keys;  // of a row
    const int rows = threads / lanes;    // of a load
    Value* zero = kernel_.constant(0);
    Value* key_length = number(offsetof(Arguments, key_length));
    Value* padded = ir_.CreateAnd(ir_.CreateAdd(key_length, kernel_.constant(granule - 1)), kernel_.constant(-granule));
    const Buffer bias = bytes_of_block(first_row, ir_.CreateMul(padded, kernel_.constant(element_bytes)));
    Value* row = ir_.CreateUDiv(kernel_.lane(), kernel_.constant(lanes));
    Value* part = ir_.CreateSub(kernel_.lane(), ir_.CreateMul(row, kernel_.constant(lanes)));
    Value* first_key =
        ir_.CreateAdd(ir_.CreateMul(tile_, kernel_.constant(tile_keys)), ir_.CreateMul(part, kernel_.constant(keys)));
    Value* has_rows = ir_.CreateICmpSGT(rows_, zero);
    Value* reads = ir_.CreateAnd(has_rows, ir_.CreateICmpSLT(first_key, key_length));
    Value* last_row = attention::maximum(kernel_, ir_.CreateSub(rows_, kernel_.constant(1)), zero);
    Value* row_stride = number(offsetof(Arguments, mask_row_stride));
    language::Values loaded;
    for (int load = 0; load < block_rows / rows; ++load) {
      Value* each = minimum(kernel_, ir_.CreateAdd(row, kernel_.constant(load * rows)), last_row);
      Value* offset =
          ir_.CreateAdd(ir_.CreateMul(each, row_stride), ir_.CreateMul(first_key, kernel_.constant(element_bytes)));
      loaded.push_back(bias.load(load_bytes, ir_.CreateSelect(reads, offset, ir_.getInt32(far_outside)), zero));
    }
    Value* shows = zero;  // some bit, where some element is not −∞
    Value* adds = zero;   // where some is not 0
    for (int dword = 0; dword < dwords; ++dword) {
      Value* differs = zero;
      Value* any = zero;
      for (Value* four : loaded) {
        Value* one = ir_.CreateExtractElement(four, static_cast<std::uint64_t>(dword));
        differs = ir_.CreateOr(differs, ir_.CreateXor(one, ir_.getInt32(hidden_dword(elements_))));
        any = ir_.CreateOr(any, one);
      }
      Value* own = keys_of_dword(first_key, key_length, dword);
      shows = ir_.CreateOr(shows, ir_.CreateAnd(differs, own));
      adds = ir_.CreateOr(adds, ir_.CreateAnd(any, own));
    }
    adds = ir_.CreateAnd(adds, ir_.getInt32(magnitudes(elements_)));
    sees_some_ = ir_.CreateAnd(has_rows, language::any_lane(kernel_, ir_.CreateICmpNE(shows, zero)));
    sees_all_ = ir_.CreateNot(language::any_lane(kernel_, ir_.CreateICmpNE(adds, zero)));
  }
  // All bits of those elements of a lane's dword that are keys.
  Value* keys_of_dword(Value* first_key, Value* key_length, int dword) {
    const int elements = 4 / attention::bytes_of(elements_);
    Value* key = ir_.CreateAdd(first_key, kernel_.constant(dword * elements));
    Value* none = kernel_.constant(0);
    Value* all = kernel_.constant(-1);
    Value* own = ir_.CreateSelect(ir_.CreateICmpSLT(key, key_length), all, none);
    if (elements == 1) return own;
    constexpr int low_half = 0xFFFF;
    Value* is_last = ir_.CreateICmpEQ(ir_.CreateAdd(key, kernel_.constant(1)), key_length);
    return ir_.CreateSelect(is_last, kernel_.constant(low_half), own);
  }

  void look(Value* first_row) {
    const Buffer bytes = bytes_of_block(first_row);
    Value* lane = kernel_.lane();
    Value* zero = kernel_.constant(0);
    Value* key_length = number(offsetof(Arguments, key_length));
    Value* row_stride = number(offsetof(Arguments, mask_row_stride));
    Value* row = ir_.CreateUDiv(lane, kernel_.constant(lanes_of_row));
    Value* part = ir_.CreateSub(lane, ir_.CreateMul(row, kernel_.constant(lanes_of_row)));
    Value* first_key = ir_.CreateAdd(ir_.CreateMul(tile_, kernel_.constant(tile_keys)),
                                     ir_.CreateMul(part, kernel_.constant(keys_of_lane)));
    // Where fewer keys are left than a lane has, the last 16 are read, and those in front of its own are shifted out.
    Value* last_first = ir_.CreateSub(key_length, kernel_.constant(keys_of_lane));
    Value* from = minimum(kernel_, first_key, attention::maximum(kernel_, last_first, zero));
    Value* lacks = attention::maximum(kernel_, ir_.CreateSub(first_key, last_first), zero);
    lacks = minimum(kernel_, lacks, kernel_.constant(keys_of_lane));
    std::array<Value*, loads> exists{};
    language::Values offsets;
    for (int load = 0; load < loads; ++load) {
      Value* each = ir_.CreateAdd(row, kernel_.constant(load * rows_of_load));
      exists[static_cast<std::size_t>(load)] = ir_.CreateICmpSLT(each, rows_);
      offsets.push_back(ir_.CreateSelect(exists[static_cast<std::size_t>(load)],
                                         ir_.CreateAdd(ir_.CreateMul(each, row_stride), from),
                                         ir_.getInt32(far_outside)));
    }
    Value* is_wide = ir_.CreateICmpSGE(key_length, kernel_.constant(keys_of_lane));
    const language::Values none(loads, zero);
    language::Values bits =
        language::if_uniform(kernel_, is_wide, language::Likelihood::even, none,
                             [&](const language::Values&) { return wide_bits(bytes, offsets, lacks); });
    Value* is_narrow = ir_.CreateAnd(ir_.CreateNot(is_wide), ir_.CreateICmpSGT(key_length, zero));
    Value* leads = ir_.CreateICmpEQ(part, zero);
    bits = language::if_uniform(
        kernel_, is_narrow, language::Likelihood::rarely, bits,
        [&](const language::Values& before) { return narrow_bits(bytes, offsets, leads, key_length, before); });
    Value* all = ir_.CreateLShr(kernel_.constant(bits_of_lane), lacks);
    Value* sees = ir_.getFalse();
    Value* lacks_some = ir_.getFalse();
    for (int load = 0; load < loads; ++load) {
      Value* each = bits[static_cast<std::size_t>(load)];
      sees = ir_.CreateOr(sees, ir_.CreateICmpNE(each, zero));
      lacks_some =
          ir_.CreateOr(lacks_some, ir_.CreateAnd(exists[static_cast<std::size_t>(load)], ir_.CreateICmpNE(each, all)));
    }
    bits_ = std::move(bits);
    sees_some_ = language::any_lane(kernel_, sees);
    sees_all_ = ir_.CreateNot(language::any_lane(kernel_, lacks_some));
  }

  // Rows may begin at any byte: memory of HSA takes loads at any (LLVM, AMDGPUUsage, "unaligned-access-mode").
  language::Values wide_bits(const Buffer& bytes, const language::Values& offsets, Value* lacks) {
    language::Values loaded;
    for (Value* offset : offsets) loaded.push_back(bytes.load(load_bytes, offset, kernel_.constant(0)));
    language::Values bits;
    for (Value* keys : loaded) {
      Value* all = kernel_.constant(0);
      constexpr int keys_of_dword = 4;
      for (int dword = 0; dword < keys_of_lane / keys_of_dword; ++dword) {
        Value* own = bits_of_bytes(kernel_, ir_.CreateExtractElement(keys, static_cast<std::uint64_t>(dword)));
        all = ir_.CreateOr(all, ir_.CreateShl(own, kernel_.constant(dword * keys_of_dword)));
      }
      bits.push_back(ir_.CreateLShr(all, lacks));
    }
    return bits;
  }

  // The bits of a mask with fewer keys than a lane has: one after the other, by the first lane of a row.
  language::Values narrow_bits(const Buffer& bytes, const language::Values& offsets, Value* leads, Value* key_length,
                               const language::Values& before) {
    language::Values state = {kernel_.constant(0)};
    state.insert(state.end(), before.begin(), before.end());
    state = language::loop_in_phases(
        kernel_, 1, state,
        [&](int, const language::Values& at) -> language::Values {
          language::Values next = {ir_.CreateAdd(at[0], kernel_.constant(1))};
          for (std::size_t load = 0; load < offsets.size(); ++load) {
            Value* place = ir_.CreateSelect(leads, ir_.CreateAdd(offsets[load], at[0]), ir_.getInt32(far_outside));
            Value* byte = bytes.load_element(1, place, kernel_.constant(0));
            Value* sees = ir_.CreateICmpNE(byte, kernel_.constant(0));
            next.push_back(ir_.CreateOr(at[load + 1], ir_.CreateShl(ir_.CreateZExt(sees, kernel_.i32()), at[0])));
          }
          return next;
        },
        [&](const language::Values& at) { return ir_.CreateICmpSLT(at[0], key_length); });
    return {state.begin() + 1, state.end()};
  }

  void store_bits() {
    constexpr int block_bytes = block_rows * row_bytes;
    const Buffer to(kernel_,
                    ir_.CreateAdd(kernel_.argument_i64(offsetof(Arguments, bits)),
                                  ir_.CreateMul(wide(number_), ir_.getInt64(block_bytes))),
                    kernel_.constant(block_bytes));
    Value* place = ir_.CreateMul(kernel_.lane(), kernel_.constant(bytes_of_lane));
    bits_.back() = with_mark(bits_.back());
    for (int load = 0; load < loads; ++load)
      to.store_element(bytes_of_lane, bits_[static_cast<std::size_t>(load)],
                       ir_.CreateAdd(place, kernel_.constant(load * rows_of_load * row_bytes)), kernel_.constant(0));
  }

  // A block's last row, where it has fewer, is the mark of its tile (kernel/mask_lists/arguments.h).
  Value* with_mark(Value* bits) {
    constexpr int lane_of_last_row = (rows_of_load - 1) * lanes_of_row;
    Value* mark = ir_.CreateSelect(is_whole_, kernel_.constant(mark_of_whole), kernel_.constant(mark_of_mixed));
    mark = ir_.CreateSelect(sees_some_, mark, kernel_.constant(0));
    Value* has_room = ir_.CreateICmpSLT(rows_, kernel_.constant(block_rows));
    Value* is_there = ir_.CreateICmpEQ(kernel_.lane(), kernel_.constant(lane_of_last_row));
    return ir_.CreateSelect(ir_.CreateAnd(has_room, is_there), mark, bits);
  }

  void store_entries() {
    Value* none = kernel_.constant(-1);
    store_entry(kernel_.argument_i64(offsetof(Arguments, whole)), has_whole_, ir_.CreateSelect(is_whole_, tile_, none));
    store_entry(kernel_.argument_i64(offsetof(Arguments, masked)), ir_.getTrue(),
                ir_.CreateSelect(ir_.CreateAnd(sees_some_, ir_.CreateNot(is_whole_)), tile_, none));
  }
  void store_entry(Value* list, Value* there, Value* entry) {
    const Buffer to(kernel_, ir_.CreateAdd(list, ir_.CreateShl(wide(number_), 2)), kernel_.constant(entry_bytes));
    Value* stores = ir_.CreateAnd(there, ir_.CreateICmpEQ(kernel_.lane(), kernel_.constant(0)));
    to.store(entry, ir_.CreateSelect(stores, kernel_.constant(0), ir_.getInt32(far_outside)), kernel_.constant(0));
  }

  Kernel& kernel_;
  llvm::IRBuilder<>& ir_;
  attention::DataType elements_;
  Value* tile_;
  Value* block_;
  Value* batch_ = nullptr;
  Value* head_ = nullptr;
  Value* rows_ = nullptr;       // of the block, that there are
  language::Values bits_;       // of the lane's keys, of its row of each load
  Value* sees_all_ = nullptr;   // all rows see all keys
  Value* sees_some_ = nullptr;  // some row sees some key
  Value* has_whole_ = nullptr;  // there is a list of whole tiles
  Value* is_whole_ = nullptr;   // for which this one is one
  Value* number_ = nullptr;
};

}  // namespace

std::expected<std::unique_ptr<llvm::Module>, std::string> emit(const MaskListsKernel& spec,
                                                               const targets::Target& target,
                                                               llvm::LLVMContext& context) {
  if (spec.target != target.id)
    return std::unexpected("the spec is for target=" + spec.target + ", not for " + std::string(target.id));
  if (auto reason = refusal_of(spec)) return std::unexpected(*std::move(reason));
  Kernel kernel(
      context, target,
      {.name = kernel_name(spec), .threads = threads, .waves_per_simd = 4, .argument_bytes = sizeof(Arguments)});
  Looker(kernel, spec.elements).emit();
  return kernel.finish();
}

}  // namespace wavejit::attention_mask_lists
