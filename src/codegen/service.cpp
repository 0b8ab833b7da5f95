// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/service.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>

#include <format>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "codegen/compile_session.h"
#include "codegen/containment.h"
#include "codegen/inspection.h"
#include "codegen/isolated.h"
#include "codegen/pipeline.h"
#include "codegen/stopwatch.h"

namespace wavejit::codegen {
namespace {

// Every lost compile keeps its memory and a thread. After this many the process is asked to compile isolated instead.
constexpr unsigned most_parked_threads = 8;

}  // namespace

struct Service::State {
  ServiceOptions options;
  std::mutex mutex;
  std::shared_ptr<CompileSession> session;
  std::map<std::string, std::shared_ptr<Job>> jobs;  // by canonical text
  std::uint64_t next_symbol = 0;
  unsigned abandoned = 0;

  std::shared_ptr<CompileSession> current_session() {
    const std::scoped_lock lock(mutex);
    if (!session) session = std::make_shared<CompileSession>();
    return session;
  }

  // The parked thread may be anywhere inside the session, which therefore lives as long as the process.
  void abandon(const std::shared_ptr<CompileSession>& lost) {
    static std::mutex immortal_mutex;
    static auto* const immortal = new std::vector<std::shared_ptr<CompileSession>>;
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
    const std::shared_ptr<CompileSession> here = current_session();
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
