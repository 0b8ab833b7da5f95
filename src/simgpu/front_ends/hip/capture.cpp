// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/hip/capture.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "hip_abi/hip_functions.h"
#include "simgpu/front_ends/hip/front.h"

namespace wavejit::simgpu::hip_front {

using namespace hip_abi;

// One sequence: the stream that began it, those that joined it, and the graph that it fills. Under graph_mutex().
class Capture {
 public:
  struct Member {
    std::shared_ptr<Stream> stream;
    std::vector<GraphNode*> last;  // what the stream's next node depends on
  };

  Capture(std::shared_ptr<Stream> origin, hipStreamCaptureMode mode, std::uint64_t thread, std::uint64_t id)
      : mode(mode), thread(thread), id(id), graph(std::make_shared<Graph>()) {
    members.push_back(std::make_unique<Member>(Member{std::move(origin), {}}));
  }

  const std::shared_ptr<Stream>& origin() const { return members.front()->stream; }
  Member* member(const std::shared_ptr<Stream>& stream) {
    for (const auto& one : members)
      if (one->stream == stream) return one.get();
    return nullptr;
  }
  // A fork whose work nobody waits for would be lost with the capture.
  bool joined() const {
    const auto& last = members.front()->last;
    return std::ranges::all_of(graph->leaves(),
                               [&](GraphNode* leaf) { return std::ranges::find(last, leaf) != last.end(); });
  }

