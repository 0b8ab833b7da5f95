// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/call/paging.h"

#include <algorithm>
#include <string>
#include <tuple>

#include "families/call/refusal.h"
#include "families/call/tensor_memory.h"
#include "templates/attention/call/limits.h"
#include "templates/attention/call/numbers.h"

namespace wavejit::attention {
namespace {

namespace refusal = families::refusal;
using families::Result;
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

// The strides inside a page's head, which the layout fixes.
Result<void> check_inner_strides(const Named& named, std::int64_t of_key, std::int64_t of_dim) {
  for (const auto& [dimension, stride, what] :
       {std::tuple{1, of_key, "from key to key inside 16 bytes"}, {3, of_dim, "from dim to dim"}}) {
    if (named.tensor->strides[dimension] == stride) continue;
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT,
                      refusal::field(named, "strides") + "[" + std::to_string(dimension) + "] (" + what + ")",
                      std::to_string(named.tensor->strides[dimension]),
                      std::to_string(stride) + ", which page_layout fixes"));
  }
  return {};
}

}  // namespace

wavejit_tensor in_one_row(const wavejit_tensor& pages) {
  wavejit_tensor flat = pages;
  flat.sizes[1] = 1;
  flat.sizes[3] = pages.sizes[1] * pages.sizes[3];
  flat.strides[1] = flat.sizes[3];
  flat.strides[3] = 1;
  return flat;
}

families::Result<void> check_page_layout(const wavejit_tensor& k, const wavejit_tensor& v, const wavejit_pages& pages,
                                         bool left_padding) {
  const auto name = "page_layout";
  const std::string value = std::to_string(pages.page_layout);
  const bool by_keys = pages.page_layout == WAVEJIT_PAGES_VECTORISED_KEYS;
  if (!by_keys && pages.page_layout != WAVEJIT_PAGES_VECTORISED)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, name, value, "0 to 2, of enum wavejit_page_layout"));
  if (pages.block_table == nullptr)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, name, value, "0 without block_table: keys are in no pages"));
  if (left_padding)
    return refuse(
        bad(WAVEJIT_UNSUPPORTED, name, value,
            "0 beside first_keys: 16 bytes of a vectorised page may hold several keys, some of them padding"));
  const std::int64_t page_size = k.sizes[1];
  if (page_size < page_granule || page_size > max_page_size || page_size % page_granule != 0)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "k.sizes[1] (page size)", std::to_string(page_size),
                      "multiples of " + std::to_string(page_granule) + " up to " + std::to_string(max_page_size) +
                          " with page_layout = " + value));
  if (auto good = check_inner_strides({"k", &k}, unit_elements, 1); !good) return good;
  return check_inner_strides({"v", &v}, 1, by_keys ? unit_elements : page_size);
}

families::Result<void> check_pages(const wavejit_tensor& k, const wavejit_tensor& v, const wavejit_pages& pages,
                                   std::int64_t key_length) {
  for (const auto& [name, array] : {std::pair{"block_table", pages.block_table}, {"table_starts", pages.table_starts}})
    if (auto good = check_pointer(name, array); !good) return good;
  const std::int64_t page_size = k.sizes[1];
  if (page_size != 1 && (page_size < 1 || page_size > max_page_size || page_size % page_granule != 0)) {
    return refuse(
        bad(WAVEJIT_INVALID_ARGUMENT, "k.sizes[1] (page size)", std::to_string(page_size),
            "1, and multiples of " + std::to_string(page_granule) + " up to " + std::to_string(max_page_size)));
  }
  const bool in_rows = pages.page_layout == WAVEJIT_PAGES_OF_ROWS;
  for (const Named& named : {Named{"k", &k}, Named{"v", &v}}) {
    if (in_rows) [[likely]] {
      if (auto good = check_apart(named); !good) return good;
    } else {
      const wavejit_tensor flat = in_one_row(*named.tensor);
      if (auto good = check_apart({named.name, &flat}); !good) return good;
    }
  }
  if (pages.table_columns < 0 || pages.table_columns > max_pages)
    return refuse(
        bad(WAVEJIT_INVALID_ARGUMENT, "table_columns", std::to_string(pages.table_columns), up_to("0", max_pages)));
  if (pages.table_starts != nullptr) {
    if (pages.table_row_stride == 0) return {};
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "table_row_stride", std::to_string(pages.table_row_stride),
                      "0, since table_starts says where a sequence's pages begin"));
  }
  // The product is below 2⁴⁴. Hot: no division.
  if (pages.table_columns * page_size < key_length) {
    const std::int64_t needed = (key_length + page_size - 1) / page_size;
    return refuse(bad(
        WAVEJIT_INVALID_ARGUMENT, "table_columns", std::to_string(pages.table_columns),
        std::to_string(needed) + " and more, the pages of max_key_length = " + std::to_string(key_length) + " keys"));
  }
  constexpr std::int64_t max_row_stride = std::int64_t{1} << 40;
  if (pages.table_row_stride != 0 &&
      (pages.table_row_stride < pages.table_columns || pages.table_row_stride > max_row_stride)) {
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "table_row_stride", std::to_string(pages.table_row_stride),
                      "0, or table_columns = " + std::to_string(pages.table_columns) + " to " +
                          std::to_string(max_row_stride) + " entries"));
  }
  return {};
}

PageArguments page_arguments(const wavejit_tensor& k, const wavejit_pages& pages) {
  const auto granules = static_cast<std::uint32_t>(std::max<std::int64_t>(k.sizes[1] / page_granule, 1));
  const std::int64_t row = pages.table_row_stride != 0 ? pages.table_row_stride : pages.table_columns;
  return {.table = address(pages.block_table),
          .table_starts = address(pages.table_starts),
          .table_row_stride = static_cast<std::uint64_t>(row) * sizeof(std::int32_t),
          .table_columns = static_cast<std::uint32_t>(pages.table_columns),
          .pages = static_cast<std::uint32_t>(k.sizes[0]),
          .granules_of_page = granules,
          .page_multiplier = division_multiplier(granules)};
}

}  // namespace wavejit::attention
