// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a profile is made of, without a device: the turn of a loop cut out of a timeline, the page around it, settings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/tools/tool_test_support.h"
#include "tools/profile/iteration.h"
#include "tools/profile/page.h"
#include "tools/profile/subject.h"

namespace wavejit::tools {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

// A trace of waves that go round a loop of four instructions at offsets 0x10, 0x14, 0x18 (a barrier) and 0x1c (the jump
// back), a turn in `turn` cycles, `turns` of them from cycle 1000 on.
class Trace {
 public:
  Trace() { add({{"name", "thread_name"}, {"ph", "M"}, {"pid", 0}, {"tid", 0}, {"args", {{"name", "matrix pipe"}}}}); }

  void wave(int number, int turns, int turn, int late = 0) {
    const int track = number + 1;
    add({{"name", "thread_name"},
         {"ph", "M"},
         {"pid", 0},
         {"tid", track},
         {"args", {{"name", "workgroup 7, wave " + std::to_string(number)}}}});
    issue(track, 990 + late, 0, "s_mov_b32 s0, 0", "scalar");
    for (int i = 0; i < turns; ++i) {
      const int at = 1000 + late + i * turn;
      issue(track, at, 0x10, "v_mfma_f32_32x32x8_f16 a[0:15], v0, v1, a[0:15]", "matrix");
      span(0, at, 32, "v_mfma_f32_32x32x8_f16 a[0:15], v0, v1, a[0:15]", "matrix pipe");
      issue(track, at + 4, 0x14, "v_exp_f32 v2, v3", "transcendental");
      span(track, at + 8, 12, "waits: own interval", "wait");
      issue(track, at + 20, 0x18, "s_barrier", "barrier");
      span(track, at + 24, turn - 28 - late, "waits: barrier", "wait");
      issue(track, at + turn - 4, 0x1c, "s_cbranch_scc1 65532", "branch");
    }
  }

  std::string text() const { return Json({{"traceEvents", events_}}).dump(); }

