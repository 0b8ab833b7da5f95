// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/clock/memory_path.h"

#include <algorithm>
#include <cmath>

namespace wavejit::simgpu::clock {
namespace {

// Associativity is not published for L2 and the scalar cache, and decides little for streams.
constexpr unsigned ways = 16;

unsigned ways_of_l1(const timing::MemoryRules& rules) {
  return static_cast<unsigned>(rules.l1_bytes.value / rules.line.value / rules.l1_sets.value);
}

// Workgroups that replay one trace have lines of their own where they would have.
constexpr unsigned above_all_device_addresses = 48;
std::uint64_t of_instance(std::uint64_t line, std::uint64_t instance) {
  return line ^ (instance << above_all_device_addresses);
}

std::uint64_t lines_of(const timing::Figure& bytes, const timing::MemoryRules& rules) {
  return static_cast<std::uint64_t>(bytes.value / rules.line.value);
}

}  // namespace

Cache::Cache(std::uint64_t lines, unsigned ways) : sets_(std::max<std::uint64_t>(lines / ways, 1)), ways_(ways) {
  storage_.resize(sets_ * ways_);
}

// Strides of powers of two go round all sets, as lines that follow each other do; how hardware mixes bits nobody has
// published. Workgroups that replay one trace begin in sets of their own.
std::uint64_t Cache::set_of(std::uint64_t line) const {
  constexpr std::uint64_t apart = 0x9e37'79b1;
  const std::uint64_t place = line & ((std::uint64_t{1} << above_all_device_addresses) - 1);
  const std::uint64_t mixed = place ^ (place >> 5) ^ (place >> 11) ^ (place >> 17);
  return (mixed + ((line >> above_all_device_addresses) * apart)) % sets_;
}

Cache::Found Cache::touch(std::uint64_t line) {
  Way* const set = &storage_[set_of(line) * ways_];
  Way* oldest = set;
  ++clock_;
  for (unsigned i = 0; i < ways_; ++i) {
    if (set[i].line == line) {
      set[i].used = clock_;
      return {.is_there = true, .ready = &set[i].ready};
    }
    if (set[i].used < oldest->used) oldest = &set[i];
  }
  *oldest = {.line = line, .used = clock_};
  return {.is_there = false, .ready = &oldest->ready};
}

bool Cache::has(std::uint64_t line) const {
  return std::ranges::contains(std::span(storage_).subspan(set_of(line) * ways_, ways_), line, &Way::line);
}

void Cache::clear() { std::ranges::fill(storage_, Way{}); }

MemoryPath::MemoryPath(const timing::MemoryRules& rules, const Neighbours& neighbours, std::size_t compute_units)
    : rules_(&rules),
      neighbours_(&neighbours),
      l1_(compute_units, Cache(lines_of(rules.l1_bytes, rules), ways_of_l1(rules))),
      scalar_(lines_of(rules.scalar_bytes, rules), ways),
      l2_(lines_of(rules.l2_bytes, rules), ways),
      l2_part_(static_cast<std::uint64_t>(static_cast<double>(lines_of(rules.l2_bytes, rules)) * neighbours.l2_part),
               ways),
      l1_rate_(compute_units) {
  const double line = rules.line.value;
  for (Rate& rate : l1_rate_) rate.cycles_a_line = line / rules.l1_rate.value;
  l2_rate_.cycles_a_line = line * neighbours.compute_units_of_die / rules.l2_rate.value;
  mall_rate_.cycles_a_line = line * neighbours.compute_units_of_die / rules.mall_rate.value;
  memory_rate_.cycles_a_line = line * neighbours.compute_units / rules.memory_rate.value;
  release_rate_.cycles_a_line = rules.write_back.value * neighbours.compute_units_of_die;
  room_for_writes_ = static_cast<double>(lines_of(rules.l2_bytes, rules)) / neighbours.compute_units_of_die;
}

bool MemoryPath::is_own(Touches& touches, double readers) {
  const auto touch = static_cast<double>(++touches[readers]);
  return std::floor(touch / readers) != std::floor((touch - 1) / readers);
}

// Somebody else of the die fetched it, save for this compute unit's part.
bool MemoryPath::fetched_by_another(std::uint64_t line) {
  const auto shared = neighbours_->sharers.find(line);
  if (shared == neighbours_->sharers.end()) return false;
  const auto& [of_die, of_unit, one_for_copies] = shared->second;
  return !is_own(shared_touches_, std::max(of_die / of_unit, 1.0));
}

bool MemoryPath::fetched_by_another_die(std::uint64_t line) {
  const auto dies = neighbours_->dies.find(line);
  return dies != neighbours_->dies.end() && !is_own(die_touches_, dies->second);
}

double MemoryPath::cycles_of_write_back() const {
  return std::max(memory_rate_.cycles_a_line, mall_rate_.cycles_a_line);
}

// What is written back passes the fabric and memory, when both have nothing else to do.
void MemoryPath::use_idle_memory(double now) {
  const double free = std::max(memory_rate_.free, mall_rate_.free);
  if (to_write_back_ == 0 || free >= now) return;
  const double lines = std::min(to_write_back_, (now - free) / cycles_of_write_back());
  to_write_back_ -= lines;
  memory_rate_.free += lines * memory_rate_.cycles_a_line;
  mall_rate_.free += lines * mall_rate_.cycles_a_line;
}

double MemoryPath::write_back(double now, Fabric fabric) {
  ++counts_.written;
  use_idle_memory(now);
  to_write_back_ += 1;
  if (to_write_back_ <= room_for_writes_) return now;
  to_write_back_ -= 1;
  return memory_rate_.take(fabric == Fabric::passed ? now : mall_rate_.take(now));
}

double MemoryPath::write_back_cycles(double end) {
  use_idle_memory(end);
  return to_write_back_ * cycles_of_write_back();
}

std::uint64_t MemoryPath::beyond_l1(std::uint64_t line, std::uint64_t instance) const {
  const auto shared = neighbours_->sharers.find(line);
  if (shared == neighbours_->sharers.end() && !neighbours_->dies.contains(line)) return of_instance(line, instance);
  if (shared != neighbours_->sharers.end() && shared->second.one_for_copies) return line;
  return of_instance(line, instance - (instance % neighbours_->traces));
}

Cache& MemoryPath::l2_of(std::uint64_t line) {
  return neighbours_->sharers.contains(line) || neighbours_->dies.contains(line) ? l2_ : l2_part_;
}

double MemoryPath::fill(double now, std::uint64_t line, std::uint64_t instance) {
  const double at_l2 = l2_rate_.take(now);
  const std::uint64_t known_as = beyond_l1(line, instance);
  const auto [is_there, ready] = l2_of(line).touch(known_as);
  if (is_there) {
    ++counts_.l2_hits;
    return std::max(at_l2 + rules_->l2_latency.value, *ready);
  }
  const auto [seen, is_new] = seen_.try_emplace(known_as, 0.0);
  // Caches may forget a line that is on its way. A later request has it no earlier than the first one.
  seen->second = std::max(seen->second, from_behind_l2(at_l2, line, !is_new));
  *ready = seen->second;
  return *ready;
}

double MemoryPath::from_behind_l2(double at_l2, std::uint64_t line, bool was_read) {
  if (!was_read && !forgotten_ && neighbours_->in_l2.contains(line)) {
    ++counts_.l2_hits;
    return at_l2 + rules_->l2_latency.value;
  }
  const bool is_in_last_level = was_read || neighbours_->warm || holds(neighbours_->in_last_level, line);
  // Another workgroup of the die asked for it, and asks at the same time: the line takes as long, and is sent once.
  if (fetched_by_another(line)) {
    ++counts_.l2_hits;
    return at_l2 + (is_in_last_level ? rules_->mall_latency : rules_->memory_latency).value;
  }
  const double at_mall = mall_rate_.take(at_l2);
  if (is_in_last_level || fetched_by_another_die(line)) {
    ++counts_.mall_hits;
    return at_mall + rules_->mall_latency.value;
  }
  ++counts_.memory;
  use_idle_memory(at_mall);
  return memory_rate_.take(at_mall) + rules_->memory_latency.value;
}

std::size_t MemoryPath::missing(std::span<const std::uint64_t> lines, std::uint64_t instance, std::size_t unit) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(lines, [&](std::uint64_t line) { return !l1_[unit].has(of_instance(line, instance)); }));
}

