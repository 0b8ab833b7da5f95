// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which of RDNA4's instructions are known, compared with everything that LLVM's disassembler accepts: every opcode of
// every encoding.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

#include "simgpu/machine/decode/disassembler.h"
#include "simgpu/machine/decode/registry.h"
#include "simgpu/machine/device/rooms.h"
#include "targets/targets.h"

namespace wavejit::simgpu::test {
namespace {

using Words = std::array<std::uint32_t, 4>;

class Walk {
 public:
  explicit Walk(Disassembler& disassembler) : disassembler_(&disassembler) {}

  void look(Words words) {
    std::array<std::uint8_t, 16> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(words[i / 4] >> (8 * (i % 4)));
    const Disassembled result = disassembler_->decode(bytes, 0);
    if (result.bytes == 0) return;
    add(result.mnemonic);
    if (const std::size_t second = result.operands.find(":: v_dual_"); second != std::string::npos) {
      const std::size_t begin = second + 3;
      add(result.operands.substr(begin, result.operands.find(' ', begin) - begin));
    }
  }
  const std::set<std::string>& found() const { return found_; }

 private:
  void add(std::string name) {
    for (const std::string_view suffix : {"_dpp", "_e64", "_e32"}) {
      if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
    }
    found_.insert(name.starts_with("v_dual_") ? "v_" + name.substr(7) : name);
  }
  Disassembler* disassembler_;
  std::set<std::string> found_;
};

constexpr std::uint32_t v(std::uint32_t index) { return 256 + index; }

void walk_vectors(Walk& walk) {
  for (std::uint32_t op = 0; op < 256; ++op) {
    walk.look({0x7c000000 | (op << 17) | (6u << 9) | v(2)});
    if (op < 128) walk.look({0x7e000000 | (4u << 17) | (op << 9) | v(2)});
    if (op < 62) walk.look({(op << 25) | (4u << 17) | (6u << 9) | v(2), 0x3f800000});
  }
  constexpr std::array<std::array<std::uint32_t, 3>, 6> operands = {
      {{v(2), v(6), v(10)}, {v(2), v(6), 0}, {v(2), 0, 0}, {2, 0, 0}, {v(2), 4, 6}, {v(0), v(16), v(32)}}};
  for (std::uint32_t op = 0; op < 1024; ++op) {
    for (const auto& o : operands) {
      const std::uint32_t high = o[0] | (o[1] << 9) | (o[2] << 18);
      for (const std::uint32_t destination : {4u, 4u | (106u << 8), 4u | (0x40u << 8)}) {
        walk.look({(0x35u << 26) | (op << 16) | destination, high});
      }
      if (op >= 128) continue;
      for (const std::uint32_t select : {0u, 0x4000u}) {
        walk.look({0xcc000000 | (op << 16) | 4u | select, high});
        walk.look({0xcc000000 | (op << 16) | 4u | select, high | (3u << 27)});
      }
    }
  }
  for (std::uint32_t x = 0; x < 16; ++x) {
    for (std::uint32_t y = 0; y < 32; ++y) {
      walk.look({(0x32u << 26) | (x << 22) | (y << 17) | (4u << 9) | v(1), (8u << 24) | (1u << 17) | (7u << 9) | v(2),
                 0x3f800000});
    }
  }
}

void walk_memory(Walk& walk) {
  for (std::uint32_t op = 0; op < 256; ++op) {
    walk.look({(0x36u << 26) | (op << 18), 2u | (4u << 8) | (6u << 16) | (8u << 24)});
    for (const std::uint32_t returns : {0u, 1u << 20}) {
      for (const std::uint32_t space : {0xecu, 0xedu, 0xeeu}) {
        walk.look({(space << 24) | (op << 14) | 124u, 8u | returns | (4u << 23), 2});
      }
      walk.look({(0x31u << 26) | (op << 14) | 124u, 8u | (4u << 9) | returns, 2});
    }
    if (op < 64) walk.look({(0x3du << 26) | (op << 13) | (8u << 6) | 2u, 124u << 25});
  }
}

void walk_scalars(Walk& walk) {
  for (std::uint32_t op = 0; op < 256; ++op) {
    walk.look({0xbe800000 | (8u << 16) | (op << 8) | 4u});
    if (op >= 128) continue;
    walk.look({0x80000000 | (op << 23) | (8u << 16) | (4u << 8) | 2u});
    walk.look({0xbf000000 | (op << 16) | (4u << 8) | 2u});
    walk.look({0xbf800000 | (op << 16)});
    if (op < 32) walk.look({0xb0000000 | (op << 23) | (8u << 16) | 4u});
  }
}

// Why an instruction may be missing.
bool is_left_out(std::string_view name) {
  constexpr std::string_view parts[] = {"v_swmmac_",  // sparse matrix instructions
                                        "format",     // typed buffers
                                        "_bvh_",
                                        "v_interp_",
                                        "s_atc_probe",  // graphics and probes
                                        "_block",
                                        "addtid",
                                        "ordered_add",
                                        "storexchg_2",  // nothing compiles to them
                                        "ds_consume",
                                        "ds_append",
                                        "ds_swizzle_fi",
                                        "s_alloc_vgpr",
                                        "s_barrier_init",
                                        "s_barrier_join",
                                        "s_barrier_leave",
                                        "s_get_barrier_state",  // named barriers
                                        "s_rfe_",
                                        "s_sendmsghalt",
                                        "s_movrelsd",
                                        "v_movrelsd_2",
                                        "v_swaprel",
                                        "v_mullit",
                                        "v_illegal",
                                        "v_nop",
                                        "v_pipeflush",
                                        "s_buffer_load_b96",
                                        "s_buffer_load_i",
                                        "s_buffer_load_u",
                                        "ds_bpermute_fi"};
  return std::ranges::any_of(parts, [&](std::string_view part) { return name.contains(part); });
}

TEST(Rdna4Coverage, EveryInstructionThatLlvmDecodesIsKnown) {
  Registry registry(*targets::find_target("gfx1201"));
  register_rooms(registry);
  for (const unsigned lanes : {32U, 64U}) {
    Walk walk(*Disassembler::for_processor("gfx1201", lanes));
    walk_vectors(walk);
    walk_memory(walk);
    walk_scalars(walk);
    EXPECT_GT(walk.found().size(), 950U);
    for (const std::string& name : walk.found()) {
      EXPECT_TRUE(registry.find(name) != nullptr || is_left_out(name)) << lanes << ": " << name;
    }
  }
}

}  // namespace
}  // namespace wavejit::simgpu::test
