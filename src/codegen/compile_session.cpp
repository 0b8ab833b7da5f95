// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/compile_session.h"

#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/IRCompileLayer.h>
#include <llvm/ExecutionEngine/Orc/Layer.h>
#include <llvm/ExecutionEngine/Orc/TaskDispatch.h>
#include <llvm/ExecutionEngine/Orc/ThreadSafeModule.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>

#include <map>

#include "codegen/barrier_order_ir.h"
#include "codegen/containment.h"
#include "codegen/inspection.h"
#include "codegen/language/private_memory.h"
#include "codegen/stopwatch.h"

namespace wavejit::codegen {
namespace {

namespace orc = llvm::orc;

// Materialisation runs on contained threads, everything else where it is asked for.
class ContainedDispatcher : public orc::TaskDispatcher {
 public:
  void dispatch(std::unique_ptr<orc::Task> task) override {
    if (!llvm::isa<orc::MaterializationTask>(*task)) return task->run();
    {
      const std::scoped_lock lock(mutex_);
      ++running_;
    }
    // std::function copies; the task moves.
    auto shared = std::make_shared<std::unique_ptr<orc::Task>>(std::move(task));
    const bool started = start_contained(
        [this, shared] {
          (*shared)->run();
          shared->reset();
          left();
        },
        [this](const std::string&) { left(); });
    if (!started) {
      (*shared)->run();  // sees that it is not contained and fails the materialisation
      left();
    }
  }

  // Lost threads have left: the session does not wait for them.
  void shutdown() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return running_ == 0; });
  }

 private:
  void left() {
    const std::scoped_lock lock(mutex_);
    --running_;
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned running_ = 0;
};

// ORC wants to know the process that it links into. There is none: code objects run on GPUs, later, elsewhere.
class NoExecutor : public orc::ExecutorProcessControl {
 public:
  NoExecutor()
      : ExecutorProcessControl(std::make_shared<orc::SymbolStringPool>(), std::make_unique<ContainedDispatcher>()) {
    TargetTriple = llvm::Triple("amdgcn-amd-amdhsa");
    PageSize = 4096;
  }
  llvm::Expected<std::int32_t> runAsMain(orc::ExecutorAddr, llvm::ArrayRef<std::string>) override { return refuse(); }
  llvm::Expected<std::int32_t> runAsVoidFunction(orc::ExecutorAddr) override { return refuse(); }
  llvm::Expected<std::int32_t> runAsIntFunction(orc::ExecutorAddr, int) override { return refuse(); }
  void callWrapperAsync(orc::ExecutorAddr, IncomingWFRHandler, llvm::ArrayRef<char>) override {
    getExecutionSession().reportError(refuse());  // nobody calls: no wrapper function exists
  }
  llvm::Error disconnect() override {
    getDispatcher().shutdown();  // the session is over when its last thread has left it
    return llvm::Error::success();
  }

 private:
  static llvm::Error refuse() {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), "nothing is executed in this session");
  }
};

// ORC's error channel carries the job's own failure as text; Job::failure has it with its status.
llvm::Error orc_error(Job& job, Failure failure) {
  llvm::Error error = llvm::createStringError(llvm::inconvertibleErrorCode(), failure.detail.c_str());
  if (!job.failure) job.failure = std::move(failure);
  return error;
}

}  // namespace

class CompileSession::Parts {
 public:
  Parts()
      : session_(std::make_unique<NoExecutor>()),
        kernels_(session_.createBareJITDylib("kernels")),
        object_layer_(*this),
        compile_layer_(session_, object_layer_, std::make_unique<Compiler>(*this)) {
    session_.setErrorReporter([](llvm::Error error) { llvm::consumeError(std::move(error)); });
  }
  ~Parts() { llvm::consumeError(session_.endSession()); }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  void compile(const std::shared_ptr<Job>& job) {
    const orc::SymbolStringPtr name = session_.intern(job->symbol);
    const orc::ResourceTrackerSP tracker = kernels_.createResourceTracker();
    {
      const std::scoped_lock lock(jobs_mutex_);
      jobs_[job->symbol] = job;
    }
    if (llvm::Error error = kernels_.define(std::make_unique<KernelUnit>(*this, job, name), tracker)) {
      job->finish(Status::internal, llvm::toString(std::move(error)));
    } else {
      session_.lookup(
          orc::LookupKind::Static, orc::makeJITDylibSearchOrder(&kernels_), orc::SymbolLookupSet(name),
          orc::SymbolState::Ready, [job](llvm::Expected<orc::SymbolMap> found) { answer(*job, std::move(found)); },
          orc::NoDependenciesToRegister);
      job->wait();
    }
    {
      const std::scoped_lock lock(jobs_mutex_);
      jobs_.erase(job->symbol);
    }
    // After a loss the symbol's materialisation never ends; the whole session is given up instead.
    if (job->compiled->status == Status::crashed) return;
    llvm::consumeError(tracker->remove());
    session_.getSymbolStringPool()->clearDeadEntries();
  }

  std::size_t live_symbols() const {
    const std::scoped_lock lock(jobs_mutex_);
    return jobs_.size();
  }

 private:
  // One spec before it is compiled: a promise that its symbol can be had.
  class KernelUnit : public orc::MaterializationUnit {
   public:
    KernelUnit(Parts& session, std::shared_ptr<Job> job, const orc::SymbolStringPtr& name)
        : MaterializationUnit(Interface({{name, llvm::JITSymbolFlags::Exported}}, nullptr)),
          session_(session),
          job_(std::move(job)) {}
    llvm::StringRef getName() const override { return "kernel"; }

