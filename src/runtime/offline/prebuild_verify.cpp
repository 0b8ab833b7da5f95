// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/offline/prebuild_verify.h"

#include <utility>

#include "runtime/kernels/code_object.h"
#include "runtime/kernels/kernel_notes.h"
#include "targets/targets.h"

namespace wavejit::runtime {
namespace {

Config without_cache(Config config) {
  config.cache_mode.value = cache::Mode::off;
  config.cache_memory = nullptr;
  return config;
}

// Loads a kernel and lets it go again.
hip_abi::hipError_t try_to_load(const HipDevice& device, const cache::Entry& entry) {
  hip_abi::hipModule_t module = nullptr;
  hip_abi::hipFunction_t function = nullptr;
  const auto error = load_module(device, entry.code_object.data(), entry.kernels.front().name, &module, &function);
  if (error == hip_abi::hipSuccess) {
    const CurrentDevice current(device.hip, device.ordinal);
    (void)device.hip.hipModuleUnload(module);
  }
  return error;
}

}  // namespace

PrebuildVerifier::PrebuildVerifier(const Config& config, const PrebuildRequest& request, const HipDevice* device,
                                   CodegenLibrary& codegen)
    : device_(device),
      logger_(config.log_level.value, log_sink(config)),
      keys_(without_cache(config), codegen, logger_) {
  cache::CacheOptions options = cache_options(config, logger_);
  if (request.output) {
    options.layers = {{.name = *request.output, .root = *request.output, .writable = false}};
    options.mode = cache::Mode::read_only;
  }
  if (options.mode == cache::Mode::read_write) options.mode = cache::Mode::read_only;
  options.memory = nullptr;
  options.on_event = [this](const cache::Event& event) {
    if (!trouble_.empty()) trouble_ += "; ";
    trouble_ += event.what;
  };
  for (const cache::Layer& layer : options.layers) places_ += (places_.empty() ? "" : ", ") + layer.root;
  cache_ = std::make_unique<cache::Cache>(std::move(options));
}

Result<void> PrebuildVerifier::check(const families::KernelSpec& spec) {
  const auto key = keys_.key_of(spec);
  if (!key) return std::unexpected(key.error());
  const std::string name = spec.text() + ", key " + key->hex() + ": ";
  trouble_.clear();
  const auto hit = cache_->lookup(*key);
  if (!hit) {
    const std::string where = places_.empty() ? "there is no cache to look in" : "not in " + places_;
    return fail(WAVEJIT_NOT_FOUND, name + where + (trouble_.empty() ? "" : " (" + trouble_ + ")"));
  }
  const auto broken = [&](const std::string& what) {
    return fail(WAVEJIT_NOT_FOUND, name + hit->path() + ": " + what);
  };
  const cache::Entry& entry = hit->entry();
  if (entry.kernels.empty()) return broken("the entry names no kernel");
  const cache::KernelFacts& kernel = entry.kernels.front();
  if (kernel.kernarg_bytes > spec.argument_bytes()) {
    return broken("the kernel reads " + std::to_string(kernel.kernarg_bytes) + " bytes of arguments; a launch gives " +
                  std::to_string(spec.argument_bytes()));
  }
  if (const auto damage = code_object_damage(entry.code_object, spec.target(), kernel.name))
    return broken("code object: " + *damage);
  if (const auto difference = notes_differ(entry.code_object, kernel)) return broken("code object: " + *difference);
  if (device_ == nullptr) return {};
  const auto error = try_to_load(*device_, entry);
  if (error == hip_abi::hipSuccess) return {};
  return broken(device_->name + " does not load it: " + error_text(device_->hip, error));
}

Result<void> check_device_of(std::span<const families::KernelSpec> specs, const HipDevice& device) {
  const targets::Target* target = targets::find_target(device.architecture);
  for (const families::KernelSpec& spec : specs) {
    const std::string& wanted = spec.target();
    if (target == nullptr || target->id != wanted) {
      return fail(WAVEJIT_INVALID_ARGUMENT, "targets: " + wanted + " does not run on " + device.name + ", which is " +
                                                device.architecture + "; accepted: the device's own target alone");
    }
  }
  return {};
}

}  // namespace wavejit::runtime
