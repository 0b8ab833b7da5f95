// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lines of a tile that are still to be fetched into an image; the caller issues a few transfers at a time, between
// other work.
#pragma once

#include <vector>

#include "templates/attention/emit/stream_lines.h"
#include "templates/attention/emit/tile_walk.h"

namespace wavejit::attention_forward {

class LinesToFetch {
 public:
  struct Place {
    language::Kernel* kernel;
    attention::LineStream* stream;
    const attention::TileInterval* walk;
    language::Value* first_tile;      // of the walk that has keys; uniform
    language::Value* image;           // bytes behind the stream's buffer; uniform
    language::Value* seen = nullptr;  // uniform: whether any row sees the tile; null: not known
    // The sequence's first key that a row sees, where values are fetched (attention/emit/unseen_keys.h).
    language::Value* first_seen = nullptr;
  };
  // For a tile that is not walked, or that nobody sees, zeros arrive. `entries`: for keys that are looked up, else
  // null.
  LinesToFetch(const Place& place, language::Value* tile, language::Value* entries, std::size_t first_line,
               std::size_t lines);

  std::size_t left() const;  // transfers
  // The next ones, as many as there are.
  void fetch(std::size_t transfers);
  void fetch() { fetch(left()); }

 private:
  void begin_line();

  Place place_;
  language::Value* tile_;
  language::Value* entries_;
  std::size_t line_;
  std::size_t end_;
  std::size_t transfers_of_line_;
  language::Value* exists_ = nullptr;
  language::Value* unseen_ = nullptr;
  std::vector<attention::LineStream::Transfer> of_line_;
  std::size_t next_ = 0;
};

}  // namespace wavejit::attention_forward
