// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/disassembly.h"

#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstPrinter.h>
#include <llvm/MC/MCInstrAnalysis.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/MCTargetOptions.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <format>

#include "codegen/lowering.h"

namespace wavejit::codegen {

// In the order in which LLVM wants them built; each refers to those before it.
struct Disassembler::Machinery {
  llvm::Triple triple{"amdgcn-amd-amdhsa"};
  llvm::MCTargetOptions options;
  std::unique_ptr<llvm::MCRegisterInfo> registers;
  std::unique_ptr<llvm::MCAsmInfo> assembler;
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget;
  std::unique_ptr<llvm::MCInstrInfo> instructions;
  std::unique_ptr<llvm::MCContext> context;
  std::unique_ptr<llvm::MCDisassembler> decoder;
  std::unique_ptr<llvm::MCInstPrinter> printer;
  std::unique_ptr<llvm::MCInstrAnalysis> analysis;
};

Disassembler::Disassembler(std::unique_ptr<Machinery> machinery) : machinery_(std::move(machinery)) {}
Disassembler::Disassembler(Disassembler&&) noexcept = default;
Disassembler::~Disassembler() = default;

std::expected<Disassembler, Failure> Disassembler::create(const targets::Target& target) {
  initialise_backend();
  auto machinery = std::make_unique<Machinery>();
  Machinery& m = *machinery;
  std::string error;
  const llvm::Target* backend = llvm::TargetRegistry::lookupTarget(m.triple, error);
  if (!backend) return fail(Status::internal, "no AMDGPU backend: " + error);
  m.registers.reset(backend->createMCRegInfo(m.triple));
  m.assembler.reset(backend->createMCAsmInfo(*m.registers, m.triple, m.options));
  m.subtarget.reset(backend->createMCSubtargetInfo(m.triple, target.id, ""));
  m.instructions.reset(backend->createMCInstrInfo());
  m.context = std::make_unique<llvm::MCContext>(m.triple, m.assembler.get(), m.registers.get(), m.subtarget.get());
  m.decoder.reset(backend->createMCDisassembler(*m.subtarget, *m.context));
  m.printer.reset(backend->createMCInstPrinter(m.triple, m.assembler->getAssemblerDialect(), *m.assembler,
                                               *m.instructions, *m.registers));
  m.analysis.reset(backend->createMCInstrAnalysis(m.instructions.get()));
  if (!m.decoder || !m.printer || !m.analysis)
    return fail(Status::internal, "LLVM's AMDGPU disassembler is not linked in");
  return Disassembler(std::move(machinery));
}

std::expected<std::vector<MachineInstruction>, Failure> Disassembler::decode(std::span<const unsigned char> code,
                                                                             std::uint64_t address, bool with_text) {
  Machinery& m = *machinery_;
  std::vector<MachineInstruction> result;
  result.reserve(code.size() / 6);  // 4 or 8 bytes each
  std::size_t offset = 0;
  while (offset < code.size()) {
    llvm::MCInst instruction;
    std::uint64_t size = 0;
    const std::uint64_t here = address + offset;
    const llvm::ArrayRef<std::uint8_t> rest(code.data() + offset, code.size() - offset);
    const auto status = m.decoder->getInstruction(instruction, size, rest, here, llvm::nulls());
    if (status != llvm::MCDisassembler::Success || size == 0) {
      std::uint32_t word = 0;
      for (std::size_t i = 0; i < std::min<std::size_t>(4, rest.size()); ++i) word |= std::uint32_t{rest[i]} << (8 * i);
      return fail(Status::rejected, std::format("unknown encoding 0x{:08x} at offset {} of the kernel", word, offset));
    }
    MachineInstruction& decoded = result.emplace_back();
    decoded.address = here;
    decoded.bytes = static_cast<std::uint32_t>(size);
    std::string_view mnemonic = m.printer->getMnemonic(instruction).first;
    mnemonic = mnemonic.substr(0, mnemonic.find_last_not_of(" \t") + 1);
    decoded.mnemonic = mnemonic;
    const llvm::MCInstrDesc& description = m.instructions->get(instruction.getOpcode());
    // The assembler spells LDS DMA as an operand ("buffer_load_dword … lds"); the opcode's name has it.
    decoded.lds_dma = (mnemonic.starts_with("buffer_load") || mnemonic.starts_with("global_load")) &&
                      m.instructions->getName(instruction.getOpcode()).contains("_LDS");
    decoded.ends_program = mnemonic.starts_with("s_endpgm");
    decoded.falls_through = !decoded.ends_program && !description.isUnconditionalBranch();
    if (std::uint64_t target = 0;
        description.isBranch() && m.analysis->evaluateBranch(instruction, here, size, target)) {
      decoded.branch_target = target;
    }
    decoded.indirect = description.isCall() || description.isIndirectBranch() || mnemonic.starts_with("s_setpc") ||
                       mnemonic.starts_with("s_swappc") || mnemonic.starts_with("s_call") ||
                       (description.isBranch() && !decoded.branch_target);
    if (with_text) {
      llvm::raw_string_ostream stream(decoded.text);
      m.printer->printInst(&instruction, here, "", *m.subtarget, stream);
    }
    offset += size;
  }
  return result;
}

}  // namespace wavejit::codegen
