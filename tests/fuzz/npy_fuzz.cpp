// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arrays in .npy files: as a header's text, and as a whole file by every reader. What is accepted has as many values as
// its shape says.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "forge.h"
#include "tools/npy.h"
#include "tools/npy_header.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using wavejit::fuzz::require;
  namespace tools = wavejit::tools;
  const auto header = tools::parse_npy_header({reinterpret_cast<const char*>(data), size});
  require(header || !header.error().empty());

  const int file = ::memfd_create("npy", MFD_CLOEXEC);
  require(file >= 0 && std::cmp_equal(::write(file, data, size), size));
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (const auto whole = tools::read_npy_header("q", path)) require(tools::element_count(whole->shape) >= 0);
  if (const auto array = tools::read_npy("q", path, tools::HalfType::bf16))
    require(std::cmp_equal(array->values.size(), tools::element_count(array->shape)));
  if (const auto vector = tools::read_npy_vector("sink", path)) {
    std::int64_t count = 1;
    for (const std::int64_t extent : vector->shape) count *= extent;
    require(std::cmp_equal(vector->values.size(), count));
  }
  if (const auto whole = tools::read_npy_whole_numbers("slots", path)) {
    std::int64_t count = 1;
    for (const std::int64_t extent : whole->shape) count *= extent;
    require(std::cmp_equal(whole->values.size(), count));
  }
  ::close(file);
  return 0;
}
