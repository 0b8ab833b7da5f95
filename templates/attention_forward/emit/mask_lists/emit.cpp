// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/mask_lists/emit.h"

#include <array>
#include <utility>

#include "codegen/language/buffer.h"
#include "codegen/language/control.h"
#include "codegen/language/cross_lane.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/emit/sequence.h"
#include "templates/attention/kernel/marked_tile.h"
#include "templates/attention_forward/kernel/mask_lists/arguments.h"

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
constexpr int rows_at_once = block_rows / 4;
static_assert(tile_keys == threads && block_rows == threads, "a lane for each key, and for each row of bits");

constexpr attention::SequenceFields sequence_fields = {.query_starts = offsetof(Arguments, query_starts),
                                                       .query_rows = offsetof(Arguments, query_rows),
                                                       .query_length = offsetof(Arguments, query_length),
                                                       .key_starts = offsetof(Arguments, key_starts),
                                                       .key_lengths = offsetof(Arguments, key_lengths),
                                                       .key_rows = offsetof(Arguments, key_rows),
                                                       .key_length = offsetof(Arguments, key_length)};

// A wave looks at one block of rows and one tile of keys. A lane reads its key's byte of each row, so that a row is a
// comparison, whose result is the row's bits: lane r keeps those of row r.
class Looker {
 public:
  explicit Looker(Kernel& kernel)
      : kernel_(kernel), ir_(kernel.ir()), tile_(kernel.workgroup_x()), block_(kernel.workgroup_y()) {}

  void emit() {
    (void)kernel_.lane();
    Value* heads = number(offsetof(Arguments, heads));
    Value* place = kernel_.workgroup_z();
    batch_ = kernel_.uniform(ir_.CreateUDiv(place, heads));
    head_ = ir_.CreateSub(place, ir_.CreateMul(batch_, heads));
    const attention::Sequence sequence = attention::sequence_of(kernel_, sequence_fields, batch_);
    Value* first_row = ir_.CreateMul(block_, kernel_.constant(block_rows));
    // Behind a sequence's last row a unit may still have lists: they have no entries.
    Value* rows = attention::maximum(kernel_, ir_.CreateSub(sequence.query_length, first_row), kernel_.constant(0));
    rows_ = minimum(kernel_, rows, kernel_.constant(block_rows));
    Value* keys =
        ir_.CreateSub(number(offsetof(Arguments, key_length)), ir_.CreateMul(tile_, kernel_.constant(tile_keys)));
    keys_ = minimum(kernel_, keys, kernel_.constant(tile_keys));
    look(ir_.CreateAdd(sequence.query_start, first_row));
    // Of all tiles of all blocks.
    number_ = ir_.CreateMul(ir_.CreateAdd(ir_.CreateMul(place, number(offsetof(Arguments, blocks))), block_),
                            number(offsetof(Arguments, tiles)));
    number_ = ir_.CreateAdd(number_, tile_);
    store_bits();
    store_entries();
  }

 private:
  Value* number(std::size_t field) { return kernel_.argument_i32(field); }
  Value* wide(Value* value) { return ir_.CreateZExt(value, kernel_.i64()); }

  Buffer bytes_of_block(Value* first_row) {
    const auto step = [&](Value* index, std::size_t stride) {
      return ir_.CreateMul(wide(index), kernel_.argument_i64(stride));
    };
    Value* row_stride = number(offsetof(Arguments, mask_row_stride));
    Value* base = kernel_.argument_i64(offsetof(Arguments, mask));
    base = ir_.CreateAdd(base, step(batch_, offsetof(Arguments, mask_batch_stride)));
    base = ir_.CreateAdd(base, step(head_, offsetof(Arguments, mask_head_stride)));
    base = ir_.CreateAdd(base, ir_.CreateMul(wide(first_row), wide(row_stride)));
    base = ir_.CreateAdd(base, wide(ir_.CreateMul(tile_, kernel_.constant(tile_keys))));
    Value* other_rows = attention::maximum(kernel_, ir_.CreateSub(rows_, kernel_.constant(1)), kernel_.constant(0));
    return {kernel_, base, ir_.CreateAdd(ir_.CreateMul(other_rows, row_stride), keys_)};
  }

