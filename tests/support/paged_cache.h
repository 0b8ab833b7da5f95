// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Keys and values of a case in pages of a cache: pages shuffled, slots without a key NaN, entries of the table that no
// sequence has garbage.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "support/attention_reference.h"
#include "support/byte_floats.h"
#include "support/storage_types.h"
#include "wavejit/wavejit.h"

namespace wavejit::tests {

struct Pages {
  int size = 16;
  bool heads_first = false;  // a page is [heads][keys][dim]
  bool in_turn = false;      // pages of K and V stand in turn in one tensor
  bool list = false;         // CSR
  std::uint64_t seed = 1;    // of the shuffling
  std::int64_t total = 0;    // pages of the cache; 0: a few more than are used
  bool at_border = false;    // the pages next to an address that is a multiple of 4 GiB
  bool tight = false;        // the table ends with the last entry of the longest sequence
  // What the device gets in place of the live entries: for tables that lie.
  std::optional<std::int32_t> every_entry = {};  // NOLINT(readability-redundant-member-init)
  std::int32_t layout = WAVEJIT_PAGES_OF_ROWS;
  // The pages that have been freed in front of each sequence; their entries name a page that is no sequence's.
  std::vector<std::int32_t> freed = {};  // NOLINT(readability-redundant-member-init)
  // What stands in slots without a key: bits of 16, or a byte of a cache's. None: NaN.
  std::optional<std::uint16_t> garbage = {};  // NOLINT(readability-redundant-member-init)
};

class PagedCache {
 public:
  // [key rows][kv heads] of K and V, or null: behind the data of each page, and NaN in slots without a key.
  using TokenScales = std::array<const std::vector<float>*, 2>;

  // `first_keys`: slots before the keys of each sequence, or empty.
  PagedCache(wavejit_engine* engine, const AttentionInputs& inputs, wavejit_dtype type, const Pages& pages,
             const std::vector<std::int32_t>& first_keys = {}, const TokenScales& scales = {})
      : engine_(engine),
        inputs_(inputs),
        type_(type),
        element_bytes_(type == WAVEJIT_FP16 || type == WAVEJIT_BF16 ? 2 : 1),
        pages_(pages),
        first_keys_(first_keys) {
    count_pages();
    const std::size_t k_page = page_elements(inputs.head_dim);
    const std::size_t v_page = page_elements(inputs.value_dim());
    // The distance for elements of a byte. Pages are as far apart as rows may be.
    const std::size_t behind =
        scales[0] == nullptr ? 0 : (std::size_t(pages.size) * inputs.kv_heads * sizeof(float) + 15) / 16 * 16;
    if (pages.in_turn) {
      const std::size_t both = k_page + v_page + (2 * behind);
      k_memory_ = allocate(both * total_ * element_bytes_);
      k_ = tensor(k_memory_, inputs.head_dim, both);
      v_ = tensor(static_cast<char*>(k_memory_) + (k_page * element_bytes_), inputs.value_dim(), both);
    } else {
      k_memory_ = allocate((k_page + behind) * total_ * element_bytes_);
      v_memory_ = allocate((v_page + behind) * total_ * element_bytes_);
      k_ = tensor(k_memory_, inputs.head_dim, k_page + behind);
      v_ = tensor(v_memory_, inputs.value_dim(), v_page + behind);
    }
    if (pages.layout != WAVEJIT_PAGES_OF_ROWS) vectorise();
    deal_pages();
    fill(k_, inputs.k);
    fill(v_, inputs.v);
    if (behind != 0) {
      k_scale_ = scales_behind(k_, pages.in_turn ? k_page + v_page : k_page, *scales[0]);
      v_scale_ = scales_behind(v_, pages.in_turn ? v_page + behind : v_page, *scales[1]);
    }
    make_table();
  }
  ~PagedCache() {
    for (void* memory : {k_memory_, v_memory_, table_, starts_})
      if (memory != nullptr) wavejit_device_free(engine_, memory);
  }
  PagedCache(const PagedCache&) = delete;
  PagedCache& operator=(const PagedCache&) = delete;

  void describe(wavejit_attention_forward_arguments& call) const {
    call.k = k_;
    call.v = v_;
    call.scales.k_scale = k_scale_;
    call.scales.v_scale = v_scale_;
    call.pages.block_table = static_cast<const std::int32_t*>(table_);
    call.pages.table_starts = static_cast<const std::int32_t*>(starts_);
    call.pages.table_columns = columns_;
    call.pages.table_row_stride = pages_.list ? 0 : row_stride_;
    call.sequences.max_key_length = inputs_.key_length;
    call.pages.page_layout = pages_.layout;
  }

 private:
  static constexpr std::uint16_t unused = 0x7FA5;  // NaN in fp16 and in bf16
  static constexpr std::int32_t garbage[] = {0x7FFFFFFF, -1, 0x40000001};

