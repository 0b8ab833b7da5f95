// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/softmax_lse/emit/tile.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <span>

#include "codegen/language/control.h"
#include "codegen/language/convert.h"
#include "codegen/language/lane_place.h"
#include "templates/attention/kernel/canon.h"

namespace wavejit::softmax_lse {
namespace {

using language::Buffer;
using language::Kernel;
using language::Value;

constexpr int load_bytes = 16;    // of a lane
constexpr int element_bits = 16;  // of those that are not wide

bool is_wide(DataType type) { return type == DataType::fp32; }

language::Element element_of(DataType type) {
  return type == DataType::bf16 ? language::Element::bf16 : language::Element::fp16;
}

// The lane's first byte of a tile, or nowhere.
Value* lane_offset(Kernel& kernel, const TilePlace& place, Value* stride, DataType type, Value* condition) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* offset =
      ir.CreateAdd(ir.CreateMul(place.row, stride), ir.CreateMul(place.lane_key, kernel.constant(bytes_of(type))));
  return ir.CreateSelect(condition, offset, ir.getInt32(nowhere));
}

Value* plus(Kernel& kernel, Value* offset, int bytes) {
  return bytes == 0 ? offset : kernel.ir().CreateAdd(offset, kernel.constant(bytes));
}

// The two f32 of a dword of 16-bit elements.
std::array<Value*, 2> widened(Kernel& kernel, Value* dword, DataType type) {
  llvm::IRBuilder<>& ir = kernel.ir();
  if (type == DataType::bf16)
    return {language::float_of_bf16(kernel, dword, 0), language::float_of_bf16(kernel, dword, 1)};
  Value* pair = ir.CreateBitCast(dword, kernel.vector(llvm::Type::getHalfTy(kernel.context()), 2));
  return {ir.CreateFPExt(ir.CreateExtractElement(pair, std::uint64_t{0}), kernel.f32()),
          ir.CreateFPExt(ir.CreateExtractElement(pair, std::uint64_t{1}), kernel.f32())};
}

class Filling {
 public:
  explicit Filling(Kernel& kernel) : kernel_(kernel) {
    const targets::WaveShape wave = language::wave_shape(kernel);
    // Half of a tile's keys, of which two lanes have half each, however many lanes a wave has.
    const language::AccumulatorLayout layout = {
        .rows = attention::tile_keys / 2, .columns = wave.rows, .wave_size = wave.lanes};
    for (language::Accumulator& part : scores_)
      part = {.value = llvm::PoisonValue::get(kernel.vector(kernel.f32(), layout.registers())), .layout = layout};
  }
  void set(int group, int key, Value* score) {
    language::Accumulator& part = scores_[static_cast<std::size_t>(group / 4)];
    const int at = (4 * (group % 4)) + key;
    part.value = kernel_.ir().CreateInsertElement(part.value, score, at);
  }
  const Scores& scores() const { return scores_; }

 private:
  Kernel& kernel_;
  Scores scores_;
};

}  // namespace

KeyOrder key_order(const SoftmaxKernel& spec) {
  return !is_wide(spec.scores) && spec.access == Access::vectors ? KeyOrder::by_eight : KeyOrder::by_four;
}

ScoreReader::ScoreReader(Kernel& kernel, const SoftmaxKernel& spec, const Buffer& buffer, Value* stride, Value* negated)
    : kernel_(kernel), spec_(spec), buffer_(buffer), stride_(stride), negated_(negated) {}

Scores ScoreReader::read(const TilePlace& place, Value* visible) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const DataType type = spec_.scores;
  const KeyOrder order = key_order(spec_);
  Value* offset = lane_offset(kernel_, place, stride_, type, visible);
  Value* zero = kernel_.constant(0);
  Value* signs = ir.CreateSelect(negated_, ir.getInt32(is_wide(type) ? 0x80000000 : 0x80008000), zero);
  Filling filling(kernel_);
  if (is_wide(type)) {
    std::vector<Value*> loaded;
    loaded.reserve(groups);
    for (int group = 0; group < groups; ++group)
      loaded.push_back(buffer_.load(load_bytes, plus(kernel_, offset, bytes_of(type) * first_key(order, group)), zero));
    for (int group = 0; group < groups; ++group)
      for (int key = 0; key < group_keys; ++key) {
        Value* dword =
            ir.CreateExtractElement(loaded[static_cast<std::size_t>(group)], static_cast<std::uint64_t>(key));
        filling.set(group, key, ir.CreateBitCast(ir.CreateXor(dword, signs), kernel_.f32()));
      }
    return filling.scores();
  }
  if (order == KeyOrder::by_eight) {
    std::vector<Value*> loaded;
    for (int group = 0; group < groups; group += 2)
      loaded.push_back(buffer_.load(load_bytes, plus(kernel_, offset, bytes_of(type) * first_key(order, group)), zero));
    for (int group = 0; group < groups; ++group)
      for (int pair = 0; pair < 2; ++pair) {
        const int at = (2 * (group % 2)) + pair;
        Value* dword = ir.CreateExtractElement(loaded[static_cast<std::size_t>(group / 2)], at);
        const auto two = widened(kernel_, ir.CreateXor(dword, signs), type);
        filling.set(group, 2 * pair, two[0]);
        filling.set(group, (2 * pair) + 1, two[1]);
      }
    return filling.scores();
  }
  std::vector<Value*> loaded;
  for (int group = 0; group < groups; ++group)
    for (int key = 0; key < group_keys; ++key)
      loaded.push_back(ir.CreateIntrinsic(
          llvm::Intrinsic::amdgcn_raw_ptr_buffer_load, {kernel_.i16()},
          {buffer_.descriptor(), plus(kernel_, offset, bytes_of(type) * (first_key(order, group) + key)), zero, zero}));
  for (int group = 0; group < groups; ++group)
    for (int key = 0; key < group_keys; ++key) {
      Value* dword = ir.CreateZExt(
          loaded[(static_cast<std::size_t>(group) * group_keys) + static_cast<std::size_t>(key)], kernel_.i32());
      filling.set(group, key, widened(kernel_, ir.CreateXor(dword, signs), type)[0]);
    }
  return filling.scores();
}

