// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arrays in NumPy's .npy files: [batch, length, heads, head dim], float16 or float32, either byte order, C or Fortran
// order (numpy.lib.format describes versions 1.0 to 3.0). Whole numbers, such as slots, may be integers, too.
//
// Ours and the library's: xtensor brings Fortran-order elements into C order and writes the output's format. Reading
// the header is ours, because xtensor 0.25 believes it: it checks neither a file's length nor that the shape's product
// fits memory, knows one byte order and has no half type.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/exit_code.h"
#include "tools/half.h"

namespace wavejit::tools {

using Shape = std::array<std::int64_t, 4>;

std::string to_text(const Shape& shape);
std::int64_t element_count(const Shape& shape);

// What a file says of itself, after its header and exact length were checked.
struct NpyHeader {
  Shape shape{};  // sizes beyond the rank are 1
  int rank = 4;
  bool half = false;      // float16, else float32 or whole
  int integer_bytes = 0;  // of whole numbers: 1, 4 or 8
  bool is_signed = true;
  bool big_endian = false;
  bool fortran_order = false;
  std::uint64_t data_offset = 0;
};

// `field` names the array in errors: "q".
// Of four dimensions.
Result<NpyHeader> read_npy_header(const std::string& field, const std::string& path);

struct Array {
  Shape shape{};
  std::vector<std::uint16_t> values;  // in C order, rounded to the type asked for
  std::uint64_t became_infinite = 0;  // finite in the file, beyond the type's range
};

Result<Array> read_npy(const std::string& field, const std::string& path, HalfType type);

// An array of four dimensions, as numbers.
struct FloatArray {
  Shape shape{};
  std::vector<float> values;  // in C order
};
Result<FloatArray> read_npy_floats(const std::string& field, const std::string& path);

// One or two dimensions, as [heads] or [batch, heads].
struct Vector {
  std::vector<std::int64_t> shape;
  std::vector<float> values;  // in C order
};

Result<Vector> read_npy_vector(const std::string& field, const std::string& path);
// A number a row and head: three dimensions, [batch, heads, length].
Result<Vector> read_npy_row_numbers(const std::string& field, const std::string& path);

// One or two dimensions of int32, int64, bool, or float32 whose numbers are whole.
struct WholeNumbers {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> values;  // in C order
};
Result<WholeNumbers> read_npy_whole_numbers(const std::string& field, const std::string& path);

// The bytes of a float32 file in C order; shape of any rank.
std::string npy_bytes(std::span<const float> values, std::span<const std::int64_t> shape);

}  // namespace wavejit::tools
