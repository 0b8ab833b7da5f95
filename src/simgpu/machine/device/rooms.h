// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every folder that registers instructions, in one place.
#pragma once

namespace wavejit::simgpu {

class Registry;

// Fills the registry of one target.
void register_rooms(Registry& registry);

}  // namespace wavejit::simgpu
