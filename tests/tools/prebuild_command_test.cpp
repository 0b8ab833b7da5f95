// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `wavejit prebuild`: fills a cache once, says so line by line where no terminal is, survives bad lines, kills and
// company, and can say whether everything is there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <format>
#include <set>
#include <sstream>

#include "background_program.h"
#include "tool_test_support.h"
#include "tools/refused_lines.h"

namespace wavejit::tools {
namespace {

using ::testing::HasSubstr;

TEST(PrebuildCommandTest, SecondRunFindsEverything) {
  const ScratchDirectory scratch;
  write_text(scratch / "list.txt",
             "# what we serve\n"
             "attention_forward fp16 b1 q1 k1 h1 d64 causal   # decode\n"
             "\n"
             "  attention_forward bf16 b8 q512 k512 h8/2 d64 lse\r\n");
  const std::vector<std::string> words = {"prebuild", "--target", "gfx942,gfx950", "--list", scratch / "list.txt",
                                          "--jobs",   "2"};
  const Outcome first = run_program(scratch, words);
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("6 kernels: 6 compiled, 0 already there, 0 failed"));
  EXPECT_EQ(std::ranges::count(first.err, '\n'), 6) << first.err;
  EXPECT_THAT(first.err, HasSubstr("[6/6] compiled attention_forward"));
  const Outcome second = run_program(scratch, words);
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.out, HasSubstr("6 kernels: 0 compiled, 6 already there, 0 failed"));
  EXPECT_THAT(second.err, HasSubstr("present  attention_forward"));
  EXPECT_EQ(run_program(scratch, {"cache", "verify"}).code, 0);
}

// Sizes do not change code: one kernel serves them all.
TEST(PrebuildCommandTest, DescriptorsThatDifferInSizesAreOneKernel) {
  const ScratchDirectory scratch;
  const Outcome outcome =
      run_program(scratch, {"prebuild", "--target", "gfx950", "attention_forward fp16 b1 q70 k1 h1 d64",
                            "attention_forward fp16 b9 q100 k3000 h8/2 d64"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("1 kernel: 1 compiled"));
}

// What was read, and lines that are a list again; in 8 bits, too.
TEST(PrebuildCommandTest, AModelsConfiguration) {
  const ScratchDirectory scratch;
  write_text(scratch / "config.json",
             R"({"model_type": "qwen3", "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
                 "num_hidden_layers": 36, "torch_dtype": "bfloat16", "max_position_embeddings": 40960})");
  const std::string folder = std::filesystem::path(scratch / "config.json").parent_path();
  const Outcome printed = run_program(scratch, {"prebuild", "--model", folder, "--tp", "4", "--print-list"});
  ASSERT_EQ(printed.code, 0) << printed.err;
  EXPECT_THAT(printed.out, HasSubstr("# qwen3, bf16: 32 heads, 8 kv heads, head dim 128, 40960 keys at most\n"
                                     "# 36 layers: full\n# --tp 4: a rank has 8 heads over 2; pages of 16 keys\n"));
  EXPECT_THAT(printed.out, HasSubstr("h8/2 d128 causal layout=paged:16\n"));
  write_text(scratch / "list.txt", printed.out);
  const Outcome again = run_program(scratch, {"prebuild", "--list", scratch / "list.txt", "--print-list"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(printed.out, HasSubstr(again.out));
  const Outcome bytes = run_program(scratch, {"prebuild", "--model", scratch / "config.json", "--kv", "fp8", "--page",
                                              "64", "--target", "gfx942", "--print-list"});
  EXPECT_EQ(bytes.code, 0) << bytes.err;
  EXPECT_THAT(bytes.out, HasSubstr("layout=paged:64 cache=e4m3_fnuz\n"));
  EXPECT_THAT(bytes.out, HasSubstr("cache_append bf16 b1 q1 h8 d128 page=64 cache=e4m3_fnuz cache_scales=h\n"));
  const Outcome ranks = run_program(scratch, {"prebuild", "--model", folder, "--tp", "3", "--print-list"});
  expect_one_line_error(ranks, 2);
  EXPECT_THAT(ranks.err, HasSubstr("32 heads; divisors of it are accepted"));
  const Outcome page = run_program(scratch, {"prebuild", "--model", folder, "--page", "24", "--print-list"});
  expect_one_line_error(page, 2);
}

// The kernels that a list needs, where none of them is there.
std::set<std::string> kernels_of(const ScratchDirectory& scratch, const std::vector<std::string>& list) {
  std::vector<std::string> words = {"prebuild", "--target", "gfx942,gfx950", "--verify"};
  words.insert(words.end(), list.begin(), list.end());
  const Outcome outcome = run_program(scratch, words);
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  std::set<std::string> kernels;
  std::istringstream lines(outcome.err);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t missing = line.find("] missing  ");
    if (missing != std::string::npos) kernels.insert(line.substr(missing));
  }
  return kernels;
}

// What an engine prepares of a model (python/wavejit/vllm/_lines.py) leads to no kernel that its configuration does
// not.
TEST(PrebuildCommandTest, AModelsKernelsAreThoseThatVllmPrepares) {
  const ScratchDirectory scratch;
  write_text(scratch / "config.json",
             R"({"model_type": "gpt_oss", "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
                 "num_hidden_layers": 2, "sliding_window": 128, "max_position_embeddings": 131072})");
  for (const std::string page : {"16", "64"}) {
    const auto built = kernels_of(scratch, {"--model", scratch / "config.json", "--page", page});
    const std::string call = "attention_forward bf16 b256 q1..8192 k0..40960 h64/8 d64 causal";
    const auto prepared = kernels_of(scratch, {std::format("{} layout=paged:{} sink", call, page),
                                               std::format("{} window=127,-1 layout=paged:{} sink", call, page),
                                               std::format("cache_append bf16 b1 q1 h8 d64 page={}:hnd", page)});
    EXPECT_GT(prepared.size(), 20U);
    EXPECT_TRUE(std::ranges::includes(built, prepared)) << "pages of " << page;
  }
}

