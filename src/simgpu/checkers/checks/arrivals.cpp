// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/checks/arrivals.h"

#include <algorithm>
#include <cstring>
#include <format>
#include <iterator>
#include <utility>

#include "simgpu/machine/launch/finding.h"

namespace wavejit::simgpu::checks {
namespace {

// A result that was never waited for arrives after this many instructions: a wave that polls memory must get on.
constexpr std::uint64_t longest_delay = 20'000;

bool same(const Registers& a, const Registers& b) {
  return a.scalar == b.scalar && a.first < b.first + b.count && b.first < a.first + a.count;
}

std::string name_of_registers(const Registers& range, unsigned offset) {
  const unsigned index = range.first + offset;
  if (!range.scalar)
    return index < accumulation_base ? std::format("v{}", index) : std::format("a{}", index - accumulation_base);
  if (index == sgpr_vcc || index == sgpr_vcc + 1) return "vcc";
  if (index == sgpr_m0) return "m0";
  return std::format("s{}", index);
}

}  // namespace

void Arrivals::prepare(std::uint32_t checks, Arrival arrival, std::uint64_t seed, LdsShadow& lds,
                       WorkgroupOrder& order) {
  checks_ = checks;
  arrival_ = arrival;
  random_ = Random(seed);
  lds_ = &lds;
  order_ = &order;
  for (Queue* queue : queues()) {
    std::ranges::move(*queue, std::back_inserter(spare_));
    queue->clear();
  }
  awaited_.clear();
  doubled_ = false;
  next_arrival_ = ~std::uint64_t{0};
}

bool Arrivals::overlaps(const Operation& operation, const Registers& range) {
  for (unsigned i = 0; i < operation.effects->write_count; ++i) {
    if (same(operation.effects->writes[i], range)) return true;
  }
  return false;
}

void Arrivals::report_registers(Wave& wave, const Instruction& instruction, const Effects& effects) {
  if (!includes(checks_, Check::waits)) return;
  for (unsigned i = 0; i < effects.read_count; ++i) {
    const Access access = i == effects.kept ? Access::keeps : Access::reads;
    while (awaited_.any(effects.reads[i]) && report_range(wave, instruction, effects, effects.reads[i], access)) {
    }
  }
  for (unsigned i = 0; i < effects.write_count; ++i) {
    while (awaited_.any(effects.writes[i]) &&
           report_range(wave, instruction, effects, effects.writes[i], Access::writes)) {
    }
  }
}

// Compares two loads of one queue: whether the later one need not wait for the earlier one's result in the same
// register. gfx9 and LDS give results in the order of the loads, so that the later one may overwrite the earlier one's,
// or its half of it. RDNA4's vector memory may give them in another order (LLVM has no FeatureVmemWriteVgprInOrder
// there): two halves of a register are each their load's own, whichever comes first.
bool Arrivals::is_in_order(const Instruction& earlier, const Instruction& later, Access access) {
  if (access == Access::reads) return false;
  const auto half = [](const Instruction& of) { return of.record->half; };
  const bool other_half =
      half(earlier) != half(later) && half(earlier) != RegisterHalf::whole && half(later) != RegisterHalf::whole;
  const bool returns_in_order = !later.record->split_counters || later.instruction_class == InstructionClass::lds;
  return returns_in_order || other_half;
}

// Reports the oldest operation that the range awaits; false when none matters here.
bool Arrivals::report_range(Wave& wave, const Instruction& instruction, const Effects& effects, const Registers& range,
                            Access access) {
  for (Queue* queue : queues()) {
    for (std::size_t i = 0; i < queue->size(); ++i) {
      Operation& operation = *(*queue)[i];
      if (operation.silenced || !overlaps(operation, range)) continue;
      const bool same_queue = (queue == &vector_queue_ && effects.counts_vector && !effects.counts_store &&
                               !effects.counts_local && !operation.flat && !effects.lds_dma) ||
                              (queue == &local_queue_ && effects.counts_local && !effects.counts_vector &&
                               instruction.instruction_class == InstructionClass::lds);
      if (same_queue && is_in_order(*operation.instruction, instruction, access)) continue;
      const bool all = effects.all_lanes || range.scalar || instruction.instruction_class == InstructionClass::scalar;
      const std::uint64_t lanes = operation.exec & (all ? wave.all_lanes : wave.exec());
      if (lanes == 0 && !range.scalar) continue;
      // One report for each operation: what follows from the first is no news.
      operation.silenced = true;
      forget(operation);
      if (!worth_reporting(wave, instruction, Check::waits, operation.instruction)) return true;
      unsigned offset = 0;
      while (
          offset + 1 < range.count &&
          !overlaps(operation,
                    {.first = static_cast<std::uint16_t>(range.first + offset), .count = 1, .scalar = range.scalar})) {
        ++offset;
      }
      std::string needed;
      const bool split = operation.instruction->record->split_counters;
      const auto behind = [&](bool but_flat) {
        return std::count_if(queue->begin() + static_cast<std::ptrdiff_t>(i) + 1, queue->end(),
                             [&](const auto& o) { return !but_flat || !o->flat; });
      };
      if (split) {
        const bool is_store = queue == &store_queue_;
        if (operation.flat) {
          needed = std::format("s_wait_{}cnt_dscnt 0", is_store ? "store" : "load");
        } else if (queue == &vector_queue_ || is_store) {
          needed = std::format("s_wait_{}cnt {} or less", is_store ? "store" : "load", behind(true));
        } else {
          needed = queue == &local_queue_ ? std::format("s_wait_dscnt {} or less", behind(false)) : "s_wait_kmcnt 0";
        }
      } else if (queue == &vector_queue_ && !operation.flat) {
        needed = std::format("vmcnt({}) or less", std::count_if(queue->begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                                                queue->end(), [](const auto& o) { return !o->flat; }));
      } else if (queue == &local_queue_) {
        needed = std::format("lgkmcnt({}) or less", queue->size() - i - 1);
      } else {
        needed = operation.flat ? "vmcnt(0) lgkmcnt(0)" : "lgkmcnt(0)";
      }
      report(wave, instruction, Check::waits, range.scalar ? -1 : std::countr_zero(lanes),
             std::format("{} {} while {} may still be on its way; no {}{} since",
                         access == Access::writes ? "overwrites" : "reads", name_of_registers(range, offset),
                         name_instruction(*operation.instruction), split ? "" : "s_waitcnt ", needed),
             {.instruction = operation.instruction, .wave = wave.index});
      return true;
    }
  }
  return false;
}

void Arrivals::note(const Operation& operation) {
  for (unsigned i = 0; i < operation.effects->write_count; ++i) {
    const Registers& range = operation.effects->writes[i];
    doubled_ = doubled_ || awaited_.any(range);
    awaited_.insert(range);
  }
}

void Arrivals::forget(const Operation& operation) {
  for (unsigned i = 0; i < operation.effects->write_count; ++i) {
    awaited_.erase(operation.effects->writes[i]);
  }
  if (!doubled_) return;
  // Another one on its way to the same registers keeps them awaited.
  doubled_ = false;
  awaited_.clear();
  for (const Queue* queue : queues()) {
    for (const auto& other : *queue) {
      if (other.get() != &operation && !other->silenced) note(*other);
    }
  }
}

// One that was over, or a new one; none of its fields is set.
std::unique_ptr<Arrivals::Operation> Arrivals::fresh() {
  if (spare_.empty()) return std::make_unique_for_overwrite<Operation>();
  std::unique_ptr<Operation> operation = std::move(spare_.back());
  spare_.pop_back();
  return operation;
}

void Arrivals::execute(Wave& wave, Operation& operation) const {
  const Instruction& instruction = *operation.instruction;
  if (operation.order.kind != OrderTicket::Kind::synchronises) return instruction.execute(wave, instruction);
  order_->make(operation.order, [&] { instruction.execute(wave, instruction); });
}

void Arrivals::deliver(Wave& wave, Operation& operation) {
  if (operation.delivered) return;
  operation.delivered = true;
  if (operation.effects->counts_vector && operation.instruction->record->split_counters) {
    deliver_older(wave, operation.issued);
  }
  const Instruction& instruction = *operation.instruction;
  const Effects& effects = *operation.effects;
  Snapshot& then = operation.snapshot;
  if (instruction.record->reads_time) return exchange_result(wave, instruction, then);
  const std::uint64_t exec_now = wave.exec();
  const std::uint32_t m0_now = wave.m0();
  wave.set_exec(then.exec);
  wave.sgpr[sgpr_m0] = then.m0;
  const auto is_result = [&](bool scalar, unsigned index) {
    for (unsigned i = 0; i < effects.write_count; ++i) {
      const Registers& range = effects.writes[i];
      if (range.scalar == scalar && index >= range.first && index < range.first + unsigned{range.count}) return true;
    }
    return false;
  };
  // Most registers still hold what they held then; the others' contents go where the old ones were, and back
  // afterwards.
  std::uint32_t changed_scalars = 0;
  std::uint32_t changed_vectors = 0;
  const auto exchange = [&](bool back) {
    unsigned scalars = 0;
    unsigned vectors = 0;
    for (unsigned i = 0; i < instruction.source_count; ++i) {
      const Operand& operand = instruction.source[i];
      if (operand.is_scalar() && operand.index < sgpr_exec) {
        for (unsigned j = 0; j < operand.dwords; ++j, ++scalars) {
          std::uint32_t& now = wave.sgpr[operand.index + j];
          std::uint32_t& old = then.scalars[scalars];
          const std::uint32_t bit = 1U << scalars;
          if (operand.index + j == sgpr_m0) continue;
          if (!back && now != old) changed_scalars |= bit;
          if ((changed_scalars & bit) != 0 && !(back && is_result(true, operand.index + j))) std::swap(now, old);
        }
      } else if (operand.is_vector()) {
        for (unsigned j = 0; j < operand.dwords; ++j, ++vectors) {
          auto& now = wave.vgpr[operand.index + j];
          auto& old = then.vectors[vectors];
          const std::uint32_t bit = 1U << vectors;
          if (!back && std::memcmp(now, old, sizeof(now)) != 0) changed_vectors |= bit;
          if ((changed_vectors & bit) == 0) continue;
          if (!back || !is_result(false, operand.index + j)) {
            std::swap(now, old);
            continue;
          }
          for (unsigned lane = 0; lane < lane_places; ++lane) {
            if (((then.exec >> lane) & 1) == 0) std::swap(now[lane], old[lane]);
          }
        }
      }
    }
  };
  exchange(false);
  execute(wave, operation);
  exchange(true);
  wave.set_exec(exec_now);
  wave.sgpr[sgpr_m0] = m0_now;
}

void Arrivals::keep_for_later(Wave& wave, const Instruction& instruction, Snapshot& snapshot) {
  if (instruction.record->reads_time) {
    // A clock says what it shows at issue, however late that comes.
    const Operand& result = instruction.destination[0];
    for (unsigned i = 0; i < result.dwords && result.index + i < sgpr_count; ++i) {
      snapshot.scalars[i] = wave.sgpr[result.index + i];
    }
    instruction.execute(wave, instruction);
    return exchange_result(wave, instruction, snapshot);
  }
  snapshot.exec = wave.exec();
  snapshot.m0 = wave.m0();
  unsigned scalars = 0;
  unsigned vectors = 0;
  for (unsigned i = 0; i < instruction.source_count; ++i) {
    const Operand& operand = instruction.source[i];
    if (operand.is_scalar() && operand.index < sgpr_exec) {
      for (unsigned j = 0; j < operand.dwords; ++j) snapshot.scalars[scalars++] = wave.sgpr[operand.index + j];
    } else if (operand.is_vector()) {
      for (unsigned j = 0; j < operand.dwords; ++j) {
        std::memcpy(snapshot.vectors[vectors++], wave.vgpr[operand.index + j], sizeof(wave.vgpr[0]));
      }
    }
  }
}

// A clock's result, for what its registers held.
void Arrivals::exchange_result(Wave& wave, const Instruction& instruction, Snapshot& snapshot) {
  const Operand& result = instruction.destination[0];
  for (unsigned i = 0; i < result.dwords && result.index + i < sgpr_count; ++i) {
    std::swap(wave.sgpr[result.index + i], snapshot.scalars[i]);
  }
}

// Loads and stores of a wave reach memory in the order in which they were issued, whatever is counted.
void Arrivals::deliver_older(Wave& wave, std::uint64_t issued) {
  for (const Queue* queue : {&vector_queue_, &store_queue_}) {
    for (const auto& other : *queue) {
      if (other->issued < issued) deliver(wave, *other);
    }
  }
}

void Arrivals::deliver_all(Wave& wave, Queue& queue) {
  for (const auto& operation : queue) {
    if (operation->flat || !is_unordered(*operation)) deliver(wave, *operation);
  }
}

// Results of one queue come in order; so do their effects.
void Arrivals::deliver_until(Wave& wave, std::uint64_t time) {
  next_arrival_ = ~std::uint64_t{0};
  for (Queue* queue : queues()) {
    for (const auto& operation : *queue) {
      if (operation->delivered) continue;
      if (operation->arrives <= time) {
        deliver(wave, *operation);
      } else {
        next_arrival_ = std::min(next_arrival_, operation->arrives);
      }
    }
  }
}

void Arrivals::complete(Wave& wave, Queue& queue, std::size_t index) {
  Operation& operation = *queue[index];
  deliver(wave, operation);
  if (operation.lds_access != no_access) lds_->complete(operation.lds_access, wave.index);
  if (operation.order.kind != OrderTicket::Kind::none) order_->complete(wave.index, operation.order);
  if (!operation.silenced) forget(operation);
  spare_.push_back(std::move(queue[index]));
  queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(index));
}