  static void require(wavejit_status status) {
    if (status != WAVEJIT_OK) throw std::runtime_error(wavejit_last_detail());
  }
  void* allocate(std::size_t bytes) const {
    void* memory = nullptr;
    require(wavejit_device_allocate(engine_, bytes, &memory));
    return memory;
  }
  template <typename T>
  void* on_device(const std::vector<T>& values) const {
    void* memory = allocate(values.size() * sizeof(T));
    require(wavejit_device_copy_in(engine_, memory, values.data(), values.size() * sizeof(T)));
    return memory;
  }
  std::size_t page_elements(int head_dim) const {
    return std::size_t(pages_.size) * static_cast<std::size_t>(inputs_.kv_heads * head_dim);
  }
  int padding(int b) const { return first_keys_.empty() ? 0 : first_keys_[b]; }
  int pages_of(int b) const {
    const int keys = inputs_.key_lengths[b];
    return keys == 0 ? 0 : (padding(b) + keys + pages_.size - 1) / pages_.size;
  }

  void count_pages() {
    for (int b = 0; b < inputs_.batch; ++b) used_ += pages_of(b);
    total_ = pages_.total != 0 ? pages_.total : used_ + 3;
  }

  // Which pages a sequence has: from both ends of the cache, in no order.
  void deal_pages() {
    std::vector<std::int32_t> ids;
    ids.reserve(static_cast<std::size_t>(used_));
    for (std::int64_t i = 0; i < used_; ++i)
      ids.push_back(static_cast<std::int32_t>(i % 2 == 0 ? total_ - 1 - i / 2 : i / 2));
    if (pages_.at_border) {
      const auto base = reinterpret_cast<std::uintptr_t>(k_.data);
      const std::uint64_t border = ((base >> 32) + 1) << 32;
      const auto first =
          static_cast<std::int64_t>((border - base) / (static_cast<std::uint64_t>(k_.strides[0]) * element_bytes_));
      if (first < used_ / 2 || first + used_ >= total_) throw std::runtime_error("no border within the cache");
      for (std::int64_t i = 0; i < used_; ++i) ids[i] = static_cast<std::int32_t>(first - used_ / 2 + i);
    }
    std::ranges::shuffle(ids, std::mt19937_64(pages_.seed));
    auto next = ids.begin();
    for (int b = 0; b < inputs_.batch; ++b) {
      ids_.emplace_back(next, next + pages_of(b));
      next += pages_of(b);
    }
  }

  wavejit_tensor tensor(void* data, int head_dim, std::size_t page_stride) const {
    wavejit_tensor made = wavejit_dense_tensor(data, type_, total_, pages_.size, inputs_.kv_heads, head_dim);
    made.strides[0] = static_cast<std::int64_t>(page_stride);
    if (pages_.heads_first) {
      made.strides[1] = head_dim;
      made.strides[2] = std::int64_t(pages_.size) * head_dim;
    }
    return made;
  }

  void vectorise() {
    k_.strides[1] = 8;
    v_.strides[1] = 1;
    v_.strides[3] = pages_.layout == WAVEJIT_PAGES_VECTORISED ? pages_.size : 8;
    k_.strides[2] = std::int64_t(pages_.size) * k_.sizes[3];
    v_.strides[2] = std::int64_t(pages_.size) * v_.sizes[3];
  }

  // The place of dim c of a head's key i in a page of its.
  std::size_t place(const wavejit_tensor& of, std::int64_t i, std::int64_t h, std::int64_t c) const {
    const std::int64_t head = h * of.strides[2];
    const bool keys = &of == &k_;
    std::int64_t in_head = i * of.strides[1] + c;
    if (pages_.layout != WAVEJIT_PAGES_OF_ROWS && keys)
      in_head = c / 8 * pages_.size * 8 + i * 8 + c % 8;
    else if (pages_.layout == WAVEJIT_PAGES_VECTORISED)
      in_head = c * pages_.size + i;
    else if (pages_.layout == WAVEJIT_PAGES_VECTORISED_KEYS)
      in_head = i / 8 * of.sizes[3] * 8 + c * 8 + i % 8;
    return static_cast<std::size_t>(head + in_head);
  }

  void copy_page(const wavejit_tensor& to, std::int64_t id, const std::vector<std::uint16_t>& page) const {
    char* at = static_cast<char*>(to.data) + (id * to.strides[0] * static_cast<std::int64_t>(element_bytes_));
    if (element_bytes_ == 2) {
      require(wavejit_device_copy_in(engine_, at, page.data(), page.size() * 2));
      return;
    }
    const std::vector<std::uint8_t> bytes(page.begin(), page.end());
    require(wavejit_device_copy_in(engine_, at, bytes.data(), bytes.size()));
  }
  std::uint16_t bits_of_element(float value) const {
    if (element_bytes_ == 1) return nearest_byte(byte_format(type_), value);
    return to_storage(type_ == WAVEJIT_FP16 ? Storage::fp16 : Storage::bf16, value);
  }