TEST(PrebuildCommandTest, ListsThatCannotBeReadOrAreEmpty) {
  const ScratchDirectory scratch;
  const Outcome missing = run_program(scratch, {"prebuild", "--target", "gfx950", "--list", scratch / "missing.txt"});
  expect_one_line_error(missing, 3);
  EXPECT_THAT(missing.err, HasSubstr("missing.txt"));
  write_text(scratch / "empty.txt", "# nothing\n\n");
  const Outcome empty = run_program(scratch, {"prebuild", "--target", "gfx950", "--list", scratch / "empty.txt"});
  expect_one_line_error(empty, 2);
  EXPECT_THAT(empty.err, HasSubstr("no descriptors"));
}

// The formats are the targets' own; what has 8 bits already, and what no cache belongs to, stays as it is.
TEST(PrebuildCommandTest, KeysAndValuesOf8Bits) {
  const ScratchDirectory scratch;
  const std::vector<std::string> lines = {"attention_forward bf16 b64 q1 k8192 h64/8 d128",
                                          "attention_forward bf16 b1 q512 k512 h4 d64 cache=e5m2",
                                          "softmax_lse fp32 b1 h1 q1 k64"};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"prebuild", "--kv", "fp8"});
    words.insert(words.end(), lines.begin(), lines.end());
    return run_program(scratch, words);
  };
  const Outcome printed = with({"--target", "gfx950,gfx942", "--print-list"});
  EXPECT_EQ(printed.out, lines[0] + " cache=e4m3\n" + lines[1] + "\n" + lines[2] + "\n" + lines[0] +
                             " cache=e4m3_fnuz\n" + lines[1] + "\n" + lines[2] + "\n")
      << printed.err;
  const Outcome built = with({"--target", "gfx950", "--jobs", "2"});
  EXPECT_EQ(built.code, 0) << built.err;
  EXPECT_THAT(built.out, HasSubstr("5 kernels: 5 compiled"));  // the long row's combine among them
  EXPECT_THAT(built.err, HasSubstr("attention_forward bf16 cache=e4m3 d128 split="));
  expect_one_line_error(with({}), 2);
  expect_one_line_error(with({"--target", "all", "--output", scratch / "all.wavejit-archive"}), 2);
  expect_one_line_error(run_program(scratch, {"prebuild", "--kv", "fp8", "--target", "gfx950"}), 2);
  expect_one_line_error(run_program(scratch, {"prebuild", "--kv", "int4", "--target", "gfx950", lines[0]}), 2);
  // Integers are the same on both, so that one list serves them, and one archive.
  const std::string indexer = "sparse_indexer bf16 b1 q1 k170 h33 top=40";
  const Outcome of_integers = run_program(
      scratch, {"prebuild", "--kv", "int8", "--target", "all", "--print-list", lines[0], lines[1], lines[2], indexer,
                "attention_latent bf16 b2 q1 k70 h16 d576/512", "attention_forward bf16 b1 q64 k64 h2 d64 qk=i8"});
  EXPECT_EQ(of_integers.out, lines[0] + " cache=i8\n" + lines[1] + "\n" + lines[2] + "\n" + indexer +
                                 "\nattention_latent bf16 b2 q1 k70 h16 d576/512 cache=i8\n"
                                 "attention_forward bf16 b1 q64 k64 h2 d64 qk=i8\n")
      << of_integers.err;
  const std::string archive = scratch / "int8.wavejit-archive";
  const Outcome both = run_program(scratch, {"prebuild", "--kv", "int8", "--target", "all", "--output", archive,
                                             "--jobs", "2", "attention_forward bf16 b1 q64 k64 h2 d64"});
  EXPECT_EQ(both.code, 0) << both.err;
  EXPECT_THAT(both.err, HasSubstr("attention_forward bf16 cache=i8 d64 "));
  // A preset's calls over 8 bits, on both targets.
  const Outcome preset =
      run_program(scratch, {"prebuild", "--kv", "fp8", "--preset", "llama-3-70b", "--target", "all", "--print-list"});
  EXPECT_THAT(preset.out, HasSubstr("attention_forward bf16 b64 q1 k8192 h64/8 d128 cache=e4m3_fnuz\n"));
  EXPECT_THAT(preset.out, HasSubstr("attention_forward bf16 b64 q1 k8192 h64/8 d128 lse cache=e4m3\n"));
  for (const char* format : {"e4m3_fnuz", "e4m3"})
    EXPECT_THAT(preset.out,
                HasSubstr(std::format("cache_append bf16 b1 q1 h8 d128 page=64 cache={} cache_scales=h\n", format)));
}

