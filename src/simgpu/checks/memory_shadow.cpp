#include "simgpu/checks/memory_shadow.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <format>

#include "simgpu/checks/finding.h"
#include "simgpu/launch/launch.h"

namespace wavejit::simgpu::checks {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto in_order = std::memory_order_seq_cst;

const char* verb(bool reads, bool writes) {
  if (reads && writes) return "updates";
  return writes ? "writes" : "reads";
}

}  // namespace

MemoryShadow::MemoryShadow(const Launch& launch, bool several_threads)
    : launch_(launch), several_threads_(several_threads), blocks_(launch.memory->allocations().size()) {}

MemoryShadow::~MemoryShadow() {
  for (Block& block : blocks_) {
    if (Cell* cells = block.cells.load(relaxed)) munmap(cells, block.bytes);
  }
}

MemoryShadow::Cell* MemoryShadow::cells(const Allocation& allocation) {
  const std::span<const Allocation> all = launch_.memory->allocations();
  if (&allocation < all.data() || &allocation >= all.data() + all.size()) return nullptr;
  Block& block = blocks_[static_cast<size_t>(&allocation - all.data())];
  if (Cell* cells = block.cells.load(std::memory_order_acquire)) return cells;
  const std::scoped_lock lock(mutex_);
  if (Cell* cells = block.cells.load(relaxed)) return cells;
  // Address space only, until it is touched; zeros are cells in which nobody was.
  block.bytes = (allocation.bytes / 4 + 2) * sizeof(Cell);
  void* room = mmap(nullptr, block.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  block.cells.store(static_cast<Cell*>(room), std::memory_order_release);
  return static_cast<Cell*>(room);
}

uint32_t MemoryShadow::place(const Instruction& instruction) const {
  return static_cast<uint32_t>((instruction.address - launch_.code->base()) / 4) + 1;
}

const Instruction* MemoryShadow::instruction(uint32_t place) const {
  return place == 0 ? nullptr : launch_.code->instruction_at(launch_.code->base() + uint64_t{place - 1} * 4);
}

void WorkgroupMemory::prepare(Launch& launch, uint64_t workgroup, unsigned waves) {
  launch_ = &launch;
  shadow_ = workgroup < most_workgroups ? launch.memory_shadow.get() : nullptr;
  workgroup_ = workgroup + 1;
  last_ = 0;
  safe_.assign(waves, 0);
  allocation_ = nullptr;
}

void WorkgroupMemory::barrier(const std::vector<AccessId>& oldest) {
  for (size_t wave = 0; wave < safe_.size(); ++wave) {
    safe_[wave] = oldest[wave] == no_access ? last_ : oldest[wave] - 1;
  }
}

bool WorkgroupMemory::races(const Access& access, Who other, uint32_t bytes) const {
  if (other.bits == 0 || (other.bytes() & bytes) == 0) return false;
  if (other.atomic() && Who{access.who}.atomic()) return false;
  if (other.workgroup() != workgroup_) return true;
  return other.wave() != Who{access.who}.wave() && other.id() > safe_[other.wave()];
}

uint32_t WorkgroupMemory::kept_bytes(const Access& access, Who before) const {
  const unsigned wave = Who{access.who}.wave();
  const bool is_own = before.workgroup() == workgroup_ && before.wave() == wave;
  return is_own && before.id() > safe_[wave] ? before.bytes() : 0;
}

inline WorkgroupMemory::Mark WorkgroupMemory::look(const MemoryShadow::Cell& cell, MemoryShadow::Party party) const {
  Mark mark;
  mark.who.bits = cell.who[party].load(in_order);
  mark.place = cell.place[party].load(relaxed);
  return mark;
}

template <typename Next>
inline WorkgroupMemory::Mark WorkgroupMemory::leave(MemoryShadow::Cell& cell, MemoryShadow::Party party, uint32_t place,
                                                    Next next) const {
  Mark before{.who = {cell.who[party].load(relaxed)}, .place = cell.place[party].load(relaxed)};
  cell.place[party].store(place, relaxed);
  if (!shadow_->several_threads()) {
    cell.who[party].store(next(before), relaxed);
    return before;
  }
  while (!cell.who[party].compare_exchange_weak(before.who.bits, next(before), in_order)) {
    // Somebody was there in between: the place is theirs, or this one's own if it came last.
    const uint32_t there = cell.place[party].exchange(place, relaxed);
    if (there != place || before.place == 0) before.place = there;
  }
  return before;
}

inline void WorkgroupMemory::mark_read(const Access& access, MemoryShadow::Cell& cell, uint32_t bytes) const {
  const Who mine{access.who};
  leave(cell, MemoryShadow::reader, access.place, [&](const Mark& before) {
    uint64_t now = mine.bits | bytes | kept_bytes(access, before.who);
    if (before.who.bits == 0) return now;
    if (before.who.workgroup() != workgroup_ || before.who.wave() != mine.wave()) {
      // Before it leaves its own place, so that who looks there first finds it in one of the two.
      cell.place[MemoryShadow::other_reader].store(before.place, relaxed);
      cell.who[MemoryShadow::other_reader].store(before.who.bits, std::memory_order_release);
    }
    const bool plain_elsewhere = before.who.workgroup() != workgroup_ && !before.who.atomic();
    const bool joins = plain_elsewhere && before.who.bytes() == 15 && bytes == 15;
    if (before.who.several() || joins) now |= 1u << 5;
    return now;
  });
}

WorkgroupMemory::Mark WorkgroupMemory::mark_written(const Access& access, MemoryShadow::Cell& cell,
                                                    uint32_t bytes) const {
  return leave(cell, MemoryShadow::writer, access.place,
               [&](const Mark& before) { return access.who | bytes | kept_bytes(access, before.who); });
}

void WorkgroupMemory::complain(Wave& wave, const Instruction& instruction, const Access& access, const Mark& other,
                               bool other_reads, uint64_t address, unsigned lane) const {
  const Instruction* place = shadow_->instruction(other.place);
  if (!worth_reporting(wave, instruction, Check::races, place)) return;
  Site site{.instruction = place, .wave = static_cast<int>(other.who.wave())};
  const bool is_ours = other.who.workgroup() == workgroup_;
  std::string whose = std::format("wave {}", other.who.wave());
  if (!is_ours) {
    uint64_t rest = other.who.workgroup() - 1;
    std::array<uint32_t, 3> id{};
    for (unsigned i = 0; i < 3; ++i) {
      id[i] = static_cast<uint32_t>(rest % launch_->workgroups[i]);
      rest /= launch_->workgroups[i];
    }
    site.workgroup = id;
    whose = std::format("workgroup ({}, {}, {})", id[0], id[1], id[2]);
  }
  report(wave, instruction, Check::races, static_cast<int>(lane),
         std::format("{} byte {:#x} of device memory, which {} {}{} {}", verb(access.reads, access.writes), address,
                     whose, verb(other_reads || other.who.atomic(), !other_reads),
                     place == nullptr ? std::string() : " by " + name_instruction(*place),
                     is_ours ? "with no barrier in between that it was waited for before"
                             : "in the same launch: nothing orders the two"),
         site);
}

void WorkgroupMemory::touch(Wave& wave, const Instruction& instruction, const Access& access, MemoryShadow::Cell& cell,
                            uint64_t address, uint32_t bytes, unsigned lane) {
  if (!access.writes) {
    mark_read(access, cell, bytes);
    const Mark writer = look(cell, MemoryShadow::writer);
    if (races(access, writer.who, bytes)) complain(wave, instruction, access, writer, false, address, lane);
    return;
  }
  const Mark writer = mark_written(access, cell, bytes);
  if (races(access, writer.who, bytes)) complain(wave, instruction, access, writer, false, address, lane);
  const Mark first = look(cell, MemoryShadow::reader);
  const Mark second = look(cell, MemoryShadow::other_reader);
  if (races(access, first.who, bytes)) {
    complain(wave, instruction, access, first, true, address, lane);
  } else if (races(access, second.who, bytes)) {
    complain(wave, instruction, access, second, true, address, lane);
  } else if (first.who.several() && worth_reporting(wave, instruction, Check::races)) {
    report(wave, instruction, Check::races, static_cast<int>(lane),
           std::format("writes byte {:#x} of device memory, which other workgroups read in the same launch: nothing "
                       "orders them",
                       address));
  }
}

AccessId WorkgroupMemory::access(Wave& wave, const Instruction& instruction, const Effects& effects,
                                 const LaneAddresses& addresses) {
  if (shadow_ == nullptr || last_ >= most_accesses || effects.space == Space::scratch) return no_access;
  const AccessId id = ++last_;
  // Loads and stores of a scope beyond the wave are what compilers make of atomic loads and stores (LLVM, "Memory Model
  // gfx942": sc0, sc1); plain ones have neither bit.
  const bool atomic = effects.atomic || instruction.sc0 || instruction.sc1;
  const Access access{
      .who = (workgroup_ << 40) | (uint64_t{wave.index} << 36) | (uint64_t{id} << 6) | (atomic ? 1u << 4 : 0u),
      .place = shadow_->place(instruction),
      .reads = effects.loads,
      .writes = effects.stores};
  MemoryShadow::Cell* cells = allocation_ != nullptr ? shadow_->cells(*allocation_) : nullptr;
  for (uint64_t rest = addresses.lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const uint32_t bytes = addresses.available[lane];
    const uint64_t first = addresses.first[lane];
    if (bytes == 0) continue;
    if (allocation_ == nullptr || !allocation_->holds(first, bytes)) {
      allocation_ = launch_->find(first);
      if (allocation_ == nullptr || !allocation_->holds(first, bytes)) {  // LDS through flat, or a fault
        allocation_ = nullptr;
        continue;
      }
      cells = shadow_->cells(*allocation_);
    }
    if (cells == nullptr) continue;
    const uint64_t offset = first - allocation_->base;
    if (((offset | bytes) & 3) == 0 && !access.writes) {
      // Whole dwords that nobody writes in this launch, as most of what is read.
      bool written = false;
      for (uint64_t word = offset / 4; word < (offset + bytes) / 4; ++word) {
        mark_read(access, cells[word], 15);
        written |= cells[word].who[MemoryShadow::writer].load(in_order) != 0;
      }
      if (!written) continue;
    }
    for (uint64_t byte = offset; byte < offset + bytes;) {
      const uint64_t next = std::min(offset + bytes, (byte / 4 + 1) * 4);
      const auto mask = static_cast<uint32_t>(((1u << (next - byte)) - 1) << (byte % 4));
      touch(wave, instruction, access, cells[byte / 4], allocation_->base + byte, mask, lane);
      byte = next;
    }
  }
  return id;
}

}  // namespace wavejit::simgpu::checks
