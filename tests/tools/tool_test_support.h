// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the tools' tests share: a scratch folder, .npy files made byte by byte, and running the program.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/scratch_directory.h"
#include "tools/half.h"
#include "tools/npy.h"
#include "wavejit/wavejit.h"

namespace wavejit::tools {

using tests::ScratchDirectory;

// A mask of a call; `chunk`: of WAVEJIT_MASK_CHUNKED.
inline wavejit_masking mask_of(std::int32_t bits, std::int32_t chunk = 0) {
  wavejit_masking mask{};
  mask.bits = bits;
  mask.local_chunk = chunk;
  return mask;
}

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void write_text(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  ASSERT_TRUE(file.good()) << path;
}

// How a test array is stored.
struct Storage {
  bool half = false;
  bool big_endian = false;
  bool fortran_order = false;
  int version = 1;
};

// A header as numpy.lib.format pads it: to a multiple of 64 bytes, ending in a newline.
inline std::string npy_with_header(const std::string& dictionary, std::string_view data, int version = 1) {
  std::string text = dictionary;
  const std::size_t before = 8 + (version == 1 ? 2 : 4);
  while ((before + text.size() + 1) % 64 != 0) text.push_back(' ');
  text.push_back('\n');
  std::string bytes = "\x93NUMPY";
  bytes.push_back(static_cast<char>(version));
  bytes.push_back('\0');
  for (std::size_t i = 0; i < (version == 1 ? 2U : 4U); ++i)
    bytes.push_back(static_cast<char>(text.size() >> (8 * i) & 255));
  return bytes + text + std::string(data);
}

// values are in C order.
inline std::string npy_file(const Shape& shape, const std::vector<float>& values, const Storage& storage) {
  std::string data;
  const auto put = [&](float value) {
    std::uint32_t bits = storage.half ? encode(HalfType::fp16, value) : std::bit_cast<std::uint32_t>(value);
    const int size = storage.half ? 2 : 4;
    for (int i = 0; i < size; ++i)
      data.push_back(static_cast<char>(bits >> (8 * (storage.big_endian ? size - 1 - i : i)) & 255));
  };
  if (storage.fortran_order) {
    for (std::int64_t d = 0; d < shape[3]; ++d)
      for (std::int64_t h = 0; h < shape[2]; ++h)
        for (std::int64_t s = 0; s < shape[1]; ++s)
          for (std::int64_t b = 0; b < shape[0]; ++b)
            put(values[static_cast<std::size_t>(((b * shape[1] + s) * shape[2] + h) * shape[3] + d)]);
  } else {
    for (const float value : values) put(value);
  }
  const std::string dictionary =
      std::string("{'descr': '") + (storage.big_endian ? ">" : "<") + (storage.half ? "f2" : "f4") +
      "', 'fortran_order': " + (storage.fortran_order ? "True" : "False") + ", 'shape': (" + std::to_string(shape[0]) +
      ", " + std::to_string(shape[1]) + ", " + std::to_string(shape[2]) + ", " + std::to_string(shape[3]) + "), }";
  return npy_with_header(dictionary, data, storage.version);
}

inline std::vector<float> normal_values(const Shape& shape, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(element_count(shape)));
  for (float& value : values) value = normal(random);
  return values;
}

// The floats of a file that the program wrote: format version 1.0, '<f4', C order, and the shape as it is spelled.
inline std::vector<float> floats_of(const std::string& path, const std::string& shape) {
  const std::string bytes = read_text(path);
  EXPECT_TRUE(bytes.starts_with(std::string("\x93NUMPY\x01\0", 8))) << path;
  if (bytes.size() < 10) return {};
  const std::size_t header = static_cast<unsigned char>(bytes[8]) | static_cast<unsigned char>(bytes[9]) << 8;
  const std::string text = bytes.substr(10, header);
  EXPECT_NE(text.find("'descr': '<f4'"), std::string::npos) << text;
  EXPECT_NE(text.find("'fortran_order': False"), std::string::npos) << text;
  EXPECT_NE(text.find("'shape': " + shape), std::string::npos) << text;
  std::vector<float> values((bytes.size() - 10 - header) / 4);
  std::memcpy(values.data(), bytes.data() + 10 + header, values.size() * 4);
  return values;
}

struct Outcome {
  int code = -1;  // exit code; 128 + signal when killed
  std::string out;
  std::string err;
};

// Runs the program with nothing of the caller's WAVEJIT_ variables but those given.
inline Outcome run_program(const ScratchDirectory& scratch, const std::vector<std::string>& arguments,
                           const std::map<std::string, std::string>& variables = {}) {
  const char* program = ::getenv("WAVEJIT_PROGRAM");
  if (program == nullptr) {
    ADD_FAILURE() << "WAVEJIT_PROGRAM names the program to test";
    return {};
  }
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (std::string_view(*variable).starts_with("WAVEJIT_") ||
        std::string_view(*variable).starts_with("XDG_CACHE_HOME="))
      continue;
    environment.emplace_back(*variable);
  }
  environment.push_back("XDG_CACHE_HOME=" + (scratch / "xdg"));
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);

  static int runs = 0;
  const std::string base = std::filesystem::temp_directory_path() /
                           ("wavejit-output-" + std::to_string(::getpid()) + "-" + std::to_string(++runs));
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, (base + ".out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_addopen(&actions, 2, (base + ".err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  std::vector<char*> argument_pointers = {const_cast<char*>(program)};
  for (const std::string& argument : arguments) argument_pointers.push_back(const_cast<char*>(argument.c_str()));
  argument_pointers.push_back(nullptr);
  std::vector<char*> environment_pointers;
  for (std::string& variable : environment) environment_pointers.push_back(variable.data());
  environment_pointers.push_back(nullptr);

  Outcome outcome;
  pid_t child = 0;
  const int spawned =
      ::posix_spawn(&child, program, &actions, nullptr, argument_pointers.data(), environment_pointers.data());
  ::posix_spawn_file_actions_destroy(&actions);
  EXPECT_EQ(spawned, 0) << program;
  if (spawned != 0) return outcome;
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = read_text(base + ".out");
  outcome.err = read_text(base + ".err");
  std::filesystem::remove(base + ".out");
  std::filesystem::remove(base + ".err");
  return outcome;
}

// An error is one line on stderr and nothing on stdout. Before it the simulated GPU may have said why HIP refused.
inline void expect_one_line_error(const Outcome& outcome, int code) {
  EXPECT_EQ(outcome.code, code) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  const bool why = outcome.err.starts_with("wavejit simulated GPU: ");
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), why ? 2 : 1) << outcome.err;
  EXPECT_TRUE(outcome.err.starts_with("wavejit")) << outcome.err;
}

}  // namespace wavejit::tools
