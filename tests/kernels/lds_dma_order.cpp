// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/lds_dma_order.h"

#include <algorithm>
#include <format>
#include <fstream>
#include <set>
#include <utility>
#include <vector>

#include "analysis/flow.h"
#include "analysis/kernel_code.h"
#include "simgpu/checkers/facts/effects.h"

namespace wavejit::tests {
namespace {

using analysis::KernelCode;
using simgpu::checks::Effects;

// What a counter of 6 bits holds.
constexpr std::size_t most_on_their_way = 63;
// Queues in front of one kernel's blocks. More would be a kernel that never waits for all of its loads.
constexpr std::size_t most_queues = 100'000;

// An instruction of vector memory that is not over for certain if loads into LDS may land in any order.
struct Pending {
  std::size_t place = 0;
  bool is_dma = false;
  bool over_in_order = false;  // but is, if they land in the order of issue
  bool handed_on = false;      // a load into LDS behind whose wait its bytes may be read
};
using Queue = std::vector<Pending>;  // oldest first

class Search {
 public:
  Search(const KernelCode& code, const std::vector<analysis::Block>& blocks) : code_(code), blocks_(blocks) {
    for (const simgpu::Instruction& instruction : code.instructions()) {
      const Effects& effects = simgpu::checks::effects_of(*instruction.function)[effects_.size()];
      effects_.push_back(&effects);
      has_barriers_ = has_barriers_ || effects.action == simgpu::Action::barrier;
    }
  }

  std::string first() {
    std::set<std::vector<std::size_t>> seen;
    std::vector<std::pair<std::size_t, Queue>> open = {{0, {}}};
    while (!open.empty() && found_.empty()) {
      auto [block, queue] = std::move(open.back());
      open.pop_back();
      for (std::size_t place = blocks_[block].begin; place < blocks_[block].end && found_.empty(); ++place)
        step(place, queue);
      for (const std::size_t next : blocks_[block].successors)
        if (seen.insert(key(next, queue)).second) open.emplace_back(next, queue);
      if (seen.size() > most_queues) return "there are more queues of loads than are followed";
    }
    return found_;
  }

 private:
  // Which instruction it is matters only where a register is its result.
  std::vector<std::size_t> key(std::size_t block, const Queue& queue) const {
    std::vector<std::size_t> parts = {block};
    for (const Pending& pending : queue) {
      const bool is_result = effects_[pending.place]->write_count > 0;
      parts.push_back(
          (((is_result ? pending.place + 1 : 0) * 2 + (pending.is_dma ? 1 : 0)) * 2 + (pending.over_in_order ? 1 : 0)) *
              2 +
          (pending.handed_on ? 1 : 0));
    }
    return parts;
  }

  void step(std::size_t place, Queue& queue) {
    const Effects& effects = *effects_[place];
    look(place, queue);
    if (effects.counts_vector) {
      if (queue.size() == most_on_their_way) queue.erase(queue.begin());
      queue.push_back({.place = place, .is_dma = effects.lds_dma});
    }
    if (effects.wait.vector < most_on_their_way) wait(queue, effects.wait.vector);
  }

  // Whether the instruction uses what only the order makes certain.
  void look(std::size_t place, const Queue& queue) {
    const Effects& effects = *effects_[place];
    // Behind a barrier any wave reads. A kernel of one wave has none, and reads its tiles itself.
    const bool is_reader = has_barriers_ ? effects.action == simgpu::Action::barrier
                                         : effects.space == simgpu::Space::lds && effects.loads;
    // A load over another one's register comes behind it.
    const bool is_load = effects.counts_vector && !effects.lds_dma;
    for (const Pending& pending : queue) {
      if (!pending.over_in_order) continue;
      const Effects& of = *effects_[pending.place];
      bool uses = pending.handed_on && is_reader;
      for (unsigned i = 0; !is_load && i < of.write_count; ++i) uses = uses || effects.touched.any(of.writes[i]);
      if (!uses) continue;
      found_ = std::format("'{}' is in need of '{}'", code_.text(code_.instructions()[place]),
                           code_.text(code_.instructions()[pending.place]));
      return;
    }
  }

  void wait(Queue& queue, unsigned count) const {
    if (count == 0) return queue.clear();
    auto in_order = static_cast<std::size_t>(std::ranges::count(queue, false, &Pending::over_in_order));
    auto last = queue.end();  // what the wait is for
    for (auto pending = queue.begin(); in_order > count; ++pending) {
      if (pending->over_in_order) continue;
      pending->over_in_order = true;
      last = pending;
      --in_order;
    }
    // One wave reads other tiles of LDS in the meantime: the wait is for a tile if it is for a load into LDS.
    if (last != queue.end() && (has_barriers_ || last->is_dma))
      for (Pending& pending : queue) pending.handed_on = pending.over_in_order && pending.is_dma;
    // Loads into registers keep their order among themselves.
    auto others = static_cast<std::size_t>(std::ranges::count(queue, false, &Pending::is_dma));
    std::erase_if(queue, [&](const Pending& pending) { return !pending.is_dma && others-- > count; });
  }

  const KernelCode& code_;
  const std::vector<analysis::Block>& blocks_;
  std::vector<const Effects*> effects_;  // by place
  bool has_barriers_ = false;
  std::string found_;
};

}  // namespace

std::string counts_on_dma_order(std::span<const std::byte> code_object) {
  const auto code = KernelCode::read(code_object);
  if (!code) return code.error();
  const auto blocks = analysis::blocks_of(*code);
  if (!blocks) return blocks.error();
  return Search(*code, *blocks).first();
}

std::vector<DmaKind> dma_kinds() {
  std::vector<DmaKind> kinds;
  std::ifstream file(WAVEJIT_LDS_DMA_KINDS);
  for (std::string line; std::getline(file, line);) {
    const std::string word = line.substr(0, line.find(' '));
    const std::string rest = line.substr(std::min(line.size(), word.size() + 1));
    if (word == "kind") kinds.push_back({.name = rest, .kernels = {}});
    if (word == "needs") kinds.back().needs_order = rest.starts_with("yes");
    if (word == "kernels") kinds.back().kernels = rest;
  }
  return kinds;
}

}  // namespace wavejit::tests