 private:
  void add(Json event) { events_.push_back(std::move(event)); }
  void span(int track, int start, int cycles, const std::string& name, const std::string& category) {
    add({{"name", name}, {"cat", category}, {"ph", "X"}, {"pid", 0}, {"tid", track}, {"ts", start}, {"dur", cycles}});
  }
  void issue(int track, int start, int offset, const std::string& name, const std::string& category) {
    span(track, start, 4, name, category);
    events_.back()["args"] = {{"offset", offset}};
  }
  Json events_ = Json::array();
};

TEST(Iteration, IsOneTurnOfTheLoop) {
  Trace trace;
  trace.wave(0, 3, 100);
  trace.wave(1, 3, 100, 8);
  const Json turn = steady_iteration(trace.text());
  EXPECT_TRUE(turn.at("is_iteration").get<bool>());
  EXPECT_EQ(turn.at("first"), 1100);
  EXPECT_EQ(turn.at("cycles"), 100);
  // Two waves of 32 cycles each; the second's lie eight cycles later and are inside too.
  EXPECT_DOUBLE_EQ(turn.at("matrix_busy").get<double>(), 0.64);
  ASSERT_EQ(turn.at("lanes").size(), 3U);
  EXPECT_TRUE(turn["lanes"][0].at("pipe").get<bool>());
  const Json& wave = turn["lanes"][1];
  EXPECT_EQ(wave.at("name"), "workgroup 7, wave 0");
  ASSERT_EQ(wave.at("issued").size(), 4U);
  // What an instruction takes of its own wave belongs to it: issued at 4, busy until 20.
  EXPECT_EQ(wave["issued"][1][0], 4);
  EXPECT_EQ(wave["issued"][1][1], 16);
  EXPECT_EQ(turn["texts"][wave["issued"][1][3].get<std::size_t>()], Json::array({0x14, "v_exp_f32 v2, v3"}));
  ASSERT_EQ(wave.at("waits").size(), 1U);
  EXPECT_EQ(turn["causes"][wave["waits"][0][2].get<std::size_t>()], "barrier");
  EXPECT_EQ(wave.at("barriers"), Json::array({20}));
  // Both waves go on at cycle 96: one opening. The turn before ended in the same way before the window.
  ASSERT_EQ(turn.at("releases").size(), 1U);
  EXPECT_EQ(turn["releases"][0].at("at"), 96);
}

TEST(Iteration, WithoutALoopIsThePieceItself) {
  Trace trace;
  trace.wave(0, 1, 100);
  const Json piece = steady_iteration(trace.text());
  EXPECT_FALSE(piece.at("is_iteration").get<bool>());
  EXPECT_EQ(piece.at("first"), 990);
  EXPECT_EQ(piece.at("cycles"), 110);
}

TEST(Iteration, OfNothingIsNull) {
  EXPECT_TRUE(steady_iteration("").is_null());
  EXPECT_TRUE(steady_iteration(R"({"traceEvents": []})").is_null());
}

TEST(Page, NamesCannotEndItsScript) {
  Prediction prediction;
  prediction.subject = "</script><b>{{data}}&";
  const std::string page = page_of(prediction.subject, {&prediction}, nullptr);
  EXPECT_THAT(page, HasSubstr("<title>&lt;/script>&lt;b>{{data}}&amp;</title>"));
  // Its own two scripts and no other end.
  std::size_t ends = 0;
  for (std::size_t at = page.find("</script>"); at != std::string::npos; at = page.find("</script>", at + 1)) ++ends;
  EXPECT_EQ(ends, 2U);
  EXPECT_THAT(page, HasSubstr(R"("subject":"\u003c/script>\u003cb>{{data}}&")"));
  // Nothing is fetched.
  EXPECT_EQ(page.find("src="), std::string::npos);
  EXPECT_EQ(page.find("http://www.w3.org/2000/svg") != std::string::npos, true);
  EXPECT_EQ(page.find("https://"), std::string::npos);
  EXPECT_EQ(page.find("@import"), std::string::npos);
}

class SubjectTest : public ::testing::Test {
 protected:
  Result<Subject> parse(const std::vector<std::string>& settings) {
    write_text(file_, "not looked at before it runs");
    return parse_subject(file_, settings, EngineOptions(), "set-a");
  }
  void refused(const std::string& setting, const std::string& says) {
    const auto subject = parse({setting});
    ASSERT_FALSE(subject) << setting;
    EXPECT_EQ(subject.error().code, ExitCode::usage);
    EXPECT_THAT(subject.error().what, HasSubstr("--set-a " + setting));
    EXPECT_THAT(subject.error().what, HasSubstr(says));
  }
  ScratchDirectory scratch_;
  std::string file_ = scratch_ / "kernel.co";
};

TEST_F(SubjectTest, ACodeObjectsLaunchIsRead) {
  const auto subject = parse({"kernel=add", "grid=3,2", "workgroup=256", "lds=4KiB", "device=sim:gfx950",
                              "arguments=buffer:1KiB,i32:-7,f32:0.5,u64:9,f64:2"});
  ASSERT_TRUE(subject) << subject.error().what;
  ASSERT_TRUE(subject->code);
  EXPECT_EQ(subject->code->kernel, "add");
  EXPECT_EQ(subject->code->grid, (std::array<unsigned, 3>{3, 2, 1}));
  EXPECT_EQ(subject->code->workgroup, (std::array<unsigned, 3>{256, 1, 1}));
  EXPECT_EQ(subject->code->lds_bytes, 4096U);
  ASSERT_EQ(subject->code->arguments.size(), 5U);
  EXPECT_EQ(subject->code->arguments[0].buffer_bytes, 1024U);
  EXPECT_EQ(subject->code->arguments[1].bytes, 4U);
  EXPECT_EQ(subject->code->arguments[1].bits, 0xFFFFFFF9U);
  EXPECT_EQ(subject->code->arguments[2].bits, 0x3F000000U);
  EXPECT_EQ(subject->code->arguments[3].bytes, 8U);
  EXPECT_EQ(subject->code->arguments[4].bits, 0x4000000000000000U);
  EXPECT_STREQ(subject->engine.options().device, "sim:gfx950");
}

TEST_F(SubjectTest, SettingsThatCannotBeRightAreRefused) {
  refused("stagger", "NAME=VALUE is accepted");
  refused("staggered=off", "'staggered' is not accepted; kernel, grid, workgroup, lds, arguments, device are");
  refused("stagger=off", "'stagger' is not accepted; ");  // whatever compiler made it, it is made
  refused("grid=", "one to three sizes");
  refused("grid=1,2,3,4", "one to three sizes");
  refused("grid=0", "one to three sizes");
  refused("workgroup=64x", "one to three sizes");
  refused("lds=-1", "bytes are");
  refused("lds=5GiB", "bytes are");
  refused("arguments=buffer", "'buffer' is not accepted");
  refused("arguments=buffer:0", "'buffer:0' is not accepted");
  refused("arguments=i32:4294967296", "'i32:4294967296' is not accepted");
  refused("arguments=i32:1,f16:1", "'f16:1' is not accepted");
}

TEST_F(SubjectTest, WhatIsNeitherADescriptorNorAFileIsRefused) {
  for (const std::string what : {"", "attention", "/no/such/file"}) {
    const auto subject = parse_subject(what, {}, EngineOptions(), "set");
    ASSERT_FALSE(subject) << what;
    EXPECT_EQ(subject.error().code, ExitCode::usage);
    EXPECT_THAT(subject.error().what, HasSubstr("neither a problem descriptor"));
  }
  const auto wrong = parse_subject("attention_forward bf16 b0 q1 k1 h1 d64", {}, EngineOptions(), "set");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ExitCode::usage);
}

}  // namespace
}  // namespace wavejit::tools
