// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether the kernels of a list are there and good. Compiles nothing and writes nothing.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "runtime/kernels/kernel_source.h"
#include "runtime/libraries/hip_library.h"
#include "runtime/offline/prebuild.h"

namespace wavejit::runtime {

class PrebuildVerifier {
 public:
  // `device`: also loads each kernel there; null: no device.
  PrebuildVerifier(const Config& config, const PrebuildRequest& request, const HipDevice* device,
                   CodegenLibrary& codegen);
  PrebuildVerifier(const PrebuildVerifier&) = delete;
  PrebuildVerifier& operator=(const PrebuildVerifier&) = delete;

  // WAVEJIT_NOT_FOUND with the reason.
  Result<void> check(const families::KernelSpec& spec);

 private:
  const HipDevice* device_;
  Logger logger_;
  std::string places_;   // where is looked, for messages
  std::string trouble_;  // what the cache told of the lookup that is under way
  KernelSource keys_;    // reads nothing
  std::unique_ptr<cache::Cache> cache_;
};

// All of them are the device's.
Result<void> check_device_of(std::span<const families::KernelSpec> specs, const HipDevice& device);

}  // namespace wavejit::runtime
