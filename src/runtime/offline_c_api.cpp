// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The C ABI of what needs no device: problems explained, kernels made ahead of time, caches looked after. Structs
// checked, nothing decided.
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "families/call/family.h"
#include "families/call/struct_size.h"
#include "runtime/call/c_call.h"
#include "runtime/call/c_configuration.h"
#include "runtime/offline/cache_commands.h"
#include "runtime/offline/explain.h"
#include "runtime/offline/kernel_text.h"
#include "runtime/offline/prebuild.h"
#include "runtime/settings/config.h"
#include "targets/targets.h"
#include "wavejit/prebuild.h"
#include "wavejit/wavejit.h"

namespace wavejit::runtime {
namespace {

void visit_entry(const cache::Visited& visited, wavejit_cache_callback callback, void* context) {
  const std::string path(visited.path);
  const std::string key(visited.key_hex);
  const std::string damage(visited.damage);
  const std::string target(visited.target_id);
  const std::string layer(visited.layer);
  wavejit_cache_entry entry{};
  entry.size = sizeof entry;
  entry.path = path.c_str();
  entry.key = key.c_str();
  entry.target = target.c_str();
  entry.layer = layer.c_str();
  entry.damage = visited.damage.empty() ? nullptr : damage.c_str();
  entry.file_bytes = visited.file_bytes;
  entry.modified_unix_seconds = visited.modified_unix_seconds;
  if (visited.entry != nullptr) {
    entry.key_text = visited.entry->key_text.c_str();
    entry.code_object_bytes = visited.entry->code_object.size();
    if (!visited.entry->kernels.empty()) {
      const cache::KernelFacts& kernel = visited.entry->kernels.front();
      entry.kernel_name = kernel.name.c_str();
      entry.vgprs = kernel.vgprs;
      entry.lds_bytes = kernel.lds_bytes;
      entry.kernarg_bytes = kernel.kernarg_bytes;
    }
  }
  callback(context, &entry);
}

const char* text_of(const std::string* given) { return given != nullptr ? given->c_str() : nullptr; }

// What both prebuild callbacks are told.
template <typename Progress>
Progress common_progress(const PrebuildProgress& state) {
  Progress out{};
  out.size = sizeof out;
  out.done = state.done;
  out.total = state.total;
  out.compiled = state.compiled;
  out.present = state.present;
  out.failed = state.failed;
  out.kernel_spec = text_of(state.kernel_spec);
  out.failure = text_of(state.failure);
  return out;
}

// Adds the lines to a request and does it.
Result<void> run_prebuild(const wavejit_engine_options* options, const char* const* descriptors, size_t count,
                          PrebuildRequest& request, const PrebuildTell& tell) {
  for (size_t i = 0; descriptors != nullptr && i < count; ++i) {
    const std::string name = "descriptors[" + std::to_string(i) + "]";
    if (auto given = require(descriptors[i], name.c_str(), "a problem descriptor"); !given) return given;
    request.descriptors.emplace_back(descriptors[i]);
  }
  auto config = configuration(options);
  if (!config) return std::unexpected(std::move(config.error()));
  return prebuild(*config, request, process_codegen(), tell);
}

}  // namespace
}  // namespace wavejit::runtime

using namespace wavejit::runtime;  // this file is the two worlds' seam
using wavejit::families::check_output_size;
using wavejit::families::check_struct_size;
using wavejit::families::hand_over;

