// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offline.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine.h"
#include "interpreter.h"
#include "progress.h"
#include "wavejit/prebuild.h"

namespace wavejit::python {

namespace {

nb::object text_or_nothing(const char* text) {
  if (text == nullptr) return nb::none();
  return nb::str(text);
}

std::vector<std::string> explain_lines(const std::string& descriptor, const std::string& target,
                                       const nb::dict& options) {
  const EngineOptions chosen = options_from(options);
  const Released released;
  return explain(descriptor, target, chosen);
}

// Keeps what the last report said: the counts of the whole run.
struct PrebuildRun {
  Progress progress;
  wavejit_prebuild_list_progress last{};
};

void prebuild_progress(void* context, const wavejit_prebuild_list_progress* progress) {
  PrebuildRun& run = *static_cast<PrebuildRun*>(context);
  run.last = *progress;
  run.progress.tell([&](nb::dict& told) {
    told["done"] = progress->done;
    told["total"] = progress->total;
    told["compiled"] = progress->compiled;
    told["copied"] = progress->copied;
    told["present"] = progress->present;
    told["failed"] = progress->failed;
    told["refused"] = progress->refused;
    told["kernel_spec"] = text_or_nothing(progress->kernel_spec);
    told["failure"] = text_or_nothing(progress->failure);
    told["descriptor"] = text_or_nothing(progress->descriptor);
    told["target"] = text_or_nothing(progress->target);
  });
}

nb::dict prebuild(const std::optional<std::vector<std::string>>& descriptors, const std::string& targets, bool verify,
                  int jobs, const std::optional<std::string>& output, bool archive, const nb::object& callback,
                  const nb::dict& options) {
  const EngineOptions chosen = options_from(options);
  const wavejit_engine_options c_options = chosen.to_c();
  std::vector<const char*> lines;
  if (descriptors)
    for (const std::string& line : *descriptors) lines.push_back(line.c_str());
  wavejit_prebuild_arguments arguments{};
  arguments.size = sizeof arguments;
  arguments.descriptors = descriptors ? lines.data() : nullptr;
  arguments.count = lines.size();
  arguments.targets = targets.c_str();
  arguments.mode = verify ? WAVEJIT_PREBUILD_VERIFY : WAVEJIT_PREBUILD_COMPILE;
  arguments.jobs = jobs;
  arguments.output = output ? output->c_str() : nullptr;
  arguments.archive = archive ? 1 : 0;
  PrebuildRun run{.progress = Progress(callback)};
  {
    const Released released;
    const wavejit_status status = wavejit_prebuild_list(&c_options, &arguments, prebuild_progress, &run);
    if (!run.progress.raised()) check(status);
  }
  run.progress.rethrow();
  nb::dict counts;
  counts["total"] = run.last.total;
  counts["compiled"] = run.last.compiled;
  counts["copied"] = run.last.copied;
  counts["present"] = run.last.present;
  counts["failed"] = run.last.failed;
  counts["refused"] = run.last.refused;
  return counts;
}

nb::list cache_entries(const nb::dict& options) {
  const EngineOptions chosen = options_from(options);
  const wavejit_engine_options c_options = chosen.to_c();
  nb::list entries;
  const auto add = [](void* context, const wavejit_cache_entry* entry) {
    const Held held;
    if (!held) return;
    nb::dict told;
    told["path"] = text_or_nothing(entry->path);
    told["key"] = text_or_nothing(entry->key);
    told["key_text"] = text_or_nothing(entry->key_text);
    told["target"] = text_or_nothing(entry->target);
    told["kernel_name"] = text_or_nothing(entry->kernel_name);
    told["damage"] = text_or_nothing(entry->damage);
    told["file_bytes"] = entry->file_bytes;
    told["code_object_bytes"] = entry->code_object_bytes;
    told["modified_unix_seconds"] = entry->modified_unix_seconds;
    told["vgprs"] = entry->vgprs;
    told["lds_bytes"] = entry->lds_bytes;
    told["kernarg_bytes"] = entry->kernarg_bytes;
    told["layer"] = text_or_nothing(entry->layer);
    static_cast<nb::list*>(context)->append(told);
  };
  const Released released;
  check(wavejit_cache_visit(&c_options, add, &entries));
  return entries;
}

nb::dict cache_sweep(bool any_age, const nb::dict& options) {
  const EngineOptions chosen = options_from(options);
  const wavejit_engine_options c_options = chosen.to_c();
  wavejit_cache_sweep_result result{};
  result.size = sizeof result;
  {
    const Released released;
    check(wavejit_cache_sweep(&c_options, any_age ? 1 : 0, &result));
  }
  nb::dict told;
  told["entries"] = result.entries;
  told["bytes"] = result.bytes;
  told["evicted"] = result.evicted;
  told["evicted_bytes"] = result.evicted_bytes;
  told["leftovers_removed"] = result.leftovers_removed;
  told["failures"] = result.failures;
  return told;
}

nb::list cache_layers(const nb::dict& options) {
  const EngineOptions chosen = options_from(options);
  const wavejit_engine_options c_options = chosen.to_c();
  nb::list layers;
  const auto add = [](void* context, const wavejit_cache_layer* layer) {
    const Held held;
    if (!held) return;
    nb::dict told;
    told["name"] = text_or_nothing(layer->name);
    told["path"] = text_or_nothing(layer->path);
    told["writable"] = layer->writable != 0;
    told["entries"] = layer->entries;
    told["bytes"] = layer->bytes;
    told["damaged"] = layer->damaged;
    told["limit_bytes"] = layer->limit_bytes;
    told["state"] = text_or_nothing(layer->state);
    static_cast<nb::list*>(context)->append(told);
  };
  const Released released;
  check(wavejit_cache_layers(&c_options, add, &layers));
  return layers;
}

nb::dict cache_copy(const std::optional<std::string>& from, const std::optional<std::string>& to,
                    const std::optional<std::string>& targets, bool archive, int remote, const nb::dict& options) {
  const EngineOptions chosen = options_from(options);
  const wavejit_engine_options c_options = chosen.to_c();
  wavejit_cache_copy_arguments arguments{};
  arguments.size = sizeof arguments;
  arguments.from = from ? from->c_str() : nullptr;
  arguments.to = to ? to->c_str() : nullptr;
  arguments.targets = targets ? targets->c_str() : nullptr;
  arguments.archive = archive ? 1 : 0;
  arguments.remote = remote;
  wavejit_cache_copy_result result{};
  result.size = sizeof result;
  {
    const Released released;
    check(wavejit_cache_copy(&c_options, &arguments, &result));
  }
  nb::dict told;
  told["copied"] = result.copied;
  told["present"] = result.present;
  told["damaged"] = result.damaged;
  told["failed"] = result.failed;
  told["bytes"] = result.bytes;
  return told;
}

nb::list kernel_text_list(const std::string& descriptor, int form, const std::string& target, const nb::dict& options) {
  const EngineOptions chosen = options_from(options);
  std::vector<KernelText> kernels;
  {
    const Released released;
    kernels = kernel_texts(descriptor, static_cast<wavejit_kernel_form>(form), target, chosen);
  }
  nb::list told;
  for (const KernelText& kernel : kernels)
    told.append(nb::make_tuple(nb::str(kernel.spec.c_str()), nb::str(kernel.text.c_str())));
  return told;
}

}  // namespace

void bind_offline(nb::module_& module) {
  using Unlocked = nb::call_guard<Released>;
  module.def("version", [] { return std::string(wavejit_version()); });
  module.def(
      "status_text", [](int status) { return std::string(wavejit_status_text(static_cast<wavejit_status>(status))); },
      nb::arg("status"));
  module.def("supported", [] { return supported(); }, Unlocked());
  module.def("targets", [] { return target_names(); }, Unlocked());
  module.def("explain", &explain_lines, nb::arg("descriptor"), nb::arg("target"), nb::arg("options"));
  module.def("prebuild", &prebuild, nb::arg("descriptors").none(), nb::arg("targets"), nb::arg("verify"),
             nb::arg("jobs"), nb::arg("output").none(), nb::arg("archive"), nb::arg("progress").none(),
             nb::arg("options"));
  module.def("kernel_texts", &kernel_text_list, nb::arg("descriptor"), nb::arg("form"), nb::arg("target"),
             nb::arg("options"));
  module.def("cache_entries", &cache_entries, nb::arg("options"));
  module.def("cache_layers", &cache_layers, nb::arg("options"));
  module.def("cache_copy", &cache_copy, nb::arg("source").none(), nb::arg("destination").none(),
             nb::arg("targets").none(), nb::arg("archive"), nb::arg("remote"), nb::arg("options"));
  module.def("cache_sweep", &cache_sweep, nb::arg("any_age"), nb::arg("options"));
}

}  // namespace wavejit::python
