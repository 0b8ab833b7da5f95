// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/checks/memory_shadow.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <format>
#include <optional>
#include <utility>

#include "isa/instruction_set.h"
#include "simgpu/checkers/checks/stored.h"
#include "simgpu/machine/launch/finding.h"
#include "simgpu/machine/launch/launch.h"

namespace wavejit::simgpu::checks {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto in_order = std::memory_order_seq_cst;

// Bit i: byte i.
std::uint32_t bits_of_bytes(std::uint32_t bytes) {
  std::uint32_t bits = 0;
  for (unsigned i = 0; i < 4; ++i) bits |= ((bytes >> i) & 1) * (0xffu << (8 * i));
  return bits;
}

const char* verb(bool reads, bool writes) {
  if (reads && writes) return "updates";
  return writes ? "writes" : "reads";
}

// What is missing between accesses of two workgroups. `past_caches`: the earlier access left nothing in the L2.
const char* words_of(WorkgroupOrder::Missing missing, bool past_caches, bool split) {
  past_caches = past_caches || split;
  if (split && missing == WorkgroupOrder::Missing::acquire) {
    return "in the same launch: no global_inv of the device's scope lies between the atomic that this wave saw and this access";
  }
  switch (missing) {
    case WorkgroupOrder::Missing::release:
      return past_caches
                 ? "in the same launch: it was not waited for before the atomic that this wave saw"
                 : "in the same launch: no buffer_wbl2 sc1 behind it was waited for before the atomic that this wave saw";
    case WorkgroupOrder::Missing::acquire:
      return "in the same launch: no buffer_inv sc1 lies between the atomic that this wave saw and this access";
    default:
      return "in the same launch: nothing orders the two";
  }
}

}  // namespace

MemoryShadow::MemoryShadow(const Launch& launch, bool several_threads)
    : launch_(launch), several_threads_(several_threads), blocks_(launch.memory->allocations().size()) {}

MemoryShadow::~MemoryShadow() {
  for (Block& block : blocks_) {
    if (std::uint8_t* room = block.room.load(relaxed)) munmap(room, block.bytes);
  }
}

