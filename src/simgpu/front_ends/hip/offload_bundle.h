// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Clang's offload bundles: several code objects, each with the target id it was built for, in one blob. The format is
// described in clang's document "Clang Offload Bundler"; compressed bundles ("CCOB", versions 2 and 3) hold zlib or
// zstd.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hip_abi/hip_abi.h"

namespace wavejit::simgpu::hip_front {

// Why a blob gave no code object: hipErrorInvalidImage, or hipErrorNoBinaryForGpu when it has none for the device.
struct BundleError {
  hip_abi::hipError_t error;
  std::string text;
};

// The size of what starts at `image`, judged by its own headers: an ELF code object, a bundle or a compressed bundle.
// HIP hands images over without a size. 0 when it is none of these or reaches into memory that is not mapped.
std::size_t image_size(const void* image);

// The code object for a device whose target id is `device_target` ("gfx942:sramecc+:xnack-"), unpacked from whatever
// `image` is. A bare ELF is handed back as it is, if its processor and features fit.
std::expected<std::vector<std::byte>, BundleError> select_code_object(std::span<const std::byte> image,
                                                                      std::string_view device_target);

// How well a code object built for `wanted` runs on `device`: −1 not at all, else the number of features it names.
int target_match(std::string_view wanted, std::string_view device);

}  // namespace wavejit::simgpu::hip_front