std::vector<Value*> WeightWriter::stored_dwords(const Scores& weights, int group) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* registers_of_part = weights[static_cast<std::size_t>(group / 4)].value;
  const int first = 4 * (group % 4);
  if (!is_wide(spec_.weights))
    return language::convert_packed(kernel_, registers_of_part, first, group_keys, element_of(spec_.weights),
                                    language::NanInput::kept);
  std::vector<Value*> dwords;
  dwords.reserve(group_keys);
  for (int at = first; at < first + group_keys; ++at)
    dwords.push_back(ir.CreateBitCast(ir.CreateExtractElement(registers_of_part, at), kernel_.i32()));
  return dwords;
}

void WeightWriter::write(const Scores& weights, const TilePlace& place, Value* valid, Value* keys) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const DataType type = spec_.weights;
  const KeyOrder order = key_order(spec_);
  const int bytes = bytes_of(type);
  const bool by_element = !is_wide(type) && spec_.access == Access::elements;
  Value* zero = kernel_.constant(0);
  Value* inside = ir.CreateAnd(valid, ir.CreateICmpSLT(place.tile_key, keys));
  Value* whole = ir.CreateICmpSLE(ir.CreateAdd(place.tile_key, kernel_.constant(attention::tile_keys)), keys);
  std::vector<std::vector<Value*>> dwords;
  dwords.reserve(groups);
  for (int group = 0; group < groups; ++group) dwords.push_back(stored_dwords(weights, group));

  // An element of the dword that holds it.
  const auto store_element = [&](int group, int key, Value* offset) {
    Value* dword = dwords[static_cast<std::size_t>(group)][static_cast<std::size_t>(key / 2)];
    Value* element = ir.CreateTrunc(key % 2 == 0 ? dword : ir.CreateLShr(dword, element_bits), kernel_.i16());
    buffer_.store(element, offset, zero);
  };
  const auto key_offset = [&](Value* base, int group, int key) {
    return plus(kernel_, base, bytes * (first_key(order, group) + key));
  };

  // Tiles whose keys all are the row's.
  Value* offset = lane_offset(kernel_, place, stride_, type, ir.CreateAnd(inside, whole));
  if (by_element) {
    for (int group = 0; group < groups; ++group)
      for (int key = 0; key < group_keys; ++key) store_element(group, key, key_offset(offset, group, key));
  } else {
    const int groups_a_store = !is_wide(type) && order == KeyOrder::by_eight ? 2 : 1;
    for (int group = 0; group < groups; group += groups_a_store) {
      std::vector<Value*> together;
      for (int each = group; each < group + groups_a_store; ++each)
        together.insert(together.end(), dwords[static_cast<std::size_t>(each)].begin(),
                        dwords[static_cast<std::size_t>(each)].end());
      buffer_.store(language::gather_dwords(kernel_, together), key_offset(offset, group, 0), zero);
    }
  }

  // The row's last tile, where it is cut: as few keys at a time as the access allows, and those beyond go nowhere.
  Value* cut = ir.CreateAnd(inside, ir.CreateNot(whole));
  language::if_uniform(kernel_, language::any_lane(kernel_, cut), language::Likelihood::rarely, [&] {
    Value* start = lane_offset(kernel_, place, stride_, type, cut);
    const int keys_a_store = is_wide(type) || by_element ? 1 : 2;
    for (int group = 0; group < groups; ++group)
      for (int key = 0; key < group_keys; key += keys_a_store) {
        Value* number = ir.CreateAdd(place.lane_key, kernel_.constant(first_key(order, group) + key));
        Value* to = ir.CreateSelect(ir.CreateICmpSLT(number, keys), start, ir.getInt32(nowhere));
        if (by_element)
          store_element(group, key, key_offset(to, group, key));
        else
          buffer_.store(dwords[static_cast<std::size_t>(group)][static_cast<std::size_t>(key / keys_a_store)],
                        key_offset(to, group, key), zero);
      }
  });
}

}  // namespace wavejit::softmax_lse
