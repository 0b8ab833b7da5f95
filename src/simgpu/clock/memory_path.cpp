// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/clock/memory_path.h"

#include <algorithm>

namespace wavejit::simgpu::clock {
namespace {

// Associativity is not published for all levels and decides little for streams: 16 everywhere.
constexpr unsigned ways = 16;

std::uint64_t lines_of(const timing::Figure& bytes, const timing::MemoryRules& rules) {
  return static_cast<std::uint64_t>(bytes.value / rules.line.value);
}

}  // namespace

Cache::Cache(std::uint64_t lines, unsigned ways) : sets_(std::max<std::uint64_t>(lines / ways, 1)), ways_(ways) {
  storage_.resize(sets_ * ways_);
}

bool Cache::touch(std::uint64_t line) {
  Way* const set = &storage_[(line % sets_) * ways_];
  Way* oldest = set;
  ++clock_;
  for (unsigned i = 0; i < ways_; ++i) {
    if (set[i].line == line) {
      set[i].used = clock_;
      return true;
    }
    if (set[i].used < oldest->used) oldest = &set[i];
  }
  *oldest = {.line = line, .used = clock_};
  return false;
}

MemoryPath::MemoryPath(const timing::MemoryRules& rules, const Neighbours& neighbours)
    : rules_(&rules),
      neighbours_(&neighbours),
      l1_(lines_of(rules.l1_bytes, rules), ways),
      l2_(lines_of(rules.l2_bytes, rules), ways) {
  const double line = rules.line.value;
  l1_rate_.cycles_a_line = line / rules.l1_rate.value;
  l2_rate_.cycles_a_line = line * neighbours.compute_units_of_die / rules.l2_rate.value;
  mall_rate_.cycles_a_line = line * neighbours.compute_units / rules.mall_rate.value;
  memory_rate_.cycles_a_line = line * neighbours.compute_units / rules.memory_rate.value;
}

// Somebody else of the die fetched it, save for this compute unit's part.
bool MemoryPath::fetched_by_another(std::uint64_t line) {
  const auto shared = neighbours_->sharers.find(line);
  return shared != neighbours_->sharers.end() && ++shared_touches_[shared->second] % shared->second != 0;
}

double MemoryPath::fill(double now, std::uint64_t line) {
  const double at_l2 = l2_rate_.take(now);
  if (l2_.touch(line)) {
    ++counts_.l2_hits;
    return at_l2 + rules_->l2_latency.value;
  }
  if (fetched_by_another(line)) {
    ++counts_.l2_hits;
    seen_.insert(line);
    return at_l2 + rules_->l2_latency.value;
  }
  const double at_mall = mall_rate_.take(at_l2);
  if (!seen_.insert(line).second) {
    ++counts_.mall_hits;
    return at_mall + rules_->mall_latency.value;
  }
  ++counts_.memory;
  return memory_rate_.take(at_mall) + rules_->memory_latency.value;
}

double MemoryPath::load(double start, std::span<const std::uint64_t> lines, std::uint64_t instance) {
  double done = start + rules_->l1_latency.value;
  for (const std::uint64_t line : lines) {
    ++counts_.lines;
    const double at_l1 = l1_rate_.take(start);
    constexpr unsigned instance_shift = 48;  // above all device addresses
    if (l1_.touch(line ^ (instance << instance_shift))) {
      ++counts_.l1_hits;
      done = std::max(done, at_l1 + rules_->l1_latency.value);
    } else {
      done = std::max(done, fill(at_l1, line));
    }
  }
  return done;
}

double MemoryPath::store(double start, std::span<const std::uint64_t> lines) {
  double done = start;
  for (const std::uint64_t line : lines) {
    ++counts_.lines;
    static_cast<void>(l2_.touch(line));  // written whole: nothing is fetched
    done = std::max(done, l2_rate_.take(start));
  }
  return done + rules_->l2_latency.value;
}

}  // namespace wavejit::simgpu::clock
