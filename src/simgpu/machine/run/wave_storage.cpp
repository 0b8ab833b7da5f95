// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/run/wave_storage.h"

#include <sys/mman.h>

#include <new>
#include <type_traits>

namespace wavejit::simgpu {
namespace {

constexpr std::size_t large_page = std::size_t{1} << 21;

}  // namespace

void FreeWaves::operator()(Wave* waves) const { ::operator delete(waves, std::align_val_t{large_page}); }

WaveBlock make_waves(std::size_t count) {
  static_assert(std::is_trivially_destructible_v<Wave>);
  // Whole pages: the host gives none that is not altogether within what was asked for.
  const std::size_t bytes = (count * sizeof(Wave) + large_page - 1) / large_page * large_page;
  void* const memory = ::operator new(bytes, std::align_val_t{large_page});
  static_cast<void>(madvise(memory, bytes, MADV_HUGEPAGE));
  auto* const waves = static_cast<Wave*>(memory);
  std::uninitialized_default_construct_n(waves, count);
  return WaveBlock(waves);
}

}  // namespace wavejit::simgpu
