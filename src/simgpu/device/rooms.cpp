#include "simgpu/device/rooms.h"

#include "simgpu/decode/registry.h"
#if __has_include("simgpu/vector/vector.h")
#include "simgpu/vector/vector.h"
#endif
#if __has_include("simgpu/matrix/matrix.h")
#include "simgpu/matrix/matrix.h"
#endif

namespace wavejit::simgpu {

void register_rooms(Registry& registry) {
  register_scalar(registry);
  register_control(registry);
  register_memory(registry);
#if __has_include("simgpu/vector/vector.h")
  register_vector(registry);
#endif
#if __has_include("simgpu/matrix/matrix.h")
  register_matrix(registry);
#endif
}

}  // namespace wavejit::simgpu
