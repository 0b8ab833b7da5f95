// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// LDS: one object per kernel, cut into regions; a region is what may be filled while another is read.
//
// Every access to a region carries the region's alias scope and is declared apart from all other regions. That is what
// lets the backend place exact waits around LDS DMA: a read waits for the transfers into its own region and for no
// others. It needs one LDS object with own scopes; with several LDS globals the backend adds scopes of its own, the
// lists cancel out and every wait vanishes without a word.
//
// Other waves are the emitter's duty: see synchronize.h.
#pragma once

#include "codegen/language/buffer.h"
#include "codegen/language/kernel.h"

namespace wavejit::language {

class Lds {
 public:
  // A static array: its size stands in the kernel descriptor, launch code adds nothing.
  Lds(Kernel& kernel, int bytes, int regions);

  // For reads that may fall into any of them: they wait for every transfer.
  static constexpr int any_region = -1;

  // Addresses are byte offsets in the object: lane or uniform part (i32) plus a constant, which becomes the
  // instruction's offset field.
  Value* read(int region, int bytes, Value* offset, int constant_offset) const;
  void write(int region, Value* dwords, Value* offset, int constant_offset) const;
  // ds_read_b64_tr_b16: in each group of 16 lanes, lane i points at 8 bytes of a 4 × 16 block of 16-bit elements (lanes
  // 4k … 4k+3 supply row k); lane j receives the four elements of column j, as <2 x i32>.
  Value* read_transposed(int region, Value* offset, int constant_offset) const;
  // ds_read_b64_tr_b8: the same of an 8 × 16 block of bytes (lanes 2k, 2k+1 supply row k).
  Value* read_transposed_bytes(int region, Value* offset, int constant_offset) const;
  // buffer load straight into LDS: lane l's `bytes` go to `offset` + bytes · l. `offset` is uniform. Out-of-range lanes
  // write zeros. Counts on the vector memory counter of the issuing wave.
  void fill(int region, const Buffer& from, int bytes, Value* lane_offset, Value* uniform_offset, Value* offset,
            int constant_offset) const;
  // The same from an address (i64) of each lane's own, and `address_offset` bytes behind it, which the instruction
  // adds: no more than largest_gather_offset. Nothing bounds it.
  static constexpr int largest_gather_offset = 4095;
  void gather(int region, Value* lane_address, int bytes, Value* offset, int constant_offset,
              int address_offset = 0) const;

 private:
  bool has_dma_of(int bytes) const;
  Value* address(Value* offset, int constant_offset) const;
  void mark(llvm::Instruction* access, int region) const;

  Kernel& kernel_;
  llvm::GlobalVariable* object_;
  std::vector<llvm::MDNode*> own_;
  std::vector<llvm::MDNode*> others_;
};

}  // namespace wavejit::language
