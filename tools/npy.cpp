// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <type_traits>
#include <utility>
#include <xtensor/xadapt.hpp>
#include <xtensor/xnpy.hpp>
#include <xtensor/xtensor.hpp>

#include "tools/npy_header.h"

namespace wavejit::tools {

std::string to_text(const Shape& shape) {
  return fmt::format("[{}, {}, {}, {}]", shape[0], shape[1], shape[2], shape[3]);
}

std::int64_t element_count(const Shape& shape) { return shape[0] * shape[1] * shape[2] * shape[3]; }

namespace {

std::unexpected<Failure> bad_file(const std::string& field, const std::string& path, const std::string& what) {
  return failed(ExitCode::file, fmt::format("--{} {}: {}", field, path, what));
}

std::string errno_text() { return std::generic_category().message(errno); }

constexpr std::size_t preamble_bytes = 8;  // magic and version

std::uint64_t element_bytes(const NpyHeader& header) {
  if (header.integer_bytes != 0) return static_cast<std::uint64_t>(header.integer_bytes);
  return header.half ? 2 : 4;
}
std::string name_of_dtype(const NpyHeader& header) {
  if (header.integer_bytes != 0) return fmt::format("{}int{}", header.is_signed ? "" : "u", 8 * header.integer_bytes);
  return header.half ? "float16" : "float32";
}

// Reads the preamble and the header's text, and knows how long the file is.
Result<NpyHeader> header_of(const std::string& field, const std::string& path, std::ifstream& file,
                            NpyElements accepted = NpyElements::floats) {
  // Before opening: opening a pipe would wait for its writer.
  std::error_code problem;
  const std::filesystem::file_status status = std::filesystem::status(path, problem);
  if (problem) return bad_file(field, path, "cannot open it: " + problem.message());
  if (!std::filesystem::is_regular_file(status)) {
    return bad_file(field, path, "it is not a regular file; an .npy file is accepted");
  }
  file.open(path, std::ios::binary);
  if (!file) return bad_file(field, path, "cannot open it: " + errno_text());
  file.seekg(0, std::ios::end);
  const std::streamoff end = file.tellg();
  file.seekg(0);
  if (!file || end < 0) return bad_file(field, path, "cannot read it: " + errno_text());
  const auto size = static_cast<std::uint64_t>(end);

  std::array<unsigned char, 12> preamble{};
  file.read(reinterpret_cast<char*>(preamble.data()), static_cast<std::streamsize>(std::min<std::uint64_t>(size, 12)));
  if (file.bad()) return bad_file(field, path, "cannot read it: " + errno_text());
  if (size < 10 || std::memcmp(preamble.data(), "\x93NUMPY", 6) != 0) {
    return bad_file(field, path, "it does not begin as an .npy file does; numpy.save writes one");
  }
  const unsigned major = preamble[6];
  const unsigned minor = preamble[7];
  if (major < 1 || major > 3 || minor != 0) {
    return bad_file(field, path,
                    fmt::format("its format version is {}.{}; 1.0, 2.0 and 3.0 are accepted", major, minor));
  }
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  std::uint64_t text_bytes = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) text_bytes |= std::uint64_t{preamble[preamble_bytes + i]} << (8 * i);
  const std::uint64_t offset = preamble_bytes + length_bytes + text_bytes;
  // NumPy's own limit for untrusted headers is 10,000 characters.
  constexpr std::uint64_t longest_header = 64 << 10;
  if (text_bytes > longest_header || offset > size) {
    return bad_file(field, path,
                    fmt::format("its header claims {} bytes; the file has {} and {} is the most accepted", text_bytes,
                                size, longest_header));
  }
  std::string text(text_bytes, '\0');
  file.seekg(static_cast<std::streamoff>(preamble_bytes + length_bytes));
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file) return bad_file(field, path, "cannot read its header: " + errno_text());

  auto parsed = parse_npy_header(text, accepted);
  if (!parsed) return bad_file(field, path, parsed.error());
  parsed->data_offset = offset;
  const auto count = static_cast<std::uint64_t>(element_count(parsed->shape));
  const std::uint64_t expected = offset + count * element_bytes(*parsed);
  if (size != expected) {
    return bad_file(field, path,
                    fmt::format("it has {} bytes; shape {} of {} needs exactly {}", size, to_text(parsed->shape),
                                name_of_dtype(*parsed), expected));
  }
  return *std::move(parsed);
}

