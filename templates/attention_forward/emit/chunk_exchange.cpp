// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/chunk_exchange.h"

#include "codegen/language/convert.h"

namespace wavejit::attention_forward {
namespace {

using language::Value;
using language::Values;

constexpr int dword_bytes = 4;

}  // namespace

ChunkExchange::ChunkExchange(language::Kernel& kernel, const language::Lds& lds, int region, int offset, int waves)
    : kernel_(kernel), lds_(lds), region_(region), plan_{waves, kernel.target().wave_size} {
  llvm::IRBuilder<>& ir = kernel.ir();
  lane_ = ir.CreateAdd(ir.CreateMul(kernel.lane(), kernel.constant(ChunkExchangePlan::lane_bytes)),
                       kernel.constant(offset));
  const auto own = [&](int of_first, int of_second) {
    return ir.CreateAdd(lane_, ir.CreateAdd(ir.CreateMul(kernel.wave(), kernel.constant(of_second - of_first)),
                                            kernel.constant(of_first)));
  };
  own_maximum_ = own(plan_.maximum(0), plan_.maximum(1));
  own_sums_ = own(plan_.sums(0), plan_.sums(1));
  own_weights_ = own(plan_.weights(0, 0), plan_.weights(1, 0));
}

void ChunkExchange::put_maximum(Value* maximum) const {
  lds_.write(region_, kernel_.ir().CreateBitCast(maximum, kernel_.i32()), own_maximum_, 0);
}

void ChunkExchange::put_sums(const language::RunningSums& sums) const {
  Values dwords;
  for (Value* sum : sums) dwords.push_back(kernel_.ir().CreateBitCast(sum, kernel_.i32()));
  lds_.write(region_, language::gather_dwords(kernel_, dwords), own_sums_, 0);
}

void ChunkExchange::put_weights(int operand, Value* dwords) const {
  lds_.write(region_, dwords, own_weights_, plan_.weights(0, operand) - plan_.weights(0, 0));
}

Value* ChunkExchange::floats(int offset, int count) const {
  return kernel_.ir().CreateBitCast(lds_.read(region_, count * dword_bytes, lane_, offset),
                                    kernel_.vector(kernel_.f32(), count));
}

Values ChunkExchange::maxima() const {
  Value* all = floats(plan_.maximum(0), plan_.waves);
  Values each;
  for (int tile = 0; tile < plan_.waves; ++tile)
    each.push_back(kernel_.ir().CreateExtractElement(all, static_cast<std::uint64_t>(tile)));
  return each;
}

language::RunningSums ChunkExchange::sums(int tile) const {
  language::RunningSums sums;
  Value* all = floats(plan_.sums(tile), static_cast<int>(language::running_sums));
  for (std::size_t j = 0; j < language::running_sums; ++j)
    sums[j] = kernel_.ir().CreateExtractElement(all, static_cast<std::uint64_t>(j));
  return sums;
}

Value* ChunkExchange::weights(int tile, int operand) const {
  return lds_.read(region_, ChunkExchangePlan::lane_bytes, lane_, plan_.weights(tile, operand));
}

}  // namespace wavejit::attention_forward
