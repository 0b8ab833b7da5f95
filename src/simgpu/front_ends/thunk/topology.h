// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the machine looks like to ROCr: node 0 is the host, node N the simulated GPU N − 1. Values come from the target
// table.
#pragma once

#include <cstdint>
#include <span>

#include "simgpu/front_ends/thunk/abi.h"
#include "simgpu/machine/device/device.h"

namespace wavejit::simgpu::thunk {

std::uint32_t node_count();
// The device of a node; null for the host and for nodes that do not exist.
Device* device_of(std::uint32_t node);

// Each: false when there is no such node. Spans that are longer than what there is stay as they were behind it.
bool describe_node(std::uint32_t node, NodeProperties& properties);
bool describe_memory(std::uint32_t node, std::span<MemoryProperties> banks);
bool describe_caches(std::uint32_t node, std::span<CacheProperties> caches);
bool describe_links(std::uint32_t node, std::span<IoLinkProperties> links);

}  // namespace wavejit::simgpu::thunk
