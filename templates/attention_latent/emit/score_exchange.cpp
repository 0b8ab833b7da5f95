// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/emit/score_exchange.h"

#include "codegen/language/synchronize.h"

namespace wavejit::attention_latent {
namespace {

using language::Accumulator;
using language::Value;

constexpr int quad = 4;         // registers that a lane writes at once
constexpr int quad_bytes = 16;  // of a lane
constexpr int blocks = 2;

}  // namespace

ScoreExchange::ScoreExchange(language::Kernel& kernel, const language::Lds& lds, const Place& place)
    : kernel_(kernel), lds_(lds), place_(place) {}

Value* ScoreExchange::own_block() const { return kernel_.ir().CreateAnd(kernel_.wave(), kernel_.constant(1)); }

std::vector<Accumulator> ScoreExchange::exchange(const Accumulator& own, const std::function<void()>& meanwhile) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const auto constant = [&](int value) { return kernel_.constant(value); };
  const int registers = own.layout.registers();
  const int quads = registers / quad;
  const int lanes_of_row = place_.row_bytes / quad_bytes;
  const int quads_apart = kernel_.target().wave_size / lanes_of_row * place_.row_pitch;
  // Not a constant, which no instruction's offset would hold.
  Value* begin = language::opaque(kernel_, constant(place_.offset));
  Value* lane =
      ir.CreateAdd(ir.CreateMul(ir.CreateUDiv(kernel_.lane(), constant(lanes_of_row)), constant(place_.row_pitch)),
                   ir.CreateMul(ir.CreateAnd(kernel_.lane(), constant(lanes_of_row - 1)), constant(quad_bytes)));
  const auto place_of = [&](Value* wave) {
    return ir.CreateAdd(lane, ir.CreateAdd(begin, ir.CreateMul(wave, constant(place_.wave_pitch))));
  };
  Value* dwords = ir.CreateBitCast(own.value, kernel_.vector(kernel_.i32(), registers));
  Value* place = place_of(kernel_.wave());
  for (int each = 0; each < quads; ++each) {
    const int first = each * quad;
    lds_.write(place_.region, ir.CreateShuffleVector(dwords, {first, first + 1, first + 2, first + 3}), place,
               each * quads_apart);
  }
  language::wait_for_lds(kernel_);
  language::barrier(kernel_);
  if (meanwhile) meanwhile();

  Value* even = ir.CreateAnd(kernel_.wave(), constant(~1));
  std::vector<Accumulator> all;
  for (int block = 0; block < blocks; ++block) {
    Value* from = place_of(block == 0 ? even : ir.CreateAdd(even, constant(block)));
    Value* scores = llvm::PoisonValue::get(own.value->getType());
    for (int each = 0; each < quads; ++each) {
      Value* four = ir.CreateBitCast(lds_.read(place_.region, quad_bytes, from, each * quads_apart),
                                     kernel_.vector(kernel_.f32(), quad));
      for (int r = 0; r < quad; ++r) {
        const int element = (each * quad) + r;
        scores = ir.CreateInsertElement(scores, ir.CreateExtractElement(four, static_cast<std::uint64_t>(r)),
                                        static_cast<std::uint64_t>(element));
      }
    }
    all.push_back({scores, own.layout});
  }
  return all;
}

}  // namespace wavejit::attention_latent
