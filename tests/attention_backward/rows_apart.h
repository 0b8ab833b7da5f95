// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensors whose strides are not those of the others.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "templates/attention/program/experiment.h"
#include "wavejit/wavejit.h"

namespace wavejit::tests {

inline void require(wavejit_status status) {
  if (status != WAVEJIT_OK) throw std::runtime_error(wavejit_last_detail());
}

// A tensor of a placement whose rows lie far apart. Memory that nobody touches is none of the host's.
class RowsApart {
 public:
  RowsApart(wavejit_engine* engine, const attention::program::Placement& of, std::size_t element_bytes,
            std::int64_t row_stride, std::int64_t batch_stride)
      : engine_(engine), of_(of), bytes_(element_bytes), row_stride_(row_stride), batch_stride_(batch_stride) {
    const std::int64_t last = ((of.batch - 1) * batch_stride) + (of.length * row_stride);
    require(wavejit_device_allocate(engine, static_cast<std::size_t>(last) * bytes_, &memory_));
  }
  ~RowsApart() { wavejit_device_free(engine_, memory_); }
  RowsApart(const RowsApart&) = delete;
  RowsApart& operator=(const RowsApart&) = delete;

  void describe(wavejit_tensor& tensor) const {
    tensor.data = memory_;
    tensor.strides[0] = batch_stride_;
    tensor.strides[1] = row_stride_;
    tensor.strides[2] = of_.head_dim;
  }
  void write(const std::vector<std::uint16_t>& values) const {
    each_row([&](std::size_t from, void* to, std::size_t bytes) {
      require(wavejit_device_copy_in(engine_, to, values.data() + from, bytes));
    });
  }
  std::vector<std::uint32_t> read() const {
    std::vector<std::uint32_t> all(static_cast<std::size_t>(of_.elements()));
    each_row([&](std::size_t to, const void* from, std::size_t bytes) {
      std::vector<std::uint16_t> row(bytes / 2);
      require(wavejit_device_copy_out(engine_, row.data(), from, bytes));
      std::ranges::copy(row, all.begin() + static_cast<std::ptrdiff_t>(to));
    });
    return all;
  }

 private:
  // Heads of a row stand side by side on both sides.
  template <typename Work>
  void each_row(const Work& work) const {
    const std::int64_t elements = of_.heads * of_.head_dim;
    for (std::int64_t batch = 0; batch < of_.batch; ++batch)
      for (std::int64_t row = 0; row < of_.length; ++row)
        work(static_cast<std::size_t>(((batch * of_.length) + row) * elements),
             static_cast<char*>(memory_) +
                 (static_cast<std::size_t>((batch * batch_stride_) + (row * row_stride_)) * bytes_),
             static_cast<std::size_t>(elements) * bytes_);
  }

  wavejit_engine* engine_;
  attention::program::Placement of_;
  std::size_t bytes_;
  std::int64_t row_stride_;
  std::int64_t batch_stride_;
  void* memory_ = nullptr;
};

}  // namespace wavejit::tests