void Arrivals::pass_barrier() {
  for (const Queue* queue : {&vector_queue_, &store_queue_}) {
    for (const auto& operation : *queue) operation->before_barrier = true;
  }
}

void Arrivals::deliver_from_before_barrier(Wave& wave) {
  for (const Queue* queue : {&vector_queue_, &store_queue_}) {
    for (const auto& operation : *queue) {
      if (operation->before_barrier) deliver(wave, *operation);
    }
  }
}

void Arrivals::age(Wave& wave) {
  if (arrival_ == Arrival::timed) return;
  for (Queue* queue : queues()) {
    for (const auto& operation : *queue) {
      if (now(wave) - operation->issued > longest_delay) deliver(wave, *operation);
    }
  }
}

void Arrivals::maybe_deliver(Wave& wave) {
  for (Queue* queue : queues()) {
    for (const auto& operation : *queue) {
      if (random_.below(2) == 0) break;
      deliver(wave, *operation);
    }
  }
}

void Arrivals::deliver_in_front_of(Wave& wave, const DeviceSpan& touched, bool writes) {
  const auto conflicts = [&](const auto& operation) {
    return !operation->delivered && (writes || operation->effects->stores) && operation->device.overlaps(touched);
  };
  const auto last = std::ranges::find_last_if(vector_queue_, conflicts);
  for (auto operation = vector_queue_.begin(); !last.empty() && operation <= last.begin(); ++operation) {
    // An LDS DMA is over when it was waited for: its other end is no vector memory.
    if (!(*operation)->effects->lds_dma) deliver(wave, **operation);
  }
}

