#include <sys/mman.h>

#include <memory>
#include <new>
#include <type_traits>

#include "simgpu/launch/launch.h"

namespace wavejit::simgpu {
namespace {

constexpr std::align_val_t large_page{size_t{1} << 21};

}  // namespace

void WaveStorage::Free::operator()(Wave* waves) const { ::operator delete(waves, large_page); }

Wave* WaveStorage::take(size_t count) {
  static_assert(std::is_trivially_destructible_v<Wave>);
  if (count_ >= count) return waves_.get();
  // Whole pages: the host gives none that is not altogether within what was asked for.
  constexpr auto page = static_cast<size_t>(large_page);
  const size_t bytes = (count * sizeof(Wave) + page - 1) / page * page;
  void* const memory = ::operator new(bytes, large_page);
  static_cast<void>(madvise(memory, bytes, MADV_HUGEPAGE));
  auto* const waves = static_cast<Wave*>(memory);
  std::uninitialized_default_construct_n(waves, count);
  waves_.reset(waves);
  count_ = count;
  return waves;
}

}  // namespace wavejit::simgpu
