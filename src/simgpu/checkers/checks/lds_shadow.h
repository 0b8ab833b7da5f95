// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is known about each byte of a workgroup's LDS: who wrote it last, which waves read it since, and whether what it
// holds was ever written.
//
// Barriers are the only order between waves. An access spans the time from its issue to the wait that covers it; time
// is counted in barriers passed. Two accesses of different waves that overlap in bytes, at least one of them a write,
// are a race unless one was waited for before a barrier that the other was issued after. Two plain writes of the same
// value are none: compilers let several waves hold and write what one of them would do for.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "simgpu/checkers/checks/swap_loops.h"
#include "simgpu/checkers/facts/addresses.h"
#include "simgpu/checkers/facts/effects.h"
#include "simgpu/machine/wave/wave.h"

namespace wavejit::simgpu::checks {

using AccessId = std::uint32_t;
inline constexpr AccessId no_access = 0;

enum class AccessKind : std::uint8_t { read, write, atomic, dma };

// Undefined bytes of what a load got: per lane, bit i for byte i (two-address loads: the second element's above).
struct UndefinedLanes {
  bool any = false;
  std::array<std::uint16_t, lane_places> bytes{};
};

class LdsShadow {
 public:
  // Begins a new workgroup, in which nothing was written or read. `loops`: those of the launch; null if its races are
  // not followed.
  void prepare(std::uint32_t bytes, unsigned waves, std::uint32_t checks, SwapLoops* loops);

  // Records the access, reports its races (and, for LDS DMA and LDS instructions of one wave, missing waits).
  // `undefined_data`: bytes stored that hold nothing. Loads fill `loaded`.
  AccessId access(Wave& wave, const Instruction& instruction, const Effects& effects, const LocalAddresses& addresses,
                  AccessKind kind, const UndefinedLanes& undefined_data, UndefinedLanes& loaded);

  // The wait that covers the access was executed.
  void complete(AccessId id, unsigned wave);

  // A wave arrived at a barrier in two parts: what it does from here on is behind its side of it. Its oldest accesses
  // not yet waited for, as below.
  void signal(unsigned wave, AccessId oldest_local, AccessId oldest_dma);

  // All waves passed a barrier. `oldest_local` and `oldest_dma`: per wave, the oldest access not yet waited for.
  void barrier(const std::vector<AccessId>& oldest_local, const std::vector<AccessId>& oldest_dma);

  // The instruction that wrote a byte last; null when none did.
  const Instruction* writer_of(std::uint32_t offset) const;

 private:
  struct Access {
    const Instruction* instruction;
    std::uint32_t completed;  // barriers passed when it was waited for
    std::uint16_t wave;
    AccessKind kind;
  };
  static constexpr std::uint32_t pending = ~std::uint32_t{0};
  static constexpr std::uint32_t mixed = 0x8000'0000;  // of a writer: index of the bytes' own writers
  // The most accesses of earlier workgroups that are counted. With those of the next workgroup, numbers stay below 2²⁷,
  // and readers' marks below 2³¹.
  static constexpr AccessId most_accesses = 1u << 26;

  struct Span {
    std::uint32_t first;  // byte
    std::uint32_t bytes;
  };
  const Access& at(AccessId id) const { return accesses_[id - base_ - 1]; }
  bool written(AccessId id) const { return id > base_; }
  template <unsigned words>
  bool read_plainly(unsigned wave, AccessId id, const LocalAddresses& addresses);
  bool write_plainly(unsigned wave, AccessId id, AccessKind kind, std::uint32_t first, std::uint32_t words);
  template <unsigned words>
  std::uint64_t access_plainly(const Wave& wave, AccessId id, AccessKind kind, const LocalAddresses& addresses);
  std::uint32_t read(Wave& wave, const Instruction& instruction, AccessId id, AccessKind kind, Span span,
                     unsigned lane);
  // `stored`: the bytes, of a plain write; else null.
  void write(Wave& wave, const Instruction& instruction, AccessId id, AccessKind kind, Span span, unsigned lane,
             std::uint32_t undefined, const std::uint8_t* stored);
  AccessId note(Wave& wave, const Instruction& instruction, const Effects& effects, const LocalAddresses& addresses,
                AccessKind kind, const UndefinedLanes& undefined_data, UndefinedLanes& loaded);
  bool repeats(AccessId earlier, std::uint32_t byte, std::uint32_t bytes, const std::uint8_t* stored) const;
  void check(Wave& wave, const Instruction& instruction, AccessKind kind, AccessId earlier, bool earlier_reads,
             std::uint32_t byte, unsigned lane) const;
  AccessId byte_writer(std::uint32_t byte) const;

  std::uint32_t checks_ = 0;
  std::uint32_t bytes_ = 0;
  std::uint32_t words_ = 0;
  unsigned waves_ = 0;
  AccessId base_ = 0;  // accesses up to here belong to earlier workgroups
  AccessId last_ = 0;
  struct Passed {
    std::uint32_t barriers = 0;
    AccessId all_safe = 0;  // accesses up to here are over and behind a barrier
    std::vector<AccessId> local_safe;
  };
  Passed passed_;
  Passed before_;  // as it was in front of the last barrier
  // Waves that have signalled a barrier and not passed it: up to where their accesses will be behind it.
  struct Arrived {
    bool has_signalled = false;
    AccessId local = 0;
    AccessId dma = 0;
  };
  std::vector<Arrived> arrived_;
  std::vector<Access> accesses_;
  std::vector<std::uint32_t> writers_;               // per dword
  std::vector<std::vector<std::uint32_t>> readers_;  // per wave, per dword: access << 4 | bytes
  std::vector<std::array<AccessId, 4>> mixed_;
  std::vector<std::uint8_t> stored_;      // by the last plain write of each byte, which may still be on its way
  std::vector<std::uint64_t> undefined_;  // a bit a byte: written, with nothing
  bool any_undefined_ = false;
  SwapLoops* loops_ = nullptr;
  std::vector<RecentLoads> recent_;  // per wave
};

}  // namespace wavejit::simgpu::checks
