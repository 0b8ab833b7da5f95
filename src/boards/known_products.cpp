// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "boards/known_products.h"

#include "boards/board.h"

namespace wavejit::boards {

std::string known_products() {
  std::string names;
  for (const Board& board : all_products()) {
    if (!names.empty()) names += ", ";
    names += board.id;
  }
  return names;
}

}  // namespace wavejit::boards
