// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <string>

#include "templates/attention_forward/call/problem/checks.h"
#include "templates/families/call/refusal.h"
#include "templates/families/call/tensor_memory.h"

namespace wavejit::attention_forward {
namespace {

using refusal::bad;
using refusal::Named;
using refusal::refuse;
using refusal::up_to;

Result<void> check_pointer(const char* name, const std::int32_t* array) {
  if (reinterpret_cast<std::uintptr_t>(array) % alignof(std::int32_t) == 0) return {};
  return refuse(bad(WAVEJIT_INVALID_ARGUMENT, name, refusal::pointer_text(array), "device memory aligned to 4 bytes"));
}

// Strides are known to be positive.
Result<void> check_apart(const Named& named) {
  const wavejit_tensor& tensor = *named.tensor;
  if (!families::elements_overlap(tensor, 3, static_cast<std::uint64_t>(tensor.sizes[3]))) return {};
  return refuse(bad(WAVEJIT_INVALID_ARGUMENT, refusal::field(named, "strides"),
                    "[" + std::to_string(tensor.strides[0]) + ", " + std::to_string(tensor.strides[1]) + ", " +
                        std::to_string(tensor.strides[2]) + "], with which keys of pages overlap",
                    "strides of page, key and head that pass what the dimensions inside them span"));
}

}  // namespace

Result<void> check_pages(const wavejit_attention_forward_arguments& call, const Extents& extents) {
  for (const auto& [name, array] : {std::pair{"block_table", call.block_table}, {"table_starts", call.table_starts}})
    if (auto good = check_pointer(name, array); !good) return good;
  const std::int64_t page_size = call.k.sizes[1];
  if (page_size != 1 && (page_size < 1 || page_size > max_page_size || page_size % page_granule != 0)) {
    return refuse(
        bad(WAVEJIT_INVALID_ARGUMENT, "k.sizes[1] (page size)", std::to_string(page_size),
            "1, and multiples of " + std::to_string(page_granule) + " up to " + std::to_string(max_page_size)));
  }
  if (auto good = check_apart({"k", &call.k}); !good) return good;
  if (auto good = check_apart({"v", &call.v}); !good) return good;
  if (call.table_columns < 0 || call.table_columns > max_pages)
    return refuse(
        bad(WAVEJIT_INVALID_ARGUMENT, "table_columns", std::to_string(call.table_columns), up_to("0", max_pages)));
  if (call.table_starts != nullptr) {
    if (call.table_row_stride == 0) return {};
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "table_row_stride", std::to_string(call.table_row_stride),
                      "0, since table_starts says where a sequence's pages begin"));
  }
  const std::int64_t needed = (extents.key_length + page_size - 1) / page_size;
  if (call.table_columns < needed) {
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "table_columns", std::to_string(call.table_columns),
                      std::to_string(needed) +
                          " and more, the pages of max_key_length = " + std::to_string(extents.key_length) + " keys"));
  }
  constexpr std::int64_t max_row_stride = std::int64_t{1} << 40;
  if (call.table_row_stride != 0 &&
      (call.table_row_stride < call.table_columns || call.table_row_stride > max_row_stride)) {
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "table_row_stride", std::to_string(call.table_row_stride),
                      "0, or table_columns = " + std::to_string(call.table_columns) + " to " +
                          std::to_string(max_row_stride) + " entries"));
  }
  return {};
}

}  // namespace wavejit::attention_forward
