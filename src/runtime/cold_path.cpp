// The part of an engine that a hot call never sees: a kernel that is not loaded is refused, or made and told about.
#include <unistd.h>

#include <string>
#include <utility>

#include "runtime/call_descriptor.h"
#include "runtime/engine.h"
#include "runtime/guarded_tell.h"

namespace wavejit::runtime {
namespace {

std::string line_for(const AttentionProblem& problem, const wavejit_attention_forward_arguments& call) {
  ProblemDescriptor descriptor = describe_call(problem, call);
  descriptor.scale.clear();  // no part of a kernel
  return to_text(descriptor);
}

}  // namespace

[[gnu::cold, gnu::noinline]] Result<Resolved> Engine::miss(const AttentionShape& shape, const AttentionProblem& problem,
                                                           const wavejit_attention_forward_arguments& call,
                                                           hip_abi::hipStream_t stream, Phases& phases) {
  const std::string line = line_for(problem, call);
  // What no kernel does is told as such, in captures and sealed engines too: preparing it would not help.
  if (!choose_route(shape, target_, toggles_)) return obtain(shape, line, phases);
  if (sealed()) {
    statistics_.refused_sealed.fetch_add(1);
    miss_log_.note(shape.code(), line);
    return fail(WAVEJIT_SEALED, "the engine is sealed and no kernel is loaded for \"" + line +
                                    "\"; accepted: calls that wavejit_prepare was given such a line for before");
  }
  if (is_capturing(device_, stream)) {
    statistics_.refused_capturing.fetch_add(1);
    miss_log_.note(shape.code(), line);
    return fail(WAVEJIT_NOT_READY, "the stream is being captured and no kernel is loaded for \"" + line +
                                       "\"; accepted: calls that wavejit_prepare was given such a line for before, or "
                                       "that were made once outside a capture");
  }
  return obtain(shape, line, phases);
}

Result<Resolved> Engine::obtain(const AttentionShape& shape, const std::string& line, Phases& phases) {
  const std::uint64_t routed = phases.route_ns;
  Result<Resolved> resolved = resolver_.resolve(shape, phases);
  // Only the thread that did the work has times to show; others waited for it, or the failure was known.
  if (phases.route_ns == routed) return resolved;
  statistics_.compile_ns.fetch_add(phases.emit_ns + phases.lower_ns + phases.link_ns + phases.inspect_ns);
  statistics_.load_ns.fetch_add(phases.load_ns);
  if (resolved ? resolved->origin == WAVEJIT_ORIGIN_COMPILED : resolved.error().status == WAVEJIT_NO_COMPILER)
    miss_log_.note(shape.code(), line);
  if (resolved) {
    records_.add({.spec_text = resolved->kernel->spec_text,
                  .key = resolved->kernel->key,
                  .descriptor = line,
                  .origin = resolved->origin,
                  .thread = static_cast<std::uint64_t>(::gettid()),
                  .phases = phases});
  }
  if (hooks_.on_compile != nullptr) tell_compile(shape, line, resolved, phases);
  return resolved;
}

void Engine::tell_compile(const AttentionShape& shape, const std::string& line, const Result<Resolved>& resolved,
                          const Phases& phases) {
  std::string spec_text;
  std::string key;
  if (resolved) {
    spec_text = resolved->kernel->spec_text;
    key = resolved->kernel->key;
  } else if (const auto route = choose_route(shape, target_, toggles_)) {
    spec_text = to_text(route->spec);
    if (const auto found = source_.key_of(route->spec)) key = found->hex();
  }
  wavejit_compile_event event{};
  event.size = sizeof event;
  event.descriptor = line.c_str();
  event.kernel_spec = spec_text.c_str();
  event.key = key.c_str();
  event.origin = resolved ? resolved->origin : WAVEJIT_ORIGIN_NONE;
  event.status = resolved ? WAVEJIT_OK : resolved.error().status;
  event.detail = resolved ? nullptr : resolved.error().detail.c_str();
  event.thread = static_cast<std::uint64_t>(::gettid());
  event.route_ns = phases.route_ns;
  event.lookup_ns = phases.lookup_ns;
  event.emit_ns = phases.emit_ns;
  event.lower_ns = phases.lower_ns;
  event.link_ns = phases.link_ns;
  event.inspect_ns = phases.inspect_ns;
  event.publish_ns = phases.publish_ns;
  event.load_ns = phases.load_ns;
  tell_guarded(*logger_, "options.on_compile", [&] { hooks_.on_compile(hooks_.on_compile_context, &event); });
}

}  // namespace wavejit::runtime
