// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The C ABI of an engine, over the folders below this one: it checks structs and decides nothing. The part that needs
// no device is offline_c_api.cpp. The calls of each family stand in its own folder (templates/<family>/api/c_api.cpp).
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "families/call/family.h"
#include "families/call/struct_size.h"
#include "runtime/call/c_call.h"
#include "runtime/call/c_configuration.h"
#include "runtime/call/engine.h"
#include "wavejit/wavejit.h"

using namespace wavejit::runtime;  // this file is the two worlds' seam
using wavejit::families::check_output_size;
using wavejit::families::hand_over;

extern "C" {

const char* wavejit_status_text(wavejit_status status) {
  switch (status) {
    case WAVEJIT_OK:
      return "ok";
    case WAVEJIT_INVALID_ARGUMENT:
      return "invalid argument";
    case WAVEJIT_UNSUPPORTED:
      return "unsupported";
    case WAVEJIT_NO_DEVICE:
      return "no device";
    case WAVEJIT_COMPILE_FAILED:
      return "compile failed";
    case WAVEJIT_NO_COMPILER:
      return "no compiler";
    case WAVEJIT_LAUNCH_FAILED:
      return "launch failed";
    case WAVEJIT_OUT_OF_MEMORY:
      return "out of memory";
    case WAVEJIT_IO_ERROR:
      return "input or output failed";
    case WAVEJIT_NOT_FOUND:
      return "not found";
    case WAVEJIT_DEVICE_ERROR:
      return "device error";
    case WAVEJIT_INTERNAL:
      return "internal error";
    case WAVEJIT_NOT_READY:
      return "not ready";
    case WAVEJIT_SEALED:
      return "sealed";
  }
  return "unknown status";
}

const char* wavejit_last_detail(void) { return last_detail(); }

const char* wavejit_version(void) { return WAVEJIT_VERSION_TEXT; }

wavejit_status wavejit_engine_create(const wavejit_engine_options* options, wavejit_engine** engine) {
  return guarded([&]() -> Result<void> {
    if (auto given = require(engine, "engine", "where to store the engine"); !given) return given;
    *engine = nullptr;
    auto config = configuration(options);
    if (!config) return std::unexpected(std::move(config.error()));
    auto opened = Engine::open(*config);
    if (!opened) return std::unexpected(std::move(opened.error()));
    *engine = new wavejit_engine(*std::move(opened));
    return {};
  });
}

void wavejit_engine_destroy(wavejit_engine* engine) {
  // What it would wait for stayed behind in the parent, and what it holds of a device is the parent's to give back.
  if (engine != nullptr && engine->is_of_parent()) [[maybe_unused]]
    auto* const of_the_parent = engine->engine.release();
  delete engine;
}

const char* wavejit_engine_target(const wavejit_engine* engine) {
  return engine != nullptr ? engine->engine->target() : "";
}

const char* wavejit_engine_device_name(const wavejit_engine* engine) {
  return engine != nullptr ? engine->engine->device_name() : "";
}

wavejit_status wavejit_prepare(wavejit_engine* engine, const char* const* descriptors, size_t count, int32_t jobs,
                               wavejit_status* statuses, wavejit_prepare_callback progress, void* context) {
  return guarded([&]() -> Result<void> {
    if (auto given = require_engine(engine); !given) return given;
    if (count > 0) {
      if (auto given = require(descriptors, "descriptors", "problem descriptors"); !given) return given;
    }
    const std::span<wavejit_status> answers(statuses, statuses != nullptr ? count : 0);
    return engine->engine->prepare({descriptors, count}, jobs, answers, [&](const PrepareProgress& state) {
      if (progress == nullptr) return;
      wavejit_prepare_progress out{};
      out.size = sizeof out;
      out.done = state.done;
      out.total = state.total;
      out.compiled = state.compiled;
      out.from_disk = state.from_disk;
      out.present = state.present;
      out.failed = state.failed;
      out.line = state.line;
      out.descriptor = state.descriptor;
      out.status = state.status;
      out.origin = state.origin;
      out.failure = state.failure != nullptr ? state.failure->c_str() : nullptr;
      progress(context, &out);
    });
  });
}

wavejit_status wavejit_engine_trim(wavejit_engine* engine) {
  return guarded([&]() -> Result<void> {
    if (auto given = require_engine(engine); !given) return given;
    return engine->engine->trim();
  });
}

wavejit_status wavejit_engine_seal(wavejit_engine* engine, int32_t sealed) {
  return guarded([&]() -> Result<void> {
    if (auto given = require_engine(engine); !given) return given;
    engine->engine->seal(sealed != 0);
    return {};
  });
}

wavejit_status wavejit_device_allocate(wavejit_engine* engine, size_t bytes, void** memory) {
  return guarded([&]() -> Result<void> {
    if (auto given = require_engine(engine); !given) return given;
    if (auto given = require(memory, "memory", "where to store the pointer"); !given) return given;
    *memory = nullptr;
    auto allocated = engine->engine->allocate(bytes);
    if (!allocated) return std::unexpected(std::move(allocated.error()));
    *memory = *allocated;
    return {};
  });
}

wavejit_status wavejit_device_free(wavejit_engine* engine, void* memory) {
  return guarded([&]() -> Result<void> {
    if (auto given = require_engine(engine); !given) return given;
    return engine->engine->release(memory);
  });
}

wavejit_status wavejit_device_copy_in(wavejit_engine* engine, void* device, const void* host, size_t bytes) {
  return guarded([&]() -> Result<void> {
    if (auto given = require_engine(engine); !given) return given;
    return engine->engine->copy_in(device, host, bytes);
  });
}

wavejit_status wavejit_device_copy_out(wavejit_engine* engine, void* host, const void* device, size_t bytes) {
  return guarded([&]() -> Result<void> {
    if (auto given = require_engine(engine); !given) return given;
    return engine->engine->copy_out(host, device, bytes);
  });
}

wavejit_status wavejit_device_synchronize(wavejit_engine* engine) {
  return guarded([&]() -> Result<void> {
    if (auto given = require_engine(engine); !given) return given;
    return engine->engine->synchronize();
  });
}

wavejit_status wavejit_engine_statistics(const wavejit_engine* engine, wavejit_statistics* statistics) {
  return guarded([&]() -> Result<void> {
    if (auto given = require_engine(engine); !given) return given;
    if (auto given = require(statistics, "statistics", "a struct wavejit_statistics"); !given) return given;
    if (auto size = check_output_size(*statistics, "statistics"); !size) return size;
    wavejit_statistics out{};
    engine->engine->fill(out);
    hand_over(*statistics, out);
    return {};
  });
}

wavejit_status wavejit_engine_statistics_json(const wavejit_engine* engine, char* text, size_t capacity,
                                              size_t* length) {
  return guarded([&]() -> Result<void> {
    if (auto given = require_engine(engine); !given) return given;
    if (auto given = require(length, "length", "where to store the text's length"); !given) return given;
    const std::string json = engine->engine->statistics_json();
    *length = json.size();
    if (text == nullptr) return {};
    const std::size_t copied = capacity == 0 ? 0 : std::min(capacity - 1, json.size());
    std::memcpy(text, json.data(), copied);
    if (capacity != 0) text[copied] = '\0';
    if (copied == json.size() && capacity != 0) return {};
    return fail(WAVEJIT_INVALID_ARGUMENT, "capacity = " + std::to_string(capacity) +
                                              "; accepted: " + std::to_string(json.size() + 1) + " and more");
  });
}

}  // extern "C"
