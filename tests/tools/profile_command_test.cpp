// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `wavejit profile` and `wavejit compare` as a user starts them: problems of our own and a kernel assembled here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <format>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "assembled.h"
#include "tests/tools/tool_test_support.h"

namespace wavejit::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

constexpr const char* small = "attention_forward bf16 b1 q256 k512 h1 d128";
// 512 workgroups, of which the clock looks at four with two neighbours each.
constexpr const char* large = "attention_forward fp16 b2 q2048 k512 h16 d64";

class ProfileCommandTest : public ::testing::Test {
 protected:
  Outcome run(const std::vector<std::string>& arguments) {
    std::vector<std::string> all = arguments;
    all.insert(all.end(), {"--cache-dir", scratch_ / "cache"});
    return run_program(scratch_, all);
  }
  Json json(std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out, nullptr, false);
  }
  void refused(const std::vector<std::string>& arguments, int code, const std::string& says) {
    const Outcome outcome = run(arguments);
    expect_one_line_error(outcome, code);
    EXPECT_THAT(outcome.err, HasSubstr(says));
  }
  // What lies in the folder of outputs: half a file would be here, under whatever name.
  std::vector<std::string> outputs() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(out_)) names.push_back(entry.path().filename());
    return names;
  }
  // A kernel of somebody else: each lane adds its argument `count` times, with a matrix instruction in between.
  std::string code_object(const std::string& name, int matrix_instructions) {
    simgpu::testing::KernelSource source;
    source.kernarg_bytes = 12;
    source.arguments =
        "      - {.offset: 0, .size: 8, .value_kind: global_buffer}\n"
        "      - {.offset: 8, .size: 4, .value_kind: by_value}\n";
    source.body = "s_load_dwordx2 s[8:9], s[0:1], 0x0\ns_load_dword s10, s[0:1], 0x8\ns_waitcnt lgkmcnt(0)\n";
    source.body += "v_mov_b32 v1, 0\nv_mov_b32 v2, 0\nv_mov_b32 v3, 0\n";
    for (int i = 0; i < 4; ++i) source.body += "v_mov_b32 v" + std::to_string(4 + i) + ", 0\n";
    for (int i = 0; i < matrix_instructions; ++i)
      source.body += "v_mfma_f32_16x16x16_f16 v[4:7], v[2:3], v[2:3], v[4:7]\n";
    source.body +=
        "s_nop 7\ns_nop 7\nv_add_u32 v1, s10, v1\nv_lshlrev_b32 v8, 2, v0\nglobal_store_dword v8, v1, s[8:9]\n";
    const std::vector<std::byte> bytes = simgpu::testing::assemble(source);
    write_text(scratch_ / name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return scratch_ / name;
  }

  // One that holds by time alone: wave 1 reads LDS while wave 0 sends for the next words into the same bytes, and has
  // 100 matrix instructions more to do when it finds those.
  std::string held_by_time() {
    simgpu::testing::KernelSource source;
    source.lds_bytes = 512;
    source.body = R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  v_readfirstlane_b32 s8, v0
  v_lshlrev_b32 v1, 2, v0
  v_and_b32 v2, 0xfc, v1
  v_mov_b32 v4, 1
  v_mov_b32 v5, 0
  s_mov_b32 m0, 0
  s_cmp_lg_u32 s8, 0
  s_waitcnt lgkmcnt(0)
  s_cbranch_scc1 .Lreads
  global_store_dword v1, v5, s[6:7]
  global_store_dword v1, v4, s[6:7] offset:256
  s_waitcnt vmcnt(0)
  global_load_lds_dword v1, s[6:7]
  s_waitcnt vmcnt(0)
  s_barrier
  v_add_u32 v5, 0x100, v1
  global_load_lds_dword v5, s[6:7]
  s_waitcnt vmcnt(0)
  s_endpgm
.Lreads:
  v_mov_b32 v6, 0
  v_mov_b32 v7, 0
  s_barrier
  ds_read_b32 v3, v2
  s_waitcnt lgkmcnt(0)
  v_readfirstlane_b32 s9, v3
  s_cmp_eq_u32 s9, 0
  s_cbranch_scc1 .Lend_of_wave
)";
    for (int i = 0; i < 100; ++i) source.body += "v_mfma_f32_16x16x16_f16 v[8:11], v[6:7], v[6:7], v[8:11]\n";
    source.body += ".Lend_of_wave:\n";
    const std::vector<std::byte> bytes = simgpu::testing::assemble(source);
    write_text(scratch_ / "held.co", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return scratch_ / "held.co";
  }

  void SetUp() override { std::filesystem::create_directory(out_); }
  ScratchDirectory scratch_;
  std::string out_ = scratch_ / "out";
};