// Latent attention has rows with scales; what has none, is in one format as by fp8.
TEST(PrebuildCommandTest, LatentRowsOf8BitsHaveTheirScales) {
  const ScratchDirectory scratch;
  const std::vector<std::string> lines = {"attention_latent bf16 b64 q1 k8192 h16 d576/512 layout=paged:64",
                                          "attention_latent bf16 b64 q1 k8192 h16 d512 layout=paged:64",
                                          "attention_latent fp16 b64 q1 k8192 h16 d576/512",
                                          "attention_latent bf16 b64 q1 k8192 h16 d576/512 apart",
                                          "attention_latent bf16 b64 q1 k8192 h16 d320/256",
                                          "attention_latent bf16 b64 q1 k8192 h16 d576/512 cache=i8",
                                          "attention_forward bf16 b64 q1 k8192 h64/8 d128"};
  std::vector<std::string> words = {"prebuild", "--kv", "fp8_ds_mla", "--target", "gfx942", "--print-list"};
  words.insert(words.end(), lines.begin(), lines.end());
  const Outcome printed = run_program(scratch, words);
  const std::string cache = " cache=e4m3_fnuz";
  EXPECT_EQ(printed.out, lines[0] + cache + " row_scales=128\n" + lines[1] + cache + " row_scales=64\n" + lines[2] +
                             cache + "\n" + lines[3] + cache + "\n" + lines[4] + cache + "\n" + lines[5] + "\n" +
                             lines[6] + cache + "\n")
      << printed.err;
  const Outcome preset = run_program(
      scratch, {"prebuild", "--kv", "fp8_ds_mla", "--preset", "deepseek-v3.2", "--target", "gfx950", "--print-list"});
  EXPECT_THAT(preset.out, HasSubstr("attention_latent bf16 b64 q1 k131072 h16 d576/512 layout=paged:64 "
                                    "top_k=2048:slots cache=e4m3 row_scales=128\n"));
  EXPECT_THAT(preset.out, HasSubstr("sparse_indexer e4m3 b64 q1 k131072 h64 page=64 top=2048\n"));
}

