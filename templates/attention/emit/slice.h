// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One tensor of a problem, cut down to one (batch, head) as a bounded buffer.
#pragma once

#include "codegen/language/buffer.h"
#include "templates/attention/kernel/arguments.h"

namespace wavejit::attention {

struct Slice {
  language::Buffer buffer;
  language::Value* row_stride;  // bytes
  // For packed heads, else null: the same; low half, slices are below 4 GiB.
  language::Value* head_stride = nullptr;
  // For K and V in pages, or named by lists (key_pages.h), else null; `buffer` is then none.
  language::Value* base = nullptr;         // i64: the head's first key of page 0
  language::Value* page_stride = nullptr;  // i64, bytes
  // For a tensor whose dims need not stand side by side (scattered.h), else null: how far apart they are, in bytes, and
  // how many rows there are. Beyond them stands memory of other rows, which no descriptor keeps away.
  language::Value* dim_stride = nullptr;
  language::Value* rows = nullptr;
  int element_bytes = 0;
  bool scattered() const { return dim_stride != nullptr; }
};

// K and V of a workgroup, and how far their keys go.
struct KeyTensors {
  Slice k;
  Slice v;
  language::Value* batch;
  language::Value* first_slot;  // of keys in pages: where key 0 stands, 0 without first keys
  language::Value* last_key;    // of the sequence; −1 or less: none
  std::size_t page_arguments;   // of keys in pages: where the kernel's arguments hold a PageArguments
  // For listed keys, else null: the address of the list, whose last entry is last_key, and how many keys an entry may
  // name, from 0 on. Both uniform.
  language::Value* list = nullptr;
  language::Value* named_keys = nullptr;
  // The sequence's first key that any row sees, uniform; null: key 0 (unseen_keys.h).
  language::Value* first_seen = nullptr;
};

// `rows` rows from `first_row` on, of `row_bytes` each. With `group`, the rows of `group` heads from `head` on.
Slice slice_of(language::Kernel& kernel, const TensorFields& fields, language::Value* batch, language::Value* head,
               language::Value* first_row, language::Value* rows, int row_bytes, language::Value* group = nullptr);

// The same of elements at any distances: rows of `dims` elements, whose distance stands at `dim_stride` in the
// arguments.
Slice scattered_slice_of(language::Kernel& kernel, const TensorFields& fields, std::size_t dim_stride,
                         language::Value* batch, language::Value* head, language::Value* first_row,
                         language::Value* rows, int dims, int element_bytes, language::Value* group = nullptr);

// A head of a cache in pages: the tiles find their rows by the block table (key_pages.h).
Slice cache_of(language::Kernel& kernel, const TensorFields& fields, language::Value* head);
// Rows of a tensor from `first_row` on as pages of one key.
Slice pages_of_rows(language::Kernel& kernel, const TensorFields& fields, language::Value* batch, language::Value* head,
                    language::Value* first_row);

// What `group` heads span: `bytes` of one head, and the distance to the last one.
language::Value* bytes_of_heads(language::Kernel& kernel, language::Value* group, language::Value* bytes,
                                language::Value* head_stride);

}  // namespace wavejit::attention