double MemoryPath::pass_l1(double now, std::size_t unit, double part) {
  counts_.of_l1 += part;
  return l1_rate_[unit].take(now, part);
}

double MemoryPath::load(double start, std::span<const std::uint64_t> lines, std::uint64_t instance, std::size_t unit,
                        double part) {
  double done = start + rules_->l1_latency.value;
  for (const std::uint64_t line : lines) {
    ++counts_.lines;
    const double at_l1 = pass_l1(start, unit, part);
    const auto [is_there, ready] = l1_[unit].touch(of_instance(line, instance));
    if (is_there) {
      ++counts_.l1_hits;
      done = std::max({done, at_l1 + rules_->l1_latency.value, *ready});
    } else {
      *ready = fill(at_l1, line, instance);
      done = std::max(done, *ready);
    }
  }
  return done;
}

double MemoryPath::scalar_load(double start, std::span<const std::uint64_t> lines, std::uint64_t instance) {
  double done = start + rules_->scalar_latency.value;
  if (rules_->scalar_bytes.value == 0) return done;
  for (const std::uint64_t line : lines) {
    const auto [is_there, ready] = scalar_.touch(beyond_l1(line, instance));
    if (!is_there) {
      ++counts_.lines;
      *ready = fill(start, line, instance);
    }
    done = std::max(done, *ready);
  }
  return done;
}

