// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group.h"

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace serving {

namespace {

constexpr std::size_t head_bytes = 64;
constexpr std::chrono::seconds patience{120};  // a rank that compiles keeps the others waiting; one that hangs must not

}  // namespace

struct Group::Meeting {
  std::atomic<std::uint32_t> arrived;
  std::atomic<std::uint32_t> rounds;
  std::atomic<bool> failed;
};

Group::Group(int ranks, std::size_t most_values)
    : ranks_(ranks),
      most_values_(most_values),
      bytes_(head_bytes + 2 * static_cast<std::size_t>(ranks) * most_values * sizeof(Half)),
      memory_(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
  static_assert(sizeof(Meeting) <= head_bytes && std::atomic<std::uint32_t>::is_always_lock_free);
  if (memory_ == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "memory that the ranks share");
  new (memory_) Meeting{};
}

Group::~Group() { ::munmap(memory_, bytes_); }

void Group::fail() noexcept { static_cast<Meeting*>(memory_)->failed.store(true); }

// Two sets of places by turns: who is already in the next round writes where nobody reads any more.
Half* Group::values_of(int rank) const {
  const std::size_t place = (round_ % 2) * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(rank);
  return reinterpret_cast<Half*>(static_cast<std::byte*>(memory_) + head_bytes) + place * most_values_;
}

void Group::meet(std::uint64_t& waited_nanoseconds) {
  auto& meeting = *static_cast<Meeting*>(memory_);
  const auto began = std::chrono::steady_clock::now();
  if (meeting.arrived.fetch_add(1) + 1 == static_cast<std::uint32_t>(ranks_)) {
    meeting.arrived.store(0);
    meeting.rounds.fetch_add(1);
  }
  while (meeting.rounds.load() == round_) {
    if (meeting.failed.load()) throw std::runtime_error("another rank failed");
    if (std::chrono::steady_clock::now() - began > patience) throw std::runtime_error("another rank did not come");
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  waited_nanoseconds += static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - began).count());
}

std::vector<Half> Group::gather(int rank, const std::vector<Half>& mine, std::uint64_t& waited_nanoseconds) {
  if (mine.size() > most_values_) throw std::logic_error("more values than the group was made for");
  std::copy(mine.begin(), mine.end(), values_of(rank));
  meet(waited_nanoseconds);
  std::vector<Half> all;
  for (int other = 0; other < ranks_; ++other) all.insert(all.end(), values_of(other), values_of(other) + mine.size());
  ++round_;
  return all;
}

}  // namespace serving
