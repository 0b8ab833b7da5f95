// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How RDNA4 spells what CDNA has under another name. Folders register by CDNA's names; a registry for RDNA4 translates.
//
//   rdna4_name("global_load_dwordx4") == "global_load_b128"
//   rdna4_name("v_bitop3_b32").empty()      // it has none
#pragma once

#include <string>
#include <string_view>

namespace wavejit::simgpu {

// Empty: RDNA4 has no such instruction, or one that behaves differently and is registered by its own name.
std::string rdna4_name(std::string_view cdna);

}  // namespace wavejit::simgpu