TEST_F(ProfileCommandTest, TellsWhereTimeGoes) {
  const Json told = json({"profile", large, "--device", "sim:gfx942"});
  EXPECT_EQ(told.at("target"), "gfx942");
  EXPECT_EQ(told.at("workgroups").at("run"), 18);
  EXPECT_EQ(told.at("workgroups").at("of"), 512);
  EXPECT_THAT(told.at("kernel_spec").get<std::string>(), HasSubstr("d64"));
  ASSERT_EQ(told.at("launches").size(), 1U);
  const Json& launch = told["launches"][0];
  EXPECT_EQ(told.at("predicted_cycles"), launch.at("cycles"));
  EXPECT_GT(launch.at("cycles").get<int>(), 1000);
  // 2·q·k·d multiplications and additions for each of two products, of two of the sampled workgroups in four units.
  const Json& roof = launch.at("roofline");
  EXPECT_GT(roof.at("operations").get<double>(), 0);
  EXPECT_LT(roof["operations"].get<double>() / roof.at("cycles").get<double>(),
            roof.at("pipe").at("operations_a_cycle").get<double>());
  EXPECT_EQ(roof.at("pipe")["operations_a_cycle"], 2048);  // 32x32x8: 16,384 in 32 cycles, four SIMDs
  EXPECT_EQ(roof.at("levels").size(), 4U);
  EXPECT_GT(launch.at("mix").at("matrix").at("static").get<int>(), 0);
  // Part of the merged rows of chunks that came before: tests/kernels/golden has the figure of each kernel.
  EXPECT_EQ(launch.at("static").at("private_bytes"), 160);
  EXPECT_GT(told.at("model_error").at("too_high_percent").get<double>(), 0);

  const Outcome text = run({"profile", large, "--device", "sim:gfx942"});
  const double microseconds = launch.at("cycles").get<double>() / 2100;  // the data sheet's 2.1 GHz
  EXPECT_THAT(text.out, AllOf(HasSubstr(std::format(": {:.1f} µs at 2100 MHz; ", microseconds)),
                              HasSubstr("\nof peak  matrix "), HasSubstr(", memory ")));
  EXPECT_THAT(text.out, AllOf(HasSubstr("18 of 512 workgroups; the results of the others were not computed"),
                              HasSubstr("predicted, not measured"), HasSubstr("vector port"), HasSubstr("clusters")));
}

// Steps of the schedule, where the code has one: the loop has each product, and reads before it.
TEST_F(ProfileCommandTest, NamesTheStepsOfTheSchedule) {
  const auto has_steps = [&](const std::string& more, const char* device, const std::vector<std::string>& steps) {
    const Outcome text =
        run({"profile", "attention_forward bf16 b1 q2048 k2048 h16/4 d128" + more, "--device", device});
    for (const std::string& step : steps) EXPECT_THAT(text.out, HasSubstr("  " + step + " ")) << device << more;
    return text.out;
  };
  has_steps("", "sim:gfx950", {"prologue", "keys", "scores: QK, softmax", "values", "output: PV, softmax"});
  has_steps("", "sim:gfx942", {"scores: QK, softmax", "output: PV, softmax"});
  has_steps(" queries=e4m3", "sim:gfx950", {"tiles", "products: QK, PV, softmax"});
  const Outcome generic = run(
      {"profile", "attention_forward bf16 b1 q128 k2048 h2 d64", "--device", "sim:gfx950", "--pipeline", "generic"});
  EXPECT_THAT(generic.out, Not(HasSubstr("QK"))) << "it has no schedule";
  const Outcome help = run({"profile", "--help"});
  for (const char* wait : {"own interval: ", "full queue: ", "other wave: ", "pause: "})
    EXPECT_THAT(help.out, HasSubstr(wait));
}

