// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/service.h"

#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/IRCompileLayer.h>
#include <llvm/ExecutionEngine/Orc/Layer.h>
#include <llvm/ExecutionEngine/Orc/TaskDispatch.h>
#include <llvm/ExecutionEngine/Orc/ThreadSafeModule.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <format>
#include <map>
#include <mutex>
#include <optional>

#include "codegen/barrier_order_ir.h"
#include "codegen/containment.h"
#include "codegen/inspection.h"
#include "codegen/isolated.h"
#include "codegen/language/private_memory.h"
#include "codegen/pipeline.h"

namespace wavejit::codegen {
namespace {

namespace orc = llvm::orc;

// Every lost compile keeps its memory and a thread. After this many the process is asked to compile isolated instead.
constexpr unsigned most_parked_threads = 8;

class Stopwatch {
 public:
  explicit Stopwatch(std::uint64_t& nanoseconds) : nanoseconds_(nanoseconds) {}
  ~Stopwatch() {
    const auto elapsed = std::chrono::steady_clock::now() - start_;
    nanoseconds_ += static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count());
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  std::uint64_t& nanoseconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// One compile under way, shared by everyone who asked for it.
struct Job {
  std::string symbol;
  Plan plan;
  std::optional<LdsFlowGraph> ir_order;
  int private_bytes = 0;  // declared
  std::shared_ptr<Compiled> compiled = std::make_shared<Compiled>();

  // Set by whoever ends the job: the compile thread when it has left ORC, or its loss.
  void finish(Status status, std::string detail) {
    const std::scoped_lock lock(mutex_);
    if (finished_) return;
    compiled->status = status;
    compiled->detail = std::move(detail);
    finished_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return finished_; });
  }

  // The first reason why the job failed; steps after it are ORC telling us that it did.
  std::optional<Failure> failure;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool finished_ = false;
};

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

class Service::Session {
 public:
  Session()
      : session_(std::make_unique<NoExecutor>()),
        kernels_(session_.createBareJITDylib("kernels")),
        object_layer_(*this),
        compile_layer_(session_, object_layer_, std::make_unique<Compiler>(*this)) {
    session_.setErrorReporter([](llvm::Error error) { llvm::consumeError(std::move(error)); });
  }
  ~Session() { llvm::consumeError(session_.endSession()); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Defines the job's symbol, looks it up, waits for its end and removes it again.
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
    KernelUnit(Session& session, std::shared_ptr<Job> job, const orc::SymbolStringPtr& name)
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

    Session& session_;
    std::shared_ptr<Job> job_;
  };

  class Compiler : public orc::IRCompileLayer::IRCompiler {
   public:
    explicit Compiler(Session& session) : IRCompiler({}), session_(session) {}
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
    Session& session_;
  };

  // Where ORC would link into a process, a code object is linked, inspected and kept as bytes.
  class CodeObjectLayer : public orc::ObjectLayer {
   public:
    explicit CodeObjectLayer(Session& session) : ObjectLayer(session.session_), owner_(session) {}
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
    Session& owner_;
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

struct Service::State {
  ServiceOptions options;
  std::mutex mutex;
  std::shared_ptr<Session> session;
  std::map<std::string, std::shared_ptr<Job>> jobs;  // by canonical text
  std::uint64_t next_symbol = 0;
  unsigned abandoned = 0;

  std::shared_ptr<Session> current_session() {
    const std::scoped_lock lock(mutex);
    if (!session) session = std::make_shared<Session>();
    return session;
  }

  // The parked thread may be anywhere inside the session, which therefore lives as long as the process.
  void abandon(const std::shared_ptr<Session>& lost) {
    static std::mutex immortal_mutex;
    static auto* const immortal = new std::vector<std::shared_ptr<Session>>;
    const std::scoped_lock lock(mutex);
    if (session == lost) session.reset();
    ++abandoned;
    const std::scoped_lock immortal_lock(immortal_mutex);
    immortal->push_back(lost);
  }

