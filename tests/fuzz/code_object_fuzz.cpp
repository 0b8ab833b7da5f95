// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Code objects: what the simulated GPU's loader reads of one (ELF, kernel descriptors, metadata in MessagePack), and
// what an engine compares of one with its cache entry. What is accepted lies inside the file.
#include <cstdint>

#include "forge.h"
#include "runtime/kernels/code_object.h"
#include "runtime/kernels/kernel_notes.h"
#include "simgpu/machine/loader/code_object.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using wavejit::fuzz::require;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto object = wavejit::simgpu::read_code_object(bytes);
  if (object) {
    for (const auto& segment : object->segments) {
      require(segment.file_offset <= size && segment.file_bytes <= size - segment.file_offset);
      require(segment.memory_bytes >= segment.file_bytes && segment.address <= object->memory_bytes &&
              segment.memory_bytes <= object->memory_bytes - segment.address);
    }
    for (const auto& kernel : object->kernels) require(kernel.descriptor_address < object->memory_bytes);
  } else {
    require(!object.error().empty());
  }
  wavejit::cache::KernelFacts facts{.name = "one", .kernarg_bytes = 12, .threads = 1024};
  const auto differs = wavejit::runtime::notes_differ(bytes, facts);
  require(!differs || !differs->empty());
  const auto damage = wavejit::runtime::code_object_damage(bytes, "gfx942", "one");
  require(!damage || !damage->empty());
  return 0;
}
