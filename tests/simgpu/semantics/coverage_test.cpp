// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which instructions are known, compared with everything that LLVM's disassembler accepts.
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>

#include "simgpu/machine/decode/disassembler.h"
#include "simgpu/machine/decode/registry.h"
#include "simgpu/machine/matrix/matrix.h"
#include "simgpu/machine/vector/vector.h"
#include "targets/targets.h"

namespace wavejit::simgpu::test {
namespace {

// All vector mnemonics that LLVM decodes for a processor, found by walking the opcode fields of every vector encoding.
std::set<std::string> vector_mnemonics(const std::string& processor) {
  Disassembler& disassembler = *Disassembler::for_processor(processor);
  std::set<std::string> found;
  const auto look = [&](std::array<std::uint32_t, 4> words) {
    std::array<std::uint8_t, 16> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(words[i / 4] >> (8 * (i % 4)));
    const Disassembled result = disassembler.decode(bytes, 0);
    if (result.bytes == 0 || !result.mnemonic.starts_with("v_")) return;
    std::string name = result.mnemonic;
    for (const std::string_view suffix : {"_e32", "_e64", "_sdwa", "_dpp"}) {
      if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
    }
    found.insert(name);
  };
  constexpr std::uint32_t v2 = 258;
  for (std::uint32_t op = 0; op < 256; ++op) {
    const std::uint32_t vop1 = (0x3fu << 25) | (4u << 17) | (op << 9);
    const std::uint32_t vopc = (0x3eu << 25) | (op << 17) | (6u << 9);
    look({vop1 | v2});
    look({vop1 | 249, 0x06060602});
    look({vop1 | 250, 0xff00e402});
    look({vopc | v2});
    look({vopc | 249, 0x06060002});
  }
  for (std::uint32_t op = 0; op < 62; ++op) {
    const std::uint32_t vop2 = (op << 25) | (4u << 17) | (6u << 9);
    look({vop2 | v2, 0x3f800000});
    look({vop2 | 249, 0x06060602});
    look({vop2 | 250, 0xff00e402});
  }
  // VOP3 and VOP3P, with several kinds of operands since not all suit all.
  constexpr std::array<std::array<std::uint32_t, 3>, 5> operands = {
      {{258, 262, 266}, {258, 262, 104}, {258, 2, 266}, {258, 12, 0}, {256, 288, 320}}};
  for (std::uint32_t op = 0; op < 1024; ++op) {
    for (const auto& o : operands) {
      for (const std::uint32_t extra : {0u, 106u << 8, 4u << 12}) {
        const std::uint32_t low = (0x34u << 26) | (op << 16) | 4u | extra;
        look({low, o[0] | (o[1] << 9) | (o[2] << 18)});
        look({low, o[0] | (o[1] << 9) | (o[2] << 18) | (3u << 27)});
      }
    }
  }
  return found;
}

// Why an instruction may be missing.
bool is_left_out(const std::string& name) {
  if (name.starts_with("v_smfmac_")) return true;         // sparse matrix instructions
  if (name == "v_mfma_ld_scale_b32") return true;         // half of v_mfma_scale_*, never alone
  if (name == "v_screen_partition_4se_b32") return true;  // graphics
  if (name.starts_with("v_interp_")) return true;         // graphics
  return false;
}

TEST(Coverage, EveryVectorInstructionThatLlvmDecodesIsKnown) {
  for (const std::string processor : {"gfx942", "gfx950"}) {
    Registry registry(*targets::find_target(processor));
    register_vector(registry);
    register_matrix(registry);
    const std::set<std::string> all = vector_mnemonics(processor);
    EXPECT_GT(all.size(), 480u);
    for (const std::string& name : all) {
      EXPECT_TRUE(registry.find(name) != nullptr || is_left_out(name)) << processor << ": " << name;
    }
  }
}

}  // namespace
}  // namespace wavejit::simgpu::test
