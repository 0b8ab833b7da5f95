// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <limits>

#include "tool_test_support.h"

namespace wavejit::tools {
namespace {

using ::testing::HasSubstr;

class NpyTest : public ::testing::Test {
 protected:
  void expect_refused(const std::string& bytes, const std::string& word) {
    write_text(path_, bytes);
    const auto read = read_npy("q", path_, HalfType::fp16);
    ASSERT_FALSE(read) << word;
    EXPECT_EQ(read.error().code, ExitCode::file);
    EXPECT_THAT(read.error().what, HasSubstr("--q " + path_));
    EXPECT_THAT(read.error().what, HasSubstr(word));
    EXPECT_EQ(read.error().what.find('\n'), std::string::npos);
  }

  ScratchDirectory scratch_;
  std::string path_ = scratch_ / "array.npy";
  Shape shape_ = {2, 3, 4, 5};
  std::vector<float> values_ = normal_values(shape_, 1);
};

TEST_F(NpyTest, EveryStorageGivesTheSameArray) {
  for (const bool half : {false, true}) {
    for (const bool big_endian : {false, true}) {
      for (const bool fortran_order : {false, true}) {
        for (const int version : {1, 2, 3}) {
          for (const HalfType type : {HalfType::fp16, HalfType::bf16}) {
            SCOPED_TRACE(std::string(half ? "f2 " : "f4 ") + (big_endian ? "big " : "little ") +
                         (fortran_order ? "F " : "C ") + std::to_string(version));
            write_text(
                path_,
                npy_file(shape_, values_,
                         {.half = half, .big_endian = big_endian, .fortran_order = fortran_order, .version = version}));
            const auto array = read_npy("q", path_, type);
            ASSERT_TRUE(array) << array.error().what;
            ASSERT_EQ(array->shape, shape_);
            ASSERT_EQ(array->values.size(), values_.size());
            EXPECT_EQ(array->became_infinite, 0U);
            for (std::size_t i = 0; i < values_.size(); ++i) {
              const double stored = half ? rounded(HalfType::fp16, values_[i]) : values_[i];
              ASSERT_EQ(array->values[i], encode(type, stored)) << i;
            }
          }
        }
      }
    }
  }
}

TEST_F(NpyTest, NoKeysIsAnArray) {
  const Shape empty = {2, 0, 4, 64};
  for (const bool fortran_order : {false, true}) {
    write_text(path_, npy_file(empty, {}, {.fortran_order = fortran_order}));
    const auto array = read_npy("k", path_, HalfType::fp16);
    ASSERT_TRUE(array) << array.error().what;
    EXPECT_EQ(array->shape, empty);
    EXPECT_TRUE(array->values.empty());
  }
}

TEST_F(NpyTest, ValuesBeyondTheTypeAreCounted) {
  std::vector<float> values = values_;
  values[3] = 70000;
  values[7] = -1e30F;
  values[9] = std::numeric_limits<float>::infinity();
  write_text(path_, npy_file(shape_, values, {}));
  EXPECT_EQ(read_npy("q", path_, HalfType::fp16)->became_infinite, 2U);
  EXPECT_EQ(read_npy("q", path_, HalfType::bf16)->became_infinite, 0U);
}

TEST_F(NpyTest, EveryTruncationIsRefused) {
  const std::string whole = npy_file(shape_, values_, {.half = true});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_text(path_, std::string_view(whole).substr(0, size));
    EXPECT_FALSE(read_npy("q", path_, HalfType::fp16)) << size;
  }
  expect_refused(whole.substr(0, whole.size() - 1), "needs exactly");
  expect_refused(whole.substr(0, 100), "header claims");
}

TEST_F(NpyTest, LongerFilesAreRefused) {
  const std::string whole = npy_file(shape_, values_, {.half = true});
  expect_refused(whole + "x", "needs exactly 368");
  expect_refused(whole + whole, "needs exactly 368");
}

TEST_F(NpyTest, OtherFilesAreRefused) {
  expect_refused("", "does not begin as an .npy file");
  expect_refused(std::string(1000, '\0'), "does not begin as an .npy file");
  expect_refused("PK\x03\x04 an .npz archive, say, that is long enough", "does not begin as an .npy file");
  std::string version = npy_file(shape_, values_, {});
  version[6] = 4;
  expect_refused(version, "format version is 4.0; 1.0, 2.0 and 3.0 are accepted");
  version[6] = 1;
  version[7] = 1;
  expect_refused(version, "format version is 1.1");
}

TEST_F(NpyTest, HugeSizesAreRefusedWithoutReadingOrAllocating) {
  expect_refused(
      npy_with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (65536, 65536, 8, 128)}", "few bytes"),
      "needs exactly");
  expect_refused(
      npy_with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4294967296, 1)}", ""),
      "too many elements");
  // A header of almost 4 GiB, in a file of a few bytes.
  std::string header = npy_file(shape_, values_, {.version = 2});
  for (int i = 8; i < 12; ++i) header[static_cast<std::size_t>(i)] = '\xff';
  expect_refused(header, "header claims 4294967295 bytes");
}

