// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "scheduler.h"

#include <algorithm>

#include "layers.h"

namespace serving {

Scheduler::Scheduler(const Limits& limits, std::vector<Request> requests)
    : limits_(limits), pool_(limits.pages), slots_(static_cast<std::size_t>(limits.slots), -1) {
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

// What another request has computed of the same tokens is there already. Keys of a row do not depend on the batch that
// computed them, so nothing shows. The last token runs in any case: its logits are wanted.
void Scheduler::take_common_pages(Sequence& sequence) {
  if (sequence.cached != static_cast<int>(sequence.pages.size()) * page_size) return;
  for (int end = sequence.cached + page_size; end < static_cast<int>(sequence.tokens.size()); end += page_size) {
    const auto page = pool_.share({sequence.tokens.begin(), sequence.tokens.begin() + end});
    if (!page) return;
    sequence.pages.push_back(*page);
    sequence.cached = end;
    ++shared_pages_;
  }
}

void Scheduler::leave(Sequence& sequence) {
  for (const int page : sequence.pages) pool_.give_back(page);
  sequence.pages.clear();
  sequence.cached = 0;
  slots_[sequence.slot] = -1;
  sequence.slot = -1;
}

// The youngest of those without rows in this step. Its tokens run again when it comes back: prompt and answer so far.
bool Scheduler::preempt_younger(const Sequence& than, const std::vector<Piece>& pieces) {
  for (int i = static_cast<int>(sequences_.size()) - 1; i >= 0 && &sequences_[i] != &than; --i) {
    const bool runs =
        std::any_of(pieces.begin(), pieces.end(), [i](const Piece& piece) { return piece.sequence == i; });
    if (runs || sequences_[i].pages.empty()) continue;
    leave(sequences_[i]);
    ++preemptions_;
    return true;
  }
  return false;
}

// How many of the wanted tokens there are pages for.
int Scheduler::count_with_pages(Sequence& sequence, int wanted, const std::vector<Piece>& pieces) {
  while (static_cast<int>(sequence.pages.size()) < pages_of(sequence.cached + wanted)) {
    if (const auto page = pool_.take())
      sequence.pages.push_back(*page);
    else if (!preempt_younger(sequence, pieces))
      break;
  }
  return std::min(wanted, static_cast<int>(sequence.pages.size()) * page_size - sequence.cached);
}

std::vector<Piece> Scheduler::next_step() {
  admit();
  ++step_;
  int room = limits_.tokens_per_step;
  std::vector<Piece> pieces;
  // Requests that are being answered go first: one token each. Prompts, and who comes back, share what is left, cut
  // where it ends. The older first: it gets on in any case.
  for (const bool answering : {true, false}) {
    for (int i = 0; i < static_cast<int>(sequences_.size()); ++i) {
      Sequence& sequence = sequences_[i];
      if (sequence.slot < 0) continue;
      const auto pending = [&] { return static_cast<int>(sequence.tokens.size()) - sequence.cached; };
      if ((sequence.answered() > 0 && pending() == 1) != answering || room == 0) continue;
      take_common_pages(sequence);
      const int count = count_with_pages(sequence, std::min(pending(), room), pieces);
      if (count == 0) continue;
      pieces.push_back({.sequence = i, .slot = sequence.slot, .first = sequence.cached, .count = count});
      room -= count;
    }
  }
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.slot < b.slot; });
  return pieces;
}

void Scheduler::finish(const Piece& piece, const std::vector<float>& logits) {
  Sequence& sequence = sequences_[piece.sequence];
  sequence.cached += piece.count;
  for (int page = piece.first / page_size; page < sequence.cached / page_size; ++page)
    pool_.publish(sequence.pages[page], {sequence.tokens.begin(), sequence.tokens.begin() + (page + 1) * page_size});
  if (sequence.cached < static_cast<int>(sequence.tokens.size())) return;  // the prompt goes on
  sequence.tokens.push_back(best_token(logits));
  sequence.logits.push_back(logits);
  if (sequence.done()) leave(sequence);
}

}  // namespace serving