// Rows are read by rows and by columns, of one image or of two.
TEST_F(ProfileCommandTest, TilesOfGradientsMeetInNoBank) {
  for (const char* device : {"sim:gfx942", "sim:gfx950"})
    for (const char* dims : {"d64", "d128"}) {
      const Json told =
          json({"profile", std::string("attention_backward bf16 b1 q128 k128 h1 ") + dims, "--device", device});
      ASSERT_EQ(told.at("launches").size(), 2U) << device << dims;
      for (const Json& launch : told["launches"]) {
        EXPECT_GT(launch.at("compute_unit").at("lds_busy").get<int>(), 0) << device << dims;
        EXPECT_EQ(launch["compute_unit"].at("lds_lost"), 0) << device << dims;
      }
    }
}

// Sixteen heads with keys of their own on eight dies: a workgroup shares none with the one that its die gets next, and
// all that it reads but queries with those of its own head. The clock once saw the former only.
TEST_F(ProfileCommandTest, QueryBlocksOfAHeadShareItsKeysWithoutGroupsOfHeadsToo) {
  for (const char* mask : {"", " causal"}) {
    const Json told = json(
        {"profile", "attention_forward bf16 b2 q1024 k1024 h16 d64" + std::string(mask), "--device", "sim:gfx942"});
    EXPECT_GT(told.at("launches")[0].at("shared_lines").get<double>(), 0.5) << mask;
  }
}

// Heads that share keys in groups, whose ends fall anywhere in the sample: as many rows and keys in other groups take
// about the same, and no launch takes less than memory needs for all keys and values once. A sampled head whose
// neighbours are of another group once fetched its keys alone; later pairs counted as eight, and lines twice.
TEST_F(ProfileCommandTest, GroupsOfHeadsFetchTheirKeysOnce) {
  const auto cycles_of = [&](int batch, int heads, int kv_heads, int keys) {
    const Json told = json({"profile",
                            "attention_forward bf16 b" + std::to_string(batch) + " q64 k" + std::to_string(keys) +
                                " h" + std::to_string(heads) + "/" + std::to_string(kv_heads) + " d128",
                            "--device", "sim:gfx950"});
    EXPECT_EQ(told.at("launches").size(), 1U);
    const double cycles = told["launches"][0].at("cycles").get<double>();
    constexpr double of_memory = 2500;  // bytes a cycle
    EXPECT_GT(cycles, 2.0 * batch * kv_heads * keys * 128 * 2 / of_memory) << batch << " " << heads << "/" << kv_heads;
    return cycles;
  };
  const double pairs = cycles_of(64, 16, 8, 2048);
  EXPECT_NEAR(cycles_of(32, 32, 16, 2048) / pairs, 1, 0.15);
  EXPECT_NEAR(cycles_of(16, 64, 32, 2048) / pairs, 1, 0.15);
  EXPECT_LT(cycles_of(16, 15, 5, 2048), 1.1 * cycles_of(16, 16, 8, 2048));
  cycles_of(42, 12, 6, 4096);
}

// A table that has room for 131,072 keys, as a captured decode call has: the runs of keys that are there are the first
// sixteenth of the launch. The clock once saw none of them, and said less than one chunk takes; later two of them on
// each compute unit, where there is one. Workgroups start in order: the last sequence's begin behind 2,880 that find no
// keys, on 512 places of which up to 192 are taken for the whole launch: 2,880 / (320 to 512) * 1,600 cycles are 9,000 to
// 14,400 of 80,000. Pinned: waves share chunks by the number of workgroups that are launched.
TEST_F(ProfileCommandTest, ADecodeCallWithRoomForLongSequencesIsTimedByItsKeys) {
  const auto cycles_of = [&](const std::string& keys) {
    const Json told = json(
        {"profile",
         "attention_forward bf16 b4 q1 k" + keys + " h64/8 d128 causal layout=paged:64 k_lengths=8192,8192,8192,8192",
         "--device", "sim:gfx950", "--pipeline", "generic"});
    EXPECT_FALSE(told.at("launches")[0].contains("doubt")) << told.at("launches")[0].at("doubt");
    EXPECT_GT(told.at("launches")[0].at("matrix_busy").get<double>(), 0.01);
    return told.at("launches")[0].at("cycles").get<double>();
  };
  const double roomy = cycles_of("131072");
  EXPECT_GT(roomy, 45160) << "one chunk";
  const double ratio = roomy / cycles_of("8192");
  EXPECT_GT(ratio, 1) << "workgroups without keys take places, too";
  EXPECT_LT(ratio, 1.2);
}