  // A large cache keeps the zeros that it has where no page is used.
  void fill(const wavejit_tensor& to, const std::vector<float>& values) const {
    const std::size_t dims = static_cast<std::size_t>(to.sizes[3]);
    const std::vector<std::uint16_t> empty(
        page_elements(static_cast<int>(dims)),
        pages_.garbage.value_or(element_bytes_ == 1 ? byte_format(type_).nan : unused));
    if (pages_.total == 0)
      for (std::int64_t id = 0; id < total_; ++id) copy_page(to, id, empty);
    for (int b = 0; b < inputs_.batch; ++b) {
      for (int p = 0; p < pages_of(b); ++p) {
        std::vector<std::uint16_t> page = empty;
        for (int i = 0; i < pages_.size; ++i) {
          const int key = p * pages_.size + i - padding(b);
          if (key < 0 || key >= inputs_.key_lengths[b]) continue;
          for (int h = 0; h < inputs_.kv_heads; ++h) {
            const std::size_t from = (std::size_t(inputs_.first_key(b) + key) * inputs_.kv_heads + h) * dims;
            for (std::size_t c = 0; c < dims; ++c)
              page[place(to, i, h, static_cast<std::int64_t>(c))] = bits_of_element(values[from + c]);
          }
        }
        copy_page(to, ids_[b][p], page);
      }
    }
  }

  // Scales that lie `at` bytes behind the beginning of each page.
  wavejit_tensor scales_behind(const wavejit_tensor& of, std::size_t at, const std::vector<float>& scales) const {
    wavejit_tensor made =
        wavejit_dense_tensor(static_cast<char*>(of.data) + at, WAVEJIT_FP32, total_, pages_.size, inputs_.kv_heads, 1);
    made.strides[0] = of.strides[0] / std::int64_t{sizeof(float)};
    const std::size_t numbers = std::size_t(pages_.size) * inputs_.kv_heads;
    const auto copy = [&](std::int64_t id, const std::vector<float>& page) {
      require(wavejit_device_copy_in(engine_, static_cast<float*>(made.data) + (id * made.strides[0]), page.data(),
                                     page.size() * sizeof(float)));
    };
    const std::vector<float> empty(numbers, std::numeric_limits<float>::quiet_NaN());
    for (std::int64_t id = 0; id < total_; ++id) copy(id, empty);
    for (int b = 0; b < inputs_.batch; ++b)
      for (int p = 0; p < pages_of(b); ++p) {
        std::vector<float> page = empty;
        for (int i = 0; i < pages_.size; ++i) {
          const int key = p * pages_.size + i - padding(b);
          if (key < 0 || key >= inputs_.key_lengths[b]) continue;
          const std::size_t from = std::size_t(inputs_.first_key(b) + key) * inputs_.kv_heads;
          for (int h = 0; h < inputs_.kv_heads; ++h) page[(std::size_t(i) * inputs_.kv_heads) + h] = scales[from + h];
        }
        copy(ids_[b][p], page);
      }
    return made;
  }

  void make_table() {
    // deal_pages leaves those in the middle.
    const auto nobodys = static_cast<std::int32_t>(used_ / 2);
    const auto entry = [&](int b, std::size_t i) {
      const bool freed = !pages_.freed.empty() && std::cmp_less(i, pages_.freed[b]);
      return pages_.every_entry.value_or(freed ? nobodys : ids_[b][i]);
    };
    std::vector<std::int32_t> table;
    if (pages_.list) {
      std::vector<std::int32_t> starts = {0};
      for (int b = 0; b < inputs_.batch; ++b) {
        for (std::size_t i = 0; i < ids_[b].size(); ++i) table.push_back(entry(b, i));
        starts.push_back(static_cast<std::int32_t>(table.size()));
      }
      columns_ = std::ssize(table);
      if (table.empty()) table.push_back(garbage[0]);
      starts_ = on_device(starts);
    } else {
      columns_ = (inputs_.key_length + pages_.size - 1) / pages_.size + 2;
      for (int b = 0; b < inputs_.batch; ++b) columns_ = std::max<std::int64_t>(columns_, pages_of(b) + 1);
      row_stride_ = columns_ + 1;
      if (pages_.tight) {
        row_stride_ = columns_ = (inputs_.key_length + pages_.size - 1) / pages_.size;
        for (int b = 0; b < inputs_.batch; ++b) row_stride_ = columns_ = std::max<std::int64_t>(columns_, pages_of(b));
      }
      for (int b = 0; b < inputs_.batch; ++b)
        for (std::size_t i = 0; std::cmp_less(i, row_stride_); ++i)
          table.push_back(i < ids_[b].size() ? entry(b, i) : garbage[i % std::size(garbage)]);
    }
    table_ = on_device(table);
  }

  wavejit_engine* engine_;
  const AttentionInputs& inputs_;
  wavejit_dtype type_;
  std::size_t element_bytes_;
  Pages pages_;
  std::vector<std::int32_t> first_keys_;
  std::int64_t used_ = 0;
  std::int64_t total_ = 0;
  std::int64_t columns_ = 0;
  std::int64_t row_stride_ = 0;
  std::vector<std::vector<std::int32_t>> ids_;
  void* k_memory_ = nullptr;
  void* v_memory_ = nullptr;
  void* table_ = nullptr;
  void* starts_ = nullptr;
  wavejit_tensor k_{};
  wavejit_tensor v_{};
  wavejit_tensor k_scale_{};
  wavejit_tensor v_scale_{};
};

}  // namespace wavejit::tests
