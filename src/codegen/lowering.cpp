// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/lowering.h"

#include <llvm/CodeGen/CodeGenTargetMachineImpl.h>
#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/IR/DiagnosticHandler.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/OptBisect.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "codegen/language/kernel.h"

extern "C" {
void LLVMInitializeAMDGPUTargetInfo();
void LLVMInitializeAMDGPUTarget();
void LLVMInitializeAMDGPUTargetMC();
void LLVMInitializeAMDGPUAsmPrinter();
void LLVMInitializeAMDGPUAsmParser();
void LLVMInitializeAMDGPUDisassembler();
}

namespace wavejit::codegen {
namespace {

// Errors that the backend reports as diagnostics. Without a handler LLVM prints them and exits the process.
class DiagnosticCollector : public llvm::DiagnosticHandler {
 public:
  explicit DiagnosticCollector(std::string& first_error) : first_error_(first_error) {}

  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    if (info.getSeverity() == llvm::DS_Error && first_error_.empty()) {
      llvm::raw_string_ostream stream(first_error_);
      llvm::DiagnosticPrinterRawOStream printer(stream);
      info.print(printer);
    }
    return true;  // remarks and warnings of the backend are not for a host's stderr
  }

 private:
  std::string& first_error_;
};

// Leaves out straight-line strength reduction, which the target machine adds as an object, out of disablePass's reach.
class PassGate final : public llvm::OptPassGate {
 public:
  bool isEnabled() const override { return true; }
  bool shouldRunPass(llvm::StringRef pass, llvm::StringRef /*where*/) const override {
    return pass != "slsr";  // the name that the pass is registered under
  }
};

// No features named: xnack and sramecc stay "any", so that one object loads under every setting of the device.
std::unique_ptr<llvm::TargetMachine> target_machine(const targets::Target& target, std::string& error) {
  const llvm::Triple triple("amdgcn-amd-amdhsa");
  const llvm::Target* backend = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend) return nullptr;
  return std::unique_ptr<llvm::TargetMachine>(backend->createTargetMachine(
      triple, target.id, "", llvm::TargetOptions(), llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Default));
}

// Machines that no compile uses now. What LLVM finds out about a subtarget's registers stays with its machine; anew it
// is a quarter of a small kernel's compile. A compile that is lost keeps its own, and these live as long as the
// process.
class IdleMachines {
 public:
  static IdleMachines& all() {
    static auto* const immortal = new IdleMachines;
    return *immortal;
  }
  std::unique_ptr<llvm::TargetMachine> take(const targets::Target& target, std::string& error) {
    {
      const std::scoped_lock lock(mutex_);
      std::vector<std::unique_ptr<llvm::TargetMachine>>& idle = idle_[std::string(target.id)];
      if (!idle.empty()) {
        std::unique_ptr<llvm::TargetMachine> machine = std::move(idle.back());
        idle.pop_back();
        return machine;
      }
    }
    return target_machine(target, error);
  }
  void give(const targets::Target& target, std::unique_ptr<llvm::TargetMachine> machine) {
    const std::scoped_lock lock(mutex_);
    std::vector<std::unique_ptr<llvm::TargetMachine>>& idle = idle_[std::string(target.id)];
    if (idle.size() < most_idle) idle.push_back(std::move(machine));
  }

 private:
  static constexpr std::size_t most_idle = 4;
  std::mutex mutex_;
  std::map<std::string, std::vector<std::unique_ptr<llvm::TargetMachine>>> idle_;  // by the processor's name
};

void prepare(llvm::Module& module, const llvm::TargetMachine& machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  // Code object version 5: what HIP loads since ROCm 6.0; 6 would add only generic processors.
  if (!module.getModuleFlag("amdhsa_code_object_version")) {
    module.addModuleFlag(llvm::Module::Error, "amdhsa_code_object_version", 500);
  }
}

// The passes have let go of the machine when this returns.
std::expected<void, Failure> run_backend(llvm::Module& module, llvm::TargetMachine& machine,
                                         const LoweringOptions& options, llvm::SmallVectorImpl<char>& object) {
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  auto* generator = static_cast<llvm::CodeGenTargetMachineImpl*>(&machine);
  llvm::TargetPassConfig* config = generator->createPassConfig(passes);
  if (!options.machine_sinking) config->disablePass(&llvm::MachineSinkingLegacyID);
  if (!options.schedulers) {
    config->disablePass(&llvm::MachineSchedulerID);
    // AMDGPU replaces this pass by its own; disabling the replacement's id has no effect.
    config->disablePass(&llvm::PostRASchedulerID);
  }
  config->setDisableVerify(true);
  auto* machine_module = new llvm::MachineModuleInfoWrapperPass(generator);  // the pass manager owns it
  passes.add(config);
  passes.add(machine_module);
  if (config->addISelPasses()) return fail(Status::internal, "the backend has no instruction selection");
  config->addMachinePasses();
  config->setInitialized();
  if (generator->addAsmPrinter(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile,
                               machine_module->getMMI().getContext())) {
    return fail(Status::internal, "the backend cannot write object files");
  }
  passes.add(llvm::createFreeMachineFunctionPass());
  passes.run(module);
  return {};
}

}  // namespace

void initialise_backend() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTarget();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmPrinter();
    LLVMInitializeAMDGPUAsmParser();
    LLVMInitializeAMDGPUDisassembler();
  });
}

std::expected<void, Failure> prepare(llvm::Module& module, const targets::Target& target) {
  initialise_backend();
  std::string error;
  const std::unique_ptr<llvm::TargetMachine> machine = target_machine(target, error);
  if (!machine) return fail(Status::internal, "no AMDGPU backend: " + error);
  prepare(module, *machine);
  return {};
}

std::expected<void, Failure> lower(llvm::Module& module, const targets::Target& target, const LoweringOptions& options,
                                   llvm::SmallVectorImpl<char>& object) {
  initialise_backend();
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine = IdleMachines::all().take(target, error);
  if (!machine) return fail(Status::internal, "no AMDGPU backend: " + error);
  prepare(module, *machine);
  static PassGate without_strength_reduction;
  if (llvm::any_of(module, [](const llvm::Function& function) {
        return function.hasFnAttribute(language::no_strength_reduction_attribute);
      }))
    module.getContext().setOptPassGate(without_strength_reduction);
  module.getContext().setDiagnosticHandler(std::make_unique<DiagnosticCollector>(error));

  if (auto ran = run_backend(module, *machine, options, object); !ran) return ran;
  if (!error.empty()) return fail(Status::rejected, "the backend refused the kernel: " + error);
  IdleMachines::all().give(target, std::move(machine));
  return {};
}

}  // namespace wavejit::codegen
