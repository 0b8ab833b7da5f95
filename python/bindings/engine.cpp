// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <exception>
#include <utility>

#include "interpreter.h"
#include "progress.h"

namespace wavejit::python {

namespace {

// What a callback raises has nobody to go to: Python's hook for such (sys.unraisablehook) tells it.
template <typename Function>
void tell(const nb::object& callback, Function arguments) {
  try {
    if (!callback.is_none()) arguments(callback);
  } catch (nb::python_error& error) {
    error.discard_as_unraisable(callback);
  } catch (const std::exception& error) {
    nb::object message = nb::str(error.what());
    PyErr_SetObject(PyExc_RuntimeError, message.ptr());
    PyErr_WriteUnraisable(callback.ptr());
  }
}

nb::object text_or_none(const char* text) {
  if (text == nullptr) return nb::none();
  return nb::str(text);
}

void tell_compile(void* context, const wavejit_compile_event* event) {
  if (!static_cast<EngineHandle*>(context)->calls_back()) return;
  const Held held;
  if (!held) return;
  const nb::object callback = static_cast<EngineHandle*>(context)->on_compile();
  tell(callback, [&](const nb::object& function) {
    nb::dict told;
    told["descriptor"] = text_or_none(event->descriptor);
    told["kernel_spec"] = text_or_none(event->kernel_spec);
    told["key"] = text_or_none(event->key);
    told["origin"] = event->origin;
    told["status"] = event->status;
    told["detail"] = text_or_none(event->detail);
    told["thread"] = event->thread;
    told["route_ns"] = event->route_ns;
    told["lookup_ns"] = event->lookup_ns;
    told["emit_ns"] = event->emit_ns;
    told["lower_ns"] = event->lower_ns;
    told["link_ns"] = event->link_ns;
    told["inspect_ns"] = event->inspect_ns;
    told["publish_ns"] = event->publish_ns;
    told["load_ns"] = event->load_ns;
    function(told);
  });
}

void tell_log(void* context, std::int32_t level, const char* line) {
  if (!static_cast<EngineHandle*>(context)->calls_back()) return;
  const Held held;
  if (!held) return;
  const nb::object callback = static_cast<EngineHandle*>(context)->on_log();
  tell(callback, [&](const nb::object& function) { function(level, nb::str(line)); });
}

nb::list prepare(EngineHandle& handle, const std::vector<std::string>& descriptors, int jobs,
                 const nb::object& callback) {
  std::vector<const char*> lines;
  lines.reserve(descriptors.size());
  for (const std::string& line : descriptors) lines.push_back(line.c_str());
  struct Run {
    std::vector<Prepared> prepared;
    Progress progress;
  } run{.prepared = std::vector<Prepared>(lines.size()), .progress = Progress(callback)};
  const auto finished = [](void* context, const wavejit_prepare_progress* progress) {
    Run& run = *static_cast<Run*>(context);
    if (progress->descriptor != nullptr) {
      Prepared& line = run.prepared[progress->line];
      line.status = static_cast<wavejit_status>(progress->status);
      if (progress->failure != nullptr) line.failure = progress->failure;
    }
    run.progress.tell([&](nb::dict& told) {
      told["done"] = progress->done;
      told["total"] = progress->total;
      told["compiled"] = progress->compiled;
      told["from_disk"] = progress->from_disk;
      told["present"] = progress->present;
      told["failed"] = progress->failed;
      told["descriptor"] = text_or_none(progress->descriptor);
      told["failure"] = text_or_none(progress->failure);
    });
  };
  {
    const Released released;
    const wavejit_status status =
        wavejit_prepare(handle.get(), lines.data(), lines.size(), jobs, nullptr, finished, &run);
    bool of_a_line = false;
    for (const Prepared& line : run.prepared) of_a_line = of_a_line || line.status != WAVEJIT_OK;
    if (!of_a_line) check(status);
  }
  run.progress.rethrow();
  nb::list result;
  for (const Prepared& line : run.prepared)
    result.append(nb::make_tuple(static_cast<int>(line.status), nb::str(line.failure.c_str())));
  return result;
}

}  // namespace

EngineOptions options_from(const nb::dict& given) {
  EngineOptions result;
  for (const auto& [key, value] : given) {
    const std::string name = nb::cast<std::string>(key);
    const EngineOption* found = nullptr;
    for (const EngineOption& option : engine_options)
      if (name == option.name) found = &option;
    if (found == nullptr) {
      const std::string meant = meant_pipeline(name);
      std::string message = "'" + name + "' is no option";
      if (!meant.empty()) message += " (did you mean pipeline=\"" + meant + "\"?)";
      message += "; accepted:";
      for (const EngineOption& option : engine_options) message += std::string(" ") + option.name;
      throw nb::type_error(message.c_str());
    }
    result.*(found->text) = nb::cast<std::string>(value);
  }
  return result;
}

EngineHandle::EngineHandle(const nb::dict& options, nb::object on_compile, nb::object on_log)
    : on_compile_(std::move(on_compile)), on_log_(std::move(on_log)) {
  EngineOptions chosen = options_from(options);
  if (!on_compile_.is_none()) {
    chosen.on_compile = tell_compile;
    chosen.on_compile_context = this;
  }
  if (!on_log_.is_none()) {
    chosen.on_log = tell_log;
    chosen.on_log_context = this;
  }
  const Released released;
  engine_.emplace(chosen);
}

EngineHandle::~EngineHandle() {
  // A thread of the engine may be about to call back: it needs the lock to come to its end.
  const Released released;
  engine_.reset();
}

void EngineHandle::forget_callbacks() {
  calls_back_ = false;
  on_compile_ = nb::none();
  on_log_ = nb::none();
}

namespace {

// Callbacks often know their engine. Python's collector sees the way back through these, and undoes the circle.
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const EngineHandle& handle = *nb::inst_ptr<EngineHandle>(self);
  const nb::handle on_compile = handle.on_compile();
  const nb::handle on_log = handle.on_log();
  Py_VISIT(on_compile.ptr());
  Py_VISIT(on_log.ptr());
  return 0;
}
int clear(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<EngineHandle>(self)->forget_callbacks();
  return 0;
}

}  // namespace

