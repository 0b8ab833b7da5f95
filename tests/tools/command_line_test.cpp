// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The command line itself: help that teaches, and one line for everything that cannot be right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tool_test_support.h"

namespace wavejit::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using Words = std::vector<std::string>;

TEST(CommandLineTest, EachHelpTeaches) {
  const ScratchDirectory scratch;
  struct Help {
    Words words;
    std::vector<const char*> taught;
  };
  for (const Help& help :
       {Help{{}, {"run", "explain", "prebuild", "cache", "supported", "Exit codes", "damaged cache entry"}},
        Help{{"run"}, {"--q", "--lse", "--causal", "--scale", "--check", "FILE.npy", "Examples", "sim:gfx950"}},
        Help{{"explain"},
             {"gfx942, gfx950, gfx1201, gfx1200", "descriptor", "--target", "--ir", "--isa", "--json", "Example",
              "attention_forward bf16 b1 q1024"}},
        Help{{"prebuild"}, {"--target", "--list", "--jobs", "Examples", "gfx942,gfx950,gfx1201,gfx1200"}},
        Help{{"cache"},
             {"list", "info", "stats", "verify", "gc", "pack", "unpack", "import", "export", "push", "pull"}},
        Help{{"cache", "list"}, {"--json", "--cache-dir", "Example"}}, Help{{"cache", "info"}, {"--json", "Example"}},
        Help{{"cache", "verify"}, {"Exit code", "Example"}}, Help{{"supported"}, {"List"}},
        Help{{"cache", "pack"}, {"gfx942,gfx950,gfx1201,gfx1200"}},
        Help{{"variants"}, {"gfx942,gfx950,gfx1201,gfx1200", "default: all)"}},
        Help{{"sim"}, {"Targets are gfx942, gfx950, gfx1201, gfx1200."}}, Help{{"version"}, {"version"}}}) {
    Words words = help.words;
    words.emplace_back("--help");
    const Outcome outcome = run_program(scratch, words);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    for (const char* taught : help.taught) EXPECT_THAT(outcome.out, HasSubstr(taught));
  }
}

TEST(CommandLineTest, VersionAndSupported) {
  const ScratchDirectory scratch;
  EXPECT_THAT(run_program(scratch, {"version"}).out, StartsWith("wavejit 0."));
  EXPECT_THAT(run_program(scratch, {"--version"}).out, StartsWith("wavejit 0."));
  const Outcome supported = run_program(scratch, {"supported"});
  EXPECT_EQ(supported.code, 0);
  EXPECT_THAT(supported.out, StartsWith("gfx942 (MI300X)\n  attention_forward\n    dtypes bf16 fp16\n"));
  for (const std::string target : {"gfx950", "gfx1201", "gfx1200"})
    EXPECT_THAT(supported.out, HasSubstr("\n\n" + target + " (")) << target;
}

