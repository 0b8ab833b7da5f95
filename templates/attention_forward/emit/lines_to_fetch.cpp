// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/lines_to_fetch.h"

#include "codegen/language/synchronize.h"
#include "templates/attention/emit/unseen_keys.h"

namespace wavejit::attention_forward {

LinesToFetch::LinesToFetch(const Place& place, language::Value* tile, language::Value* entries, std::size_t first_line,
                           std::size_t lines)
    : place_(place),
      tile_(tile),
      entries_(entries),
      line_(first_line),
      end_(first_line + lines),
      transfers_of_line_(static_cast<std::size_t>(place.stream->transfers()) / place.stream->lines()) {}

std::size_t LinesToFetch::left() const { return ((end_ - line_) * transfers_of_line_) + of_line_.size() - next_; }

void LinesToFetch::fetch(std::size_t transfers) {
  for (std::size_t sent = 0; sent < transfers && left() > 0; ++sent) {
    if (next_ == of_line_.size()) begin_line();
    of_line_[next_++]();
  }
}

// What all lines have in common is made with the first of them.
void LinesToFetch::begin_line() {
  llvm::IRBuilder<>& ir = place_.kernel->ir();
  if (exists_ == nullptr) {
    exists_ = ir.CreateAnd(place_.walk->exists(tile_), ir.CreateICmpSGE(tile_, place_.first_tile));
    if (place_.seen != nullptr) exists_ = ir.CreateAnd(exists_, place_.seen);
    tile_ = ir.CreateSelect(exists_, tile_, place_.walk->last());
    unseen_ = attention::unseen_keys(*place_.kernel, place_.first_seen, tile_);
    // Opaque: the places of all lines would live in scalar registers throughout.
    place_.image = language::opaque(*place_.kernel, place_.image);
  }
  of_line_ = place_.stream->transfers_of_line(place_.image, tile_, {}, entries_, line_++, exists_, unseen_);
  next_ = 0;
}

}  // namespace wavejit::attention_forward
