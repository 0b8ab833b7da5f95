// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An engine as Python owns it: arrays and calls share it, so that it outlives them.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "wavejit/wavejit.hpp"

namespace wavejit::python {

namespace nb = nanobind;

// Options by the names of wavejit_engine_options, each a text. A name that is none is an error that lists them.
EngineOptions options_from(const nb::dict& given);

class EngineHandle {
 public:
  EngineHandle(const nb::dict& options, nb::object on_compile, nb::object on_log);
  ~EngineHandle();
  EngineHandle(const EngineHandle&) = delete;
  EngineHandle& operator=(const EngineHandle&) = delete;

  wavejit_engine* get() const { return engine_->get(); }
  Engine& engine() { return *engine_; }

  // From here on nobody is told: a callback that knows the engine would keep it alive, and after Python's end nobody
  // can be.
  void forget_callbacks();
  bool calls_back() const { return calls_back_; }
  const nb::object& on_compile() const { return on_compile_; }
  const nb::object& on_log() const { return on_log_; }

 private:
  std::optional<Engine> engine_;
  nb::object on_compile_;
  nb::object on_log_;
  std::atomic<bool> calls_back_ = true;  // asked without Python's lock
};

void bind_engine(nb::module_& module);

}  // namespace wavejit::python
