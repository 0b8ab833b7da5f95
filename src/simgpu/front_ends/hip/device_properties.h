// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a simulated device answers about itself. Derived from the target table; what the table does not say is what
// AMD's published data for these products says, or the value that HIP reports for "not on this device".
#pragma once

#include <optional>
#include <string>

#include "hip_abi/hip_abi.h"
#include "simgpu/machine/device/device.h"

namespace wavejit::simgpu::hip_front {

// "gfx942:sramecc+:xnack-", "gfx1201": what HIP calls gcnArchName. Simulated devices of CDNA have SRAM ECC and no
// XNACK, as shipped.
std::string target_id(const Device& device);

// "0000:03:00.0"
std::string pci_bus_id(int ordinal);

hip_abi::hipDeviceProp_tR0600 device_properties(const Device& device);
hip_abi::hipDeviceProp_tR0000 to_old_layout(const hip_abi::hipDeviceProp_tR0600& properties);

// Nothing for a number that is no attribute.
std::optional<int> device_attribute(const Device& device, hip_abi::hipDeviceAttribute_t attribute);

}  // namespace wavejit::simgpu::hip_front
