// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Finished kernels with one instruction less: every wait, barrier, wait state and mask of a code object, taken out or
// weakened one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace wavejit::tests {

enum class Change : std::uint8_t {
  wait_removed,
  vector_wait_removed,  // vmcnt of a wait for both counters
  local_wait_removed,   // lgkmcnt of one
  vector_wait_looser,   // one more operation may be on its way
  local_wait_looser,
  barrier_removed,
  nop_removed,
  nop_shorter,  // by one wait state
  mask_removed,
};
std::string_view to_text(Change change);

// One change to one instruction. Removed means gone: what follows moves up, and branches over the place are shortened,
// so that not even the wait state of an s_nop remains. Of two instructions in one (VOPD) the other half stays.
struct Mutation {
  Change change = Change::wait_removed;
  std::uint32_t offset = 0;  // of the instruction in the kernel's function
  std::string instruction;
  std::string next;  // mnemonic of the instruction behind it
  std::vector<std::byte> code_object;

  // What a list can name whatever register and offset it has after the next change to the kernel:
  // "wait_removed s_waitcnt lgkmcnt(0) | s_barrier".
  std::string name() const;
};

// The mutations of the code object's only kernel, in address order. The error says what cannot be read.
std::expected<std::vector<Mutation>, std::string> mutations_of(const std::vector<std::byte>& code_object);

}  // namespace wavejit::tests