  hipStreamCaptureMode mode;
  std::uint64_t thread;
  std::uint64_t id;
  std::shared_ptr<Graph> graph;
  bool invalidated = false;
  std::vector<std::unique_ptr<Member>> members;  // the origin first; unique: addresses are handed out
};

namespace {

// Under graph_mutex(), except for the number, which says whether there is anything to lock for.
struct Captures {
  std::atomic<int> count = 0;
  std::vector<std::shared_ptr<Capture>> open;
  std::uint64_t last_id = 0;
};
Captures& captures() {
  static auto* instance = new Captures;
  return *instance;
}

bool nobody_captures() { return captures().count.load(std::memory_order_acquire) == 0; }

std::uint64_t this_thread() {
  static std::atomic<std::uint64_t> last = 0;
  thread_local const std::uint64_t mine = ++last;
  return mine;
}

// hipThreadExchangeStreamCaptureMode: how far a thread's unsafe calls reach.
thread_local hipStreamCaptureMode thread_mode = hipStreamCaptureModeGlobal;

bool is_null_stream(const std::shared_ptr<Stream>& stream) { return stream == stream->context().null_stream(); }

std::shared_ptr<Capture> capture_of(const std::shared_ptr<Stream>& stream) {
  for (const auto& capture : captures().open)
    if (capture->member(stream) != nullptr) return capture;
  return nullptr;
}

// True if there was one.
template <typename Which>
bool invalidate(Which which) {
  bool any = false;
  for (const auto& capture : captures().open) {
    if (!which(*capture)) continue;
    capture->invalidated = true;
    any = true;
  }
  return any;
}
bool invalidate_all() {
  return invalidate([](const Capture&) { return true; });
}
// Those that an unsafe call of this thread breaks.
bool invalidate_reachable() {
  if (thread_mode == hipStreamCaptureModeRelaxed) return false;
  return invalidate([](const Capture& capture) {
    const bool own = capture.thread == this_thread() && capture.mode != hipStreamCaptureModeRelaxed;
    return own || (thread_mode == hipStreamCaptureModeGlobal && capture.mode == hipStreamCaptureModeGlobal);
  });
}

bool a_blocking_stream_captures() {
  return std::ranges::any_of(captures().open, [](const auto& capture) {
    return !capture->invalidated &&
           std::ranges::any_of(capture->members, [](const auto& member) { return member->stream->blocking(); });
  });
}

void close(const std::shared_ptr<Capture>& capture) {
  std::erase(captures().open, capture);
  captures().count.store(static_cast<int>(captures().open.size()), std::memory_order_release);
}

void append(std::vector<GraphNode*>& to, const std::vector<GraphNode*>& nodes) {
  for (GraphNode* node : nodes)
    if (std::ranges::find(to, node) == to.end()) to.push_back(node);
}

hipError_t begin(hipStream_t handle, hipStreamCaptureMode mode) {
  if (handle == nullptr || handle == stream_legacy()) return hipErrorStreamCaptureUnsupported;
  if (mode > hipStreamCaptureModeRelaxed) return hipErrorInvalidValue;
  const auto stream = find_stream(handle);
  if (stream == nullptr) return current_context() == nullptr ? hipErrorNoDevice : hipErrorContextIsDestroyed;
  const std::scoped_lock lock(graph_mutex());
  if (capture_of(stream) != nullptr) return hipErrorIllegalState;
  Captures& all = captures();
  all.open.push_back(std::make_shared<Capture>(stream, mode, this_thread(), ++all.last_id));
  remember_graph(all.open.back()->graph);
  all.count.store(static_cast<int>(all.open.size()), std::memory_order_release);
  return hipSuccess;
}

hipError_t end(hipStream_t handle, hipGraph_t* graph) {
  if (graph == nullptr) return hipErrorInvalidValue;
  *graph = nullptr;
  if (handle == nullptr || handle == stream_legacy()) return hipErrorIllegalState;
  const auto stream = find_stream(handle);
  if (stream == nullptr) return current_context() == nullptr ? hipErrorNoDevice : hipErrorContextIsDestroyed;
  const std::scoped_lock lock(graph_mutex());
  const auto capture = capture_of(stream);
  if (capture == nullptr) return hipErrorIllegalState;
  if (capture->origin() != stream) return hipErrorStreamCaptureUnmatched;
  if (capture->mode != hipStreamCaptureModeRelaxed && capture->thread != this_thread())
    return hipErrorStreamCaptureWrongThread;
  close(capture);
  if (!capture->invalidated && capture->joined()) {
    *graph = capture->graph->handle();
    return hipSuccess;
  }
  forget_graph(capture->graph->handle());
  return capture->invalidated ? hipErrorStreamCaptureInvalidated : hipErrorStreamCaptureUnjoined;
}

struct CaptureInfo {
  hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
  std::uint64_t id = 0;
  hipGraph_t graph = nullptr;
  const hipGraphNode_t* dependencies = nullptr;
  std::size_t dependency_count = 0;
};

hipError_t info(hipStream_t handle, CaptureInfo& info) {
  const auto stream = find_stream(handle);
  if (stream == nullptr) return current_context() == nullptr ? hipErrorNoDevice : hipErrorContextIsDestroyed;
  if (nobody_captures()) return hipSuccess;
  const std::scoped_lock lock(graph_mutex());
  if (is_null_stream(stream)) return a_blocking_stream_captures() ? hipErrorStreamCaptureImplicit : hipSuccess;
  const auto capture = capture_of(stream);
  if (capture == nullptr) return hipSuccess;
  info.status = capture->invalidated ? hipStreamCaptureStatusInvalidated : hipStreamCaptureStatusActive;
  info.id = capture->id;
  if (capture->invalidated) return hipSuccess;
  info.graph = capture->graph->handle();
  const auto& last = capture->member(stream)->last;
  info.dependencies = reinterpret_cast<const hipGraphNode_t*>(last.data());
  info.dependency_count = last.size();
  return hipSuccess;
}

}  // namespace

hipError_t refuse_unsafe_call() {
  if (nobody_captures()) return hipSuccess;
  const std::scoped_lock lock(graph_mutex());
  return invalidate_reachable() ? hipErrorStreamCaptureUnsupported : hipSuccess;
}

hipError_t refuse_device_wait() {
  if (nobody_captures()) return hipSuccess;
  const std::scoped_lock lock(graph_mutex());
  return invalidate_all() ? hipErrorStreamCaptureUnsupported : hipSuccess;
}

hipError_t refuse_null_stream_wait() {
  if (nobody_captures()) return hipSuccess;
  const std::scoped_lock lock(graph_mutex());
  return invalidate_all() ? hipErrorStreamCaptureImplicit : hipSuccess;
}

hipError_t refuse_stream_wait(const std::shared_ptr<Stream>& stream) {
  if (nobody_captures()) return hipSuccess;
  const std::scoped_lock lock(graph_mutex());
  if (is_null_stream(stream)) {
    if (!a_blocking_stream_captures()) return hipSuccess;
    invalidate_all();
    return hipErrorStreamCaptureImplicit;
  }
  if (const auto capture = capture_of(stream)) {
    capture->invalidated = true;
    return hipErrorStreamCaptureUnsupported;
  }
  return invalidate_reachable() ? hipErrorStreamCaptureUnsupported : hipSuccess;
}

hipError_t refuse_in_capture(const std::shared_ptr<Stream>& stream) {
  if (nobody_captures()) return hipSuccess;
  const std::scoped_lock lock(graph_mutex());
  if (is_null_stream(stream)) {
    if (!a_blocking_stream_captures()) return hipSuccess;
    invalidate_all();
    return hipErrorStreamCaptureImplicit;
  }
  const auto capture = capture_of(stream);
  if (capture == nullptr) return hipSuccess;
  capture->invalidated = true;
  return hipErrorStreamCaptureUnsupported;
}

std::optional<hipError_t> capture_work(const std::shared_ptr<Stream>& stream, NodeWork work) {
  if (nobody_captures()) return std::nullopt;
  const std::scoped_lock lock(graph_mutex());
  if (is_null_stream(stream)) {
    if (!a_blocking_stream_captures()) return std::nullopt;
    invalidate_all();
    return hipErrorStreamCaptureImplicit;
  }
  const auto capture = capture_of(stream);
  if (capture == nullptr) return std::nullopt;
  if (capture->invalidated) return hipErrorStreamCaptureInvalidated;
  Capture::Member& member = *capture->member(stream);
  member.last = {&capture->graph->add(std::move(work), member.last)};
  return hipSuccess;
}

std::optional<CapturedPlace> captured_place(const std::shared_ptr<Stream>& stream) {
  if (nobody_captures()) return std::nullopt;
  const std::scoped_lock lock(graph_mutex());
  const auto capture = capture_of(stream);
  if (capture == nullptr) return std::nullopt;
  return CapturedPlace{capture, capture->member(stream)->last};
}

std::optional<hipError_t> capture_wait(const std::shared_ptr<Stream>& stream, const CapturedPlace* place,
                                       bool recorded) {
  if (nobody_captures()) return std::nullopt;
  const std::scoped_lock lock(graph_mutex());
  const auto own = capture_of(stream);
  auto theirs = place != nullptr ? place->capture.lock() : nullptr;
  // An event of a capture that has ended is as good as never recorded.
  if (theirs != nullptr && std::ranges::find(captures().open, theirs) == captures().open.end()) theirs = nullptr;
  if (own == nullptr && theirs == nullptr) return std::nullopt;
  if ((own != nullptr && own->invalidated) || (theirs != nullptr && theirs->invalidated))
    return hipErrorStreamCaptureInvalidated;
  if (theirs == nullptr) {
    if (place != nullptr || !recorded) return hipSuccess;
    own->invalidated = true;
    return hipErrorStreamCaptureIsolation;
  }
  if (is_null_stream(stream)) {
    invalidate_all();
    return hipErrorStreamCaptureImplicit;
  }
  if (own != nullptr && own != theirs) {
    own->invalidated = theirs->invalidated = true;
    return hipErrorStreamCaptureMerge;
  }
  if (own == nullptr) theirs->members.push_back(std::make_unique<Capture::Member>(Capture::Member{stream, {}}));
  append(theirs->member(stream)->last, place->nodes);
  return hipSuccess;
}

hipError_t refuse_captured_event(const CapturedPlace& place) {
  const std::scoped_lock lock(graph_mutex());
  const auto capture = place.capture.lock();
  if (capture == nullptr || std::ranges::find(captures().open, capture) == captures().open.end()) return hipSuccess;
  capture->invalidated = true;
  return hipErrorCapturedEvent;
}

void abandon_capture(const std::shared_ptr<Stream>& stream) {
  if (nobody_captures()) return;
  const std::scoped_lock lock(graph_mutex());
  const auto capture = capture_of(stream);
  if (capture == nullptr) return;
  if (capture->origin() == stream) {
    close(capture);
    forget_graph(capture->graph->handle());
  } else {
    std::erase_if(capture->members, [&](const auto& member) { return member->stream == stream; });
  }
}

}  // namespace wavejit::simgpu::hip_front

