// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "scheduler.h"

#include <algorithm>

#include "layers.h"

namespace serving {

Scheduler::Scheduler(const Limits& limits, std::vector<Request> requests)
    : limits_(limits), slots_(static_cast<std::size_t>(limits.slots), -1) {
  for (Request& request : requests) {
    Sequence sequence;
    sequence.tokens = request.prompt;
    sequence.request = std::move(request);
    sequences_.push_back(std::move(sequence));
  }
}

bool Scheduler::done() const {
  return std::all_of(sequences_.begin(), sequences_.end(), [](const Sequence& sequence) { return sequence.done(); });
}

void Scheduler::admit() {
  for (int i = 0; i < static_cast<int>(sequences_.size()); ++i) {
    Sequence& sequence = sequences_[i];
    if (sequence.slot >= 0 || sequence.done() || sequence.request.arrival_step > step_) continue;
    const auto free = std::find(slots_.begin(), slots_.end(), -1);
    if (free == slots_.end()) return;
    *free = i;
    sequence.slot = static_cast<int>(free - slots_.begin());
  }
}

std::vector<Piece> Scheduler::next_step() {
  admit();
  ++step_;
  int room = limits_.tokens_per_step;
  std::vector<Piece> pieces;
  // Requests that are being answered go first: one token each. Prompts share what is left, cut where it ends.
  for (const bool answering : {true, false}) {
    for (const int index : slots_) {
      if (index < 0) continue;
      const Sequence& sequence = sequences_[index];
      const int pending = static_cast<int>(sequence.tokens.size()) - sequence.cached;
      const int count = std::min(pending, room);
      if ((sequence.answered() > 0) != answering || count == 0) continue;
      pieces.push_back({.sequence = index, .slot = sequence.slot, .first = sequence.cached, .count = count});
      room -= count;
    }
  }
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.slot < b.slot; });
  return pieces;
}

void Scheduler::finish(const Piece& piece, const std::vector<float>& logits) {
  Sequence& sequence = sequences_[piece.sequence];
  sequence.cached += piece.count;
  if (sequence.cached < static_cast<int>(sequence.tokens.size())) return;  // the prompt goes on
  sequence.tokens.push_back(best_token(logits));
  sequence.logits.push_back(logits);
  if (!sequence.done()) return;
  slots_[sequence.slot] = -1;
  sequence.slot = -1;
}

}  // namespace serving