  void look(Value* first_row) {
    const Buffer bytes = bytes_of_block(first_row);
    Value* lane = kernel_.lane();
    Value* row_stride = number(offsetof(Arguments, mask_row_stride));
    Value* is_key = ir_.CreateICmpULT(lane, keys_);
    Value* offset = ir_.CreateSelect(is_key, lane, ir_.getInt32(far_outside));
    Value* keys = language::lanes_where(kernel_, is_key);
    // A few rows at a time: each takes a pair of scalar registers.
    const language::Values end = language::loop_in_phases(
        kernel_, 1, {kernel_.constant(0), ir_.getInt64(0), keys, kernel_.constant(0), kernel_.constant(0)},
        [&](int, const language::Values& at) -> language::Values {
          const auto row = [&](int each) { return ir_.CreateAdd(at[0], kernel_.constant(each)); };
          const auto exists = [&](int each) { return ir_.CreateICmpSLT(row(each), rows_); };
          language::Values loaded;
          for (int each = 0; each < rows_at_once; ++each) {
            Value* of_row = ir_.CreateAdd(offset, ir_.CreateMul(row_stride, row(each)));
            Value* counts = ir_.CreateAnd(exists(each), is_key);
            loaded.push_back(bytes.load_element(1, ir_.CreateSelect(counts, of_row, ir_.getInt32(far_outside)),
                                                kernel_.constant(0)));
          }
          auto [some, all, low, high] = std::array{at[1], at[2], at[3], at[4]};
          for (int each = 0; each < rows_at_once; ++each) {
            Value* byte = loaded[static_cast<std::size_t>(each)];
            Value* seen = language::lanes_where(kernel_, ir_.CreateICmpNE(byte, kernel_.constant(0)));
            some = ir_.CreateOr(some, seen);
            all = ir_.CreateAnd(all, ir_.CreateSelect(exists(each), seen, keys));
            Value* own = ir_.CreateICmpEQ(lane, row(each));
            low = ir_.CreateSelect(own, ir_.CreateTrunc(seen, kernel_.i32()), low);
            high = ir_.CreateSelect(own, ir_.CreateTrunc(ir_.CreateLShr(seen, attention::dword_bits), kernel_.i32()),
                                    high);
          }
          return {row(rows_at_once), some, all, low, high};
        },
        [&](const language::Values& at) { return ir_.CreateICmpSLT(at[0], kernel_.constant(block_rows)); });
    some_ = end[1];
    all_ = end[2];
    low_ = end[3];
    high_ = end[4];
    sees_all_ = ir_.CreateICmpEQ(all_, keys);
    sees_some_ = ir_.CreateICmpNE(some_, ir_.getInt64(0));
  }

  void store_bits() {
    Value* bits = llvm::PoisonValue::get(kernel_.vector(kernel_.i32(), 2));
    bits = ir_.CreateInsertElement(bits, low_, std::uint64_t{0});
    bits = ir_.CreateInsertElement(bits, high_, std::uint64_t{1});
    constexpr int block_bytes = block_rows * row_bytes;
    const Buffer to(kernel_,
                    ir_.CreateAdd(kernel_.argument_i64(offsetof(Arguments, bits)),
                                  ir_.CreateMul(wide(number_), ir_.getInt64(block_bytes))),
                    kernel_.constant(block_bytes));
    to.store(bits, ir_.CreateMul(kernel_.lane(), kernel_.constant(row_bytes)), kernel_.constant(0));
  }

  void store_entries() {
    Value* whole = kernel_.argument_i64(offsetof(Arguments, whole));
    Value* has_whole = ir_.CreateIsNotNull(whole);
    Value* is_whole = ir_.CreateAnd(has_whole, ir_.CreateAnd(sees_all_, sees_some_));
    Value* none = kernel_.constant(-1);
    store_entry(whole, has_whole, ir_.CreateSelect(is_whole, tile_, none));
    store_entry(kernel_.argument_i64(offsetof(Arguments, masked)), ir_.getTrue(),
                ir_.CreateSelect(ir_.CreateAnd(sees_some_, ir_.CreateNot(is_whole)), tile_, none));
  }
  void store_entry(Value* list, Value* there, Value* entry) {
    const Buffer to(kernel_, ir_.CreateAdd(list, ir_.CreateShl(wide(number_), 2)), kernel_.constant(entry_bytes));
    Value* stores = ir_.CreateAnd(there, ir_.CreateICmpEQ(kernel_.lane(), kernel_.constant(0)));
    to.store(entry, ir_.CreateSelect(stores, kernel_.constant(0), ir_.getInt32(far_outside)), kernel_.constant(0));
  }

  Kernel& kernel_;
  llvm::IRBuilder<>& ir_;
  Value* tile_;
  Value* block_;
  Value* batch_ = nullptr;
  Value* head_ = nullptr;
  Value* rows_ = nullptr;  // of the block, and keys of the tile, that there are
  Value* keys_ = nullptr;
  Value* low_ = nullptr;  // bits of the lane's row
  Value* high_ = nullptr;
  Value* some_ = nullptr;  // keys that some row sees, and those that all do
  Value* all_ = nullptr;
  Value* sees_all_ = nullptr;
  Value* sees_some_ = nullptr;
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
  Looker(kernel).emit();
  return kernel.finish();
}

}  // namespace wavejit::attention_mask_lists
