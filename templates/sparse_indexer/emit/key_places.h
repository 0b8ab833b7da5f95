// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where index keys and their scales stand: dense, or in the pages that a block table names. Per lane.
#pragma once

#include <optional>

#include "codegen/language/buffer.h"
#include "codegen/language/kernel.h"
#include "templates/sparse_indexer/emit/row_keys.h"

namespace wavejit::sparse_indexer {

class KeyPlaces {
 public:
  // The places of sequence `batch`, whose keys `range` are asked for: what lies outside is not read, nor are entries of
  // pages that hold none of them.
  KeyPlaces(language::Kernel& kernel, const ScoresKernel& spec, language::Value* batch, const RowKeys& range);

  // The key, or the nearest one in the range.
  language::Value* in_range(language::Value* key);
  // The table's entry of its page; null without pages.
  language::Value* entry_of(language::Value* key);

  // Addresses, i64, of a key of the range whose page's entry is `entry`.
  struct Place {
    language::Value* key;
    language::Value* scale;
  };
  Place place_of(language::Value* key, language::Value* entry);
  // The scale at such an address.
  language::Value* load_scale(language::Value* address);

 private:
  llvm::IRBuilder<>& ir() { return kernel_.ir(); }
  language::Value* argument(std::size_t field) { return kernel_.argument_i64(field); }
  language::Value* page_argument(std::size_t field);
  language::Value* column_of(language::Value* key);
  void load_table(language::Value* batch);

  language::Kernel& kernel_;
  const ScoresKernel& spec_;
  RowKeys range_;
  std::optional<language::Buffer> table_;
  language::Value* keys_ = nullptr;
  language::Value* scales_ = nullptr;
  language::Value* granule_shift_ = nullptr;
  language::Value* granules_of_page_ = nullptr;
  language::Value* multiplier_ = nullptr;
  language::Value* last_page_ = nullptr;
};

}  // namespace wavejit::sparse_indexer
