#include "codegen/language/synchronize.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

namespace wavejit::language {
namespace {

// The immediate of s_waitcnt on GFX9 (CDNA3 ISA, S_WAITCNT): vmcnt in bits 3:0 and 15:14, expcnt in 6:4, lgkmcnt in
// 11:8. All ones means "do not wait".
constexpr unsigned no_wait = 0xFF7F;
constexpr unsigned vmcnt_bits = 0xC00F;
constexpr unsigned lgkmcnt_bits = 0x0F00;

void wait(Kernel& kernel, unsigned cleared) {
  kernel.ir().CreateIntrinsic(llvm::Intrinsic::amdgcn_s_waitcnt, {}, {kernel.ir().getInt32(no_wait & ~cleared)});
}

}  // namespace

void wait_for_lds(Kernel& kernel) { wait(kernel, lgkmcnt_bits); }
void wait_for_lds_fills(Kernel& kernel) { wait(kernel, vmcnt_bits | lgkmcnt_bits); }
void barrier(Kernel& kernel) { kernel.ir().CreateIntrinsic(llvm::Intrinsic::amdgcn_s_barrier, {}); }

}  // namespace wavejit::language