// Asked before anything is compiled: nothing is in the cache afterwards.
TEST(PrebuildCommandTest, AnOutputThatCannotBeWrittenCostsNothing) {
  const ScratchDirectory scratch;
  write_text(scratch / "file", "no folder");
  std::filesystem::create_directory(scratch / "folder.wavejit-archive");
  const std::string descriptor = "attention_forward fp16 b1 q1 k1 h1 d64";
  for (const std::string& output : {std::string("/proc/x.wavejit-archive"), scratch / "file/x.wavejit-archive",
                                    scratch / "file", scratch / "folder.wavejit-archive"}) {
    const Outcome outcome = run_program(scratch, {"prebuild", "--target", "gfx950", descriptor, "--output", output});
    EXPECT_EQ(outcome.code, 3) << output;
    EXPECT_THAT(outcome.err, HasSubstr("--output " + output + ": "));
    EXPECT_THAT(outcome.err, ::testing::Not(HasSubstr("compiled")));
  }
  const Outcome no_cache = run_program(
      scratch, {"prebuild", "--target", "gfx950", descriptor, "--cache-dir", scratch / "file", "--jobs", "1"});
  EXPECT_EQ(no_cache.code, 3) << no_cache.err;
  EXPECT_THAT(no_cache.err, HasSubstr("cannot "));
  EXPECT_THAT(no_cache.err, ::testing::Not(HasSubstr("failed   attention_forward")));
  EXPECT_THAT(run_program(scratch, {"cache", "info"}).out, HasSubstr("entries  0"));
}

TEST(PrebuildCommandTest, BadLinesAreNamedAndTheOthersBuilt) {
  const ScratchDirectory scratch;
  write_text(scratch / "list.txt",
             "# served\n"
             "attention_forward fp16 b1 q1 k1 h1 d64\n"
             "attention_forward fp16 b1 q1 k1 h1 d64 slanted\n"
             "attention_forward fp16 b1 q1 k1 h1 d264\n");
  const Outcome outcome = run_program(scratch, {"prebuild", "--target", "gfx950", "--list", scratch / "list.txt"});
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_THAT(outcome.err,
              HasSubstr("list.txt: line 3: descriptor: word 8 'slanted' (column 40) is not known; accepted: "));
  EXPECT_THAT(outcome.err, HasSubstr("list.txt: line 4: head dim 264 has no kernel on gfx950; use head dim 256, "));
  EXPECT_THAT(outcome.err, HasSubstr("2 lines of the list have no kernel, the first: "));
  EXPECT_THAT(outcome.out, HasSubstr("2 kernels: 2 compiled, 0 already there, 0 failed, 2 lines without a kernel"));
  // Right, but without a kernel: another code.
  const Outcome unsupported =
      run_program(scratch, {"prebuild", "--target", "gfx950", "attention_forward fp16 b1 q1 k1 h1 d264"});
  EXPECT_EQ(unsupported.code, 4) << unsupported.err;
  EXPECT_THAT(unsupported.err, HasSubstr("descriptor 1: head dim 264 has no kernel on gfx950; use head dim 256, "));
}

// One reason of many lines is one sentence; what differs stays apart.
TEST(PrebuildCommandTest, LinesOfOneReasonAreToldTogether) {
  const ScratchDirectory scratch;
  const Outcome preset = run_program(scratch, {"prebuild", "--target", "gfx1201", "--preset", "gemma-2-9b"});
  expect_one_line_error(preset, 4);
  EXPECT_THAT(preset.err,
              HasSubstr("34 lines of the list have no kernel: --preset gemma-2-9b: lines 14 to 21, 24 to "));
  EXPECT_THAT(preset.err, HasSubstr(": head dim 256 has no kernel on gfx1201; use head dim 192/128, 128 or 64; "));

  RefusedLines lines;
  lines.add({.list = {}, .number = 1}, "", "no word");
  for (const std::size_t number : {3U, 4U, 5U, 7U, 8U})
    lines.add({.list = "--list a", .number = number}, "gfx942",
              "no kernel for attention_forward d" + std::to_string(number) + " on gfx942: why");
  lines.add({.list = "--list a", .number = 9}, "gfx950", "no kernel for attention_forward d9 on gfx950: why");
  EXPECT_THAT(lines.texts(),
              ::testing::ElementsAre(
                  "descriptor 1: no word", "--list a: lines 3 to 5, 7, 8: no kernel for gfx942: why",
                  "--list a: line 9: no kernel for gfx950: no kernel for attention_forward d9 on gfx950: why"));
}

