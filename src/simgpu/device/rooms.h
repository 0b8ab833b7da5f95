#pragma once

namespace wavejit::simgpu {

class Registry;

/// Fills the registry of one target from every room that knows instructions.
void register_rooms(Registry& registry);

}  // namespace wavejit::simgpu