template <typename Element>
float value_of(Element element, bool swap) {
  if (swap) element = std::byteswap(element);
  if constexpr (sizeof(Element) == 2) {
    return decode(HalfType::fp16, element);
  } else {
    return std::bit_cast<float>(element);
  }
}

// The file's elements in C order.
template <typename Element>
Result<void> raw_elements(const std::string& field, const std::string& path, std::ifstream& file,
                          const NpyHeader& header, std::vector<Element>& elements) {
  static_assert(std::endian::native == std::endian::little);
  elements.resize(static_cast<std::size_t>(element_count(header.shape)));
  file.seekg(static_cast<std::streamoff>(header.data_offset));
  file.read(reinterpret_cast<char*>(elements.data()), static_cast<std::streamsize>(elements.size() * sizeof(Element)));
  if (!file) return bad_file(field, path, "cannot read its elements: " + errno_text());
  if (header.fortran_order) {
    const std::array<std::size_t, 4> shape = {
        static_cast<std::size_t>(header.shape[0]), static_cast<std::size_t>(header.shape[1]),
        static_cast<std::size_t>(header.shape[2]), static_cast<std::size_t>(header.shape[3])};
    const auto in_fortran_order =
        xt::adapt<xt::layout_type::column_major>(elements.data(), elements.size(), xt::no_ownership(), shape);
    const xt::xtensor<Element, 4, xt::layout_type::row_major> in_c_order = in_fortran_order;
    std::copy(in_c_order.data(), in_c_order.data() + in_c_order.size(), elements.begin());
  }
  return {};
}

template <typename Element>
void convert(const NpyHeader& header, HalfType type, const std::vector<Element>& elements, Array& array) {
  array.values.resize(elements.size());
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const float value = value_of(elements[i], header.big_endian);
    array.values[i] = encode(type, value);
    if (std::isfinite(value) && std::isinf(decode(type, array.values[i]))) ++array.became_infinite;
  }
}

template <typename Element>
Result<Array> read_elements(const std::string& field, const std::string& path, std::ifstream& file,
                            const NpyHeader& header, HalfType type) {
  Array array;
  array.shape = header.shape;
  std::vector<Element> elements;
  if (auto read = raw_elements(field, path, file, header, elements); !read) return std::unexpected(read.error());
  convert(header, type, elements, array);
  return array;
}

}  // namespace

namespace {

Result<NpyHeader> header_of_array(const std::string& field, const std::string& path, std::ifstream& file) {
  auto header = header_of(field, path, file);
  if (header && header->rank != 4) {
    return bad_file(
        field, path,
        fmt::format("its shape has {} dimensions; 4 are accepted: [batch, length, heads, head dim]", header->rank));
  }
  return header;
}

}  // namespace

Result<NpyHeader> read_npy_header(const std::string& field, const std::string& path) {
  std::ifstream file;
  return header_of_array(field, path, file);
}

namespace {

// Reads an array of `least` to `most` dimensions; `accepted` says the same to the user.
Result<Vector> read_few_dimensions(const std::string& field, const std::string& path, int least, int most,
                                   const char* accepted) {
  std::ifstream file;
  const auto header = header_of(field, path, file);
  if (!header) return std::unexpected(header.error());
  if (header->rank < least || header->rank > most)
    return bad_file(field, path, fmt::format("its shape has {} dimensions; {}", header->rank, accepted));
  if (header->half) return bad_file(field, path, "its dtype is float16; float32 is accepted");
  std::vector<std::uint32_t> elements;
  if (auto read = raw_elements(field, path, file, *header, elements); !read) return std::unexpected(read.error());
  Vector vector{.shape = {header->shape.begin(), header->shape.begin() + header->rank}, .values = {}};
  for (const std::uint32_t element : elements) vector.values.push_back(value_of(element, header->big_endian));
  return vector;
}

}  // namespace

