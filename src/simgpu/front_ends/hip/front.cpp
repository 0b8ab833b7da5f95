// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/hip/front.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

#include "simgpu/front_ends/hip/symbols.h"
#include "simgpu/process/ledger.h"
#include "simgpu/process/process.h"

namespace wavejit::simgpu::hip_front {
namespace {

// Never destroyed: HIP programs call into the library from destructors of their own statics.
struct Registry {
  std::shared_mutex mutex;
  std::deque<std::unique_ptr<DeviceContext>> contexts;  // by ordinal; devices are never removed
  std::unordered_map<hip_abi::hipStream_t, std::shared_ptr<Stream>> streams;
  std::vector<std::weak_ptr<Stream>> all_streams;  // also the null and the per-thread ones, for the end of the process
};
Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

struct ThreadState {
  int ordinal = 0;
  std::unordered_map<int, std::shared_ptr<Stream>> default_streams;  // by ordinal

  ThreadState() = default;
  ThreadState(const ThreadState&) = delete;
  ThreadState& operator=(const ThreadState&) = delete;
  ~ThreadState() {
    for (auto& [device, stream] : default_streams) stream->context().remove_stream(stream);
  }
};
thread_local ThreadState thread_state;

// In a child whose parent had streams at work there is nobody who would do theirs.
bool is_orphan() {
  if (!Process::instance().left_threads_behind()) return false;
  static const bool said = [] {
    std::fputs(
        "wavejit simulated GPU: this process was forked from one that uses GPUs, and they belong to that one: fork "
        "before the first launch or copy, or use GPUs after exec\n",
        stderr);
    return true;
  }();
  return said;
}

void remember(const std::shared_ptr<Stream>& stream) {
  const std::unique_lock lock(registry().mutex);
  std::erase_if(registry().all_streams, [](const auto& weak) { return weak.expired(); });
  registry().all_streams.push_back(stream);
}

}  // namespace

DeviceContext::DeviceContext(Device& device)
    : device_(device), null_stream_(std::make_shared<Stream>(*this, hip_abi::hipStreamDefault, 0)) {}

void DeviceContext::fail(hip_abi::hipError_t error) {
  hip_abi::hipError_t expected = hip_abi::hipSuccess;
  error_.compare_exchange_strong(expected, error, std::memory_order_acq_rel);
}

std::shared_ptr<Stream> DeviceContext::create_stream(unsigned flags, int priority) {
  auto stream = std::make_shared<Stream>(*this, flags, priority);
  remember(stream);
  const std::scoped_lock lock(mutex_);
  streams_.push_back(stream);
  return stream;
}

void DeviceContext::remove_stream(const std::shared_ptr<Stream>& stream) {
  {
    const std::scoped_lock lock(mutex_);
    std::erase(streams_, stream);
  }
  stream->close();
}

std::vector<std::shared_ptr<Stream>> DeviceContext::streams() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::shared_ptr<Stream>> all = streams_;
  all.push_back(null_stream_);
  return all;
}

Stream::Ticket DeviceContext::submit(const std::shared_ptr<Stream>& stream, std::function<void()> work,
                                     Stream::AfterError after_error, std::vector<Stream::Dependency> dependencies) {
  // One lock over choosing the dependencies and queueing: whatever is waited for was queued earlier, so that streams
  // cannot wait for each other in a circle.
  const std::scoped_lock lock(mutex_);
  const auto depend_on = [&](const std::shared_ptr<Stream>& other) {
    const Stream::Ticket ticket = other->last_ticket();
    if (!other->done(ticket)) dependencies.push_back({other, ticket});
  };
  if (stream == null_stream_) {
    for (const auto& other : streams_) {
      if (other->blocking()) depend_on(other);
    }
  } else if (stream->blocking()) {
    depend_on(null_stream_);
  }
  return stream->submit(std::move(work), std::move(dependencies), after_error);
}

void DeviceContext::synchronize() {
  for (const auto& stream : streams()) stream->wait_all();
}

DeviceContext* find_context(int ordinal) {
  if (ordinal < 0 || is_orphan()) return nullptr;
  Registry& all = registry();
  const auto index = static_cast<std::size_t>(ordinal);
  {
    const std::shared_lock lock(all.mutex);
    if (index < all.contexts.size()) return all.contexts[index].get();
  }
  const int count = Device::count();
  if (ordinal >= count) return nullptr;
  DeviceContext* found = nullptr;
  std::vector<std::shared_ptr<Stream>> fresh;
  {
    const std::unique_lock lock(all.mutex);
    while (std::cmp_less(all.contexts.size(), count)) {
      auto& context = all.contexts.emplace_back(
          std::make_unique<DeviceContext>(*Device::find(static_cast<int>(all.contexts.size()))));
      fresh.push_back(context->null_stream());
    }
    found = all.contexts[index].get();
  }
  for (const auto& stream : fresh) remember(stream);
  if (!fresh.empty()) Ledger::instance().set_front("hip");
  return found;
}

DeviceContext* current_context() { return find_context(thread_state.ordinal); }
int current_ordinal() { return thread_state.ordinal; }

bool set_current_ordinal(int ordinal) {
  if (find_context(ordinal) == nullptr) return false;
  thread_state.ordinal = ordinal;
  return true;
}

std::shared_ptr<Stream> per_thread_stream() {
  DeviceContext* context = current_context();
  if (context == nullptr) return nullptr;
  auto& stream = thread_state.default_streams[context->ordinal()];
  if (stream == nullptr) stream = context->create_stream(hip_abi::hipStreamDefault, 0);
  return stream;
}

std::shared_ptr<Stream> find_stream(hip_abi::hipStream_t handle) {
  if (handle == nullptr || handle == hip_abi::stream_legacy()) {
    DeviceContext* context = current_context();
    return context == nullptr ? nullptr : context->null_stream();
  }
  if (handle == hip_abi::stream_per_thread()) return per_thread_stream();
  if (is_orphan()) return nullptr;
  const std::shared_lock lock(registry().mutex);
  const auto found = registry().streams.find(handle);
  return found == registry().streams.end() ? nullptr : found->second;
}

hip_abi::hipStream_t per_thread_default(hip_abi::hipStream_t handle) {
  return handle == nullptr ? hip_abi::stream_per_thread() : handle;
}

hip_abi::hipStream_t add_stream_handle(const std::shared_ptr<Stream>& stream) {
  auto* handle = reinterpret_cast<hip_abi::hipStream_t>(stream.get());
  const std::unique_lock lock(registry().mutex);
  registry().streams.emplace(handle, stream);
  return handle;
}

void remove_stream_handle(hip_abi::hipStream_t handle) {
  const std::unique_lock lock(registry().mutex);
  registry().streams.erase(handle);
}

void close_streams_at_exit() {
  // The engine's statics exist by now (a device does), so this one is destroyed before them.
  struct Closer {
    Closer() = default;
    Closer(const Closer&) = delete;
    Closer& operator=(const Closer&) = delete;
    ~Closer() {
      if (Process::instance().left_threads_behind()) return;
      std::vector<std::shared_ptr<Stream>> open;
      {
        const std::shared_lock lock(registry().mutex);
        for (const auto& weak : registry().all_streams) {
          if (auto stream = weak.lock()) open.push_back(std::move(stream));
        }
      }
      for (const auto& stream : open) stream->abandon();
      for (const auto& stream : open) stream->close();
      release_registered_modules();
    }
  };
  static const Closer closer;
}

}  // namespace wavejit::simgpu::hip_front