void bind_engine(nb::module_& module) {
  module.def("engine_options", [] {
    nb::list rows;
    for (const EngineOption& option : engine_options) {
      const bool rare = option.scope == OptionScope::upkeep || option.scope == OptionScope::remote;
      rows.append(nb::make_tuple(option.name, option.variable, rare ? "" : option.flag));
    }
    return rows;
  });
  using Unlocked = nb::call_guard<Released>;
  static PyType_Slot slots[] = {
      {Py_tp_traverse, reinterpret_cast<void*>(traverse)}, {Py_tp_clear, reinterpret_cast<void*>(clear)}, {0, nullptr}};
  nb::class_<EngineHandle>(module, "EngineHandle", "A wavejit_engine. wavejit.Engine is the class for users.",
                           nb::type_slots(slots))
      .def(nb::init<const nb::dict&, nb::object, nb::object>(), nb::arg("options"), nb::arg("on_compile").none(),
           nb::arg("on_log").none())
      .def("forget_callbacks", &EngineHandle::forget_callbacks)
      .def("target", [](EngineHandle& handle) { return handle.engine().target(); })
      .def("device_name", [](EngineHandle& handle) { return handle.engine().device_name(); })
      .def(
          "synchronize", [](EngineHandle& handle) { handle.engine().synchronize(); }, Unlocked())
      .def(
          "trim", [](EngineHandle& handle) { handle.engine().trim(); }, Unlocked())
      .def(
          "seal", [](EngineHandle& handle) { handle.engine().seal(); }, Unlocked())
      .def(
          "unseal", [](EngineHandle& handle) { handle.engine().unseal(); }, Unlocked())
      .def(
          "statistics_json", [](EngineHandle& handle) { return handle.engine().statistics_json(); }, Unlocked())
      .def("prepare", &prepare, nb::arg("descriptors"), nb::arg("jobs"), nb::arg("progress").none());
}

}  // namespace wavejit::python