namespace {

// `Element` is unsigned: of a signed type its bits.
template <typename Element>
Result<std::vector<std::int64_t>> whole_elements(const std::string& field, const std::string& path, std::ifstream& file,
                                                 const NpyHeader& header) {
  std::vector<Element> elements;
  if (auto read = raw_elements(field, path, file, header, elements); !read) return std::unexpected(read.error());
  std::vector<std::int64_t> whole;
  whole.reserve(elements.size());
  for (Element element : elements) {
    if (header.big_endian) element = std::byteswap(element);
    whole.push_back(header.is_signed ? static_cast<std::int64_t>(static_cast<std::make_signed_t<Element>>(element))
                                     : static_cast<std::int64_t>(element));
  }
  return whole;
}

// Beyond it float32 has no neighbours of its own.
constexpr float greatest_whole_float = 1 << 24;

Result<std::vector<std::int64_t>> whole_floats(const std::string& field, const std::string& path, std::ifstream& file,
                                               const NpyHeader& header) {
  std::vector<std::uint32_t> elements;
  if (auto read = raw_elements(field, path, file, header, elements); !read) return std::unexpected(read.error());
  std::vector<std::int64_t> whole;
  whole.reserve(elements.size());
  for (const std::uint32_t element : elements) {
    const float number = value_of(element, header.big_endian);
    if (std::trunc(number) != number || std::fabs(number) > greatest_whole_float)
      return bad_file(field, path, fmt::format("it has {}; whole numbers to 16777216 are accepted", number));
    whole.push_back(static_cast<std::int64_t>(number));
  }
  return whole;
}

}  // namespace

Result<WholeNumbers> read_npy_whole_numbers(const std::string& field, const std::string& path) {
  std::ifstream file;
  const auto header = header_of(field, path, file, NpyElements::whole_numbers);
  if (!header) return std::unexpected(header.error());
  if (header->rank > 2)
    return bad_file(field, path, fmt::format("its shape has {} dimensions; 1 or 2 are accepted", header->rank));
  if (header->half) return bad_file(field, path, "its dtype is float16; int32, int64, bool and float32 are accepted");
  auto values = header->integer_bytes == 8   ? whole_elements<std::uint64_t>(field, path, file, *header)
                : header->integer_bytes == 4 ? whole_elements<std::uint32_t>(field, path, file, *header)
                : header->integer_bytes == 1 ? whole_elements<std::uint8_t>(field, path, file, *header)
                                             : whole_floats(field, path, file, *header);
  if (!values) return std::unexpected(values.error());
  return WholeNumbers{.shape = {header->shape.begin(), header->shape.begin() + header->rank},
                      .values = std::move(*values)};
}

Result<Vector> read_npy_vector(const std::string& field, const std::string& path) {
  return read_few_dimensions(field, path, 0, 2, "1 or 2 are accepted: [heads], [batch, heads]");
}

Result<Vector> read_npy_row_numbers(const std::string& field, const std::string& path) {
  return read_few_dimensions(field, path, 3, 3, "3 are accepted: [batch, heads, length]");
}

Result<Array> read_npy(const std::string& field, const std::string& path, HalfType type) {
  std::ifstream file;
  const auto header = header_of_array(field, path, file);
  if (!header) return std::unexpected(header.error());
  return header->half ? read_elements<std::uint16_t>(field, path, file, *header, type)
                      : read_elements<std::uint32_t>(field, path, file, *header, type);
}

namespace {

template <typename Element>
Result<FloatArray> read_floats(const std::string& field, const std::string& path, std::ifstream& file,
                               const NpyHeader& header) {
  std::vector<Element> elements;
  if (auto read = raw_elements(field, path, file, header, elements); !read) return std::unexpected(read.error());
  FloatArray array{.shape = header.shape, .values = std::vector<float>(elements.size())};
  std::ranges::transform(elements, array.values.begin(),
                         [&](Element element) { return value_of(element, header.big_endian); });
  return array;
}

}  // namespace

Result<FloatArray> read_npy_floats(const std::string& field, const std::string& path) {
  std::ifstream file;
  const auto header = header_of(field, path, file);
  if (!header) return std::unexpected(header.error());
  if (header->rank != 4)
    return bad_file(field, path, fmt::format("its shape has {} dimensions; 4 are accepted", header->rank));
  return header->half ? read_floats<std::uint16_t>(field, path, file, *header)
                      : read_floats<std::uint32_t>(field, path, file, *header);
}

std::string npy_bytes(std::span<const float> values, std::span<const std::int64_t> shape) {
  const std::vector<std::size_t> sizes(shape.begin(), shape.end());
  // An empty array has no address to adapt; its header is all there is.
  static constexpr float nothing = 0;
  const float* data = values.empty() ? &nothing : values.data();
  const auto view = xt::adapt(data, values.size(), xt::no_ownership(), sizes);
  return xt::dump_npy(view);
}

}  // namespace wavejit::tools