TEST(PrebuildCommandTest, PresetsAreListedFoundAndPrinted) {
  const ScratchDirectory scratch;
  const Outcome list = run_program(scratch, {"prebuild", "--list-presets"});
  ASSERT_EQ(list.code, 0) << list.err;
  EXPECT_THAT(list.out, HasSubstr("llama-3-8b "));
  EXPECT_THAT(list.out, HasSubstr("gpt-oss 20B and 120B: 64 query heads, 8 kv heads, head dim 64, sinks"));
  const Outcome unknown = run_program(scratch, {"prebuild", "--target", "gfx950", "--preset", "llama-9"});
  expect_one_line_error(unknown, 2);
  EXPECT_THAT(unknown.err, HasSubstr("--preset llama-9: it is not known; deepseek-v3, "));
  const Outcome printed = run_program(scratch, {"prebuild", "--preset", "mistral-7b", "--print-list"});
  ASSERT_EQ(printed.code, 0) << printed.err;
  EXPECT_THAT(printed.out, HasSubstr("d128 causal window=4095,0 lse\n"));
  EXPECT_TRUE(scratch.names().empty());
}

// From a preset over an archive to a machine that has nothing else: everything is there and loads, and calls find it.
TEST(PrebuildCommandTest, AnArchiveOfAPresetServes) {
  const ScratchDirectory scratch;
  const std::string archive = scratch / "served.wavejit-archive";
  const std::vector<std::string> preset = {"prebuild", "--preset", "gpt-oss", "--output", archive};
  const auto with = [](std::vector<std::string> words, std::initializer_list<std::string> more) {
    words.insert(words.end(), more);
    return words;
  };
  const Outcome built = run_program(scratch, with(preset, {"--target", "gfx950"}));
  ASSERT_EQ(built.code, 0) << built.err;
  EXPECT_THAT(built.out, HasSubstr("written " + archive));

  // Another user's machine: an empty cache of its own.
  const ScratchDirectory elsewhere;
  const Outcome verified = run_program(elsewhere, with(preset, {"--target", "gfx950", "--verify"}));
  EXPECT_EQ(verified.code, 0) << verified.err;
  EXPECT_THAT(verified.out, HasSubstr(" there and good, 0 missing or broken"));
  const Outcome loaded = run_program(elsewhere, with(preset, {"--verify", "--device", "sim:gfx950"}));
  EXPECT_EQ(loaded.code, 0) << loaded.err;
  const Outcome other =
      run_program(elsewhere, with(preset, {"--target", "gfx942", "--verify", "--device", "sim:gfx950"}));
  expect_one_line_error(other, 2);
  EXPECT_THAT(other.err, HasSubstr("gfx942 does not run on "));
  const Outcome missing = run_program(elsewhere, with(preset, {"--target", "gfx942", "--verify"}));
  EXPECT_EQ(missing.code, 1) << missing.err;
  EXPECT_TRUE(elsewhere.names().empty()) << "nothing was compiled or written";

  const Outcome called = run_program(elsewhere,
                                     {"sweep", "--device", "sim:gfx950", "--cache", "ro", "--cache-layers", archive,
                                      "--json", "attention_forward bf16 b1 q3 k70 h8/1 d64 causal window=127,0 sink",
                                      "attention_forward bf16 b1 q300 k300 h2/1 d64 causal lse sink"},
                                     {{"WAVEJIT_MISS_LOG", elsewhere / "misses"}});
  EXPECT_EQ(called.code, 0) << called.out << called.err;
  EXPECT_TRUE(elsewhere.names().empty()) << "a miss was noted";
}

