// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/second_query.h"

#include "codegen/language/control.h"
#include "codegen/language/lane_place.h"

namespace wavejit::attention_forward {

using language::Likelihood;
using language::Value;
using language::Values;

SecondQuery::SecondQuery(language::Kernel& kernel, const ForwardKernel& spec, const WorkgroupPlace& place,
                         const Workgroup& workgroup, const LineTiles& tiles, Value* tile)
    : kernel_(kernel), spec_(spec), workgroup_(workgroup), tiles_(tiles), second_tile_(place.second_tile) {
  llvm::IRBuilder<>& ir = kernel.ir();
  follows_ = ir.CreateICmpSGT(tile, second_tile_);
  Value* one_chunk = spec.has_chunks() ? ir.CreateICmpSLE(workgroup.tiles, kernel.constant(chunk_tiles)) : ir.getTrue();
  ahead_ = ir.CreateSelect(ir.CreateAnd(follows_, one_chunk), kernel.constant(blocks()), kernel.constant(0));
}

// The offset of the lane's row and half. Made anew where it is used: no vector register holds it through the walk.
Value* SecondQuery::lane_offset() const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* lane = lane_made_anew(kernel_);
  Value* first_row = ir.CreateAdd(ir.CreateMul(second_tile_, kernel_.constant(spec_.tile_queries)),
                                  ir.CreateMul(kernel_.wave(), kernel_.constant(language::wave_shape(kernel_).rows)));
  Value* row = ir.CreateAdd(first_row, language::row_of_lane(kernel_, lane));
  return ir.CreateAdd(ir.CreateMul(row, workgroup_.q.row_stride),
                      ir.CreateMul(language::group_of_lane(kernel_, lane),
                                   kernel_.constant(language::wave_shape(kernel_).operand_bytes)));
}

Value* SecondQuery::is_left(Value* key_tile) const { return kernel_.ir().CreateICmpSLT(key_tile, ahead_); }

void SecondQuery::fetch(Value* key_tile) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* offset = lane_offset();
  for (int each = 0; each < fetches; ++each) {
    Value* wanted = ir.CreateAdd(key_tile, kernel_.constant(each));
    tiles_.fetch_kept(wanted, workgroup_.q.buffer, offset,
                      ir.CreateMul(wanted, kernel_.constant(language::wave_shape(kernel_).fragment_bytes())));
  }
}

void SecondQuery::fetch_rest(Value* key_tile) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  language::if_uniform(kernel_, is_left(key_tile), Likelihood::even, [&] {
    language::loop_in_phases(
        kernel_, 1, {key_tile},
        [&](int, const Values& at) -> Values {
          fetch(at[0]);
          return {ir.CreateAdd(at[0], kernel_.constant(fetches))};
        },
        [&](const Values& next) { return is_left(next[0]); });
  });
}

Values SecondQuery::take() const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* is_there = ir.CreateICmpNE(ahead_, kernel_.constant(0));
  const Values none(static_cast<std::size_t>(blocks()), llvm::PoisonValue::get(kernel_.vector(kernel_.i32(), 4)));
  const Values loaded =
      language::if_uniform(kernel_, ir.CreateNot(is_there), Likelihood::even, none, [&](const Values&) {
        Value* offset = lane_offset();
        const targets::WaveShape wave = language::wave_shape(kernel_);
        Values all;
        for (int block = 0; block < blocks(); ++block)
          all.push_back(workgroup_.q.buffer.load(wave.operand_bytes,
                                                 ir.CreateAdd(offset, kernel_.constant(block * wave.fragment_bytes())),
                                                 kernel_.constant(0)));
        return all;
      });
  return language::if_uniform(kernel_, is_there, Likelihood::even, loaded, [&](const Values&) {
    Value* kept = tiles_.kept_place();
    Values all;
    for (int block = 0; block < blocks(); ++block) all.push_back(tiles_.kept(kept, block));
    return all;
  });
}

}  // namespace wavejit::attention_forward
