// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/npy_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wavejit::tools {
namespace {

using ::testing::HasSubstr;

TEST(NpyHeaderTest, ReadsWhatNumpyWrites) {
  const auto header =
      parse_npy_header("{'descr': '<f2', 'fortran_order': False, 'shape': (2, 33, 4, 64), }          \n");
  ASSERT_TRUE(header) << header.error();
  EXPECT_EQ(header->shape, (Shape{2, 33, 4, 64}));
  EXPECT_TRUE(header->half);
  EXPECT_FALSE(header->big_endian);
  EXPECT_FALSE(header->fortran_order);
}

TEST(NpyHeaderTest, ReadsAnyOrderQuotesAndSpacing) {
  const auto header = parse_npy_header("{\"shape\":(1,0,3,4),\"fortran_order\":True,\"descr\":\">f4\"}");
  ASSERT_TRUE(header) << header.error();
  EXPECT_EQ(header->shape, (Shape{1, 0, 3, 4}));
  EXPECT_FALSE(header->half);
  EXPECT_TRUE(header->big_endian);
  EXPECT_TRUE(header->fortran_order);
  EXPECT_TRUE(parse_npy_header("{ 'descr' : '<f4' , 'fortran_order' : False , 'shape' : ( 1 , 2 , 3 , 4 , ) , }\n"));
}

TEST(NpyHeaderTest, FewerDimensionsKeepTheirRank) {
  const auto header = parse_npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': (5,)}");
  ASSERT_TRUE(header) << header.error();
  EXPECT_EQ(header->rank, 1);
  EXPECT_EQ(header->shape, (Shape{5, 1, 1, 1}));
}

struct Bad {
  const char* text;
  const char* word;  // that the error must have
};

class BadNpyHeaderTest : public ::testing::TestWithParam<Bad> {};

TEST_P(BadNpyHeaderTest, IsRefusedByName) {
  const auto header = parse_npy_header(GetParam().text);
  ASSERT_FALSE(header) << GetParam().text;
  EXPECT_THAT(header.error(), HasSubstr(GetParam().word));
  EXPECT_EQ(header.error().find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    All, BadNpyHeaderTest,
    ::testing::Values(
        Bad{"", "begins with"}, Bad{"[]", "begins with"}, Bad{"{", "goes on with"}, Bad{"{}", "has no 'descr'"},
        Bad{"{'descr': '<f4', 'fortran_order': False}", "has no 'shape'"},
        Bad{"{'descr': '<f4', 'shape': (1, 2, 3, 4)}", "has no 'fortran_order'"},
        Bad{"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2, 3, 4)}", "dtype is '<f8'; float16 and float32"},
        Bad{"{'descr': '<i4', 'fortran_order': False, 'shape': (1, 2, 3, 4)}", "dtype is '<i4'"},
        Bad{"{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2, 3, 4)}", "dtype is '|u1'"},
        Bad{"{'descr': '=f4', 'fortran_order': False, 'shape': (1, 2, 3, 4)}", "dtype is '=f4'"},
        Bad{"{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1, 2, 3, 4)}", "dtype is '[('x'"},
        Bad{"{'descr': '<f4, 'fortran_order': False, 'shape': (1, 2, 3, 4)}", "dtype"},
        Bad{"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1, 2, 3, 4)}", "fortran_order is 'Maybe"},
        Bad{"{'descr': '<f4', 'fortran_order': 1, 'shape': (1, 2, 3, 4)}", "fortran_order is '1"},
        Bad{"{'descr': '<f4', 'fortran_order': False, 'shape': 5}", "shape is '5"},
        Bad{"{'descr': '<f4', 'fortran_order': False, 'shape': ()}", "0 dimensions; 1 to 4 are accepted"},
        Bad{"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3, 4, 5)}", "5 dimensions"},
        Bad{"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3, -4)}", "sizes from 0"},
        Bad{"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3, 4.5)}", "'.5"},
        Bad{"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3, 99999999999999999999)}", "sizes from 0"},
        Bad{"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 1, 1)}", "too many elements"},
        Bad{"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9223372036854775807, 2, 1)}", "too many elements"},
        Bad{"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2 3, 4)}", "goes on with '3"},
        Bad{"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3, 4)", "goes on with"},
        Bad{"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3, 4)} x", "ends with 'x"},
        Bad{"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3, 4)}", "'descr' twice"},
        Bad{"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3, 4), 'more': 1}",
            "'more' that no .npy file has"},
        Bad{"{descr: '<f4'}", "goes on with 'descr"}, Bad{"{'descr' '<f4'}", "goes on with"},
        Bad{"{'descr': }", "dtype"}, Bad{"\x01\x02\xff{", "begins with '???{'"}));

// Every shorter text is refused as well, and nothing is read beyond its end.
TEST(NpyHeaderTest, EveryTruncationIsRefused) {
  const std::string whole = "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 33, 4, 64)}";
  ASSERT_TRUE(parse_npy_header(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::vector<char> exact(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(parse_npy_header({exact.data(), exact.size()})) << size;
  }
}

}  // namespace
}  // namespace wavejit::tools
