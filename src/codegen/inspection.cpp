// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/inspection.h"

#include <algorithm>
#include <charconv>
#include <format>
#include <map>
#include <string_view>

#include "codegen/disassembly.h"
#include "codegen/metadata.h"

namespace wavejit::codegen {
namespace {

using Kind = LdsEvent::Kind;

// Bits named in a DS mnemonic: ds_read_b64_tr_b16 → 64, ds_write_b8_d16_hi → 8, ds_add_u32 → 32.
std::uint32_t bits_of(std::string_view mnemonic) {
  for (std::size_t i = mnemonic.find('_'); i != std::string_view::npos && i + 2 < mnemonic.size();
       i = mnemonic.find('_', i + 1)) {
    const char letter = mnemonic[i + 1];
    if (letter != 'b' && letter != 'u' && letter != 'i' && letter != 'f') continue;
    std::uint32_t bits = 0;
    const auto [end, error] = std::from_chars(mnemonic.data() + i + 2, mnemonic.data() + mnemonic.size(), bits);
    if (error == std::errc() && bits >= 8) return bits;
  }
  return 32;
}

// What an instruction does to LDS or to the other waves of its workgroup; nothing for most.
std::optional<LdsEvent> lds_event(const MachineInstruction& instruction) {
  const std::string_view mnemonic = instruction.mnemonic;
  if (mnemonic == "s_barrier" || mnemonic == "s_barrier_signal" || mnemonic == "s_barrier_wait")
    return LdsEvent{.kind = Kind::barrier};
  if (instruction.lds_dma) return LdsEvent{.kind = Kind::dma, .amount = 1};
  if (!mnemonic.starts_with("ds_")) return std::nullopt;
  // Lane moves through the LDS hardware, and no-ops: no memory is touched.
  for (const std::string_view no_memory : {"ds_bpermute", "ds_permute", "ds_swizzle", "ds_nop"}) {
    if (mnemonic.starts_with(no_memory)) return std::nullopt;
  }
  const bool twice =
      mnemonic.starts_with("ds_read2") || mnemonic.starts_with("ds_write2") || mnemonic.contains("_2addr_");
  const bool reads = mnemonic.starts_with("ds_read") || mnemonic.starts_with("ds_load");
  return LdsEvent{.kind = reads ? Kind::read : Kind::write, .amount = bits_of(mnemonic) / 8 * (twice ? 2 : 1)};
}

// Basic blocks of the machine code with their LDS events.
std::expected<LdsFlowGraph, Failure> lds_flow_of_machine(const std::vector<MachineInstruction>& code) {
  const std::uint64_t base = code.front().address;
  const std::uint64_t end = code.back().address + code.back().bytes;
  std::map<std::uint64_t, std::uint32_t> block_at;  // start address → node
  block_at[base] = 0;
  for (const MachineInstruction& instruction : code) {
    const std::uint64_t next = instruction.address + instruction.bytes;
    if (instruction.branch_target) {
      if (*instruction.branch_target < base || *instruction.branch_target >= end) {
        return fail(Status::rejected,
                    std::format("a branch at offset {} leaves the kernel", instruction.address - base));
      }
      block_at[*instruction.branch_target] = 0;
    }
    if ((instruction.branch_target || !instruction.falls_through) && next < end) block_at[next] = 0;
  }
  LdsFlowGraph graph;
  graph.nodes.resize(block_at.size());
  std::uint32_t count = 0;
  for (auto& [address, node] : block_at) node = count++;

  std::uint32_t current = 0;
  for (const MachineInstruction& instruction : code) {
    if (const auto block = block_at.find(instruction.address); block != block_at.end()) current = block->second;
    LdsFlowGraph::Node& node = graph.nodes[current];
    if (auto event = lds_event(instruction)) {
      event->position = instruction.address - base;
      node.events.push_back(*event);
      if (instruction.mnemonic == "s_barrier") node.events.push_back(*event);  // arrival, and the wait for the others
    }
    if (instruction.branch_target) {
      const auto target = block_at.find(*instruction.branch_target);
      node.successors.push_back(target->second);
    }
    const std::uint64_t next = instruction.address + instruction.bytes;
    const auto next_block = block_at.find(next);
    if (instruction.falls_through && next_block != block_at.end()) node.successors.push_back(next_block->second);
    if (instruction.ends_program) node.exits = true;
  }
  return graph;
}

// A branch into the middle of an instruction would make the flow graph a lie.
bool is_instruction_start(const std::vector<MachineInstruction>& code, std::uint64_t address) {
  return std::ranges::binary_search(code, address, {}, &MachineInstruction::address);
}

std::expected<void, Failure> check_followable(const std::vector<MachineInstruction>& code, bool private_memory) {
  const std::uint64_t base = code.front().address;
  for (const MachineInstruction& instruction : code) {
    if (instruction.indirect) {
      return fail(Status::rejected, std::format("{} at offset {}: indirect control flow is not followed",
                                                instruction.mnemonic, instruction.address - base));
    }
    // Flat accesses may go to LDS or scratch, which only the address knows.
    if (instruction.mnemonic.starts_with("flat_")) {
      return fail(Status::rejected,
                  std::format("{} at offset {}: flat memory may be LDS or scratch; kernels use typed address spaces",
                              instruction.mnemonic, instruction.address - base));
    }
    if (instruction.mnemonic.starts_with("scratch_") && !private_memory) {
      return fail(Status::rejected, std::format("{} at offset {}: scratch memory is used and none was declared",
                                                instruction.mnemonic, instruction.address - base));
    }
    if (instruction.branch_target && !is_instruction_start(code, *instruction.branch_target)) {
      return fail(Status::rejected, std::format("the branch at offset {} goes into the middle of an instruction",
                                                instruction.address - base));
    }
  }
  return {};
}

void count_instructions(const std::vector<MachineInstruction>& code, Facts& facts) {
  facts.instructions = static_cast<std::uint32_t>(code.size());
  for (const MachineInstruction& instruction : code) {
    const std::string_view mnemonic = instruction.mnemonic;
    facts.matrix_instructions +=
        mnemonic.starts_with("v_mfma") || mnemonic.starts_with("v_wmma") || mnemonic.starts_with("v_smfmac");
    facts.exp_instructions += mnemonic.starts_with("v_exp_f32");
    facts.lds_dma_instructions += instruction.lds_dma;
    facts.barriers += mnemonic == "s_barrier" || mnemonic == "s_barrier_wait";
  }
}

std::expected<void, Failure> check_target(const KernelImage& image, const targets::Target& target) {
  const std::string expected = std::format("amdgcn-amd-amdhsa--{}", target.id);
  if (image.target_id != expected) {
    return fail(Status::rejected,
                std::format("target id of the output is '{}'; '{}' was asked for", image.target_id, expected));
  }
  if (image.machine != target.elf_machine_flags) {
    return fail(Status::rejected, std::format("ELF machine of the output is 0x{:x}; {} is 0x{:x}", image.machine,
                                              target.id, target.elf_machine_flags));
  }
  return {};
}

// The backend rounds up to its alignment, and keeps the first bytes of a frame for itself.
constexpr int frame_alignment = 16;
std::uint32_t private_room(int declared) {
  if (declared == 0) return 0;
  return static_cast<std::uint32_t>((declared + frame_alignment - 1) / frame_alignment * frame_alignment +
                                    frame_alignment);
}

std::expected<void, Failure> check_memory(const Facts& facts, int declared_private_bytes) {
  if (facts.vgpr_spills != 0 || facts.sgpr_spills != 0) {
    return fail(Status::rejected, std::format("{} VGPRs and {} SGPRs are spilled; kernels must not spill",
                                              facts.vgpr_spills, facts.sgpr_spills));
  }
  if (facts.private_bytes > private_room(declared_private_bytes)) {
    return fail(Status::rejected, std::format("{} bytes of scratch a lane are used; the kernel declares {}",
                                              facts.private_bytes, declared_private_bytes));
  }
  return {};
}

}  // namespace

std::expected<Facts, Failure> inspect(std::span<const unsigned char> code_object, const targets::Target& target,
                                      const std::optional<LdsFlowGraph>& ir_order, int declared_private_bytes) {
  auto image = read_kernel_image(code_object);
  if (!image) return std::unexpected(image.error());
  if (auto checked = check_target(*image, target); !checked) return std::unexpected(checked.error());
  if (auto checked = check_memory(image->facts, declared_private_bytes); !checked)
    return std::unexpected(checked.error());
  auto disassembler = Disassembler::create(target);
  if (!disassembler) return std::unexpected(disassembler.error());
  auto code = disassembler->decode(image->code, image->address, /*with_text=*/false);
  if (!code) return std::unexpected(code.error());
  if (code->empty()) return fail(Status::rejected, "the kernel has no instructions");
  if (auto checked = check_followable(*code, declared_private_bytes != 0); !checked)
    return std::unexpected(checked.error());
  Facts facts = image->facts;
  count_instructions(*code, facts);
  // One wave alone has nobody to race with, and the backend drops its barriers.
  if (ir_order && facts.threads > static_cast<std::uint32_t>(target.wave_size)) {
    auto machine_order = lds_flow_of_machine(*code);
    if (!machine_order) return std::unexpected(machine_order.error());
    if (auto checked = check_lds_order(*machine_order, *ir_order); !checked)
      return fail(Status::rejected, checked.error());
  }
  return facts;
}

std::expected<std::string, Failure> disassembly_text(std::span<const unsigned char> code_object) {
  auto image = read_kernel_image(code_object);
  if (!image) return std::unexpected(image.error());
  const targets::Target* target = targets::find_target_by_machine(image->machine);
  if (!target) {
    return fail(Status::unsupported, std::format("ELF machine 0x{:x} is not in the target table: {}", image->machine,
                                                 targets::known_targets()));
  }
  auto disassembler = Disassembler::create(*target);
  if (!disassembler) return std::unexpected(disassembler.error());
  auto code = disassembler->decode(image->code, image->address, /*with_text=*/true);
  if (!code) return std::unexpected(code.error());
  std::string text = std::format("{}: {}, {} instructions\n", image->facts.kernel_name, target->id, code->size());
  for (const MachineInstruction& instruction : *code) {
    std::string_view printed = instruction.text;
    printed = printed.substr(std::min(printed.find_first_not_of(" \t"), printed.size()));
    text += std::format("{:6x}  {}\n", instruction.address - image->address, printed);
  }
  return text;
}

}  // namespace wavejit::codegen