  void run(const std::shared_ptr<Job>& job, const Request& request) {
    // comgr swaps the process's signal handlers around each action and keeps a cache of its own: never in a host.
    const bool in_this_process =
        options.containment == ServiceOptions::Containment::inside_isolated ||
        (options.containment == ServiceOptions::Containment::inprocess && job->plan.lowering == Lowering::llvm);
    if (!in_this_process) {
      *job->compiled =
          isolated::compile(request, {.program = options.compiler_program, .time_limit_ms = options.time_limit_ms});
      return job->finish(job->compiled->status, job->compiled->detail);
    }
    if (parked_threads() >= most_parked_threads) {
      return job->finish(Status::crashed, std::format("{} compiles were lost in this process; compile isolated instead",
                                                      most_parked_threads));
    }
    const std::shared_ptr<Session> here = current_session();
    here->compile(job);
    if (job->compiled->status == Status::crashed) abandon(here);
  }
};

Service::Service(ServiceOptions options) : state_(std::make_unique<State>()) { state_->options = std::move(options); }

Service::~Service() = default;

std::shared_ptr<const Compiled> Service::compile(const Request& request) {
  auto planned = plan(request);
  if (!planned) {
    auto refused = std::make_shared<Compiled>();
    refused->status = planned.error().status;
    refused->detail = planned.error().detail;
    return refused;
  }
  // Canonical text: words in another order are the same kernel.
  const std::string key =
      request.source == Request::Source::spec
          ? planned->spec.text()
          : std::format("{} {} {}", families::to_text(request.lowering), planned->target->id, request.text);
  std::shared_ptr<Job> job;
  bool leader = false;
  {
    const std::scoped_lock lock(state_->mutex);
    std::shared_ptr<Job>& slot = state_->jobs[key];
    if (!slot) {
      leader = true;
      slot = std::make_shared<Job>();
      slot->symbol = std::format("kernel {}", state_->next_symbol++);
      slot->plan = std::move(*planned);
      slot->plan.lowering_options = state_->options.lowering;
    }
    job = slot;
  }
  if (!leader) {
    job->wait();
    return job->compiled;
  }
  state_->run(job, request);
  const std::scoped_lock lock(state_->mutex);
  state_->jobs.erase(key);
  return job->compiled;
}

Compiled Service::emit_ir(const Request& request) {
  Compiled result;
  const std::string lost = run_contained([&] {
    auto planned = plan(request);
    if (!planned) {
      result.status = planned.error().status;
      result.detail = planned.error().detail;
      return;
    }
    const Stopwatch stopwatch(result.times.emit_ns);
    llvm::LLVMContext context;
    auto module = emit_module(*planned, context);
    if (!module) {
      result.status = module.error().status;
      result.detail = module.error().detail;
      return;
    }
    std::string text;
    llvm::raw_string_ostream stream(text);
    (*module)->print(stream, nullptr);
    result.bytes.assign(text.begin(), text.end());
    result.status = Status::ok;
    result.detail = "ok";
  });
  if (!lost.empty()) {
    result.status = Status::crashed;
    result.detail = "the emitter was lost: " + lost;
  }
  return result;
}

Compiled Service::disassemble(std::span<const unsigned char> code_object) {
  Compiled result;
  const std::string lost = run_contained([&] {
    auto text = disassembly_text(code_object);
    if (!text) {
      result.status = text.error().status;
      result.detail = text.error().detail;
      return;
    }
    result.bytes.assign(text->begin(), text->end());
    result.status = Status::ok;
    result.detail = "ok";
  });
  if (!lost.empty()) {
    result.status = Status::crashed;
    result.detail = "the disassembler was lost: " + lost;
  }
  return result;
}

unsigned Service::abandoned_sessions() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->abandoned;
}

std::size_t Service::live_symbols() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->session ? state_->session->live_symbols() : 0;
}

}  // namespace wavejit::codegen
