// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory as ROCr asks for it: allocations, host memory that it registers, and what it wants to know of pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "simgpu/front_ends/thunk/abi.h"

namespace wavejit::simgpu::thunk {

// Thread-safe.
class Memory {
 public:
  static Memory& instance();

  KmtStatus allocate(std::uint32_t node, std::uint64_t bytes, std::uint64_t alignment, std::uint32_t flags,
                     void** address);
  KmtStatus free(void* address);
  std::uint64_t available(std::uint32_t node) const;
  // Sets which nodes may use it. False when the memory is not known.
  bool map(void* address, std::span<const std::uint32_t> nodes);
  bool unmap(void* address);

  // Host memory by address, as often as it is registered; ranges may overlap.
  void register_host(void* address, std::uint64_t bytes);
  bool deregister_host(void* address);

  // False when nothing is known of the pointer. What is pointed to stays until the memory goes or is mapped anew.
  bool describe(const void* pointer, PointerInfo& info) const;
  bool set_user_data(const void* pointer, void* user_data);

 private:
  struct Block {
    std::uint64_t bytes = 0;
    std::uint32_t node = 0;
    std::uint32_t flags = 0;
    bool is_host = false;  // registered, not allocated here
    std::vector<std::uint32_t> mapped = {};
    void* user_data = nullptr;
    int times = 1;  // of registering
  };
  using Blocks = std::map<std::uint64_t, Block>;
  Blocks::const_iterator around(std::uint64_t address) const;
  void adopt_registered();

  mutable std::mutex mutex_;
  Blocks blocks_;                                                      // by address
  std::multiset<std::pair<std::uint64_t, std::uint64_t>> registered_;  // address, end
  std::vector<std::pair<std::uint64_t, std::uint64_t>> adopted_;       // what the device knows of them, disjoint
};

}  // namespace wavejit::simgpu::thunk
