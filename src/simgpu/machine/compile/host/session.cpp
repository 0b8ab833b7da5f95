// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/compile/host/session.h"

#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/ExecutionEngine/Orc/SelfExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/TaskDispatch.h>
#include <llvm/ExecutionEngine/Orc/ThreadSafeModule.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>

#include "simgpu/machine/compile/host/block_code.h"

namespace wavejit::simgpu::compile {

namespace orc = llvm::orc;

struct Translation {
  std::deque<Run> runs;
  orc::ResourceTrackerSP code;
};

namespace {

struct Session {
  std::unique_ptr<orc::LLJIT> jit;
  Host host;
  std::string error;
  std::atomic<std::uint64_t> modules{0};
};

bool has(const llvm::StringMap<bool>& features, llvm::StringRef name) {
  const auto found = features.find(name);
  return found != features.end() && found->second;
}

Session* open(bool narrow) {
  auto session = std::make_unique<Session>();
  const auto features = llvm::sys::getHostCPUFeatures();
  if (!has(features, "avx2") || !has(features, "fma") || !has(features, "f16c")) {
    session->error = "this host's processor lacks AVX2, FMA or F16C";
    return session.release();
  }
  session->host.has_avx512 = !narrow && has(features, "avx512f") && has(features, "avx512vl") &&
                             has(features, "avx512bw") && has(features, "avx512dq");
  session->host.lanes = session->host.has_avx512 ? 16 : 8;
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto machine = orc::JITTargetMachineBuilder::detectHost();
  if (!machine) {
    session->error = llvm::toString(machine.takeError());
    return session.release();
  }
  if (narrow) machine->addFeatures({"-avx512f"});
  // Nothing is fused or reordered that the program does not ask for.
  machine->getOptions().AllowFPOpFusion = llvm::FPOpFusion::Strict;
  machine->setCodeGenOptLevel(llvm::CodeGenOptLevel::Less);
  // Whoever translates does the work: no thread is started for it, and its processor time is known.
  auto process = orc::SelfExecutorProcessControl::Create(nullptr, std::make_unique<orc::InPlaceTaskDispatcher>());
  if (!process) {
    session->error = llvm::toString(process.takeError());
    return session.release();
  }
  // Threads of a launch translate different functions at the same time: each needs a TargetMachine of its own.
  auto jit = orc::LLJITBuilder()
                 .setExecutorProcessControl(std::move(*process))
                 .setJITTargetMachineBuilder(std::move(*machine))
                 .setSupportConcurrentCompilation(true)
                 .create();
  if (!jit) {
    session->error = llvm::toString(jit.takeError());
  } else {
    session->jit = std::move(*jit);
  }
  return session.release();
}

Session& session(bool narrow) {
  // Never destroyed: kernels may run until the process ends.
  if (narrow) {
    static Session* const without_avx512 = open(true);
    return *without_avx512;
  }
  static Session* const widest = open(false);
  return *widest;
}

}  // namespace

Translation* translate(std::span<Block> blocks, const Helpers& helpers, bool narrow, std::string& error) {
  Session& s = session(narrow);
  if (s.jit == nullptr) {
    error = s.error;
    return nullptr;
  }
  auto translation = std::make_unique<Translation>();
  auto context = std::make_unique<llvm::LLVMContext>();
  const std::string prefix = "block_" + std::to_string(s.modules.fetch_add(1)) + "_";
  auto module = std::make_unique<llvm::Module>(prefix, *context);
  module->setDataLayout(s.jit->getDataLayout());
  module->setTargetTriple(s.jit->getTargetTriple());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    emit_block(*module, prefix + std::to_string(i), blocks[i], s.host, helpers, translation->runs);
  }
  translation->code = s.jit->getMainJITDylib().createResourceTracker();
  if (auto failed =
          s.jit->addIRModule(translation->code, orc::ThreadSafeModule(std::move(module), std::move(context)))) {
    error = llvm::toString(std::move(failed));
    return nullptr;
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    auto symbol = s.jit->lookup(prefix + std::to_string(i));
    if (!symbol) {
      error = llvm::toString(symbol.takeError());
      // Nothing of it may run: the others use the same runs.
      for (Block& block : blocks) block.code = nullptr;
      llvm::consumeError(translation->code->remove());
      return nullptr;
    }
    blocks[i].code = symbol->toPtr<BlockCode>();
  }
  return translation.release();
}

void release(Translation* translation) {
  if (translation == nullptr) return;
  llvm::consumeError(translation->code->remove());
  delete translation;
}

}  // namespace wavejit::simgpu::compile