// Nothing to do at all, or nothing that the sample saw: the reader is told. Pinned, and in
// two launches: waves that share a chunk multiply a tile of hidden keys, and who merges in the walk multiplies, too.
TEST_F(ProfileCommandTest, ASampleWithoutMatrixInstructionsIsInDoubt) {
  const std::string nothing =
      "attention_forward bf16 b4 q1 k4096 h64/8 d128 layout=paged:64 k_lengths=0,0,0,0 launches=2";
  const std::string some =
      "attention_forward bf16 b4 q1 k4096 h64/8 d128 layout=paged:64 k_lengths=4096,0,0,0 launches=2";
  const Outcome text = run({"profile", nothing, "--device", "sim:gfx950", "--pipeline", "generic"});
  EXPECT_THAT(text.out, AllOf(HasSubstr("doubt"), HasSubstr("has matrix instructions, and none of the")));
  EXPECT_THAT(run({"compare", nothing, some, "--device", "sim:gfx950", "--pipeline", "generic"}).out,
              AllOf(HasSubstr("doubt A: "), Not(HasSubstr("doubt B: "))));
}

TEST_F(ProfileCommandTest, EveryLaunchOfSplitKeysIsTimed) {
  const std::string timeline = out_ + "/t.json";
  const Json told = json({"profile", "attention_forward bf16 b1 q64 k4096 h1 d64", "--set", "kv-splits=4", "--device",
                          "sim:gfx950", "--timeline", timeline});
  ASSERT_EQ(told.at("launches").size(), 2U);
  // The timeline is the longest launch's, though it is not the last.
  const Json trace = Json::parse(read_text(timeline));
  EXPECT_GT(told["launches"][0].at("cycles").get<int>(), told["launches"][1].at("cycles").get<int>());
  EXPECT_EQ(trace.at("otherData").at("kernel"), told["launches"][0].at("kernel"));
  EXPECT_EQ(told.at("settings"), "kv-splits=4");
  EXPECT_EQ(told.at("predicted_cycles").get<int>(), told["launches"][0].at("cycles").get<int>() +
                                                        told["launches"][1].at("cycles").get<int>() +
                                                        told["launches"][1].at("dependent_launch_cycles").get<int>());
  int parts = 0;
  for (const Json& part : told.at("predicted_cycles_parts")) {
    parts += part.at("wait").get<int>() + part.at("cycles").get<int>();
    EXPECT_GT(part.at("cold").get<int>(), 0);
    EXPECT_LT(part.at("cold").get<int>(), part.at("cycles").get<int>());
  }
  EXPECT_EQ(parts, told.at("predicted_cycles").get<int>());
  const Outcome words =
      run({"profile", "attention_forward bf16 b1 q64 k4096 h1 d64", "--set", "kv-splits=4", "--device", "sim:gfx950"});
  EXPECT_THAT(words.out, HasSubstr(" % between launches (derived from an MI300A's times), "));
  EXPECT_THAT(words.out, HasSubstr(" % until code and arguments are there, "));
}

// Its error is that of programs without matrix instructions, by what takes their time.
TEST_F(ProfileCommandTest, WithoutMatrixInstructionsAnotherErrorIsQuoted) {
  const std::string line = "softmax_lse bf16 b1 q64 k256 h1";
  const Outcome words = run({"profile", line, "--device", "sim:gfx950"});
  EXPECT_THAT(words.out, AllOf(HasSubstr("no launch ran a matrix instruction. For 2"), HasSubstr(" of memory, ")));
  const Json programs = json({"profile", line, "--device", "sim:gfx950"}).at("model_error").at("programs");
  ASSERT_EQ(programs.size(), 4U);
  EXPECT_EQ(programs[1].at("kind"), "cache");
  EXPECT_GT(programs[1].at("most").get<double>(), programs[1].at("median").get<double>());
}