   private:
    void materialize(std::unique_ptr<orc::MaterializationResponsibility> responsibility) override {
      const std::shared_ptr<Job> job = job_;
      const OnAbandon lost([job](const std::string& reason) {
        job->finish(Status::crashed, "the compiler was lost: " + reason.substr(0, reason.find('\n')));
      });
      if (is_contained()) {
        session_.emit(*job, std::move(responsibility));
      } else {
        job->failure = Failure{.status = Status::internal, .detail = "no thread to compile on"};
        responsibility->failMaterialization();
      }
      // Only now is the compile's thread out of ORC, and the symbol may be removed.
      if (job->failure) {
        job->finish(job->failure->status, job->failure->detail);
      } else {
        job->finish(Status::ok, "ok");
      }
    }
    void discard(const orc::JITDylib&, const orc::SymbolStringPtr&) override {}

    Parts& session_;
    std::shared_ptr<Job> job_;
  };

  class Compiler : public orc::IRCompileLayer::IRCompiler {
   public:
    explicit Compiler(Parts& session) : IRCompiler({}), session_(session) {}
    llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> operator()(llvm::Module& module) override {
      const std::shared_ptr<Job> job = session_.job(module.getModuleIdentifier());
      auto order = lds_flow_of_ir(module);
      if (!order)
        return orc_error(
            *job, {.status = Status::rejected, .detail = "the barrier check cannot follow the IR: " + order.error()});
      job->ir_order = std::move(*order);
      job->private_bytes = language::declared_private_bytes(module);
      const Stopwatch stopwatch(job->compiled->times.lower_ns);
      auto object = lower_module(job->plan, module);
      if (!object) return orc_error(*job, object.error());
      return std::make_unique<llvm::SmallVectorMemoryBuffer>(std::move(*object), job->symbol,
                                                             /*RequiresNullTerminator=*/false);
    }

   private:
    Parts& session_;
  };

  // Where ORC would link into a process, a code object is linked, inspected and kept as bytes.
  class CodeObjectLayer : public orc::ObjectLayer {
   public:
    explicit CodeObjectLayer(Parts& session) : ObjectLayer(session.session_), owner_(session) {}
    void emit(std::unique_ptr<orc::MaterializationResponsibility> responsibility,
              std::unique_ptr<llvm::MemoryBuffer> object) override {
      const auto& [name, flags] = *responsibility->getSymbols().begin();
      const std::shared_ptr<Job> job = owner_.job(*name);
      Compiled& compiled = *job->compiled;
      auto failed = [&](const Failure& failure) {
        llvm::consumeError(orc_error(*job, failure));
        responsibility->failMaterialization();
      };
      {
        const Stopwatch stopwatch(compiled.times.link_ns);
        auto bytes = link_object(job->plan, std::span(object->getBufferStart(), object->getBufferSize()));
        if (!bytes) return failed(bytes.error());
        compiled.bytes = std::move(*bytes);
      }
      {
        const Stopwatch stopwatch(compiled.times.inspect_ns);
        auto facts = inspect(compiled.bytes, *job->plan.target, job->ir_order, job->private_bytes);
        if (!facts) return failed(facts.error());
        compiled.facts = *facts;
      }
      orc::SymbolMap symbols;
      symbols[name] = orc::ExecutorSymbolDef(orc::ExecutorAddr::fromPtr(&compiled), flags);
      if (llvm::Error error = responsibility->notifyResolved(symbols)) {
        return failed({.status = Status::internal, .detail = llvm::toString(std::move(error))});
      }
      if (llvm::Error error = responsibility->notifyEmitted({})) {
        return failed({.status = Status::internal, .detail = llvm::toString(std::move(error))});
      }
    }

   private:
    Parts& owner_;
  };

  void emit(Job& job, std::unique_ptr<orc::MaterializationResponsibility> responsibility) {
    auto context = std::make_unique<llvm::LLVMContext>();
    std::unique_ptr<llvm::Module> module;
    {
      const Stopwatch stopwatch(job.compiled->times.emit_ns);
      auto emitted = emit_module(job.plan, *context);
      if (!emitted) {
        job.failure = emitted.error();
        return responsibility->failMaterialization();
      }
      module = std::move(*emitted);
    }
    module->setModuleIdentifier(job.symbol);
    compile_layer_.emit(std::move(responsibility), orc::ThreadSafeModule(std::move(module), std::move(context)));
  }

  static void answer(Job& job, llvm::Expected<orc::SymbolMap> found) {
    if (found) return;
    std::string message = llvm::toString(found.takeError());
    if (!job.failure) job.failure = Failure{.status = Status::internal, .detail = std::move(message)};
    // Otherwise KernelUnit::materialize ends the job, when its thread is out of ORC.
    if (!is_contained()) job.finish(job.failure->status, job.failure->detail);
  }

  std::shared_ptr<Job> job(llvm::StringRef symbol) const {
    const std::scoped_lock lock(jobs_mutex_);
    return jobs_.at(symbol.str());
  }

  orc::ExecutionSession session_;
  orc::JITDylib& kernels_;
  CodeObjectLayer object_layer_;
  orc::IRCompileLayer compile_layer_;
  mutable std::mutex jobs_mutex_;
  std::map<std::string, std::shared_ptr<Job>> jobs_;
};

CompileSession::CompileSession() : parts_(std::make_unique<Parts>()) {}

CompileSession::~CompileSession() = default;

void CompileSession::compile(const std::shared_ptr<Job>& job) { parts_->compile(job); }

std::size_t CompileSession::live_symbols() const { return parts_->live_symbols(); }

}  // namespace wavejit::codegen
