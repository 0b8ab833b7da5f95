// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/checks/lds_shadow.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <format>
#include <utility>

#include "simgpu/checkers/checks/stored.h"
#include "simgpu/machine/launch/finding.h"

namespace wavejit::simgpu::checks {
namespace {

constexpr std::uint32_t byte_mask(std::uint32_t first, std::uint32_t end) {
  return ((1u << end) - 1) & ~((1u << first) - 1);
}

const char* verb(AccessKind kind) {
  switch (kind) {
    case AccessKind::read:
      return "reads";
    case AccessKind::write:
      return "writes";
    case AccessKind::atomic:
      return "updates";
    case AccessKind::dma:
      return "loads into";
  }
  return "";
}

}  // namespace

void LdsShadow::prepare(std::uint32_t bytes, unsigned waves, std::uint32_t checks, SwapLoops* loops) {
  checks_ = checks;
  loops_ = loops;
  recent_.resize(waves);
  for (RecentLoads& recent : recent_) recent.clear();
  bytes_ = bytes;
  words_ = (bytes + 3) / 4;
  waves_ = waves;
  passed_.barriers = 0;
  // Numbers go on from workgroup to workgroup, so that old marks are recognised instead of wiped.
  if (last_ > most_accesses) {
    last_ = 0;
    writers_.clear();
    readers_.clear();
  }
  std::ranges::replace_if(writers_, [](std::uint32_t writer) { return (writer & mixed) != 0; }, no_access);
  base_ = passed_.all_safe = last_;
  accesses_.clear();
  mixed_.clear();
  if (writers_.size() < words_) writers_.resize(words_, no_access);
  if (stored_.size() < std::size_t{words_} * 4) stored_.resize(std::size_t{words_} * 4);
  if (readers_.size() < waves) readers_.resize(waves);
  for (auto& reader : readers_) {
    if (reader.size() < words_) reader.resize(words_, 0);
  }
  passed_.local_safe.assign(waves, last_);
  before_ = passed_;
  arrived_.assign(waves, {});
  undefined_.assign((std::size_t{words_} * 4 + 63) / 64 + 1, 0);
  any_undefined_ = false;
}

AccessId LdsShadow::byte_writer(std::uint32_t byte) const {
  const std::uint32_t writer = writers_[byte / 4];
  return (writer & mixed) != 0 ? mixed_[writer & ~mixed][byte % 4] : writer;
}

const Instruction* LdsShadow::writer_of(std::uint32_t offset) const {
  if (offset >= bytes_) return nullptr;
  const AccessId id = byte_writer(offset);
  return written(id) ? at(id).instruction : nullptr;
}

void LdsShadow::check(Wave& wave, const Instruction& instruction, AccessKind kind, AccessId earlier, bool earlier_reads,
                      std::uint32_t byte, unsigned lane) const {
  if (!written(earlier)) return;
  const Access& other = at(earlier);
  const Site site{.instruction = other.instruction, .wave = other.wave};
  const AccessKind other_kind = earlier_reads && other.kind != AccessKind::atomic ? AccessKind::read : other.kind;
  if (other.wave == wave.index) {
    // One wave's LDS instructions keep their order, and so do its DMAs; between the two only waits help.
    if (other.completed != pending || (other.kind == AccessKind::dma) == (kind == AccessKind::dma)) return;
    if (!includes(checks_, Check::waits)) return;
    if (!worth_reporting(wave, instruction, Check::waits, other.instruction)) return;
    report(wave, instruction, Check::waits, static_cast<int>(lane),
           std::format("{} LDS byte {:#x}, which {} of the same wave {} and was not waited for", verb(kind), byte,
                       name_instruction(*other.instruction), verb(other_kind)),
           site);
    return;
  }
  if (other.completed < passed_.barriers || !includes(checks_, Check::races)) return;
  if (kind == AccessKind::atomic && other.kind == AccessKind::atomic) return;
  if (!worth_reporting(wave, instruction, Check::races, other.instruction)) return;
  const Instruction* load = loops_ == nullptr ? nullptr : loops_->load_of(instruction, other.instruction);
  if (load != nullptr && !loops_->wants(wave, instruction, other.instruction)) return;
  const char* why = "with no barrier in between";
  if (other.completed == pending) why = "and has not waited for it: a barrier does not order what is on its way";
  std::string text = std::format("{} LDS byte {:#x}, which wave {} {} by {} {}", verb(kind), byte, other.wave,
                                 verb(other_kind), name_instruction(*other.instruction), why);
  if (load == nullptr) return report(wave, instruction, Check::races, static_cast<int>(lane), std::move(text), site);
  loops_->put_aside(*load, finding_of(wave, instruction, Check::races, static_cast<int>(lane), std::move(text), site));
}

std::uint32_t LdsShadow::read(Wave& wave, const Instruction& instruction, AccessId id, AccessKind kind, Span span,
                              unsigned lane) {
  std::uint32_t undefined = 0;
  const std::uint32_t end = span.first + span.bytes;
  std::vector<std::uint32_t>& reader = readers_[wave.index];
  const bool wants_definedness = includes(checks_, Check::uninitialised);
  for (std::uint32_t byte = span.first; byte < end;) {
    const std::uint32_t word = byte / 4;
    const std::uint32_t next = std::min(end, (word + 1) * 4);
    const std::uint32_t writer = writers_[word];
    if (writer <= base_ || writer > passed_.all_safe) {
      if ((writer & mixed) != 0) {
        for (std::uint32_t i = byte; i < next; ++i) {
          const AccessId own = mixed_[writer & ~mixed][i % 4];
          if (!written(own)) undefined |= 1u << (i - span.first);
          check(wave, instruction, kind, own, false, i, lane);
        }
      } else if (!written(writer)) {
        undefined |= byte_mask(byte - span.first, next - span.first);
      } else {
        check(wave, instruction, kind, writer, false, byte, lane);
      }
    }
    const std::uint32_t mask = byte_mask(byte % 4, byte % 4 + next - byte);
    std::uint32_t kept = 0;
    if (mask != 15) {
      const AccessId before = reader[word] >> 4;
      if (written(before) && at(before).completed >= passed_.barriers) kept = reader[word] & 15;
    }
    reader[word] = (id << 4) | mask | kept;
    byte = next;
  }
  if (any_undefined_) {
    for (std::uint32_t i = 0; i < span.bytes; ++i) {
      const std::uint32_t byte = span.first + i;
      if (((undefined_[byte / 64] >> (byte % 64)) & 1) != 0) undefined |= 1u << i;
    }
  }
  return wants_definedness ? undefined : 0;
}

// Whether a plain write left just these bytes there, so that it does not matter which of the two comes last.
bool LdsShadow::repeats(AccessId earlier, std::uint32_t byte, std::uint32_t bytes, const std::uint8_t* stored) const {
  if (stored == nullptr || !written(earlier) || at(earlier).kind != AccessKind::write) return false;
  return std::memcmp(stored_.data() + byte, stored, bytes) == 0;
}

void LdsShadow::write(Wave& wave, const Instruction& instruction, AccessId id, AccessKind kind, Span span,
                      unsigned lane, std::uint32_t undefined, const std::uint8_t* stored) {
  const std::uint32_t end = span.first + span.bytes;
  const std::uint32_t first_word = span.first / 4;
  const std::uint32_t end_word = (end + 3) / 4;
  for (unsigned other = 0; other < waves_; ++other) {
    if (other == wave.index && kind != AccessKind::dma) continue;
    const std::uint32_t* reader = readers_[other].data();
    const std::uint32_t safe = (passed_.local_safe[other] << 4) | 15;
    std::uint32_t latest = 0;
    for (std::uint32_t word = first_word; word < end_word; ++word) latest = std::max(latest, reader[word]);
    if (latest <= safe) continue;
    for (std::uint32_t word = first_word; word < end_word; ++word) {
      if (reader[word] <= safe) continue;
      const std::uint32_t first = std::max(span.first, word * 4);
      const std::uint32_t last = std::min(end, (word + 1) * 4);
      if ((reader[word] & byte_mask(first % 4, first % 4 + last - first)) == 0) continue;
      check(wave, instruction, kind, reader[word] >> 4, true, first, lane);
    }
  }
  for (std::uint32_t byte = span.first; byte < end;) {
    const std::uint32_t word = byte / 4;
    const std::uint32_t next = std::min(end, (word + 1) * 4);
    const std::uint32_t writer = writers_[word];
    if (writer > passed_.all_safe) {
      const std::uint32_t step = (writer & mixed) != 0 ? 1 : next - byte;
      for (std::uint32_t i = byte; i < next; i += step) {
        const std::uint8_t* again = stored == nullptr ? nullptr : stored + (i - span.first);
        if (!repeats(byte_writer(i), i, step, again)) check(wave, instruction, kind, byte_writer(i), false, i, lane);
      }
    }
    if (next - byte == 4) {
      writers_[word] = id;
    } else {
      if ((writer & mixed) == 0) {
        writers_[word] = mixed | static_cast<std::uint32_t>(mixed_.size());
        mixed_.push_back({writer, writer, writer, writer});
      }
      for (std::uint32_t i = byte; i < next; ++i) mixed_[writers_[word] & ~mixed][i % 4] = id;
    }
    byte = next;
  }
  if (stored != nullptr) std::memcpy(stored_.data() + span.first, stored, span.bytes);
  if (undefined == 0 && !any_undefined_) return;
  any_undefined_ = true;
  for (std::uint32_t i = 0; i < span.bytes; ++i) {
    const std::uint32_t byte = span.first + i;
    const std::uint64_t bit = std::uint64_t{1} << (byte % 64);
    if (((undefined >> i) & 1) != 0) {
      undefined_[byte / 64] |= bit;
    } else {
      undefined_[byte / 64] &= ~bit;
    }
  }
}

// Whole dwords, read by all of these lanes: takes them down, and says whether accesses wrote all of them that are
// over. Otherwise `read` must say of which lanes that is not so.
template <unsigned words>
bool LdsShadow::read_plainly(unsigned wave, AccessId id, const LocalAddresses& addresses) {
  // Numbers are below 2^31, and `mixed` is the sign: signed comparisons, which hosts have for vectors.
  using Ids = std::int32_t __attribute__((vector_size(words * 4)));
  const auto oldest = static_cast<std::int32_t>(base_);
  const auto newest = static_cast<std::int32_t>(passed_.all_safe);
  const auto mark = static_cast<std::int32_t>((id << 4) | 15);
  const Ids marks = mark - Ids{};
  Ids others{};
  const std::uint32_t* const writers = writers_.data();
  std::uint32_t* const reader = readers_[wave].data();
  const auto take = [&](unsigned lane) {
    const std::uint32_t word = addresses.first[lane] / 4;
    Ids writer;
    std::memcpy(&writer, writers + word, sizeof(writer));
    std::memcpy(reader + word, &marks, sizeof(marks));
    others |= (writer <= oldest) | (writer > newest);
  };
  for_active_lanes(addresses.lanes, take);
  std::int32_t any = 0;
  for (unsigned i = 0; i < words; ++i) any |= others[i];
  return any == 0;
}

// Whole dwords, written: true when nobody's access to them is still on its way.
bool LdsShadow::write_plainly(unsigned wave, AccessId id, AccessKind kind, std::uint32_t first, std::uint32_t words) {
  // Numbers are below the sign, which a larger one leaves in the difference and `mixed` has itself: nothing to decide
  // in the loop.
  constexpr std::uint32_t sign = 1U << 31;
  const auto all_up_to = [&](const std::vector<std::uint32_t>& marks, std::uint32_t limit) {
    std::uint32_t beyond = 0;
    for (std::uint32_t i = first; i < first + words; ++i) beyond |= marks[i] | (limit - marks[i]);
    return (beyond & sign) == 0;
  };
  if (!all_up_to(writers_, passed_.all_safe)) return false;
  for (unsigned other = 0; other < waves_; ++other) {
    if (other == wave && kind != AccessKind::dma) continue;
    if (!all_up_to(readers_[other], (passed_.local_safe[other] << 4) | 15)) return false;
  }
  std::fill_n(writers_.data() + first, words, id);
  return true;
}

// The lanes of the access for which there is more to do than to take it down.
template <unsigned words>
std::uint64_t LdsShadow::access_plainly(const Wave& wave, AccessId id, AccessKind kind,
                                        const LocalAddresses& addresses) {
  if (bytes_ < words * 4) return addresses.lanes;
  const std::uint32_t last = bytes_ - (words * 4);
  std::uint32_t outside = 0;
  const auto look = [&](unsigned lane) {
    const std::uint32_t first = addresses.first[lane];
    outside |= (first % 4) | static_cast<std::uint32_t>(first > last);
  };
  for_active_lanes(addresses.lanes, look);
  if (outside != 0) return addresses.lanes;
  if (kind == AccessKind::read) return read_plainly<words>(wave.index, id, addresses) ? 0 : addresses.lanes;
  if (kind == AccessKind::dma && addresses.lanes == wave.all_lanes) {
    // The lanes' bytes lie one behind the other.
    const std::uint32_t word = addresses.first[0] / 4;
    return write_plainly(wave.index, id, kind, word, words * wave.lane_count) ? 0 : addresses.lanes;
  }
  std::uint64_t others = 0;
  const auto write_lane = [&](unsigned lane) {
    const std::uint32_t word = addresses.first[lane] / 4;
    if (!write_plainly(wave.index, id, kind, word, words)) others |= std::uint64_t{1} << lane;
  };
  for_active_lanes(addresses.lanes, write_lane);
  return others;
}

AccessId LdsShadow::access(Wave& wave, const Instruction& instruction, const Effects& effects,
                           const LocalAddresses& addresses, AccessKind kind, const UndefinedLanes& undefined_data,
                           UndefinedLanes& loaded) {
  if (!wave.may_pass) return note(wave, instruction, effects, addresses, kind, undefined_data, loaded);
  // All have signalled, this wave too, but it has not waited: by the program it may still be in front of the barrier.
  std::swap(before_, passed_);
  const AccessId id = note(wave, instruction, effects, addresses, kind, undefined_data, loaded);
  std::swap(before_, passed_);
  return id;
}

AccessId LdsShadow::note(Wave& wave, const Instruction& instruction, const Effects& effects,
                         const LocalAddresses& addresses, AccessKind kind, const UndefinedLanes& undefined_data,
                         UndefinedLanes& loaded) {
  const AccessId id = ++last_;
  accesses_.push_back({.instruction = &instruction, .completed = pending, .wave = wave.index, .kind = kind});
  const std::uint32_t bytes = effects.lds_dma ? std::max<std::uint32_t>(effects.bytes, 4) : effects.bytes;
  if (loops_ != nullptr && loops_->follows()) {
    if (effects.swaps) recent_[wave.index].look_behind(addresses, *loops_);
    if (kind == AccessKind::read && effects.elements == 1) recent_[wave.index].note(instruction, addresses);
  }
  const bool reads = kind == AccessKind::read || kind == AccessKind::atomic;
  const bool writes = kind != AccessKind::read;
  std::uint64_t lanes = addresses.lanes;
  if (!any_undefined_ && !undefined_data.any && effects.elements == 1 && kind != AccessKind::atomic) {
    if (bytes == 16) lanes = access_plainly<4>(wave, id, kind, addresses);
    if (bytes == 8) lanes = access_plainly<2>(wave, id, kind, addresses);
    if (bytes == 4) lanes = access_plainly<1>(wave, id, kind, addresses);
  }
  if (kind == AccessKind::write) {
    // For these lanes the above is all that there is to do.
    for_active_lanes(addresses.lanes & ~lanes, [&](unsigned lane) {
      const Stored stored(wave, instruction, effects, 0, lane);
      std::memcpy(stored_.data() + addresses.first[lane], stored.bytes, bytes);
    });
  }
  for (std::uint64_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    std::uint32_t undefined = 0;
    const std::uint32_t data = undefined_data.any ? undefined_data.bytes[lane] : 0;
    for (unsigned element = 0; element < effects.elements; ++element) {
      const std::uint64_t first = element == 0 ? addresses.first[lane] : addresses.second[lane];
      if (first + bytes > bytes_) continue;  // the handler reports it
      const Span span{.first = static_cast<std::uint32_t>(first), .bytes = bytes};
      if (reads) undefined |= read(wave, instruction, id, kind, span, lane) << (element * bytes);
      if (writes) {
        const Stored stored(wave, instruction, effects, element, lane);
        write(wave, instruction, id, kind, span, lane, (data >> (element * bytes)) & ((1u << bytes) - 1),
              kind == AccessKind::write ? stored.bytes : nullptr);
      }
    }
    if (undefined == 0) continue;
    loaded.any = true;
    loaded.bytes[lane] = static_cast<std::uint16_t>(undefined);
  }
  return id;
}

void LdsShadow::complete(AccessId id, unsigned wave) {
  if (written(id)) accesses_[id - base_ - 1].completed = passed_.barriers + (arrived_[wave].has_signalled ? 1 : 0);
}

void LdsShadow::signal(unsigned wave, AccessId oldest_local, AccessId oldest_dma) {
  const AccessId local = oldest_local == no_access ? last_ : oldest_local - 1;
  arrived_[wave] = {.has_signalled = true, .local = local, .dma = oldest_dma == no_access ? last_ : oldest_dma - 1};
}

void LdsShadow::barrier(const std::vector<AccessId>& oldest_local, const std::vector<AccessId>& oldest_dma) {
  std::swap(before_, passed_);
  passed_.barriers = before_.barriers + 1;
  passed_.local_safe.resize(waves_);
  passed_.all_safe = last_;
  for (unsigned wave = 0; wave < waves_; ++wave) {
    passed_.local_safe[wave] = oldest_local[wave] == no_access ? last_ : oldest_local[wave] - 1;
    if (oldest_dma[wave] != no_access) passed_.all_safe = std::min(passed_.all_safe, oldest_dma[wave] - 1);
    if (arrived_[wave].has_signalled) {
      passed_.local_safe[wave] = std::min(passed_.local_safe[wave], arrived_[wave].local);
      passed_.all_safe = std::min(passed_.all_safe, arrived_[wave].dma);
      arrived_[wave].has_signalled = false;
    }
    passed_.all_safe = std::min(passed_.all_safe, passed_.local_safe[wave]);
  }
}

}  // namespace wavejit::simgpu::checks