namespace wavejit::hip_abi {

using namespace simgpu::hip_front;

hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode) { return finish(begin(stream, mode)); }
hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t* graph) { return finish(end(stream, graph)); }

hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus* status) {
  if (status == nullptr) return finish(hipErrorInvalidValue);
  CaptureInfo found;
  const hipError_t error = info(stream, found);
  if (error == hipSuccess) *status = found.status;
  return finish(error);
}

hipError_t hipStreamGetCaptureInfo(hipStream_t stream, hipStreamCaptureStatus* status, unsigned long long* id) {
  if (status == nullptr) return finish(hipErrorInvalidValue);
  CaptureInfo found;
  const hipError_t error = info(stream, found);
  if (error != hipSuccess) return finish(error);
  *status = found.status;
  if (id != nullptr) *id = found.id;
  return finish(hipSuccess);
}

hipError_t hipStreamGetCaptureInfo_v2(hipStream_t stream, hipStreamCaptureStatus* status, unsigned long long* id,
                                      hipGraph_t* graph, const hipGraphNode_t** dependencies,
                                      std::size_t* dependency_count) {
  if (status == nullptr) return finish(hipErrorInvalidValue);
  CaptureInfo found;
  const hipError_t error = info(stream, found);
  if (error != hipSuccess) return finish(error);
  *status = found.status;
  if (id != nullptr) *id = found.id;
  if (graph != nullptr) *graph = found.graph;
  if (dependencies != nullptr) *dependencies = found.dependencies;
  if (dependency_count != nullptr) *dependency_count = found.dependency_count;
  return finish(hipSuccess);
}

hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode* mode) {
  if (mode == nullptr || *mode > hipStreamCaptureModeRelaxed) return finish(hipErrorInvalidValue);
  std::swap(thread_mode, *mode);
  return finish(hipSuccess);
}

}  // namespace wavejit::hip_abi
