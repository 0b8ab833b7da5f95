// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/npy_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

namespace wavejit::tools {

namespace {

using Mistake = std::optional<std::string>;

// A cursor over the literal. Functions return false and leave the position when the text is something else.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }
  bool take(char wanted) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  // 'text' or "text", without escapes: none of the three keys and no dtype of ours needs one.
  std::optional<std::string_view> take_string() {
    skip_blanks();
    if (at_ == text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return std::nullopt;
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return inside;
  }
  std::optional<std::int64_t> take_size() {
    skip_blanks();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) return std::nullopt;
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }
  bool at_end() {
    skip_blanks();
    return at_ == text_.size();
  }
  std::string where() const {
    std::string rest(text_.substr(at_, 24));
    for (char& c : rest) {
      if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
    }
    return fmt::format("'{}' at character {} of the header", rest, at_);
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

// One byte has no order.
bool is_whole(std::string_view dtype) {
  return dtype == "|b1" || dtype == "|i1" || dtype == "|u1" ||
         ((dtype.front() == '<' || dtype.front() == '>') && (dtype.substr(1) == "i4" || dtype.substr(1) == "i8"));
}

Mistake take_dtype(Cursor& cursor, NpyHeader& header, NpyElements accepted) {
  const bool whole = accepted == NpyElements::whole_numbers;
  const std::string names = whole ? "int32, int64, bool and float32" : "float16 and float32";
  const auto dtype = cursor.take_string();
  if (!dtype) return "its dtype is " + cursor.where() + "; " + names + " are accepted";
  if (whole && dtype->size() == 3 && is_whole(*dtype)) {
    header.integer_bytes = dtype->back() - '0';
    header.is_signed = (*dtype)[1] == 'i';
  } else if (dtype->size() != 3 || (dtype->front() != '<' && dtype->front() != '>') ||
             (dtype->substr(1) != "f2" && dtype->substr(1) != "f4")) {
    return fmt::format("its dtype is '{}'; {} are accepted{}", *dtype, names,
                       whole ? "" : " ('<f2', '>f2', '<f4', '>f4')");
  }
  header.big_endian = dtype->front() == '>';
  header.half = dtype->back() == '2';
  return std::nullopt;
}

Mistake take_order(Cursor& cursor, NpyHeader& header) {
  header.fortran_order = cursor.take_word("True");
  if (!header.fortran_order && !cursor.take_word("False")) {
    return "its fortran_order is " + cursor.where() + "; True and False are accepted";
  }
  return std::nullopt;
}

Mistake take_shape(Cursor& cursor, NpyHeader& header) {
  if (!cursor.take('(')) return "its shape is " + cursor.where() + "; a tuple of sizes is accepted";
  std::vector<std::int64_t> sizes;
  while (!cursor.take(')')) {
    if (!sizes.empty() && !cursor.take(','))
      return "its shape goes on with " + cursor.where() + "; ',' or ')' is accepted";
    if (cursor.take(')')) break;
    const auto size = cursor.take_size();
    if (!size) return "its shape goes on with " + cursor.where() + "; sizes from 0 are accepted";
    sizes.push_back(*size);
  }
  if (sizes.empty() || sizes.size() > header.shape.size())
    return fmt::format("its shape has {} dimensions; 1 to 4 are accepted", sizes.size());
  header.rank = static_cast<int>(sizes.size());
  sizes.resize(header.shape.size(), 1);
  // Zero sizes must not hide an overflow of the others: strides are made of them.
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    header.shape[i] = sizes[i];
    if (__builtin_mul_overflow(elements, std::max<std::int64_t>(sizes[i], 1), &elements) || elements >= std::int64_t{1}
                                                                                                            << 60) {
      return fmt::format("its shape {} has too many elements", to_text(Shape{sizes[0], sizes[1], sizes[2], sizes[3]}));
    }
  }
  return std::nullopt;
}

}  // namespace

std::expected<NpyHeader, std::string> parse_npy_header(std::string_view text, NpyElements accepted) {
  NpyHeader header;
  Cursor cursor(text);
  bool seen[3] = {};
  if (!cursor.take('{')) return std::unexpected("its header begins with " + cursor.where() + "; '{' is accepted");
  while (!cursor.take('}')) {
    const auto key = cursor.take_string();
    if (!key || !cursor.take(':'))
      return std::unexpected("its header goes on with " + cursor.where() + "; 'key': value is accepted");
    const int which = *key == "descr" ? 0 : *key == "fortran_order" ? 1 : *key == "shape" ? 2 : -1;
    if (which < 0 || seen[which]) {
      return std::unexpected(
          fmt::format("its header has the key '{}' {}; descr, fortran_order and shape are accepted, once", *key,
                      which < 0 ? "that no .npy file has" : "twice"));
    }
    seen[which] = true;
    const Mistake problem = which == 0   ? take_dtype(cursor, header, accepted)
                            : which == 1 ? take_order(cursor, header)
                                         : take_shape(cursor, header);
    if (problem) return std::unexpected(*problem);
    if (!cursor.take(',')) {
      if (!cursor.take('}'))
        return std::unexpected("its header goes on with " + cursor.where() + "; ',' or '}' is accepted");
      break;
    }
  }
  if (!cursor.at_end()) return std::unexpected("its header ends with " + cursor.where() + "; blanks are accepted");
  if (!seen[0] || !seen[1] || !seen[2]) {
    return std::unexpected(std::string("its header has no '") +
                           (!seen[0]   ? "descr"
                            : !seen[1] ? "fortran_order"
                                       : "shape") +
                           "'");
  }
  return header;
}

}  // namespace wavejit::tools
