// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

#include "hip_abi/hip_functions.h"
#include "simgpu/front_ends/hip/capture.h"
#include "simgpu/front_ends/hip/event.h"
#include "simgpu/front_ends/hip/front.h"

namespace wavejit::simgpu::hip_front {

using namespace hip_abi;

namespace {

constexpr unsigned release_flags = hipEventReleaseToDevice | hipEventReleaseToSystem | hipEventDisableSystemFence;
constexpr unsigned all_flags = hipEventBlockingSync | hipEventDisableTiming | hipEventInterprocess | release_flags;

struct Event {
  explicit Event(unsigned with_flags, int with_ordinal) : flags(with_flags), ordinal(with_ordinal) {}

  unsigned flags;
  int ordinal;  // of the device that was current when it was created
  std::mutex mutex;
  std::shared_ptr<Stream> stream;  // null until recorded
  Stream::Ticket ticket = 0;
  std::shared_ptr<std::atomic<std::int64_t>> nanoseconds;
  std::optional<CapturedPlace> captured;  // last recorded in a capture

  struct Record {
    std::shared_ptr<Stream> stream;
    Stream::Ticket ticket = 0;
    std::shared_ptr<std::atomic<std::int64_t>> nanoseconds;
    std::optional<CapturedPlace> captured;
  };
  Record record() {
    const std::scoped_lock lock(mutex);
    return {stream, ticket, nanoseconds, captured};
  }
};

struct Events {
  std::shared_mutex mutex;
  std::unordered_map<hipEvent_t, std::shared_ptr<Event>> known;
};
Events& events() {
  static auto* instance = new Events;  // like the streams' registry: used until the very end
  return *instance;
}

std::shared_ptr<Event> find_event(hipEvent_t handle) {
  const std::shared_lock lock(events().mutex);
  const auto found = events().known.find(handle);
  return found == events().known.end() ? nullptr : found->second;
}

hipError_t create(hipEvent_t* handle, unsigned flags) {
  const bool alone = (flags & hipEventInterprocess) != 0 && (flags & hipEventDisableTiming) == 0;
  if (handle == nullptr || (flags & ~all_flags) != 0 || std::popcount(flags & release_flags) > 1 || alone) {
    return hipErrorInvalidValue;
  }
  if (current_context() == nullptr) return hipErrorNoDevice;
  auto event = std::make_shared<Event>(flags, current_ordinal());
  *handle = reinterpret_cast<hipEvent_t>(event.get());
  const std::unique_lock lock(events().mutex);
  events().known.emplace(*handle, std::move(event));
  return hipSuccess;
}

hipError_t record(hipEvent_t handle, hipStream_t stream_handle, unsigned flags) {
  if (flags != hipEventRecordDefault && flags != hipEventRecordExternal) return hipErrorInvalidValue;
  const auto stream = find_stream(stream_handle);
  if (stream == nullptr) return current_context() == nullptr ? hipErrorNoDevice : hipErrorContextIsDestroyed;
  // Event nodes are not simulated.
  if (flags == hipEventRecordExternal && captured_place(stream)) return hipErrorNotSupported;
  return record_event(handle, stream);
}

// Before the host waits for an event, or asks for it.
hipError_t refuse_wait(const Event::Record& recorded) {
  if (recorded.captured) return refuse_captured_event(*recorded.captured);
  return recorded.stream == nullptr ? hipSuccess : refuse_stream_wait(recorded.stream);
}

hipError_t wait_in_stream(hipStream_t stream_handle, hipEvent_t handle, unsigned flags) {
  const auto event = find_event(handle);
  if (event == nullptr) return hipErrorInvalidHandle;
  if (flags != hipEventWaitDefault && flags != hipEventWaitExternal) return hipErrorInvalidValue;
  const auto stream = find_stream(stream_handle);
  if (stream == nullptr) return current_context() == nullptr ? hipErrorNoDevice : hipErrorContextIsDestroyed;
  const Event::Record recorded = event->record();
  const CapturedPlace* place = recorded.captured ? &*recorded.captured : nullptr;
  if (const auto captured = capture_wait(stream, place, recorded.stream != nullptr)) return *captured;
  // An event that was never recorded, or lies in the same stream, has nothing to wait for.
  if (recorded.stream == nullptr || recorded.stream == stream) return hipSuccess;
  if (recorded.stream->done(recorded.ticket)) return hipSuccess;
  stream->context().submit(stream, [] {}, Stream::AfterError::run, {{recorded.stream, recorded.ticket}});
  return hipSuccess;
}

}  // namespace

hipError_t record_event(hipEvent_t handle, const std::shared_ptr<Stream>& stream) {
  const auto event = find_event(handle);
  if (event == nullptr) return hipErrorInvalidHandle;
  if (event->ordinal != stream->context().ordinal()) return hipErrorInvalidHandle;
  if (auto place = captured_place(stream)) {
    const std::scoped_lock lock(event->mutex);
    event->captured = std::move(place);
    return hipSuccess;
  }
  if (const hipError_t refused = refuse_in_capture(stream); refused != hipSuccess) return refused;
  auto nanoseconds = std::make_shared<std::atomic<std::int64_t>>(0);
  const Stream::Ticket ticket = stream->context().submit(
      stream, [nanoseconds] { nanoseconds->store(std::chrono::steady_clock::now().time_since_epoch().count()); },
      Stream::AfterError::run);
  const std::scoped_lock lock(event->mutex);
  event->stream = stream;
  event->ticket = ticket;
  event->nanoseconds = std::move(nanoseconds);
  event->captured.reset();
  return hipSuccess;
}

}  // namespace wavejit::simgpu::hip_front