// Keys and values of a second equal call come from caches.
TEST_F(ProfileCommandTest, WarmCachesTakeLess) {
  const std::vector<std::string> words = {"profile", "attention_forward bf16 b1 q1 k4096 h1 d64", "--device",
                                          "sim:gfx950"};
  std::vector<std::string> warm_words = words;
  warm_words.emplace_back("--warm");
  const Json cold = json(words);
  const Json warm = json(warm_words);
  EXPECT_FALSE(cold.at("warm").get<bool>());
  EXPECT_TRUE(warm.at("warm").get<bool>());
  EXPECT_LT(warm.at("predicted_cycles").get<int>(), cold.at("predicted_cycles").get<int>());
  EXPECT_THAT(run(warm_words).out, HasSubstr("caches   warm: "));
}

// A latent call in runs, one over listed keys, the indexer that lists them, and lists of key blocks.
TEST_F(ProfileCommandTest, LatentAttentionAndListsAreTimed) {
  const std::vector<std::pair<const char*, std::vector<std::string>>> of_each = {
      {"attention_latent bf16 b1 q1 k1100 h4 d320/256 splits=2 launches=2",
       {"attention_latent_bf16_d320_256_rows32_parts_gfx950", "attention_latent_combine_bf16_d256_few_gfx950"}},
      {"attention_latent fp16 b1 q1 k130 h20 d576/512 layout=paged:16 top_k=70:mixed",
       {"attention_latent_fp16_d576_512_rows32_granules_listed_gfx950"}},
      {"sparse_indexer bf16 b1 q1 k200 h64 page=16 top=32",
       {"sparse_scores_bf16_h64_paged_gfx950", "sparse_select_gfx950"}},
      {"attention_forward bf16 b1 q64 k640 h2 d128 lists=64x64:50",
       {"attention_block_lists_gfx950", "attention_forward_bf16_d128_block_lists_64x64_gfx950"}}};
  for (const auto& [problem, kernels] : of_each) {
    const Json told = json({"profile", problem, "--device", "sim:gfx950"});
    std::vector<std::string> launched;
    for (const Json& launch : told.at("launches")) {
      launched.push_back(launch.at("kernel"));
      EXPECT_GT(launch.at("cycles").get<int>(), 0);
    }
    EXPECT_EQ(launched, kernels) << problem;
  }
}

TEST_F(ProfileCommandTest, BadInputIsToldAndLeavesNoFile) {
  const std::string page = out_ + "/p.html";
  refused({"profile", small, "--device", "sim:gfx000", "--html", page}, 6, "gfx000");
  refused({"profile", small, "--device", "sim:gfx950", "--html", out_ + "/no/p.html"}, 3, "--html");
  refused({"profile", small, "--device", "sim:gfx950", "--html", out_}, 3, "--html");
  refused({"profile", small, "--device", "sim:gfx950", "--html", page, "--timeline", page}, 2, "--timeline");
  refused({"profile", small, "--device", "sim:gfx950", "--html", page, "--set", "pipeline=auto stagger=perhaps"}, 2,
          "perhaps");
  refused({"profile", "attention_forward bf16 b1 q1 k1 h1 d65", "--device", "sim:gfx950", "--html", page}, 4, "65");
  refused({"profile", "no-such-file.co", "--device", "sim:gfx950", "--html", page}, 2, "no-such-file.co");
  refused({"compare", small, "--device", "sim:gfx950", "--html", page}, 2, "B is missing");
  refused({"compare", small, "--device", "sim:gfx950", "--html", page, "--set-b", "pipeline=auto stagger=perhaps"}, 2,
          "B: ");
  EXPECT_THAT(outputs(), ::testing::IsEmpty());
  // Checks and the clock exclude each other: the clock's refusal is told, and no page says nothing.
  const Outcome checked = run_program(scratch_, {"profile", small, "--device", "sim:gfx950", "--html", page},
                                      {{"WAVEJIT_SIM_CHECK", "races"}});
  expect_one_line_error(checked, 2);
  EXPECT_THAT(checked.err, HasSubstr("checked or timed"));
  EXPECT_THAT(outputs(), ::testing::IsEmpty());
}

