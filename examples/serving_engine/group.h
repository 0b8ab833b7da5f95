// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The processes of one tensor-parallel group on one machine, and the one thing they do together: each contributes its
// heads' answers and gets everybody's. Stands in for RCCL. The memory is made before the processes are forked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "half.h"

namespace serving {

class Group {
 public:
  Group(int ranks, std::size_t most_values);  // of one rank in one exchange
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int ranks() const { return ranks_; }

  // Everybody's values, in the order of ranks. Waits for the others; throws when one of them has failed.
  // `waited_nanoseconds` grows by the time spent waiting.
  std::vector<Half> gather(int rank, const std::vector<Half>& mine, std::uint64_t& waited_nanoseconds);

  // A rank is no more: nobody shall wait for it.
  void fail() noexcept;

 private:
  struct Meeting;

  void meet(std::uint64_t& waited_nanoseconds);
  Half* values_of(int rank) const;

  int ranks_;
  std::size_t most_values_;
  std::size_t bytes_;
  void* memory_;
  std::uint32_t round_ = 0;  // this process's own count of exchanges
};

}  // namespace serving