double MemoryPath::store(double start, std::span<const std::uint64_t> lines, std::uint64_t instance) {
  double done = start;
  for (const std::uint64_t line : lines) {
    ++counts_.lines;
    const double at_l2 = l2_rate_.take(start);
    // What is there already is written back once, however often it was written; a line is written whole, and nothing
    // is fetched.
    const bool is_there = l2_of(line).touch(beyond_l1(line, instance)).is_there;
    const bool is_new = written_.insert(of_instance(line, instance)).second;
    done = std::max(done, is_there && !is_new ? at_l2 : write_back(at_l2));
  }
  return done + rules_->l2_latency.value;
}

double MemoryPath::atomic(double start, std::span<const std::uint64_t> lines) {
  double done = start;
  for (const std::uint64_t line : lines) {
    ++counts_.lines;
    ++counts_.memory;
    use_idle_memory(start);
    const double there = memory_rate_.take(mall_rate_.take(l2_rate_.take(start)));
    double& seen = seen_[line];
    seen = std::max(seen, there);
    done = std::max(done, write_back(there, Fabric::passed));
  }
  return done + rules_->memory_latency.value;
}

double MemoryPath::coherent_load(double start, std::span<const std::uint64_t> lines, std::size_t unit, double part) {
  double done = start;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    ++counts_.lines;
    ++counts_.mall_hits;
    done = mall_rate_.take(l2_rate_.take(pass_l1(start, unit, part)));
  }
  return done + rules_->mall_latency.value;
}

double MemoryPath::coherent_store(double start, std::span<const std::uint64_t> lines) {
  double done = start;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    ++counts_.lines;
    done = std::max(done, write_back(mall_rate_.take(l2_rate_.take(start)), Fabric::passed));
  }
  return done + rules_->mall_latency.value;
}

double MemoryPath::release(double start) { return release_rate_.take(start); }

double MemoryPath::acquire(double start) {
  for (Cache& l1 : l1_) l1.clear();
  scalar_.clear();
  l2_.clear();
  l2_part_.clear();
  forgotten_ = true;
  return start + rules_->invalidate.value;
}

double MemoryPath::busiest_cycles() const {
  const auto passed = static_cast<double>(counts_.memory + counts_.written);
  return std::max({passed * memory_rate_.cycles_a_line,
                   (passed + static_cast<double>(counts_.mall_hits)) * mall_rate_.cycles_a_line,
                   static_cast<double>(counts_.lines - counts_.l1_hits) * l2_rate_.cycles_a_line,
                   counts_.of_l1 * l1_rate_.front().cycles_a_line / static_cast<double>(l1_rate_.size())});
}

}  // namespace wavejit::simgpu::clock
