// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the environment says of ROCr's door for models. config.cpp reads it, as everything of the environment.
#pragma once

#include <string>

namespace wavejit::simgpu {

// HSA_MODEL_TOPOLOGY: the folder in which ROCr looks for the machine's nodes. Empty: not set.
std::string read_model_topology();

}  // namespace wavejit::simgpu
