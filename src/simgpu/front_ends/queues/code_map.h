// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which executable memory an address lies in, and the code in it.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "simgpu/machine/device/device.h"
#include "simgpu/machine/loader/resident_code.h"

namespace wavejit::simgpu::queues {

// Thread-safe.
class CodeMap {
 public:
  // The one of the process: all devices share its addresses.
  static CodeMap& instance();

  void set_image_finder(FindImage find_image);
  // Executable memory was allocated for a device; or freed, with the code that was decoded from it.
  void add(std::uint64_t base, std::uint64_t bytes, Device& device);
  void remove(std::uint64_t base);
  // Instruction caches are invalid: memory may hold other code than before.
  void invalidate();

  // The code around an address. The text says where the address lies instead.
  std::expected<std::shared_ptr<ResidentCode>, std::string> find(std::uint64_t address);

 private:
  std::mutex mutex_;
  FindImage find_image_;
  std::map<std::uint64_t, std::shared_ptr<ResidentCode>> code_;  // by base
};

}  // namespace wavejit::simgpu::queues