MemoryShadow::Cells MemoryShadow::cells(const Allocation& allocation) {
  const std::span<const Allocation> all = launch_.memory->allocations();
  if (&allocation < all.data() || &allocation >= all.data() + all.size()) return {};
  Block& block = blocks_[static_cast<std::size_t>(&allocation - all.data())];
  const std::uint64_t lines = (allocation.bytes / line_bytes) + 1;
  const std::uint64_t dwords = lines * line_bytes / 4;
  const auto in = [&](std::uint8_t* room) -> Cells {
    std::uint8_t* writers = room + (lines * sizeof(Line));
    return {.lines = reinterpret_cast<Line*>(room),
            .writers = reinterpret_cast<Writer*>(writers),
            .readers = reinterpret_cast<Readers*>(writers + (dwords * sizeof(Writer)))};
  };
  if (std::uint8_t* room = block.room.load(std::memory_order_acquire)) return in(room);
  const std::scoped_lock lock(mutex_);
  if (std::uint8_t* room = block.room.load(relaxed)) return in(room);
  // Address space only, until it is touched; zeros are cells in which nobody was.
  block.bytes = (lines * sizeof(Line)) + (dwords * (sizeof(Writer) + sizeof(Readers)));
  void* room = mmap(nullptr, block.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return {};
  block.room.store(static_cast<std::uint8_t*>(room), std::memory_order_release);
  return in(static_cast<std::uint8_t*>(room));
}

std::uint32_t MemoryShadow::place(const Instruction& instruction) const {
  return static_cast<std::uint32_t>((instruction.address - launch_.code->base()) / 4) + 1;
}

const Instruction* MemoryShadow::instruction(std::uint32_t place) const {
  return place == 0 ? nullptr : launch_.code->instruction_at(launch_.code->base() + std::uint64_t{place - 1} * 4);
}

void WorkgroupMemory::prepare(Launch& launch, std::uint64_t workgroup, unsigned waves, bool shares_path) {
  launch_ = &launch;
  shadow_ = workgroup < most_workgroups ? static_cast<MemoryShadow*>(launch.shared_by_checkers.get()) : nullptr;
  workgroup_ = workgroup + 1;
  last_ = before_barrier_ = 0;
  passed_.safe.assign(waves, 0);
  passed_.in_front = passed_.safe;
  before_ = passed_;
  shares_path_ = shares_path;
  arrived_.assign(waves, no_access);
  order_.prepare(shadow_ == nullptr ? nullptr : &shadow_->order(), workgroup_, waves,
                 isa::instruction_set(*launch.target) == isa::InstructionSet::rdna4);
  recent_.resize(waves);
  for (RecentLoads& recent : recent_) recent.clear();
  allocation_ = nullptr;
  cells_ = {};
}

void WorkgroupMemory::barrier(const std::vector<AccessId>& oldest) {
  before_ = passed_;
  std::vector<AccessId>& safe = passed_.safe;
  for (std::size_t wave = 0; wave < safe.size(); ++wave) {
    safe[wave] = oldest[wave] == no_access ? last_ : oldest[wave] - 1;
    if (arrived_[wave] != no_access) safe[wave] = std::min(safe[wave], arrived_[wave] - 1);
    arrived_[wave] = no_access;
  }
  before_barrier_ = last_;
  if (order_.follows()) {
    order_.barrier();
    for (unsigned wave = 0; wave < safe.size(); ++wave) safe[wave] = std::max(safe[wave], order_.over(wave));
  }
  passed_.in_front = safe;
  if (shares_path_) std::ranges::fill(passed_.in_front, last_);
}

// Whether a barrier lies behind the access of another wave of the workgroup, and what is in front of it counts: where
// vector memory is in order all but LDS DMA, whose other end is elsewhere; else what was waited for.
bool WorkgroupMemory::was_in_front(const Mark& other) const {
  const unsigned wave = other.who.wave();
  if (other.who.id() <= passed_.safe[wave]) return true;
  if (other.who.id() > passed_.in_front[wave]) return false;
  const Instruction* instruction = shadow_->instruction(other.place);
  return instruction == nullptr || !(instruction->lds || instruction->record->to_lds);
}

WorkgroupOrder::Missing WorkgroupMemory::missing(const Access& access, Who other, bool other_reads) const {
  const Who mine{access.who};
  return order_.missing(mine.wave(),
                        {.workgroup = static_cast<std::uint32_t>(other.workgroup()),
                         .wave = other.wave(),
                         .id = other.id(),
                         .is_plain_write = !other_reads && !other.atomic()},
                        !access.writes && !mine.atomic());
}

bool WorkgroupMemory::races(const Access& access, const Mark& mark, bool other_reads, std::uint32_t bytes) const {
  const Who other = mark.who;
  if (other.bits == 0 || (other.bytes() & bytes) == 0) return false;
  const Who mine{access.who};
  if (other.workgroup() != workgroup_) {
    if (other.atomic() && mine.atomic()) return false;
    return missing(access, other, other_reads) != WorkgroupOrder::Missing::nothing;
  }
  if (other.atomic_in_workgroup() && mine.atomic_in_workgroup()) return false;
  return other.wave() != mine.wave() && !was_in_front(mark);
}

std::uint32_t WorkgroupMemory::kept_bytes(const Access& access, Who before) const {
  const unsigned wave = Who{access.who}.wave();
  const bool is_own = before.workgroup() == workgroup_ && before.wave() == wave;
  return is_own && before.id() > passed_.in_front[wave] ? before.bytes() : 0;
}

inline WorkgroupMemory::Mark WorkgroupMemory::look(const MemoryShadow::WhoBits& who, const MemoryShadow::Place& place) {
  Mark mark;
  mark.who.bits = who.load(in_order);
  mark.place = place.load(relaxed);
  return mark;
}

template <typename Next>
inline WorkgroupMemory::Mark WorkgroupMemory::leave(MemoryShadow::WhoBits& who, MemoryShadow::Place& at,
                                                    std::uint32_t place, Next next) const {
  Mark before{.who = {who.load(relaxed)}, .place = at.load(relaxed)};
  at.store(place, relaxed);
  if (!shadow_->several_threads()) {
    who.store(next(before), relaxed);
    return before;
  }
  while (!who.compare_exchange_weak(before.who.bits, next(before), in_order)) {
    // Somebody was there in between: the place is theirs, or this one's own if it came last.
    const std::uint32_t there = at.exchange(place, relaxed);
    if (there != place || before.place == 0) before.place = there;
  }
  return before;
}

// Between a mark and the look for others, as the marks themselves: who does not see the flag is seen.
inline void WorkgroupMemory::raise(std::atomic<std::uint32_t>& flag) const {
  if (flag.load(in_order) == 0) flag.store(1, shadow_->several_threads() ? in_order : relaxed);
}

inline void WorkgroupMemory::mark_read(const Access& access, MemoryShadow::Readers& readers,
                                       std::uint32_t bytes) const {
  using enum MemoryShadow::Party;
  const Who mine{access.who};
  leave(readers.who[last], readers.place[last], access.place, [&](const Mark& before) {
    std::uint64_t now = mine.bits | bytes | kept_bytes(access, before.who);
    if (before.who.bits == 0) return now;
    if (before.who.workgroup() != workgroup_ || before.who.wave() != mine.wave()) {
      // Before it leaves its own place, so that who looks there first finds it in one of the two.
      readers.place[other].store(before.place, relaxed);
      readers.who[other].store(before.who.bits, std::memory_order_release);
    }
    const bool plain_elsewhere = before.who.workgroup() != workgroup_ && !before.who.atomic();
    const bool joins = plain_elsewhere && before.who.bytes() == 15 && bytes == 15;
    if (before.who.several() || joins) now |= 1u << 5;
    return now;
  });
}

WorkgroupMemory::Mark WorkgroupMemory::mark_written(const Access& access, MemoryShadow::Writer& writer,
                                                    std::uint32_t bytes) const {
  return leave(writer.who, writer.place, access.place,
               [&](const Mark& before) { return access.who | bytes | kept_bytes(access, before.who); });
}

bool WorkgroupMemory::complain(Wave& wave, const Instruction& instruction, const Access& access, const Mark& other,
                               bool other_reads, std::uint64_t address, unsigned lane) const {
  const Instruction* place = shadow_->instruction(other.place);
  SwapLoops& loops = shadow_->loops();
  const Instruction* load = loops.load_of(instruction, place);
  if (!worth_reporting(wave, instruction, Check::races, place)) return true;
  if (load != nullptr && !loops.wants(wave, instruction, place)) return false;
  Site site{.instruction = place, .wave = static_cast<int>(other.who.wave())};
  const bool is_ours = other.who.workgroup() == workgroup_;
  std::string whose = std::format("wave {}", other.who.wave());
  const bool must_wait = !shares_path_ || other.who.id() <= passed_.in_front[other.who.wave()];
  const char* order =
      must_wait ? "with no barrier in between that it was waited for before" : "with no barrier in between";
  if (!is_ours) {
    std::uint64_t rest = other.who.workgroup() - 1;
    std::array<std::uint32_t, 3> id{};
    for (unsigned i = 0; i < 3; ++i) {
      id[i] = static_cast<std::uint32_t>(rest % launch_->workgroups[i]);
      rest /= launch_->workgroups[i];
    }
    site.workgroup = id;
    whose = std::format("workgroup ({}, {}, {})", id[0], id[1], id[2]);
    order = words_of(missing(access, other.who, other_reads), other_reads || other.who.atomic(),
                     instruction.record->split_counters);
  }
  Finding finding =
      finding_of(wave, instruction, Check::races, static_cast<int>(lane),
                 std::format("{} byte {:#x} of device memory, which {} {}{} {}", verb(access.reads, access.writes),
                             address, whose, verb(other_reads || other.who.atomic(), !other_reads),
                             place == nullptr ? std::string() : " by " + name_instruction(*place), order),
                 site);
  if (load == nullptr) {
    launch_->add(std::move(finding));
  } else {
    loops.put_aside(*load, std::move(finding));
  }
  return load == nullptr;
}

void WorkgroupMemory::look_at_writer(Wave& wave, const Instruction& instruction, const Access& access,
                                     std::uint64_t offset, std::uint32_t bytes, unsigned lane) const {
  const MemoryShadow::Writer& cell = cells_.writers[offset / 4];
  const Mark writer = look(cell.who, cell.place);
  if (!races(access, writer, false, bytes)) return;
  complain(wave, instruction, access, writer, false, allocation_->base + offset, lane);
}

void WorkgroupMemory::read_dword(Wave& wave, const Instruction& instruction, const Access& access, std::uint64_t offset,
                                 std::uint32_t bytes, unsigned lane) {
  MemoryShadow::Line& line = cells_.lines[offset / MemoryShadow::line_bytes];
  mark_read(access, cells_.readers[offset / 4], bytes);
  raise(line.parts_read);
  if (line.written.load(in_order) != 0) look_at_writer(wave, instruction, access, offset, bytes, lane);
}

// Takes down what is stored, and returns in which bits it differs from what was stored there before. The caller holds
// the cell's lock.
std::uint32_t WorkgroupMemory::keep_stored(MemoryShadow::Writer& writer, std::uint32_t bytes, std::uint32_t stored) {
  const std::uint32_t bits = bits_of_bytes(bytes);
  const std::uint32_t before = writer.stored.load(relaxed);
  writer.stored.store((before & ~bits) | stored, relaxed);
  return (before ^ stored) & bits;
}

// Whether a store left just this there, so that it does not matter which of the two comes last.
bool WorkgroupMemory::repeats(const Mark& other, std::uint32_t bytes, std::uint32_t differing) const {
  if ((differing & bits_of_bytes(bytes & other.who.bytes())) != 0) return false;
  const Instruction* instruction = shadow_->instruction(other.place);
  return instruction != nullptr && !instruction->record->atomic;
}

void WorkgroupMemory::write_dword(Wave& wave, const Instruction& instruction, const Access& access,
                                  std::uint64_t offset, std::uint32_t bytes, unsigned lane,
                                  const std::uint32_t* stored) {
  using enum MemoryShadow::Party;
  const std::uint64_t address = allocation_->base + offset;
  MemoryShadow::Line& line = cells_.lines[offset / MemoryShadow::line_bytes];
  MemoryShadow::Writer& cell = cells_.writers[offset / 4];
  std::uint32_t differing = ~0u;
  Mark writer;
  {
    // The value and the mark change as one: between the two, a store of the same value from another thread would leave
    // a mark beside which this one's `differing` still compares with the value before both.
    std::unique_lock<std::mutex> lock;
    if (shadow_->several_threads()) lock = std::unique_lock(shadow_->writer_lock(offset));
    if (stored != nullptr) differing = keep_stored(cell, bytes, *stored);
    writer = mark_written(access, cell, bytes);
  }
  raise(line.written);
  if (races(access, writer, false, bytes) && !repeats(writer, bytes, differing)) {
    complain(wave, instruction, access, writer, false, address, lane);
  }
  const MemoryShadow::Readers& own = cells_.readers[offset / 4];
  const MemoryShadow::Readers& together = line.readers;
  bool several = false;
  const Instruction* one_of_several = nullptr;
  for (const MemoryShadow::Readers* readers : {&own, &together}) {
    // Where nobody was, nobody need look: the room for it is made when it is touched.
    if (readers == &own && line.parts_read.load(in_order) == 0) continue;
    for (const MemoryShadow::Party party : {last, other}) {
      const Mark reader = look(readers->who[party], readers->place[party]);
      if (races(access, reader, true, bytes) && complain(wave, instruction, access, reader, true, address, lane)) {
        return;
      }
      if (party != last || !reader.who.several()) continue;
      several = true;
      one_of_several = shadow_->instruction(reader.place);
    }
  }
  // Which ones is not known: a wave that has seen others' atomics may have waited for them.
  if (!several || order_.has_seen_others(wave.index) || !worth_reporting(wave, instruction, Check::races)) return;
  SwapLoops& loops = shadow_->loops();
  const Instruction* load = loops.load_of(instruction, one_of_several);
  if (load != nullptr && !loops.wants(wave, instruction, nullptr)) return;
  Finding finding =
      finding_of(wave, instruction, Check::races, static_cast<int>(lane),
                 std::format("writes byte {:#x} of device memory, which other workgroups read in the same launch: "
                             "nothing orders them",
                             address));
  if (load == nullptr) return launch_->add(std::move(finding));
  loops.put_aside(*load, std::move(finding));
}

// All of a line, read by the lanes of one run.
std::uint64_t WorkgroupMemory::read_line(Wave& wave, const Instruction& instruction, const Access& access,
                                         const Run& run, std::uint64_t offset) {
  MemoryShadow::Line& line = cells_.lines[offset / MemoryShadow::line_bytes];
  mark_read(access, line.readers, 15);
  if (line.written.load(in_order) != 0) {
    const std::uint64_t begin = run.first - allocation_->base;
    for (std::uint64_t at = offset; at < offset + MemoryShadow::line_bytes; at += 4) {
      look_at_writer(wave, instruction, access, at, 15, run.lane_at(at - begin));
    }
  }
  return offset + MemoryShadow::line_bytes;
}

// Whether the run lies in one allocation of which something is remembered. Others: a fault, what
// lies behind the size that was asked for, memory that only this launch has.
bool WorkgroupMemory::enter(const Run& run) {
  if (allocation_ == nullptr || !allocation_->holds(run.first, run.bytes)) {
    const Allocation* found = launch_->find(run.first);
    if (found == nullptr || !found->holds(run.first, run.bytes)) return false;
    allocation_ = found;
    cells_ = shadow_->cells(*found);
  }
  return cells_.lines != nullptr;
}

// A run that was entered.
void WorkgroupMemory::touch(Wave& wave, const Instruction& instruction, const Access& access, const Run& run) {
  const std::uint64_t begin = run.first - allocation_->base;
  const std::uint64_t end = begin + run.bytes;
  const bool is_store = access.writes && !access.effects->atomic && launch_->settings.rules == Rules::compiler;
  std::optional<Stored> data;  // of `of_lane`
  unsigned of_lane = 0;
  for (std::uint64_t at = begin; at < end;) {
    if (!access.writes && at % MemoryShadow::line_bytes == 0 && end - at >= MemoryShadow::line_bytes) {
      at = read_line(wave, instruction, access, run, at);
      continue;
    }
    const std::uint64_t next = std::min(end, (at / 4 + 1) * 4);
    const auto mask = static_cast<std::uint32_t>(((1u << (next - at)) - 1) << (at % 4));
    const unsigned lane = run.lane_at(at - begin);
    if (access.writes) {
      std::uint32_t stored = 0;
      if (is_store) {
        if (!data || lane != of_lane) data.emplace(wave, instruction, *access.effects, 0, lane);
        of_lane = lane;
        const std::uint64_t in_lane = (at - begin) % run.lane_bytes;
        std::memcpy(&stored, data->bytes + in_lane, next - at);
        stored <<= 8 * (at % 4);
      }
      write_dword(wave, instruction, access, at, mask, lane, is_store ? &stored : nullptr);
    } else {
      read_dword(wave, instruction, access, at, mask, lane);
    }
    at = next;
  }
}

AccessId WorkgroupMemory::access(Wave& wave, const Instruction& instruction, const Effects& effects, const Runs& runs,
                                 const LaneAddresses& lanes) {
  if (shadow_ == nullptr || last_ >= most_accesses || effects.space == Space::scratch) return no_access;
  const AccessId id = ++last_;
  // Loads and stores of a scope beyond the wave are what compilers make of atomic loads and stores (LLVM, "Memory Model
  // gfx942": sc0, the workgroup; sc1, the agent); plain ones have neither bit.
  const std::uint64_t atomic = effects.atomic || instruction.sc1 ? 1u << 4 : instruction.sc0 ? 1u << 6 : 0u;
  const Access access{.who = (workgroup_ << 40) | (std::uint64_t{wave.index} << 36) | (std::uint64_t{id} << 7) | atomic,
                      .place = shadow_->place(instruction),
                      .reads = effects.loads,
                      .writes = effects.stores,
                      .effects = &effects};
  if (shadow_->loops().follows()) {
    RecentLoads& recent = recent_[wave.index];
    if (effects.swaps) recent.look_behind(lanes, shadow_->loops());
    if (effects.loads && !effects.stores && !effects.lds_dma) recent.note(instruction, lanes);
  }
  if (wave.may_pass) std::swap(passed_, before_);  // it has not waited (lds_shadow.cpp)
  for (const Run& run : runs) {
    if (enter(run)) {
      touch(wave, instruction, access, run);
      continue;
    }
    run.each_lane([&](const Run& lane) {
      if (enter(lane)) touch(wave, instruction, access, lane);
    });
  }
  if (wave.may_pass) std::swap(passed_, before_);
  return id;
}

}  // namespace wavejit::simgpu::checks
