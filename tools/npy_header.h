// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The text in the middle of an .npy file: a Python dictionary literal of three fixed keys. Apart from npy.cpp so that
// it can be read, and tested, without files.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "tools/npy.h"

namespace wavejit::tools {

// What the reader of a file takes.
enum class NpyElements : std::uint8_t { floats, whole_numbers };

// Fills everything but data_offset. The error is one line: the word, its value, and what is accepted. The product of a
// returned shape, and its bytes, fit 63 bits.
std::expected<NpyHeader, std::string> parse_npy_header(std::string_view text,
                                                       NpyElements accepted = NpyElements::floats);

}  // namespace wavejit::tools