void Arrivals::issue(Wave& wave, const Instruction& instruction, const Effects& effects, const Issued& how) {
  const bool is_vector = effects.counts_vector;
  const bool is_scalar = effects.space == Space::scalar || effects.space == Space::scalar_buffer;
  Queue& of_vectors = effects.counts_store ? store_queue_ : vector_queue_;
  Queue& queue = is_vector ? of_vectors : (is_scalar ? scalar_queue_ : local_queue_);
  const unsigned most_of_lds = instruction.record->split_counters ? most_split : most_local;
  // A full counter holds the wave back until something has arrived.
  if (is_vector && queue.size() >= most_vector) wait_vector(wave, queue, most_vector - 1);
  // What lands in any order stays in the queue until all have: the oldest goes, so that a loop does not fill memory.
  if (is_vector && arrival_ == Arrival::unordered && queue.size() >= most_vector) complete(wave, queue, 0);
  if (!is_vector && local_queue_.size() >= most_of_lds) {
    while (local_queue_.size() > most_of_lds - 1) complete(wave, local_queue_, 0);
  }

  std::unique_ptr<Operation> issued = fresh();
  Operation& operation = *issued;
  operation.instruction = &instruction;
  operation.effects = &effects;
  operation.exec = wave.exec();
  operation.issued = now(wave);
  operation.arrives = how.arrives;
  operation.lds_access = how.lds_access;
  operation.memory_access = how.memory_access;
  operation.device = how.device;
  operation.flat = effects.space == Space::flat;
  operation.vector_done = operation.local_done = operation.silenced = operation.before_barrier = false;
  operation.delivered = true;
  operation.order.kind = OrderTicket::Kind::none;
  if (how.ticket != nullptr) std::swap(operation.order, *how.ticket);
  bool later = arrival_ != Arrival::early && !effects.atomic && !effects.opaque;
  // LDS takes its bytes when an instruction issues.
  if (arrival_ == Arrival::timed && !is_vector && !is_scalar) later = false;
  if (arrival_ == Arrival::random) {
    maybe_deliver(wave);
    later = later && random_.below(4) != 0;
  }
  if (!later) {
    // In order with what the same wave issued before, as the memory pipeline does it.
    deliver_all(wave, queue);
    if (is_vector && instruction.record->split_counters) deliver_older(wave, operation.issued);
    if (wave.state == WaveState::faulted) return;
    execute(wave, operation);
  } else {
    operation.delivered = false;
    next_arrival_ = std::min(next_arrival_, how.arrives);
    keep_for_later(wave, instruction, operation.snapshot);
  }
  note(operation);
  queue.push_back(std::move(issued));
}

AccessId Arrivals::oldest_local() const {
  AccessId oldest = no_access;
  // Flat instructions that went to LDS stand among those of vector memory.
  for (const Queue* queue : {&local_queue_, &vector_queue_, &store_queue_}) {
    for (const auto& operation : *queue) {
      if (operation->lds_access == no_access || (queue != &local_queue_ && !operation->flat)) continue;
      if (oldest == no_access || operation->lds_access < oldest) oldest = operation->lds_access;
      break;
    }
  }
  return oldest;
}

AccessId Arrivals::oldest_dma() const {
  for (const auto& operation : vector_queue_) {
    if (operation->lds_access != no_access && !operation->flat) return operation->lds_access;
  }
  return no_access;
}

AccessId Arrivals::oldest_memory() const {
  AccessId oldest = no_access;
  for (const Queue* queue : {&vector_queue_, &store_queue_}) {
    for (const auto& operation : *queue) {
      if (operation->memory_access == no_access) continue;
      if (oldest == no_access || operation->memory_access < oldest) oldest = operation->memory_access;
      break;
    }
  }
  return oldest;
}

}  // namespace wavejit::simgpu::checks