// A running engine's miss log is a list, said twice or not.
TEST(PrebuildCommandTest, AMissLogIsAList) {
  const ScratchDirectory scratch;
  const std::string log = scratch / "misses";
  for (int engines = 0; engines < 2; ++engines) {
    const Outcome called = run_program(scratch,
                                       {"sweep", "--device", "sim:gfx942", "--cache", "off",
                                        "attention_forward fp16 b1 q3 k70 h2/1 d64 causal softcap=20",
                                        "attention_forward fp16 b1 q3 k70 h2/1 d64 window=9,9 bias=h"},
                                       {{"WAVEJIT_MISS_LOG", log}});
    ASSERT_EQ(called.code, 0) << called.err;
  }
  const std::string text = read_text(log);
  ASSERT_EQ(std::ranges::count(text, '\n'), 4) << text;
  const std::vector<std::string> words = {"prebuild", "--target", "gfx942", "--list", log};
  const Outcome built = run_program(scratch, words);
  ASSERT_EQ(built.code, 0) << built.err;
  EXPECT_THAT(built.out, HasSubstr("4 kernels: 4 compiled")) << "waves share chunks, or not";
}

TEST(PrebuildCommandTest, VerifyFindsWhatIsMissingOrDamaged) {
  const ScratchDirectory scratch;
  const std::vector<std::string> build = {"prebuild", "--target", "gfx950", "attention_forward fp16 b1 q1 k1 h1 d64",
                                          "attention_forward fp16 b1 q1 k1 h1 d64 causal"};
  auto verify = build;
  verify.emplace_back("--verify");
  const Outcome before = run_program(scratch, verify);
  EXPECT_EQ(before.code, 1) << before.err;
  EXPECT_THAT(before.err, HasSubstr("missing  attention_forward fp16 d64 "));
  EXPECT_THAT(before.err, HasSubstr("4 of 4 kernels are missing or broken, the first: "));
  EXPECT_TRUE(scratch.names().empty()) << "verifying makes no folder";
  ASSERT_EQ(run_program(scratch, build).code, 0);
  const Outcome good = run_program(scratch, verify);
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("4 kernels: 4 there and good, 0 missing or broken"));

  // One byte of one entry; a list with a line that is none.
  for (const auto& file : std::filesystem::recursive_directory_iterator(scratch.path())) {
    if (!file.is_regular_file() || file.path().extension() != ".wavejit") continue;
    std::string bytes = read_text(file.path());
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    write_text(file.path(), bytes);
    break;
  }
  const Outcome damaged = run_program(scratch, verify);
  EXPECT_EQ(damaged.code, 1) << damaged.err;
  EXPECT_THAT(damaged.out, HasSubstr("3 there and good, 1 missing or broken"));
  EXPECT_THAT(damaged.err, HasSubstr("damaged"));
  ASSERT_EQ(run_program(scratch, build).code, 0) << "what is damaged is built again";
  verify.emplace_back("attention_forward wide");
  EXPECT_EQ(run_program(scratch, verify).code, 2);
}

TEST(PrebuildCommandTest, OptionsThatDoNotGoTogether) {
  const ScratchDirectory scratch;
  const Outcome device = run_program(scratch, {"prebuild", "--target", "gfx950", "--device", "sim:gfx950"});
  expect_one_line_error(device, 2);
  EXPECT_THAT(device.err, HasSubstr("--verify"));
  const Outcome shard = run_program(scratch, {"prebuild", "--target", "gfx950", "--shard", "3/2"});
  expect_one_line_error(shard, 2);
  EXPECT_THAT(shard.err, HasSubstr("1/3 to 3/3"));
  const Outcome nothing = run_program(scratch, {"prebuild", "--target", "gfx950", "--print-list"});
  expect_one_line_error(nothing, 2);
  EXPECT_THAT(nothing.err, HasSubstr("accepted with descriptors, --list, --model or --preset"));
  EXPECT_TRUE(scratch.names().empty());
}

std::size_t entries_in(const std::string& folder) {
  std::error_code ignored;
  std::size_t count = 0;
  for (std::filesystem::recursive_directory_iterator file(folder, ignored), end; !ignored && file != end;
       file.increment(ignored))
    count += file->path().extension() == ".wavejit" ? 1U : 0U;
  return count;
}