TEST_F(ProfileCommandTest, CompareShowsWhatAToggleDoes) {
  const Json told = json(
      {"compare", small, "--device", "sim:gfx950", "--set-a", "pipeline=auto stagger=off", "--set-b", "pipeline=auto"});
  EXPECT_EQ(told.at("a").at("settings"), "pipeline=auto stagger=off");
  EXPECT_EQ(told.at("b").at("settings"), "pipeline=auto");
  EXPECT_NE(told["a"].at("key"), told["b"].at("key"));
  const Json& rows = told.at("differences");
  EXPECT_EQ(rows[0].at("name"), "cycles");
  EXPECT_EQ(rows[0].at("a"), std::to_string(told["a"].at("predicted_cycles").get<int>()));
  const Outcome text = run({"compare", small, "--device", "sim:gfx950", "--set-a", "pipeline=auto stagger=off"});
  EXPECT_THAT(text.out, AllOf(HasSubstr("stagger=off"), HasSubstr("matrix pipes, steady"), HasSubstr("B - A"),
                              HasSubstr(" more are the same on both sides: --json\n"), Not(HasSubstr("  same\n"))));
}

// A call of two kernels shows both, and compares like with like, whichever of them takes longer on either side.
TEST_F(ProfileCommandTest, CompareShowsEveryKernelOfACall) {
  const Outcome text = run({"compare", "attention_backward bf16 b1 q64 k64 h1 d64",
                            "attention_backward bf16 b1 q64 k64 h1 d64 causal", "--device", "sim:gfx950"});
  for (const char* mask : {"", "_causal"})
    EXPECT_THAT(text.out, ::testing::ContainsRegex(std::format(
                              "   attention_backward_dq_bf16_d64{0}_gfx950(  \\(what is compared below\\))?\n"
                              "   attention_backward_dkdv_bf16_d64{0}_shared_gfx950(  \\(what is compared below\\))?\n",
                              mask)));
  const std::regex one("attention_backward_(dq|dkdv)_\\S+  \\(what is compared below\\)");
  std::vector<std::string> compared;
  for (auto at = std::sregex_iterator(text.out.begin(), text.out.end(), one); at != std::sregex_iterator(); ++at)
    compared.push_back((*at)[1]);
  ASSERT_EQ(compared.size(), 2U) << text.out;
  EXPECT_EQ(compared[0], compared[1]);
  EXPECT_THAT(text.out, AllOf(HasSubstr("\ncycles of launch 1 "), HasSubstr("\ncycles of launch 2 ")));
}

// What a kernel does not have makes no difference, which would look like a result.
TEST_F(ProfileCommandTest, SettingsThatAKernelDoesNotHaveAreRefused) {
  const char* generic = "only pipeline=dualwave has it, and this kernel has pipeline=generic";
  const std::string page = out_ + "/p.html";
  refused({"profile", small, "--device", "sim:gfx950", "--set", "pipeline=generic stagger=off"}, 2, generic);
  refused({"profile", small, "--device", "sim:gfx950", "--pipeline", "generic setprio=off", "--html", page}, 2,
          generic);
  refused(
      {"compare", small, "--device", "sim:gfx950", "--pipeline", "generic", "--set-b", "pipeline=generic stagger=off"},
      2, "B: ");
  refused({"compare", small, "--device", "sim:gfx950", "--pipeline", "generic stagger=off", "--set-b", "kv-splits=1"},
          2, "stagger means nothing to either kernel");
  EXPECT_THAT(outputs(), ::testing::IsEmpty());
  // One of two is enough.
  EXPECT_EQ(
      run({"compare", small, "--device", "sim:gfx950", "--pipeline", "auto stagger=off", "--set-b", "pipeline=generic"})
          .code,
      0);
}

TEST_F(ProfileCommandTest, CompareTakesTwoTargets) {
  const std::string page = out_ + "/c.html";
  const Json told =
      json({"compare", small, "--set-a", "device=sim:gfx942", "--set-b", "device=sim:gfx950", "--html", page});
  EXPECT_EQ(told.at("a").at("target"), "gfx942");
  EXPECT_EQ(told.at("b").at("target"), "gfx950");
  EXPECT_THAT(read_text(page), HasSubstr("Predicted, not measured"));
}