namespace wavejit::hip_abi {

using namespace simgpu::hip_front;

hipError_t hipEventCreate(hipEvent_t* event) { return finish(create(event, hipEventDefault)); }
hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned flags) { return finish(create(event, flags)); }

hipError_t hipEventDestroy(hipEvent_t event) {
  if (event == nullptr) return finish(hipErrorInvalidHandle);
  const std::unique_lock lock(events().mutex);
  return finish(events().known.erase(event) != 0 ? hipSuccess : hipErrorContextIsDestroyed);
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  return finish(record(event, stream, hipEventRecordDefault));
}
hipError_t hipEventRecord_spt(hipEvent_t event, hipStream_t stream) {
  return finish(record(event, per_thread_default(stream), hipEventRecordDefault));
}
hipError_t hipEventRecordWithFlags(hipEvent_t event, hipStream_t stream, unsigned flags) {
  return finish(record(event, stream, flags));
}

hipError_t hipEventSynchronize(hipEvent_t handle) {
  const auto event = find_event(handle);
  if (event == nullptr) return finish(hipErrorInvalidHandle);
  const auto recorded = event->record();
  if (const hipError_t refused = refuse_wait(recorded); refused != hipSuccess) return finish(refused);
  if (recorded.stream == nullptr) return finish(hipSuccess);
  recorded.stream->wait(recorded.ticket);
  return finish(recorded.stream->context().error());
}

hipError_t hipEventQuery(hipEvent_t handle) {
  const auto event = find_event(handle);
  if (event == nullptr) return finish(hipErrorInvalidHandle);
  const auto recorded = event->record();
  if (const hipError_t refused = refuse_wait(recorded); refused != hipSuccess) return finish(refused);
  if (recorded.stream == nullptr) return finish(hipSuccess);
  if (!recorded.stream->done(recorded.ticket)) return finish(hipErrorNotReady);
  return finish(recorded.stream->context().error());
}

hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t start_handle, hipEvent_t stop_handle) {
  if (milliseconds == nullptr) return finish(hipErrorInvalidValue);
  const auto start = find_event(start_handle);
  const auto stop = find_event(stop_handle);
  if (start == nullptr || stop == nullptr || start->ordinal != stop->ordinal) return finish(hipErrorInvalidHandle);
  const auto from = start->record();
  const auto to = stop->record();
  if (from.stream == nullptr || to.stream == nullptr) return finish(hipErrorInvalidHandle);
  if (((start->flags | stop->flags) & hipEventDisableTiming) != 0) return finish(hipErrorInvalidHandle);
  if (!from.stream->done(from.ticket) || !to.stream->done(to.ticket)) return finish(hipErrorNotReady);
  constexpr double nanoseconds_per_millisecond = 1e6;
  *milliseconds =
      static_cast<float>(static_cast<double>(*to.nanoseconds - *from.nanoseconds) / nanoseconds_per_millisecond);
  return finish(hipSuccess);
}

hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags) {
  return finish(wait_in_stream(stream, event, flags));
}
hipError_t hipStreamWaitEvent_spt(hipStream_t stream, hipEvent_t event, unsigned flags) {
  return finish(wait_in_stream(per_thread_default(stream), event, flags));
}

}  // namespace wavejit::hip_abi