TEST_F(NpyTest, WhatIsNoReadableFileIsRefused) {
  const auto missing = read_npy("q", scratch_ / "missing.npy", HalfType::fp16);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().what, HasSubstr("No such file"));
  const auto folder = read_npy("q", scratch_.path(), HalfType::fp16);
  ASSERT_FALSE(folder);
  EXPECT_THAT(folder.error().what, HasSubstr("regular file"));
  const auto device = read_npy("q", "/dev/zero", HalfType::fp16);
  ASSERT_FALSE(device);
}

// Opening a pipe that nobody writes to must not wait for ever.
TEST_F(NpyTest, PipeIsRefusedWithoutWaiting) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const auto pipe = read_npy("q", path_, HalfType::fp16);
  ASSERT_FALSE(pipe);
  EXPECT_THAT(pipe.error().what, HasSubstr("regular file"));
}

TEST_F(NpyTest, WritesWhatItReads) {
  const std::vector<std::int64_t> shape(shape_.begin(), shape_.end());
  write_text(path_, npy_bytes(values_, shape));
  EXPECT_EQ(floats_of(path_, "(2, 3, 4, 5)"), values_);
  const auto array = read_npy("q", path_, HalfType::bf16);
  ASSERT_TRUE(array) << array.error().what;
  for (std::size_t i = 0; i < values_.size(); ++i) ASSERT_EQ(array->values[i], encode(HalfType::bf16, values_[i]));
}

TEST_F(NpyTest, VectorsHaveOneOrTwoDimensions) {
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{120}, {8, 15}}) {
    write_text(path_, npy_bytes(values_, shape));
    const auto vector = read_npy_vector("sink", path_);
    ASSERT_TRUE(vector) << vector.error().what;
    EXPECT_EQ(vector->shape, shape);
    EXPECT_EQ(vector->values, values_);
    // No array of four dimensions.
    expect_refused(read_text(path_), std::to_string(shape.size()) + " dimensions; 4 are accepted");
  }
  write_text(path_, npy_bytes(values_, std::vector<std::int64_t>{2, 12, 5}));
  const auto cube = read_npy_vector("sink", path_);
  ASSERT_FALSE(cube);
  EXPECT_THAT(cube.error().what, HasSubstr("3 dimensions; 1 or 2 are accepted"));
}

TEST_F(NpyTest, WritesOtherRanksAndNothing) {
  const std::vector<std::int64_t> three = {2, 12, 5};
  write_text(path_, npy_bytes(values_, three));
  EXPECT_EQ(floats_of(path_, "(2, 12, 5)"), values_);
}

}  // namespace
}  // namespace wavejit::tools
