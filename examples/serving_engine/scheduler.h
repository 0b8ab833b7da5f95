// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Continuous batching: which tokens run in which step. A step mixes pieces of prompts and single tokens of requests
// that are being answered; a request joins when a row of the block table is free and leaves when it is done. When pages
// of the cache run out, the youngest gives its own back and comes again later.
#pragma once

#include <cstdint>
#include <vector>

#include "model.h"
#include "pages.h"

namespace serving {

struct Limits {
  int slots = 4;             // sequences side by side: rows of the block table
  int tokens_per_step = 48;  // rows of one batch
  int pages = 6;             // of the cache; as many as the longest sequence needs, at the least
};

// A request on its way.
struct Sequence {
  Request request;
  std::vector<int> tokens;                 // prompt and answer
  std::vector<std::vector<float>> logits;  // of each token of the answer
  int cached = 0;                          // tokens whose keys and values are in the cache
  int slot = -1;                           // -1: waiting, or done
  std::vector<int> pages;                  // page i has tokens i · page_size and on

  int answered() const { return static_cast<int>(logits.size()); }
  bool done() const { return answered() == request.new_tokens; }
};

// Tokens first … first + count - 1 of a sequence: rows of one batch.
struct Piece {
  int sequence = 0;
  int slot = 0;
  int first = 0;
  int count = 0;
};

class Scheduler {
 public:
  Scheduler(const Limits& limits, std::vector<Request> requests);

  bool done() const;
  // The next step's batch, in the order of slots; empty while everybody waits for requests to arrive.
  std::vector<Piece> next_step();
  // The piece was computed; `logits` are those after its last token.
  void finish(const Piece& piece, const std::vector<float>& logits);

  const std::vector<Sequence>& sequences() const { return sequences_; }
  std::uint64_t shared_pages() const { return shared_pages_; }
  std::uint64_t preemptions() const { return preemptions_; }

 private:
  void admit();
  void take_common_pages(Sequence& sequence);
  int count_with_pages(Sequence& sequence, int wanted, const std::vector<Piece>& pieces);
  bool preempt_younger(const Sequence& than, const std::vector<Piece>& pieces);
  void leave(Sequence& sequence);

  Limits limits_;
  PagePool pool_;
  std::vector<Sequence> sequences_;  // the oldest first
  std::vector<int> slots_;           // the sequence in each; -1: free
  int step_ = 0;
  std::uint64_t shared_pages_ = 0;
  std::uint64_t preemptions_ = 0;
};

}  // namespace serving