// "12 kernels: 3 compiled, 9 already there": the number before a word.
std::size_t number_before(const std::string& text, const std::string& word) {
  const std::size_t at = text.find(" " + word);
  if (at == std::string::npos) return ~std::size_t{0};
  return std::stoul(text.substr(text.find_last_of(" \n", at - 1) + 1));
}

// Kernels that compile fast, six on each target.
std::vector<std::string> prebuild_of_six(const std::string& targets) {
  std::vector<std::string> words = {"prebuild", "--target", targets};
  for (const char* const rows : {"q1", "q48", "q4096"})
    for (const char* const mask : {"", " causal"})
      words.push_back(std::string("attention_forward bf16 b1 ") + rows + " k8192 h8/1 d64" + mask);
  return words;
}

TEST(PrebuildCommandTest, KilledInTheMiddleItGoesOnWhereItWas) {
  const ScratchDirectory scratch;
  const std::string archive = scratch / "llama.wavejit-archive";
  std::vector<std::string> words = prebuild_of_six("gfx950,gfx942");
  words.insert(words.end(), {"--jobs", "1", "--output", archive});
  std::size_t done = 0;
  for (const std::size_t until : {2U, 5U}) {
    BackgroundProgram running(scratch, words);
    EXPECT_TRUE(becomes_true([&] { return entries_in(scratch / "xdg") >= until; }));
    running.kill();
    EXPECT_FALSE(std::filesystem::exists(archive)) << "whole or not at all";
    done = entries_in(scratch / "xdg");
    EXPECT_GE(done, until);
  }
  const Outcome last = run_program(scratch, words);
  ASSERT_EQ(last.code, 0) << last.err;
  EXPECT_EQ(number_before(last.out, "already there"), done) << last.out;
  EXPECT_EQ(number_before(last.out, "already there") + number_before(last.out, "compiled"),
            number_before(last.out, "kernels:"))
      << last.out;
  EXPECT_TRUE(std::filesystem::exists(archive));
  auto verify = words;
  verify.emplace_back("--verify");
  EXPECT_EQ(run_program(scratch, verify).code, 0);
  EXPECT_EQ(run_program(scratch, {"cache", "verify"}).code, 0) << "nothing half-written is left";
}

TEST(PrebuildCommandTest, TwoAtOnceShareTheWork) {
  const ScratchDirectory scratch;
  std::vector<std::string> words = prebuild_of_six("gfx950");
  words.insert(words.end(), {"--jobs", "2"});
  const std::map<std::string, std::string> patient = {{"WAVEJIT_CACHE_LOCK_WAIT", "60000"}};
  BackgroundProgram first(scratch, words, patient);
  BackgroundProgram second(scratch, words, patient);
  std::size_t compiled = 0;
  std::size_t kernels = 0;
  for (BackgroundProgram* running : {&first, &second}) {
    const Outcome outcome = running->finish();
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    compiled += number_before(outcome.out, "compiled");
    kernels = number_before(outcome.out, "kernels:");
  }
  EXPECT_EQ(compiled, kernels) << "each kernel once, whoever made it";
  EXPECT_EQ(entries_in(scratch / "xdg"), kernels);
  auto verify = words;
  verify.emplace_back("--verify");
  EXPECT_EQ(run_program(scratch, verify).code, 0);
}

// Parts of several machines, put together, are the whole.
TEST(PrebuildCommandTest, PartsTogetherAreAll) {
  const ScratchDirectory scratch;
  const std::vector<std::string> words = prebuild_of_six("gfx942");
  for (const char* part : {"1/2", "2/2"}) {
    auto one = words;
    one.insert(one.end(), {"--shard", part, "--output", scratch / "layer"});
    const Outcome outcome = run_program(scratch, one);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(number_before(outcome.out, "already there"), 0U) << outcome.out;
  }
  auto verify = words;
  verify.insert(verify.end(), {"--output", scratch / "layer", "--verify"});
  EXPECT_EQ(run_program(scratch, verify).code, 0);
}

}  // namespace
}  // namespace wavejit::tools