extern "C" {

wavejit_status wavejit_explain(const wavejit_engine_options* options, const char* descriptor, const char* target,
                               wavejit_line_callback line, void* context) {
  return guarded([&]() -> Result<void> {
    if (auto given = require(descriptor, "descriptor", "a problem descriptor"); !given) return given;
    if (auto given = require(line, "line", "a function that takes the lines"); !given) return given;
    auto config = configuration(options);
    if (!config) return std::unexpected(std::move(config.error()));
    auto lines = explain(*config, descriptor, target != nullptr ? target : "", process_codegen());
    if (!lines) return std::unexpected(std::move(lines.error()));
    for (const std::string& text : *lines) line(context, text.c_str());
    return {};
  });
}

wavejit_status wavejit_kernel_texts(const wavejit_engine_options* options,
                                    const wavejit_kernel_text_arguments* arguments, wavejit_kernel_text_callback kernel,
                                    void* context) {
  return guarded([&]() -> Result<void> {
    if (auto given = require(arguments, "arguments", "a struct wavejit_kernel_text_arguments"); !given) return given;
    if (auto size = check_struct_size(*arguments, "arguments"); !size) return size;
    if (auto given = require(arguments->descriptor, "arguments.descriptor", "a problem descriptor"); !given)
      return given;
    if (auto given = require(kernel, "kernel", "a function that takes the texts"); !given) return given;
    if (arguments->form != WAVEJIT_KERNEL_IR && arguments->form != WAVEJIT_KERNEL_ISA) {
      return fail(WAVEJIT_INVALID_ARGUMENT, "arguments.form = " + std::to_string(arguments->form) +
                                                "; accepted: 0 and 1, enum wavejit_kernel_form");
    }
    auto config = configuration(options);
    if (!config) return std::unexpected(std::move(config.error()));
    auto texts = kernel_texts(*config, arguments->descriptor, arguments->target != nullptr ? arguments->target : "",
                              static_cast<wavejit_kernel_form>(arguments->form), process_codegen());
    if (!texts) return std::unexpected(std::move(texts.error()));
    for (const KernelText& each : *texts) {
      const wavejit_kernel_text told = {
          .size = sizeof told, .kernel_spec = each.spec.c_str(), .text = each.text.c_str()};
      kernel(context, &told);
    }
    return {};
  });
}

wavejit_status wavejit_describe(const char* descriptor, wavejit_line_callback line, void* context) {
  return guarded([&]() -> Result<void> {
    if (auto given = require(descriptor, "descriptor", "a problem descriptor"); !given) return given;
    if (auto given = require(line, "line", "a function that takes the line"); !given) return given;
    auto parsed = wavejit::families::parse_problem(descriptor);
    if (!parsed) return std::unexpected(std::move(parsed.error()));
    line(context, (*parsed)->text().c_str());
    return {};
  });
}

wavejit_status wavejit_supported(wavejit_line_callback line, void* context) {
  return guarded([&]() -> Result<void> {
    if (auto given = require(line, "line", "a function that takes the lines"); !given) return given;
    for (const std::string& text : supported()) line(context, text.c_str());
    return {};
  });
}

wavejit_status wavejit_targets(wavejit_line_callback line, void* context) {
  return guarded([&]() -> Result<void> {
    if (auto given = require(line, "line", "a function that takes the lines"); !given) return given;
    for (const wavejit::targets::Target& target : wavejit::targets::complete_targets())
      line(context, std::string(target.id).c_str());
    return {};
  });
}

wavejit_status wavejit_prebuild(const wavejit_engine_options* options, const char* const* descriptors, size_t count,
                                const char* targets, int32_t jobs, wavejit_prebuild_callback progress, void* context) {
  return guarded([&]() -> Result<void> {
    if (auto given = require(targets, "targets", "a comma-separated list"); !given) return given;
    PrebuildRequest request;
    request.everything = descriptors == nullptr;
    request.targets = targets;
    request.jobs = jobs;
    return run_prebuild(options, descriptors, count, request, [&](const PrebuildProgress& state) {
      if (progress == nullptr) return;
      const auto out = common_progress<wavejit_prebuild_progress>(state);
      progress(context, &out);
    });
  });
}

wavejit_status wavejit_prebuild_list(const wavejit_engine_options* options, const wavejit_prebuild_arguments* arguments,
                                     wavejit_prebuild_list_callback progress, void* context) {
  return guarded([&]() -> Result<void> {
    if (auto given = require(arguments, "arguments", "a struct wavejit_prebuild_arguments"); !given) return given;
    if (auto size = check_struct_size(*arguments, "arguments"); !size) return size;
    PrebuildRequest request;
    request.everything = arguments->descriptors == nullptr;
    request.jobs = arguments->jobs;
    request.whole = false;
    switch (arguments->mode) {
      case WAVEJIT_PREBUILD_COMPILE:
        request.mode = PrebuildMode::compile;
        break;
      case WAVEJIT_PREBUILD_VERIFY:
        request.mode = PrebuildMode::verify;
        break;
      case WAVEJIT_PREBUILD_VERIFY_ON_DEVICE:
        request.mode = PrebuildMode::verify_on_device;
        break;
      default:
        return fail(WAVEJIT_INVALID_ARGUMENT, "arguments.mode = " + std::to_string(arguments->mode) +
                                                  "; accepted: 0 to 2, enum wavejit_prebuild_mode");
    }
    if (arguments->targets != nullptr) {
      request.targets = arguments->targets;
    } else if (request.mode != PrebuildMode::verify_on_device) {
      return require(arguments->targets, "arguments.targets", "a comma-separated list");
    }
    if (arguments->shard != 0 || arguments->shards != 0) {
      request.shard = arguments->shard;
      request.shards = arguments->shards;
    }
    if (arguments->output != nullptr) request.output = arguments->output;
    request.archive = arguments->archive != 0;
    return run_prebuild(options, arguments->descriptors, arguments->count, request, [&](const PrebuildProgress& state) {
      if (progress == nullptr) return;
      auto out = common_progress<wavejit_prebuild_list_progress>(state);
      out.copied = state.copied;
      out.refused = state.refused;
      out.descriptor = text_of(state.descriptor);
      out.line = state.line;
      out.target = text_of(state.target);
      progress(context, &out);
    });
  });
}

wavejit_status wavejit_cache_visit(const wavejit_engine_options* options, wavejit_cache_callback entry, void* context) {
  return guarded([&]() -> Result<void> {
    if (auto given = require(entry, "entry", "a function that takes the entries"); !given) return given;
    auto config = configuration(options);
    if (!config) return std::unexpected(std::move(config.error()));
    if (config->cache_mode.value == wavejit::cache::Mode::off)
      return fail(WAVEJIT_INVALID_ARGUMENT, "cache_mode = off: there is nothing to visit; accepted: ro, rw");
    Logger logger(config->log_level.value, log_sink(*config));
    wavejit::cache::Cache cache(cache_options(*config, logger));
    const bool whole = cache.visit([&](const wavejit::cache::Visited& seen) { visit_entry(seen, entry, context); });
    if (!whole) {
      return fail(WAVEJIT_IO_ERROR, "cache_directory = " + config->cache_directory.value +
                                        " could not be read to the end; accepted: a folder that this user may read");
    }
    return {};
  });
}

wavejit_status wavejit_cache_layers(const wavejit_engine_options* options, wavejit_cache_layer_callback layer,
                                    void* context) {
  return guarded([&]() -> Result<void> {
    if (auto given = require(layer, "layer", "a function that takes the layers"); !given) return given;
    auto config = configuration(options);
    if (!config) return std::unexpected(std::move(config.error()));
    auto layers = describe_cache(*config);
    if (!layers) return std::unexpected(std::move(layers.error()));
    for (const CacheLayer& one : *layers) {
      const wavejit_cache_layer out = {.size = sizeof out,
                                       .name = one.name.c_str(),
                                       .path = one.path.c_str(),
                                       .writable = one.writable ? 1 : 0,
                                       .entries = one.entries,
                                       .bytes = one.bytes,
                                       .damaged = one.damaged,
                                       .limit_bytes = one.limit_bytes,
                                       .state = one.state.empty() ? nullptr : one.state.c_str()};
      layer(context, &out);
    }
    return {};
  });
}

wavejit_status wavejit_cache_sweep(const wavejit_engine_options* options, int32_t any_age,
                                   wavejit_cache_sweep_result* result) {
  return guarded([&]() -> Result<void> {
    if (result != nullptr) {
      if (auto size = check_output_size(*result, "result"); !size) return size;
    }
    auto config = configuration(options);
    if (!config) return std::unexpected(std::move(config.error()));
    auto swept = sweep_cache(*config, any_age != 0);
    if (!swept) return std::unexpected(std::move(swept.error()));
    if (result != nullptr) {
      hand_over(*result, wavejit_cache_sweep_result{.size = 0,
                                                    .entries = swept->entries,
                                                    .bytes = swept->bytes,
                                                    .evicted = swept->evicted,
                                                    .evicted_bytes = swept->evicted_bytes,
                                                    .leftovers_removed = swept->leftovers_removed,
                                                    .failures = swept->failures});
    }
    return {};
  });
}

wavejit_status wavejit_cache_copy(const wavejit_engine_options* options, const wavejit_cache_copy_arguments* arguments,
                                  wavejit_cache_copy_result* result) {
  return guarded([&]() -> Result<void> {
    if (auto given = require(arguments, "arguments", "a struct wavejit_cache_copy_arguments"); !given) return given;
    if (auto size = check_struct_size(*arguments, "arguments"); !size) return size;
    if (result != nullptr) {
      if (auto size = check_output_size(*result, "result"); !size) return size;
    }
    auto config = configuration(options);
    if (!config) return std::unexpected(std::move(config.error()));
    if (arguments->remote < WAVEJIT_CACHE_NO_REMOTE || arguments->remote > WAVEJIT_CACHE_FROM_REMOTE) {
      return fail(WAVEJIT_INVALID_ARGUMENT,
                  "arguments.remote = " + std::to_string(arguments->remote) + "; accepted: enum wavejit_cache_remote");
    }
    const auto text = [](const char* given) { return std::string(given != nullptr ? given : ""); };
    auto copied = copy_cache(*config, {.from = text(arguments->from),
                                       .to = text(arguments->to),
                                       .targets = text(arguments->targets),
                                       .archive = arguments->archive != 0,
                                       .remote = static_cast<wavejit_cache_remote>(arguments->remote)});
    if (!copied) return std::unexpected(std::move(copied.error()));
    if (result != nullptr) {
      hand_over(*result, wavejit_cache_copy_result{.size = 0,
                                                   .copied = copied->copied,
                                                   .present = copied->present,
                                                   .damaged = copied->damaged,
                                                   .failed = copied->failed,
                                                   .bytes = copied->bytes});
    }
    if (copied->failed == 0) return {};
    return fail(WAVEJIT_IO_ERROR,
                std::to_string(copied->failed) + " entries were not copied, the first: " + copied->first_failure);
  });
}

}  // extern "C"