TEST_F(ProfileCommandTest, KernelsOfOthersRunWithTheirWavesAbreast) {
  std::vector<std::string> words = {"profile", held_by_time(),  "--device", "sim:gfx950",
                                    "--set",   "workgroup=128", "--set",    "arguments=buffer:4KiB"};
  const auto matrix_instructions = [](const Json& told) {
    return told.at("launches")[0].at("mix").at("matrix").at("issued").get<int>();
  };
  EXPECT_EQ(matrix_instructions(json(words)), 0);
  // An order that somebody asks for is kept: here wave 0 goes first.
  words.emplace_back("--json");
  const std::map<std::string, std::string> in_turn = {{"WAVEJIT_SIM_SCHEDULE", "random"}, {"WAVEJIT_SIM_SEED", "2"}};
  EXPECT_EQ(matrix_instructions(Json::parse(run_program(scratch_, words, in_turn).out)), 100);
  // A kernel that holds by more than time takes as long in any order: what waits again is counted once.
  std::vector<std::string> other = {"profile", code_object("few.co", 8),      "--device", "sim:gfx950",
                                    "--set",   "arguments=buffer:4KiB,i32:7", "--json"};
  const auto cycles = [](const Outcome& outcome) {
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out).at("predicted_cycles").get<std::uint64_t>();
  };
  EXPECT_EQ(cycles(run_program(scratch_, other)),
            cycles(run_program(scratch_, other, {{"WAVEJIT_SIM_SCHEDULE", "reverse"}})));
}

TEST_F(ProfileCommandTest, CodeObjectsOfOthersAreComparedByTheirLaunch) {
  const std::string few = code_object("few.co", 8);
  const std::string many = code_object("many.co", 72);
  const std::vector<std::string> launch = {"grid=4", "workgroup=64", "arguments=buffer:4KiB,i32:7"};
  std::vector<std::string> arguments = {"compare", few, many, "--device", "sim:gfx950"};
  for (const std::string& setting : launch) {
    arguments.insert(arguments.end(), {"--set-a", setting, "--set-b", setting});
  }
  const Json told = json(arguments);
  EXPECT_EQ(told.at("a").at("workgroups").at("of"), 4);
  // 64 dependent products of 16 cycles more.
  const int more = told["b"].at("predicted_cycles").get<int>() - told["a"].at("predicted_cycles").get<int>();
  EXPECT_GE(more, 64 * 16);
  EXPECT_LE(more, 64 * 16 + 64);
  EXPECT_EQ(told["b"].at("launches")[0].at("mix").at("matrix").at("static"), 72);

  refused({"profile", few, "--device", "sim:gfx942", "--set", "arguments=buffer:4KiB,i32:7"}, 6, "gfx942");
  refused({"profile", few, "--device", "sim:gfx950", "--set", "kernel=other"}, 2, "one of: k");
  refused({"profile", few, "--device", "sim:gfx950", "--set", "arguments=i32:7"}, 6, "4 of arguments");
  // Cut short anywhere: its sections, symbols or metadata lie at its end.
  const std::string whole = read_text(few);
  for (const std::size_t bytes : {std::size_t{64}, std::size_t{700}, whole.size() / 2, whole.size() - 1}) {
    write_text(scratch_ / "short.co", whole.substr(0, bytes));
    refused({"profile", scratch_ / "short.co", "--device", "sim:gfx950", "--set", "arguments=buffer:4KiB,i32:7"}, 6,
            "does not load");
  }
  // 64 lanes store four bytes each: that ends the launch, and the simulated GPU says where.
  const Outcome beyond =
      run({"profile", few, "--device", "sim:gfx950", "--set", "arguments=buffer:16,i32:7", "--html", out_ + "/p.html"});
  EXPECT_EQ(beyond.code, 6);
  EXPECT_THAT(beyond.err, HasSubstr("global_store_dword"));
  EXPECT_THAT(outputs(), ::testing::IsEmpty());
  write_text(scratch_ / "text.co", "no code");
  refused({"profile", scratch_ / "text.co", "--device", "sim:gfx950"}, 3, "no code object");
  write_text(scratch_ / "noise.co", std::string(4096, 'x'));
  refused({"profile", scratch_ / "noise.co", "--device", "sim:gfx950"}, 6, "does not load");
}

}  // namespace
}  // namespace wavejit::tools