// A product's name says its target; every family has a row of each target, also where there are no kernels.
TEST(CommandLineTest, SupportedByTargetAndInOtherForms) {
  const ScratchDirectory scratch;
  const Outcome one = run_program(scratch, {"supported", "--target", "mi355x"});
  EXPECT_THAT(one.out, StartsWith("gfx950 (MI355X)\n"));
  EXPECT_THAT(one.out, Not(HasSubstr("gfx942")));
  EXPECT_EQ(run_program(scratch, {"supported", "mi355x"}).out, one.out) << "as the first word, too";
  const Outcome table = run_program(scratch, {"supported", "--markdown"});
  EXPECT_THAT(table.out, StartsWith("| | gfx942 (MI300X) | gfx950 (MI355X) | gfx1201 ("));
  EXPECT_THAT(
      table.out,
      HasSubstr(
          "\n| `attention_latent` | yes, 8-bit cache, D 576/512, 512 or 320/256 | yes, 8-bit cache, D 576/512, 512 or 320/256 | no |"));
  const auto json = nlohmann::json::parse(run_program(scratch, {"supported", "--json"}).out);
  EXPECT_EQ(json["rows"].size() % 7, 0U);
  for (const auto& row : json["rows"]) {
    const bool in_part = !row["target"].get<std::string>().starts_with("gfx9");
    EXPECT_EQ(row["kernels"], !in_part || (row["family"] != "attention_latent" && row["family"] != "sparse_indexer"))
        << row;
  }
  const Outcome wrong = run_program(scratch, {"supported", "--target", "gfx943"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--target 'gfx943' is no target (did you mean 'gfx942'?)"));
  for (const Words& words : {Words{"supported", "gfx1100"}, Words{"supported", "--target", "gfx1100"}}) {
    const Outcome refused = run_program(scratch, words);
    expect_one_line_error(refused, 4);
    EXPECT_THAT(refused.err, HasSubstr("'gfx1100': it is Radeon RX 7900 XTX, RX 7900 XT and PRO W7900 (RDNA 3), for "
                                       "which no family has kernels; accepted: gfx942, gfx950"));
  }
}

struct Wrong {
  Words words;
  const char* named;     // what the line must name
  const char* accepted;  // and what it offers
};

class WrongCommandLineTest : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongCommandLineTest, IsOneLineAndExitCodeTwo) {
  const ScratchDirectory scratch;
  const Outcome outcome = run_program(scratch, GetParam().words);
  expect_one_line_error(outcome, 2);
  EXPECT_THAT(outcome.err, HasSubstr(GetParam().named));
  EXPECT_THAT(outcome.err, HasSubstr(GetParam().accepted));
  EXPECT_TRUE(scratch.names().empty()) << "nothing is written";
}

Words run_with(Words more) {
  Words words = {"run", "attention_forward", "--q", "q.npy", "--k", "k.npy", "--v", "v.npy", "--out", "o.npy"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongCommandLineTest,
    ::testing::Values(
        Wrong{{},
              "a subcommand is missing",
              "run, explain, prebuild, sweep, invariance, profile, compare, tune, doctor, sim, cache, variants, "
              "supported, version"},
        Wrong{{"frobnicate"}, "'frobnicate'", "run, explain, prebuild"},
        Wrong{{"--frobnicate"}, "'--frobnicate'", "run, explain, prebuild"},
        Wrong{{"explian"}, "here (did you mean 'explain'?); `wavejit --help`", "tells more"},
        Wrong{{"supported", "--tarrget", "gfx950"},
              "here (did you mean '--target'?); `wavejit supported --help`",
              "tells more"},
        Wrong{{"sweep", "--devcie", "sim:gfx950"}, "(did you mean '--device'?); `wavejit sweep --help`", "tells more"},
        Wrong{{"cache", "lsit"}, "(did you mean 'list'?); `wavejit cache --help`", "tells more"},
        Wrong{{"cache", "list", "--sort", "sise"},
              "--sort: 'sise' is not accepted (did you mean 'size'?)",
              "cache list --help"},
        Wrong{{"cache", "gc", "--cache-limit", "100KiB"},
              "--cache-limit \"100KiB\" is too small; accepted: none",
              "1MiB at least"},
        Wrong{{"prebuild", "--target", "gfx950", "--preset", "lama-3-8b"},
              "it is not known (did you mean 'llama-3-8b'?); ",
              "`wavejit prebuild --list-presets` lists all"},
        Wrong{{"prebuild", "--target", "gfx1151", "attention_forward bf16 b1 q1 k1 h1 d64"},
              "\"gfx1151\" (Radeon 8060S) has no kernels: it is RDNA 3.5",
              "gfx942, gfx950"},
        Wrong{{"explain", "attention_forward bf16 b1 q1 k1 h1 d64 softcp=30", "--target", "gfx950"},
              "is not known (did you mean 'softcap='?); accepted: ",
              "what `wavejit explain \"attention_forward help\"` lists"},
        Wrong{{"explain", "attention_forward bf16 b1 q1 k1 h1 d64 causl", "--target", "gfx950"},
              "is not known (did you mean 'causal'?); accepted: ",
              "what `wavejit explain \"attention_forward help\"` lists"},
        Wrong{{"compare", "attention_forward bf16 b1 q1 k1 h1 d64", "--device", "sim:gfx950", "--set-b", "kv-split=2"},
              "--set-b kv-split=2: 'kv-split' is not accepted (did you mean 'kv-splits'?)",
              "`wavejit profile --help` lists all"},
        Wrong{{"compare", "attention_forward bf16 b1 q1 k1 h1 d64", "--device", "sim:gfx950", "--set-b", "stagger=off"},
              "--set-b stagger=off: 'stagger' is a word of pipeline",
              "write --set-b \"pipeline=auto stagger=off\""},
        Wrong{{"explain", "attention_forward bf16 b1 q1 k1 h1 d64", "--target", "gfx950", "--pipeline",
               "auto laddr=early"},
              "--pipeline \"auto laddr=early\": 'laddr=early'; accepted: tile_queries=<rows>",
              "also stagger=off"},
        Wrong{run_with({"--lazy-rescale", "off"}), "'--lazy-rescale' is not accepted here",
              "write --pipeline \"auto lazy_rescale=off\""},
        Wrong{{"run", "sparse_indexer"},
              "family: family 'sparse_indexer' is not accepted here, since it has no call over files (`wavejit sweep`",
              "attention_forward, softmax_lse, "},
        Wrong{{"run", "attention", "--q", "q.npy"},
              "family: family 'attention' is not accepted (did you mean 'attention_merge'?)",
              "wavejit run --help"},
        Wrong{{"explain", "attention_foward bf16 b1 q1 k1 h1 d64", "--target", "gfx950"},
              "'attention_foward'",
              "(did you mean 'attention_forward'?)"},
        Wrong{
            {"profile", "softmaxlse b1", "--device", "sim:gfx950"}, "'softmaxlse b1'", "(did you mean 'softmax_lse'?)"},
        Wrong{{"prebuild", "--target", "gfx950", "attention_fwd fp16"},
              "'attention_fwd'",
              "(did you mean 'attention_forward'?)"},
        Wrong{{"prebuild", "--target", "gfx950", "--output", "out.zip"},
              "--output: 'out.zip' is not accepted",
              "out.wavejit-archive is an archive, out.zip/ a folder"},
        Wrong{{"explain", "attention_forward bf16 b1 q1 k1 h1 d64"},
              "--target is not given",
              "gfx942, gfx950, gfx1201, gfx1200"},
        Wrong{{"cache", "pack", "a", "--target", "gfx 9"}, "--target: ", "letters, digits"},
        Wrong{{"cache"}, "a subcommand is missing", "list, info, stats, verify, gc, pack, unpack, import, export"},
        Wrong{{"invariance", "attention_forward bf16 b1 q1 k1 h1 d64", "--device", "sim:gfx950"},
              "is a descriptor, and invariance draws its shapes",
              "--family attention_forward asks that family alone"},
        Wrong{{"cache", "purge"}, "'purge'", "list, info, stats, verify, gc, pack, unpack, import, export"},
        Wrong{{"cache", "verify", "--jsn"}, "'--jsn'", "--json"},
        Wrong{{"cache", "list", "--cache", "rx"}, "'rx'", "off, ro, rw"},
        Wrong{{"version", "more"}, "'more'", "--help"}, Wrong{{"run"}, "family", "wavejit run --help"},
        Wrong{{"run", "attention_forward", "--q", "q.npy"}, "--k", "required"},
        Wrong{run_with({"--casual"}), "'--casual'", "--causal"},
        Wrong{run_with({"--dtype", "fp32"}), "'fp32'", "fp16, bf16"},
        Wrong{run_with({"--scale", "big"}), "--scale: 'big'", "finite numbers"},
        Wrong{run_with({"--scale", "inf"}), "--scale: 'inf'", "finite numbers"},
        Wrong{run_with({"--scale", "1e99"}), "--scale: '1e99'", "finite numbers"},
        Wrong{run_with({"--scale", "0.5x"}), "--scale: '0.5x'", "finite numbers"},
        Wrong{run_with({"--scale"}), "--scale", "NUMBER"},
        Wrong{run_with({"--repeat", "-1"}), "--repeat: '-1'", "0 to 999999"},
        Wrong{run_with({"--repeat", "1.5"}), "--repeat: '1.5'", "0 to 999999"},
        Wrong{run_with({"--lowering", "gcc"}), "'gcc'", "llvm, comgr"},
        Wrong{{"run", "attention_sideways", "--q", "q", "--k", "k", "--v", "v", "--out", "o"},
              "'attention_sideways'",
              "attention_forward"},
        Wrong{{"sim", "--target", "gfx950"}, "program is required", "wavejit sim --help"},
        Wrong{{"sim", "--front", "hip", "--target", "gfx942@6x", "--", "true"},
              "--target: 'gfx942@6x'",
              "gfx942, gfx950, gfx1201, gfx1200, or a board of one as <target>@<dies>x<compute units of a die>"},
        Wrong{{"sim", "--front", "hip", "--cycles", "--check", "all", "--", "true"},
              "--cycles with --check",
              "a launch is checked or timed"},
        Wrong{{"explain"}, "descriptor", "required"}, Wrong{{"sim"}, "program", "required"},
        Wrong{{"sim", "--front", "window", "--", "true"}, "--front: window", "{rocr,rocr-model,hip}"},
        Wrong{{"sim", "--front", "rocr-model", "--target", "gfx942x2", "--", "true"},
              "--target: 'gfx942x2' is not one GPU",
              "gfx942, gfx950, gfx1201, gfx1200, or a board of one"},
        Wrong{{"sim", "--write-topology", "folder", "--", "true"}, "--write-topology", "program"},
        Wrong{{"sim", "--write-topology", "folder", "--target", "gfx9"}, "--target: 'gfx9'", "gfx942, gfx950, gfx1201"},
        Wrong{{"explain", "attention_forward fp16 b1 q64 k64 h1 d64 wide", "--target", "gfx950"}, "'wide'", "help"},
        Wrong{{"explain", "conv2d", "--target", "gfx950"}, "conv2d", "attention_forward"},
        Wrong{{"explain", "attention_forward", "fp16", "b1", "q64", "--target", "gfx950"},
              "quote it",
              "\"attention_forward fp16 b1 q64\""},
        Wrong{{"compare", "--device", "sim:gfx950", "attention_forward", "fp16", "b1"}, "quote it", "fp16 b1\""},
        Wrong{{"prebuild", "--target", "gfx950", "attention_forward", "fp16", "b1"}, "quote it", "fp16 b1\""},
        Wrong{{"prebuild"}, "--target", "required"},
        Wrong{{"prebuild", "--target", "gfx950", "--jobs", "many"}, "--jobs: 'many'", "0 to 9999"},
        Wrong{{"prebuild", "--target", "gfx950", "--cache-layers", "a\nb"}, "--cache-layers ", "absolute paths"},
        Wrong{{"explain", "attention_forward fp16 b1 q64 k64 h1 d64", "--target", "gfx950", "--kv-splits", "x"},
              "--kv-splits \"x\"",
              "auto"},
        Wrong{{"prebuild", "--target", "gfx950", "attention_forward fp16 wide"}, "'wide'", "accepted"}));

// A word that somebody misspelt stands in a line that can be read; who wants all words asks for them.
TEST(CommandLineTest, AMisspeltWordIsNotFollowedByALongList) {
  const ScratchDirectory scratch;
  for (const Words& words : {Words{"explain", "attention_forward bf16 b1 q1 k1 h1 d64 causl", "--target", "gfx950"},
                             Words{"explain", "attention_forward bf16 b1 q1 k1 h1 d64 wide", "--target", "gfx950"},
                             Words{"sweep", "--devcie", "sim:gfx950"}, Words{"sweep", "--frobnicate"},
                             Words{"profile", "softmax_lse fp32 b1 h1 q1 k1", "--set", "stagr=off"},
                             Words{"prebuild", "--target", "gfx950", "--preset", "lama-3-8b"}}) {
    const Outcome outcome = run_program(scratch, words);
    expect_one_line_error(outcome, 2);
    EXPECT_LT(outcome.err.size(), 200U) << outcome.err;
  }
  const Outcome all = run_program(scratch, {"explain", "attention_forward help"});
  EXPECT_EQ(all.code, 0) << all.err;
  EXPECT_THAT(all.out, StartsWith("fp16\nbf16\nb<n>\n"));
  EXPECT_THAT(all.out, HasSubstr("\ncausal[=<prefix>]\nwindow=<left>,<right>\n"));
  EXPECT_THAT(all.out, HasSubstr("\ncache=e4m3|e5m2|"));
  for (const std::string family : {"softmax_lse", "attention_latent", "attention_merge"})
    EXPECT_THAT(run_program(scratch, {"explain", family + " help"}).out, HasSubstr("\nseed=<n>\n")) << family;
}

// Nobody without a GPU is told of a variable where an option stands ready.
TEST(CommandLineTest, ADeviceThatIsMissingNamesTheOption) {
  const ScratchDirectory scratch;
  const Outcome outcome = run_program(scratch, {"sweep", "attention_forward fp16 b1 q1 k1 h1 d64"});
  expect_one_line_error(outcome, 6);
  EXPECT_THAT(outcome.err, HasSubstr("--device hip: "));
  EXPECT_THAT(outcome.err, HasSubstr("accepted without a GPU: --device sim:<target>, for example sim:gfx950"));
}

TEST(CommandLineTest, UnknownTargetsAreNamedBesideTheKnownOnes) {
  const ScratchDirectory scratch;
  for (const Words& words : {Words{"explain", "attention_forward fp16 b1 q64 k64 h1 d64", "--target", "gfx1"},
                             Words{"prebuild", "--target", "gfx950,gfx1"}}) {
    const Outcome outcome = run_program(scratch, words);
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_THAT(outcome.code, ::testing::AnyOf(2, 4));
    EXPECT_THAT(outcome.err, HasSubstr("gfx1"));
    EXPECT_THAT(outcome.err, HasSubstr("gfx942"));
    EXPECT_TRUE(scratch.names().empty());
  }
}

TEST(CommandLineTest, ExplainTellsRouteKeyAndRefusals) {
  const ScratchDirectory scratch;
  const Outcome outcome = run_program(
      scratch, {"explain", "attention_forward bf16 b1 q1024 k8192 h64/8 d128 causal lse", "--target", "gfx942"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* word : {"route", "key", "refused", "not on disk", "more are defaults: --all\n"})
    EXPECT_THAT(outcome.out, HasSubstr(word));
  EXPECT_FALSE(outcome.out.contains("pipeline=auto (default)"));
  const Outcome all =
      run_program(scratch, {"explain", "attention_forward bf16 b1 q1 k64 h1 d64", "--target", "gfx942", "--all"});
  EXPECT_THAT(all.out, HasSubstr("pipeline=auto (default)"));
  EXPECT_TRUE(scratch.names().empty()) << "explaining writes nothing";
}

// Every line of the text is in the JSON, and nothing else.
TEST(CommandLineTest, ExplainAsJsonHasTheFactsOfTheText) {
  const ScratchDirectory scratch;
  for (const char* descriptor : {"attention_forward bf16 b1 q1 k65536 h64/8 d128 splits=8 launches=2",
                                 "attention_backward bf16 b1 q1024 k1024 h64/8 d128 causal"})
    for (const bool whole : {false, true}) {
      Words words = {"explain", descriptor, "--target", "gfx950", "--pipeline", "auto stagger=off"};
      if (whole) words.emplace_back("--all");
      const std::string text = run_program(scratch, words).out;
      words.emplace_back("--json");
      const Outcome outcome = run_program(scratch, words);
      ASSERT_EQ(outcome.code, 0) << outcome.err;
      const auto json = nlohmann::json::parse(outcome.out);
      std::size_t lines = 4;  // problem, target, route, and the first kernel's key text
      const auto expect_line = [&](const std::string& label, const std::string& rest) {
        std::string line = label;
        line.resize(9, ' ');
        EXPECT_THAT("\n" + text, HasSubstr("\n" + line + rest + "\n"));
        ++lines;
      };
      EXPECT_EQ(json["problem"], descriptor);
      EXPECT_EQ(json["target"], "gfx950");
      EXPECT_EQ(json["product"], "MI355X");
      EXPECT_THAT(text, HasSubstr("\nroute    " + json["route"].get<std::string>() + "\n"));
      EXPECT_EQ(json["kernels"].size(), 2U);
      for (const auto& kernel : json["kernels"]) {
        expect_line(kernel["label"], kernel["spec"]);
        expect_line("key", kernel["key"].get<std::string>() + "  " + kernel["cache"].get<std::string>());
      }
      EXPECT_THAT(text, HasSubstr("\nkey text " + json["kernels"][0]["key_text"].get<std::string>() + "\n"));
      expect_line("cost", json["kernels"][0]["cost"]);
      for (const auto& note : json["notes"]) expect_line(note["label"], note["text"]);
      for (const auto& refused : json["refused"])
        expect_line("refused", refused["kernel"].get<std::string>() + ": " + refused["reason"].get<std::string>());
      for (const auto& setting : json["settings"])
        expect_line("setting", setting["name"].get<std::string>() + "=" + setting["value"].get<std::string>() + " (" +
                                   setting["origin"].get<std::string>() + ")");
      if (!whole) expect_line("setting", json["settings_left_out"].dump() + " more are defaults: --all");
      EXPECT_EQ(json["settings_left_out"] == 0, whole);
      EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(text, '\n')), lines) << text;
    }
  expect_one_line_error(run_program(scratch, {"explain", "attention_forward bf16 b1 q1 k1 h1 d64", "--json", "--ir"}),
                        2);
}

// What a kernel is: the schedule, then code whose barriers are counted; with two kernels where keys are split.
TEST(CommandLineTest, ExplainShowsMachineCodeBesideTheSchedule) {
  const ScratchDirectory scratch;
  const Outcome outcome =
      run_program(scratch, {"explain", "attention_forward bf16 b1 q1024 k1024 h2 d64", "--target", "gfx950",
                            "--pipeline", "dualwave", "--cache-dir", scratch / "cache", "--isa"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("kernel attention_forward ")) << outcome.out.substr(0, 100);
  for (const char* shown : {"steady    scores   compute  S(t+1) = K(t+1)·Q", "fetch K(t+3) or the last tile",
                            "v_mfma_f32_32x32x16_bf16", "BARRIER", "-- barrier 13; up to it:", "-- a loop begins"})
    EXPECT_TRUE(outcome.out.contains(shown)) << shown;
  EXPECT_FALSE(outcome.out.contains("bias")) << "this kernel has none";
  EXPECT_FALSE(std::filesystem::exists(scratch / "cache")) << "explaining writes nothing";

  const Outcome split = run_program(scratch, {"explain", "attention_forward fp16 b1 q32 k4096 h1 d64 splits=4",
                                              "--target", "gfx942", "--pipeline", "generic", "--isa"});
  EXPECT_EQ(split.code, 0) << split.err;
  EXPECT_TRUE(split.out.contains("kernel attention_combine "));
  EXPECT_FALSE(split.out.contains("steady")) << "neither has a table";
}

TEST(CommandLineTest, ExplainShowsTheEmittedIr) {
  const ScratchDirectory scratch;
  const Outcome outcome = run_program(scratch, {"explain", "attention_forward fp16 b1 q64 k64 h1 d64", "--ir"},
                                      {{"WAVEJIT_DEVICE", "sim:gfx942"}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("; attention_forward ")) << outcome.out.substr(0, 100);
  EXPECT_TRUE(outcome.out.contains("define protected amdgpu_kernel void @attention_forward_fp16_d64"));
  EXPECT_TRUE(scratch.names().empty()) << "explaining writes nothing";
  expect_one_line_error(
      run_program(scratch, {"explain", "attention_forward fp16 b1 q64 k64 h1 d65", "--ir", "--target", "gfx942"}), 4);
}

// A wrong end without checks is followed by the word that there are some; a log of one that ended well is left alone.
TEST(CommandLineTest, SimSaysThatChecksWereOff) {
  const ScratchDirectory scratch;
  const auto sim = [&](Words words, const std::map<std::string, std::string>& variables = {}) {
    words.insert(words.begin(), {"sim", "--front", "hip", "--target", "gfx950"});
    return run_program(scratch, words, variables);
  };
  constexpr const char* told = "checks were off: --check all finds races";
  const Outcome wrong = sim({"--", "sh", "-c", "exit 5"});
  EXPECT_EQ(wrong.code, 5);
  expect_one_line_error(wrong, 5);
  EXPECT_THAT(wrong.err, HasSubstr(told));
  const Outcome killed = sim({"--", "sh", "-c", "kill -ABRT $$"});
  EXPECT_EQ(killed.code, 128 + SIGABRT);
  EXPECT_THAT(killed.err, HasSubstr(told));
  EXPECT_EQ(sim({"--", "true"}).err, "");
  EXPECT_THAT(sim({"--check", "none", "--", "false"}).err, HasSubstr(told));
  EXPECT_THAT(sim({"--json", scratch / "findings.json", "--", "false"}).err, HasSubstr(told));
  for (const char* wrong_word : {"--schedule", "--arrival"}) EXPECT_EQ(sim({wrong_word, "lat", "--", "true"}).code, 2);
  EXPECT_EQ(sim({"--check", "all", "--", "false"}).err, "");
  EXPECT_EQ(sim({"--", "false"}, {{"WAVEJIT_SIM_CHECK", "races"}}).err, "");
  EXPECT_EQ(sim({"--cycles", "--", "false"}).err, "") << "launches are timed or checked";
}

// Python's send_signal reaches this process alone, and some callers ignore SIGCHLD.
TEST(CommandLineTest, SimHandsSignalsOnAndKnowsHowTheProgramEnded) {
  const ScratchDirectory scratch;
  const std::string sim = std::string(std::getenv("WAVEJIT_PROGRAM")) + " sim --front hip --target gfx950 -- ";
  const auto code_of = [](const std::string& script) {
    const int status = std::system(script.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  };
  EXPECT_EQ(code_of("trap '' CHLD; exec " + sim + "sh -c 'exit 42' 2>/dev/null"), 42);
  // The program says that it is up, and ends with 7 when the signal arrives.
  const std::string up = (scratch / "up");
  std::ofstream(scratch / "program.sh") << "trap 'exit 7' INT USR1\ntouch " << up << "\nsleep 20 &\nwait\n";
  for (const char* signal : {"INT", "USR1"}) {
    std::ofstream(scratch / "start.sh") << "set -m\nrm -f " << up << "\n"
                                        << sim << "sh " << (scratch / "program.sh") << " 2>/dev/null &\n"
                                        << "until [ -e " << up << " ]; do sleep 0.05; done\nkill -" << signal
                                        << " $!\nwait $!\n";
    EXPECT_EQ(code_of("bash " + (scratch / "start.sh")), 7) << signal;
  }
}

TEST(CommandLineTest, SimSaysOnATerminalThatChecksWereOff) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(::grantpt(terminal), 0);
  ASSERT_EQ(::unlockpt(terminal), 0);
  const int shown = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY);
  ASSERT_GE(shown, 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(shown, 2);
    const char* program = ::getenv("WAVEJIT_PROGRAM");
    ::execl(program, program, "sim", "--front", "hip", "--", "true", nullptr);
    ::_exit(99);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  std::array<char, 256> text{};
  EXPECT_GT(::read(terminal, text.data(), text.size() - 1), 0);
  EXPECT_THAT(text.data(), HasSubstr("checks were off"));
  ::close(shown);
  ::close(terminal);
}

// A full disk behind stdout is not success.
TEST(CommandLineTest, OutputThatCannotBeWrittenIsAnError) {
  const ScratchDirectory scratch;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const int full = ::open("/dev/full", O_WRONLY);
    ::dup2(full, 1);
    const int null = ::open("/dev/null", O_WRONLY);
    ::dup2(null, 2);
    const char* program = ::getenv("WAVEJIT_PROGRAM");
    ::execl(program, program, "version", nullptr);
    ::_exit(99);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 3);
}

}  // namespace
}  // namespace wavejit::tools
