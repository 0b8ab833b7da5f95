// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/decode/disassembler.h"

#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstPrinter.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/MCTargetOptions.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Triple.h>

#include <map>

#include "isa/instruction_set.h"

extern "C" {
void LLVMInitializeAMDGPUTargetInfo();
void LLVMInitializeAMDGPUTargetMC();
void LLVMInitializeAMDGPUDisassembler();
}

namespace wavejit::simgpu {

struct Disassembler::Llvm {
  llvm::Triple triple;
  llvm::MCTargetOptions options;
  std::unique_ptr<llvm::MCRegisterInfo> registers;
  std::unique_ptr<llvm::MCAsmInfo> assembly;
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget;
  std::unique_ptr<llvm::MCInstrInfo> instructions;
  std::unique_ptr<llvm::MCContext> context;
  std::unique_ptr<llvm::MCDisassembler> disassembler;
  std::unique_ptr<llvm::MCInstPrinter> printer;
};

Disassembler::Disassembler(std::unique_ptr<Llvm> llvm) : llvm_(std::move(llvm)) {}
Disassembler::~Disassembler() = default;

namespace {

// LLVM 22 prints RDNA4's 16-bit operands as what they are, halves of registers, when it is told to; gfx1201 alone does
// not do it by itself.
std::string features_of(std::string_view processor, unsigned lanes) {
  if (isa::instruction_set(processor) != isa::InstructionSet::rdna4) return {};
  constexpr unsigned wide_wave = 64;
  return lanes == wide_wave ? "+real-true16,-wavefrontsize32,+wavefrontsize64" : "+real-true16";
}

}  // namespace

Disassembler* Disassembler::for_processor(std::string_view processor, unsigned lanes) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<Disassembler>, std::less<>> known;
  const std::scoped_lock lock(mutex);
  const std::string features = features_of(processor, lanes);
  const std::string key = std::string(processor) + features;
  if (const auto found = known.find(key); found != known.end()) return found->second.get();

  static const bool initialised = [] {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUDisassembler();
    return true;
  }();
  static_cast<void>(initialised);

  auto llvm = std::make_unique<Llvm>();
  llvm->triple = llvm::Triple("amdgcn-amd-amdhsa");
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(llvm->triple, error);
  if (target == nullptr) return nullptr;
  const llvm::StringRef cpu(processor.data(), processor.size());
  llvm->registers.reset(target->createMCRegInfo(llvm->triple));
  llvm->assembly.reset(target->createMCAsmInfo(*llvm->registers, llvm->triple, llvm->options));
  llvm->subtarget.reset(target->createMCSubtargetInfo(llvm->triple, cpu, features));
  llvm->instructions.reset(target->createMCInstrInfo());
  if (!llvm->subtarget || !llvm->subtarget->isCPUStringValid(cpu)) return nullptr;
  llvm->context = std::make_unique<llvm::MCContext>(llvm->triple, llvm->assembly.get(), llvm->registers.get(),
                                                    llvm->subtarget.get());
  llvm->disassembler.reset(target->createMCDisassembler(*llvm->subtarget, *llvm->context));
  llvm->printer.reset(target->createMCInstPrinter(llvm->triple, llvm->assembly->getAssemblerDialect(), *llvm->assembly,
                                                  *llvm->instructions, *llvm->registers));
  if (!llvm->disassembler || !llvm->printer) return nullptr;
  auto& entry = known[key];
  entry.reset(new Disassembler(std::move(llvm)));
  constexpr unsigned wide_wave = 64;
  entry->has_narrow_masks_ = isa::instruction_set(processor) == isa::InstructionSet::rdna4 && lanes != wide_wave;
  return entry.get();
}

Disassembled Disassembler::decode(std::span<const std::uint8_t> code, std::uint64_t address) {
  const std::scoped_lock lock(mutex_);
  Disassembled result;
  llvm::MCInst inst;
  std::uint64_t size = 0;
  const auto status = llvm_->disassembler->getInstruction(
      inst, size, llvm::ArrayRef<std::uint8_t>(code.data(), code.size()), address, llvm::nulls());
  // SoftFail means "decodes, but some field is outside what the ISA defines": the hardware's behaviour is not known.
  if (status != llvm::MCDisassembler::Success || size == 0 || size > code.size()) return result;
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm_->printer->printInst(&inst, address, "", *llvm_->subtarget, stream);
  // getMnemonic() names the instruction without its encoding, which the printed form appends (_e32, _e64, _dpp, _sdwa).
  // For some it names more than the mnemonic: "scratch_store_dword off, ".
  const llvm::StringRef mnemonic = llvm::StringRef(llvm_->printer->getMnemonic(inst).first).trim().split(' ').first;
  const auto [first, rest] = llvm::StringRef(text).trim().split(' ');
  if (mnemonic.empty() || !first.starts_with(mnemonic)) return result;
  result.mnemonic = first.str();
  result.operands = rest.trim().str();
  result.bytes = static_cast<unsigned>(size);
  result.destinations = llvm_->instructions->get(inst.getOpcode()).getNumDefs();
  return result;
}

std::string Disassembler::text(std::span<const std::uint8_t> code, std::uint64_t address) {
  const Disassembled decoded = decode(code, address);
  if (decoded.bytes == 0) return {};
  return decoded.operands.empty() ? decoded.mnemonic : decoded.mnemonic + " " + decoded.operands;
}

}  // namespace wavejit::simgpu
