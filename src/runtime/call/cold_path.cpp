// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The part of an engine that a hot call never sees: kernels that are not loaded are refused, or resolved and told
// about.
#include <unistd.h>

#include <exception>
#include <string>
#include <utility>

#include "runtime/call/engine.h"
#include "runtime/kernels/guarded_tell.h"

namespace wavejit::runtime {

[[gnu::cold, gnu::noinline]] Result<void> Engine::cold_call(families::Call& call, hip_abi::hipStream_t stream) {
  Phases phases;
  const Resolution resolution = miss(call, stream, phases);
  if (!resolution.kernels) return std::unexpected(resolution.kernels.error());
  if (auto launched = launch_call(**resolution.kernels, call, stream); !launched) return launched;
  load_for_captures_behind(call);
  return {};
}

bool Engine::may_load(const families::Call& call, hip_abi::hipStream_t stream) const {
  return !sealed() && call.when_missing() == families::Call::WhenMissing::make_them && !is_capturing(stream);
}

void Engine::load_behind(const families::Call& call) {
  if (!sealed() && !is_loaded(call)) background_.add(call.shape(), call.descriptor(families::Call::Line::of_kernels));
}

// Nothing can be compiled while a stream is captured, and a capture may need other kernels than the calls before it: it
// may lack a workspace, or find no counters left. So the first call has those compiled in the background, unless its
// caller said how many runs or launches there are.
void Engine::load_for_captures_behind(families::Call& call) {
  using Way = families::Call::Way;
  const bool may_go_whole = call.may_go_whole && call.chose_to_split;
  if (call.chose_one_launch) {
    call.take(Way::two_launches);
    load_behind(call);
  }
  if (may_go_whole) {
    call.take(Way::whole);
    load_behind(call);
  }
}

// If nothing may be compiled now, kernels that leave the keys whole do as well, should they be loaded: then the call
// goes that way. Null: it goes as it was planned.
const LoadedKernels* Engine::whole_instead(families::Call& call, hip_abi::hipStream_t stream) {
  if (!call.may_go_whole || may_load(call, stream)) return nullptr;
  const families::Call::Way before = call.way;  // two launches, for a capture without counters
  call.take(families::Call::Way::whole);
  const LoadedKernels* kernels = resolver_.find(call.shape());
  if (kernels == nullptr) call.take(before);
  return kernels;
}

// The line says what is launched.
[[gnu::cold, gnu::noinline]] void Engine::log_call(families::Call& call, hip_abi::hipStream_t stream) {
  if (!is_loaded(call)) (void)whole_instead(call, stream);
  logger_->write(LogLevel::debug, "call " + call.descriptor(families::Call::Line::whole));
}

[[gnu::cold, gnu::noinline]] Resolution Engine::miss(families::Call& call, hip_abi::hipStream_t stream,
                                                     Phases& phases) {
  if (const LoadedKernels* kernels = whole_instead(call, stream))
    return {.kernels = kernels, .origin = WAVEJIT_ORIGIN_MEMORY};
  const families::Shape& shape = call.shape();
  const std::string line = call.descriptor(families::Call::Line::of_kernels);
  const auto refused = [&](std::atomic<std::uint64_t>& count, wavejit_status status, const std::string& why) {
    count.fetch_add(1);
    miss_log_.note(shape, line);
    return Resolution{.kernels = fail(status, why)};
  };
  const bool is_sealed = sealed();
  // A compile that has failed before is answered with its reason, also if the caller forbids compiling: to prepare the
  // line would not help.
  const auto wants = call.when_missing();
  const bool forbids = wants != families::Call::WhenMissing::make_them && !resolver_.known_failure(shape);
  const bool capturing = !is_sealed && !forbids && is_capturing(stream);
  if (!is_sealed && !forbids && !capturing) return resolve_and_tell(shape, line, phases, process_helpers());
  // A shape without a route is refused with the reason, in captures and sealed engines, too. Nothing is compiled here:
  // to resolve it asks for the same route.
  if (!shape.family->route(shape, target_, toggles_)) return resolve_and_tell(shape, line, phases, process_helpers());
  if (is_sealed) {
    return refused(statistics_.refused_sealed, WAVEJIT_SEALED,
                   "the engine is sealed and no kernel is loaded for \"" + line +
                       "\"; give wavejit_prepare this line before wavejit_engine_seal");
  }
  if (forbids) {
    const bool behind = wants == families::Call::WhenMissing::refuse_and_make_them_behind;
    if (behind) background_.add(shape, line);
    return refused(statistics_.refused_no_compile, WAVEJIT_NOT_READY,
                   "flags have WAVEJIT_NO_COMPILE and no kernel is loaded for \"" + line + "\"" +
                       (behind ? "; it is being made meanwhile" : "") +
                       "; give wavejit_prepare this line first, or call without the flag");
  }
  // It may be under way in the background, for an earlier call.
  if (background_.wait_for(shape)) {
    if (const LoadedKernels* kernels = resolver_.find(shape))
      return {.kernels = kernels, .origin = WAVEJIT_ORIGIN_MEMORY};
  }
  return refused(statistics_.refused_capturing, WAVEJIT_NOT_READY,
                 "the stream is being captured and no kernel is loaded for \"" + line +
                     "\"; give wavejit_prepare this line before the capture, or make the call once outside it");
}

void Engine::prepare_behind(const families::Shape& shape, const std::string& line) noexcept {
  try {
    if (sealed() || resolver_.find(shape) != nullptr) return;
    statistics_.prepared.fetch_add(1);
    Phases phases;
    (void)resolve_and_tell(shape, line, phases, process_helpers());
  } catch (const std::exception& error) {  // no memory: a later call asks again
    logger_->write(LogLevel::warning, error.what());
  }
}

Resolution Engine::resolve_and_tell(const families::Shape& shape, const std::string& line, Phases& phases,
                                    Helpers& helpers) {
  Resolution resolution = resolver_.resolve(shape, phases, helpers);
  if (!resolution.worked) return resolution;
  statistics_.compile_ns.fetch_add(resolution.work.compile_ns());
  statistics_.load_ns.fetch_add(resolution.work.load_ns);
  const auto& kernels = resolution.kernels;
  // Calls may be captured from now on.
  if (kernels && shape.family->counts_arrivals(shape)) workspaces_.reserve_counters();
  if (kernels ? resolution.origin == WAVEJIT_ORIGIN_COMPILED : kernels.error().status == WAVEJIT_NO_COMPILER)
    miss_log_.note(shape, line);
  if (kernels) {
    records_.add({.spec_text = (*kernels)->first().spec_text,
                  .key = (*kernels)->first().key,
                  .descriptor = line,
                  .origin = resolution.origin,
                  .thread = static_cast<std::uint64_t>(::gettid()),
                  .phases = resolution.work});
  }
  if (hooks_.on_compile != nullptr) tell_compile(line, resolution, phases);
  return resolution;
}

void Engine::tell_compile(const std::string& line, const Resolution& resolution, const Phases& phases) {
  const auto& kernels = resolution.kernels;
  std::string spec_text;
  std::string key;
  if (kernels) {
    spec_text = (*kernels)->first().spec_text;
    key = (*kernels)->first().key;
  } else if (!resolution.first.empty()) {
    spec_text = resolution.first.text();
    if (const auto found = source_.key_of(resolution.first)) key = found->hex();
  }
  wavejit_compile_event event{};
  event.size = sizeof event;
  event.descriptor = line.c_str();
  event.kernel_spec = spec_text.c_str();
  event.key = key.c_str();
  event.origin = kernels ? resolution.origin : WAVEJIT_ORIGIN_NONE;
  event.status = kernels ? WAVEJIT_OK : kernels.error().status;
  event.detail = kernels ? nullptr : kernels.error().detail.c_str();
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
