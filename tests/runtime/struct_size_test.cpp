// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Structs that callers hand in: those of the header's size are taken, larger ones if nothing unknown is set, and no
// others.
#include "families/call/struct_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "families/call/call_head.h"
#include "wavejit/prebuild.h"
#include "wavejit/wavejit.h"
#include "wavejit/wavejit.hpp"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;

// One struct of the C ABI, by its name there.
#define WAVEJIT_NAMED(name) \
  Named<name> { #name }
template <typename Struct>
struct Named {
  const char* name;
};
// Behind the number of its letters.
template <typename Struct>
const char* name_of() {
  const char* name = typeid(Struct).name();
  while (*name >= '0' && *name <= '9') ++name;
  return name;
}

// Structs that the library reads, and structs that it fills.
constexpr auto given =
    std::tuple{WAVEJIT_NAMED(wavejit_engine_options), WAVEJIT_NAMED(wavejit_kernel_text_arguments),
               WAVEJIT_NAMED(wavejit_prebuild_arguments), WAVEJIT_NAMED(wavejit_cache_copy_arguments)};
// Those of calls, which begin with a head.
const auto calls = []<typename... Calls>(std::type_identity<std::tuple<Calls...>>) {
  return std::tuple{Named<typename Calls::C>{name_of<typename Calls::C>()}...};
}(std::type_identity<wavejit::Calls>());
constexpr auto filled = std::tuple{WAVEJIT_NAMED(wavejit_call_report), WAVEJIT_NAMED(wavejit_cache_sweep_result),
                                   WAVEJIT_NAMED(wavejit_cache_copy_result), WAVEJIT_NAMED(wavejit_statistics)};
// The library makes them whole and tells their size itself.
const std::set<std::string> told = {"wavejit_compile_event",         "wavejit_prepare_progress", "wavejit_kernel_text",
                                    "wavejit_prebuild_progress",     "wavejit_cache_entry",      "wavejit_cache_layer",
                                    "wavejit_prebuild_list_progress"};

template <typename Check>
void for_each(const auto& structs, Check check) {
  std::apply([&](const auto&... each) { (check(each), ...); }, structs);
}

// A struct with no byte zero but those of its size, and room behind it for a newer caller's fields.
template <typename Struct>
union Full {
  explicit Full(std::size_t size, unsigned char behind = 0) : bytes{} {
    bytes.fill(behind);
    std::fill_n(bytes.begin(), sizeof(Struct), static_cast<unsigned char>(0xA5));
    std::memcpy(bytes.data(), &size, sizeof size);
  }
  std::array<unsigned char, sizeof(Struct) + 64> bytes;
  Struct as;
};

TEST(StructSize, NoOtherIsTakenThanTheHeaders) {
  for_each(given, []<typename Struct>(const Named<Struct>& named) {
    EXPECT_TRUE(families::check_struct_size(Full<Struct>(sizeof(Struct)).as, "arguments")) << named.name;
    for (std::size_t size = 0; size < sizeof(Struct); ++size) {
      const auto smaller = families::check_struct_size(Full<Struct>(size).as, "arguments");
      ASSERT_FALSE(smaller) << named.name << " of " << size << " bytes";
      EXPECT_EQ(smaller.error().status, WAVEJIT_INVALID_ARGUMENT);
      EXPECT_THAT(smaller.error().detail, HasSubstr("arguments.size = " + std::to_string(size)));
      EXPECT_THAT(smaller.error().detail, HasSubstr("accepted: " + std::to_string(sizeof(Struct))));
    }
  });
}

TEST(StructSize, ALargerOneIsTakenIfNothingUnknownIsSet) {
  for_each(given, []<typename Struct>(const Named<Struct>& named) {
    EXPECT_TRUE(families::check_struct_size(Full<Struct>(sizeof(Struct) + 8).as, "x")) << named.name;
    const auto unknown = families::check_struct_size(Full<Struct>(sizeof(Struct) + 8, 1).as, "x");
    ASSERT_FALSE(unknown) << named.name;
    EXPECT_EQ(unknown.error().status, WAVEJIT_UNSUPPORTED);
    EXPECT_THAT(unknown.error().detail, HasSubstr("at byte " + std::to_string(sizeof(Struct))));
    EXPECT_FALSE(families::check_struct_size(Full<Struct>(families::max_struct_bytes + 8).as, "x")) << named.name;
  });
}

TEST(StructSize, AHeadSaysTheSizeOfItsCall) {
  for_each(calls, []<typename Struct>(const Named<Struct>& named) {
    const auto check = [](std::size_t size, unsigned char behind = 0) {
      Full<Struct> full(size, behind);
      full.as.head.family = WAVEJIT_ATTENTION_FORWARD;
      full.as.head.report = nullptr;
      return families::check_head(&full.as.head, sizeof(Struct), WAVEJIT_ATTENTION_FORWARD, "x", {});
    };
    EXPECT_TRUE(check(sizeof(Struct))) << named.name;
    EXPECT_TRUE(check(sizeof(Struct) + 8)) << named.name;
    for (std::size_t size = 0; size < sizeof(Struct); ++size) {
      const auto smaller = check(size);
      ASSERT_FALSE(smaller) << named.name << " of " << size << " bytes";
      EXPECT_EQ(smaller.error().status, WAVEJIT_INVALID_ARGUMENT);
      EXPECT_THAT(smaller.error().detail, HasSubstr("head.size = " + std::to_string(size)));
      EXPECT_THAT(smaller.error().detail, HasSubstr("accepted: " + std::to_string(sizeof(Struct))));
    }
    const auto unknown = check(sizeof(Struct) + 8, 1);
    ASSERT_FALSE(unknown) << named.name;
    EXPECT_EQ(unknown.error().status, WAVEJIT_UNSUPPORTED);
    EXPECT_FALSE(check(families::max_struct_bytes + 8)) << named.name;
  });
}

TEST(StructSize, WhatIsFilledIsFilledWholeAndNoByteFurther) {
  for_each(filled, []<typename Struct>(const Named<Struct>& named) {
    const auto smaller = families::check_output_size(Full<Struct>(sizeof(Struct) - 8).as, "x");
    ASSERT_FALSE(smaller) << named.name;
    EXPECT_THAT(smaller.error().detail, HasSubstr("accepted: " + std::to_string(sizeof(Struct))));
    EXPECT_FALSE(families::check_output_size(Full<Struct>(families::max_struct_bytes + 8).as, "x")) << named.name;
    for (const std::size_t size : {sizeof(Struct), sizeof(Struct) + 8}) {
      Full<Struct> to(size, 0x5A);
      ASSERT_TRUE(families::check_output_size(to.as, "x")) << named.name << " of " << size << " bytes";
      families::hand_over(to.as, Struct{});
      EXPECT_EQ(to.as.size, size);
      for (std::size_t i = sizeof(std::size_t); i < to.bytes.size(); ++i)
        ASSERT_EQ(to.bytes[i], i < sizeof(Struct) ? 0 : 0x5A) << named.name << " of " << size << " bytes, byte " << i;
    }
  });
}

std::string text_of(const std::string& header) {
  std::ifstream file(std::string(WAVEJIT_HEADERS) + "/" + header);
  EXPECT_TRUE(file) << header;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string without_comments(std::string text) {
  for (std::size_t at = text.find("/*"); at != std::string::npos; at = text.find("/*", at))
    text.erase(at, text.find("*/", at) + 2 - at);
  return text;
}

// A struct that nobody put into a list above has no test.
TEST(StructSize, EveryStructOfTheHeadersIsInOneList) {
  std::set<std::string> listed = told;
  const auto add = [&](const auto& named) { listed.insert(named.name); };
  for_each(given, add);
  for_each(calls, add);
  for_each(filled, add);
  std::set<std::string> found;
  for (const char* header : {"wavejit.h", "prebuild.h"}) {
    std::istringstream file(text_of(header));
    std::string line;
    std::string name;
    while (std::getline(file, line)) {
      std::istringstream words(line);
      std::string first;
      std::string second;
      std::string third;
      words >> first >> second >> third;
      if (first == "struct" && third == "{") name = second;
      if (line == "  size_t size;" || line.starts_with("  struct wavejit_call_head head;")) found.insert(name);
    }
  }
  EXPECT_EQ(found, listed);
}

// What calls are made of.
const std::map<std::string, std::size_t> parts = {
    {"wavejit_tensor", sizeof(wavejit_tensor)},       {"wavejit_attention_part", sizeof(wavejit_attention_part)},
    {"wavejit_call_head", sizeof(wavejit_call_head)}, {"wavejit_masking", sizeof(wavejit_masking)},
    {"wavejit_modifiers", sizeof(wavejit_modifiers)}, {"wavejit_sequences", sizeof(wavejit_sequences)},
    {"wavejit_pages", sizeof(wavejit_pages)},         {"wavejit_block_lists", sizeof(wavejit_block_lists)},
    {"wavejit_key_list", sizeof(wavejit_key_list)},   {"wavejit_scales", sizeof(wavejit_scales)},
    {"wavejit_split", sizeof(wavejit_split)},         {"wavejit_output_scale", sizeof(wavejit_output_scale)},
};

// The bytes of the fields that a struct of the header has, without what a compiler puts between them.
std::size_t bytes_of_fields(const std::string& header, const std::string& name) {
  std::map<std::string, std::size_t> types = {{"int32_t", 4}, {"uint32_t", 4}, {"float", 4},
                                              {"int64_t", 8}, {"uint64_t", 8}, {"size_t", 8}};
  types.insert(parts.begin(), parts.end());
  const std::map<std::string, std::size_t> counts = {{"[4]", 4},
                                                     {"[WAVEJIT_MAX_ATTENTION_PARTS]", WAVEJIT_MAX_ATTENTION_PARTS}};
  const std::string head = "struct " + name + " {";
  const std::size_t from = header.find(head) + head.size();
  std::istringstream fields(header.substr(from, header.find("};", from) - from));
  std::size_t bytes = 0;
  for (std::string field; std::getline(fields, field, ';');) {
    std::istringstream words(field);
    std::string type;
    while (words >> type && (type == "struct" || type == "const")) continue;
    if (type.empty()) continue;
    const bool pointer = field.contains('*');
    if (!pointer && !types.contains(type)) ADD_FAILURE() << name << " has a field of a type not known here: " << field;
    std::size_t one = pointer ? sizeof(void*) : types.contains(type) ? types.at(type) : 0;
    for (const auto& [brackets, count] : counts)
      if (field.contains(brackets)) one *= count;
    bytes += one;
  }
  return bytes;
}

// A call is known again by its bytes (families/call/known_calls.h), and those of padding are anything.
TEST(StructSize, CallsHaveNoPadding) {
  const std::string header = without_comments(text_of("wavejit.h"));
  for (const auto& [name, size] : parts) EXPECT_EQ(bytes_of_fields(header, name), size) << name;
  for_each(calls, [&]<typename Struct>(const Named<Struct>& named) {
    EXPECT_EQ(bytes_of_fields(header, named.name), sizeof(Struct)) << named.name;
  });
}

}  // namespace
}  // namespace wavejit::tests
