// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What libhsa-runtime64 calls when HSA_MODEL_LIB names this library.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <expected>
#include <format>
#include <memory>
#include <string>
#include <utility>

#include "simgpu/front_ends/model/debug_list.h"
#include "simgpu/front_ends/model/interface.h"
#include "simgpu/front_ends/model/memory.h"
#include "simgpu/front_ends/model/queues.h"
#include "simgpu/front_ends/model/topology_folder.h"
#include "simgpu/front_ends/queues/code_map.h"
#include "simgpu/machine/device/device.h"
#include "simgpu/process/config.h"
#include "simgpu/process/process.h"

namespace wavejit::simgpu::model {

class Model {
 public:
  explicit Model(Device& device) : device(device) {}
  Device& device;
  Queues queues;
};

namespace {

// The one model. Its events are raised by number alone.
struct EventSink {
  SetEvent set = nullptr;
  void* data = nullptr;
};
std::atomic<EventSink*> event_sink = nullptr;

void raise_event(std::uint32_t event_id) {
  const EventSink* sink = event_sink.load(std::memory_order_acquire);
  if (sink != nullptr && sink->set != nullptr) sink->set(sink->data, event_id);
}

void say(const std::string& line) {
  static_cast<void>(std::fputs(("wavejit simulated GPU: " + line + "\n").c_str(), stderr));
}

// What was preloaded to make the start quick (start.cpp) has done its work.
void end_start() {
  auto* const has_started = static_cast<std::atomic<bool>*>(::dlsym(RTLD_DEFAULT, "wavejit_model_has_started"));
  if (has_started != nullptr) has_started->store(true, std::memory_order_relaxed);
}

Model* create() {
  end_start();
  Device* const device = Device::find(0);
  if (device == nullptr) return nullptr;
  queues::CodeMap::instance().set_image_finder(find_loaded_image);
  DeviceMemory::instance().reach_host(find_host_memory);
  // Never destroyed: ROCr does not, and programs end while its threads run.
  return new Model(*device);
}

void destroy(Model* model) { delete model; }

void allocated(Model* model, void* address, std::uint64_t bytes, std::uint32_t flags) {
  add_memory(model->device, reinterpret_cast<std::uint64_t>(address), bytes, flags);
}

void freed(Model* /*model*/, void* address, std::uint64_t /*bytes*/) {
  remove_memory(reinterpret_cast<std::uint64_t>(address));
}

constexpr int usage_error = 2;

Queue* register_queue(Model* model, QueueInfo* info) {
  // ROCr is told of neither a refusal nor a copy's error: it would wait for ever.
  const auto end_program = [] { std::_Exit(usage_error); };
  Queue* const queue = model->queues.add(model->device, *info, raise_event, end_program);
  if (queue == nullptr) end_program();
  return queue;
}

void set_set_event(Model* /*model*/, SetEvent set_event, void* data) {
  // Kept for ever: a queue may be raising.
  event_sink.store(new EventSink{.set = set_event, .data = data}, std::memory_order_release);
}

void destroy_queue(Model* model, Queue* queue) { model->queues.remove(queue); }

// The device of the folder that ROCr has read. The text says why there is none.
std::expected<void, std::string> open_device() {
  const std::string folder = read_model_topology();
  auto device = device_of_topology(folder);
  if (!device) return std::unexpected(device.error());
  const Config& config = Process::instance().config();
  const bool is_other = config.device_is_named && (config.device_target != *device || config.device_count != 1);
  if (is_other) {
    return std::unexpected(std::format("HSA_MODEL_TOPOLOGY={} describes one {}, and the environment names {}x{}",
                                       folder, *device, config.device_target, config.device_count));
  }
  if (const auto opened = Device::open(*device, 1); !opened) return std::unexpected(opened.error().text);
  say(std::format(
      "{} through ROCr's interface for models: one GPU, no stream priorities, compute-unit masks, cooperative "
      "launches, managed memory, IPC; elapsed times are 0, a kernel's fault ends the program",
      *device));
  return {};
}

constexpr Functions functions = {
    .create = create,
    .destroy = destroy,
    // Where the thunk has mapped the GPU's memory a second time: the host's mapping is used.
    .set_global_aperture = [](Model*, void*, std::uint64_t) {},
    .alloced_memory = allocated,
    .freed_memory = freed,
    // ROCr calls neither.
    .set_notify_event = [](Model*, void (*)(void*), void*) {},
    .set_wait_event = [](Model*, void (*)(void*, std::uint64_t, std::uint64_t), void*) {},
    .register_queue = register_queue,
    .set_set_event = set_set_event,
    .destroy_queue = destroy_queue,
};

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

const Functions* get_hsakmt_model_functions() {
  if (const auto opened = open_device(); !opened) {
    say(opened.error());
    // ROCr would go on with a machine that is not there, and abort.
    std::_Exit(usage_error);
  }
  return &functions;
}

}  // extern "C"
#pragma GCC visibility pop

}  // namespace wavejit::simgpu::model
