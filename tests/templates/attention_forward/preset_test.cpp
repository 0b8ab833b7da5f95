// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The presets that come with the program lead to the very kernels that calls of their kind need: prepared from them, a
// sealed engine refuses nothing, and what such calls miss is what prebuild builds.
#include <algorithm>
#include <fstream>
#include <set>

#include "runtime/offline/prebuild.h"
#include "runtime_fixture.h"
#include "templates/attention_forward/call/descriptor.h"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;

struct Preset {
  std::string name;
  std::vector<std::string> lines;
};

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    line.resize(std::min(line.find('#'), line.size()));
    while (line.ends_with(' ')) line.pop_back();
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

// Their forward calls; gradients' are tests/attention_backward/life_test.cpp's.
std::vector<Preset> all_presets() {
  std::vector<Preset> presets;
  for (const auto& file : std::filesystem::directory_iterator(WAVEJIT_PRESETS)) {
    Preset preset{file.path().stem().string(), lines_of(file.path())};
    std::erase_if(preset.lines, [](const std::string& line) { return !line.starts_with("attention_forward "); });
    if (!preset.lines.empty()) presets.push_back(std::move(preset));
  }
  std::ranges::sort(presets, {}, &Preset::name);
  return presets;
}

// The call that a line describes, as a server makes it.
wavejit_attention_forward_arguments call_of(const std::string& line) {
  const auto parsed = attention_forward::parse_descriptor(line);
  if (!parsed) throw std::runtime_error(parsed.error().detail);
  const attention_forward::ProblemDescriptor& d = *parsed;
  const bool paged = d.layout == attention_forward::Layout::paged;
  const bool packed = d.layout == attention_forward::Layout::packed;
  if ((d.layout != attention_forward::Layout::bshd && !paged && !packed) || d.page_heads_first || d.shape.vectorised ||
      d.shape.first_keys || !d.query_lengths.empty() || !d.key_lengths.empty() || d.mask.causal_prefix ||
      d.of(attention_forward::Modifier::bias).there || d.of(attention_forward::Modifier::alibi).there)
    throw std::runtime_error(line + ": call_of does not do this yet");
  auto call = good_call(d.batch, d.query_length, d.key_length, d.query_heads, d.kv_heads, d.shape.head_dim_qk);
  for (auto* tensor : {&call.v, &call.o}) {
    *tensor = wavejit_dense_tensor(tensor->data, WAVEJIT_FP16, d.batch, tensor->sizes[1], tensor->sizes[2],
                                   d.shape.head_dim_v);
  }
  if (packed) {
    for (auto* tensor : {&call.q, &call.k, &call.v, &call.o})
      *tensor = wavejit_dense_tensor(tensor->data, WAVEJIT_FP16, 1, d.batch * tensor->sizes[1], tensor->sizes[2],
                                     tensor->sizes[3]);
    call.sequences.query_starts = static_cast<const std::int32_t*>(fake_address(7));
    call.sequences.key_starts = static_cast<const std::int32_t*>(fake_address(8));
    call.sequences.count = d.batch;
    call.sequences.max_query_length = d.query_length;
    call.sequences.max_key_length = d.key_length;
  }
  if (paged) {
    const std::int64_t columns = (d.key_length + d.page_size - 1) / d.page_size;
    call.k = wavejit_dense_tensor(call.k.data, WAVEJIT_FP16, d.batch * columns, d.page_size, d.kv_heads,
                                  d.shape.head_dim_qk);
    call.v =
        wavejit_dense_tensor(call.v.data, WAVEJIT_FP16, d.batch * columns, d.page_size, d.kv_heads, d.shape.head_dim_v);
    call.pages.block_table = static_cast<const std::int32_t*>(fake_address(7));
    call.sequences.key_lengths = static_cast<const std::int32_t*>(fake_address(8));
    call.pages.table_columns = columns;
    call.sequences.max_key_length = d.key_length;
  }
  const auto dtype = d.shape.dtype == attention_forward::DataType::bf16 ? WAVEJIT_BF16 : WAVEJIT_FP16;
  for (auto* tensor : {&call.q, &call.k, &call.v, &call.o}) tensor->dtype = dtype;
  if (d.shape.lse) call.lse = good_lse(call);
  if (d.mask.causal) call.mask.bits |= WAVEJIT_MASK_CAUSAL;
  if (d.mask.window) {
    call.mask.bits |= WAVEJIT_MASK_WINDOW;
    call.mask.window_left = static_cast<std::int32_t>(d.mask.window->first);
    call.mask.window_right = static_cast<std::int32_t>(d.mask.window->second);
  }
  if (d.of(attention_forward::Modifier::sink).there) {
    call.modifiers.sink = {.data = fake_address(6),
                           .dtype = WAVEJIT_FP32,
                           .reserved = 0,
                           .sizes = {1, d.query_heads, 1, 1},
                           .strides = {d.query_heads, 1, 1, 1}};
  }
  if (const auto& softcap = d.of(attention_forward::Modifier::softcap); softcap.there)
    call.modifiers.softcap = std::stof(softcap.number);
  if (d.shape.block_lists) {
    call.blocks.list_indices = static_cast<const std::int32_t*>(fake_address(10));
    call.blocks.list_counts = static_cast<const std::int32_t*>(fake_address(11));
    call.blocks.list_rows = d.lists.rows;
    call.blocks.list_keys = d.lists.keys;
    call.blocks.list_batches = static_cast<std::int32_t>(d.batch);
    call.blocks.list_heads = static_cast<std::int32_t>(d.query_heads);
    call.blocks.list_row_blocks = (d.query_length + d.lists.rows - 1) / d.lists.rows;
    call.blocks.list_capacity = 100;
    call.head.flags |= d.hints;
  }
  if (d.top_k != 0) {
    call.key_list.indices = static_cast<const std::int32_t*>(fake_address(12));
    call.key_list.top_k = d.top_k;
    call.key_list.heads = d.list_each_head ? d.kv_heads : 1;
    call.key_list.slots = d.shape.slots ? 1 : 0;
    if (d.shape.slots) {
      call.pages.block_table = call.sequences.key_lengths = nullptr;
      call.pages.table_columns = call.sequences.max_key_length = 0;
      // Slots of pages that stand apart: as rows they would have another kernel.
      if (paged)
        for (auto* tensor : {&call.k, &call.v}) tensor->strides[0] += tensor->strides[1];
    }
  }
  if (d.second_top_k != 0) {
    call.second_k = call.k;
    call.second_v = call.v;
    call.second_k.data = fake_address(13);
    call.second_v.data = fake_address(14);
    call.second_list.indices = static_cast<const std::int32_t*>(fake_address(15));
    call.second_list.top_k = d.second_top_k;
  }
  if (d.splits > 0) call.split.splits = static_cast<std::int32_t>(d.splits);
  return call;
}

class PresetTest : public RuntimeTest {
 protected:
  // The kernels of a list; lines without one are told to `refused`.
  std::set<std::string> prebuild(const std::vector<std::string>& lines, std::string_view target,
                                 std::set<std::size_t>* refused = nullptr) {
    std::set<std::string> specs;
    const auto outcome = runtime::prebuild(config_, {.descriptors = lines, .targets = target, .whole = false},
                                           *codegen_, [&](const runtime::PrebuildProgress& progress) {
                                             if (progress.kernel_spec != nullptr) specs.insert(*progress.kernel_spec);
                                             if (progress.descriptor != nullptr && refused != nullptr)
                                               refused->insert(progress.line);
                                           });
    EXPECT_TRUE(outcome || (refused != nullptr && !refused->empty())) << outcome.error().detail;
    return specs;
  }
};

TEST_F(PresetTest, SealedEnginesFindEverythingThatCallsOfAPresetNeed) {
  const auto presets = all_presets();
  ASSERT_GE(presets.size(), 8U);
  for (const targets::Target& target : targets::complete_targets()) {
    for (const Preset& preset : presets) {
      SCOPED_TRACE(preset.name + " on " + std::string(target.id));
      ASSERT_GE(preset.lines.size(), 7U);
      std::set<std::size_t> refused;
      prebuild(preset.lines, target.id, &refused);
      std::vector<std::string> lines;
      for (std::size_t i = 0; i < preset.lines.size(); ++i)
        if (!refused.contains(i)) lines.push_back(preset.lines[i]);
      // A preset is of a model, and a target does all of it or nothing.
      EXPECT_TRUE(refused.empty() || lines.empty()) << refused.size();

      const std::uint64_t compiles = fake_codegen().compiles;
      const auto called = make_engine(std::string(target.id).c_str());
      for (const std::string& line : lines) {
        const auto call = call_of(line);
        const auto outcome = ForwardCalls::run(*called, &call, nullptr);
        ASSERT_TRUE(outcome) << line << ": " << outcome.error().detail;
      }
      EXPECT_EQ(statistics_of(*called).compiled, 0U);

      const auto sealed = make_engine(std::string(target.id).c_str());
      std::vector<const char*> texts;
      for (const std::string& line : lines) texts.push_back(line.c_str());
      ASSERT_TRUE(sealed->prepare(texts, 1, {}, [](const auto&) {}));
      sealed->seal(true);
      for (const std::string& line : lines) {
        const auto call = call_of(line);
        const auto outcome = ForwardCalls::run(*sealed, &call, nullptr);
        ASSERT_TRUE(outcome) << line << ": " << outcome.error().detail;
      }
      EXPECT_EQ(fake_codegen().compiles, compiles) << "nothing was left to compile";
    }
  }
}

// Prompts, and pieces of them, among tokens: whatever the longest has, split or captured whole.
TEST_F(PresetTest, PagedPresetsFindTheKernelsOfMixedBatches) {
  int mixed = 0;
  for (const Preset& preset : all_presets()) {
    SCOPED_TRACE(preset.name);
    const auto sealed = make_engine("gfx950");
    std::vector<const char*> texts;
    for (const std::string& line : preset.lines) texts.push_back(line.c_str());
    ASSERT_TRUE(sealed->prepare(texts, 1, {}, [](const auto&) {}));
    sealed->seal(true);
    for (const std::string& line : preset.lines) {
      if (!line.contains(" q33..4096 ")) continue;
      for (const std::int64_t longest : {33, 100, 512, 4096}) {
        for (const bool captured : {false, true}) {
          auto call = call_of(line);
          for (auto* tensor : {&call.q, &call.o})
            *tensor = wavejit_dense_tensor(tensor->data, static_cast<wavejit_dtype>(tensor->dtype), 1, longest + 63,
                                           tensor->sizes[2], 128);
          call.sequences.query_starts = static_cast<const std::int32_t*>(fake_address(9));
          call.sequences.count = 64;
          call.sequences.max_query_length = longest;
          const std::uint64_t launches = fake_hip().launches;
          if (captured) fake_hip().capturing = hip_abi::hipStreamCaptureStatusActive;
          const auto outcome = ForwardCalls::run(*sealed, &call, numbered<ihipStream_t>(0x1000));
          fake_hip().capturing = hip_abi::hipStreamCaptureStatusNone;
          ASSERT_TRUE(outcome) << line << ": " << outcome.error().detail;
          EXPECT_EQ(fake_hip().launches, launches + (captured ? 2 : 3)) << line;
          ++mixed;
        }
      }
    }
  }
  EXPECT_GE(mixed, 3 * 2 * 8);
}

// Every preset has a target that does it.
TEST_F(PresetTest, EveryPresetHasKernelsOnTheLatestTarget) {
  for (const Preset& preset : all_presets()) {
    SCOPED_TRACE(preset.name);
    std::set<std::size_t> refused;
    EXPECT_FALSE(prebuild(preset.lines, "gfx950", &refused).empty());
    EXPECT_TRUE(refused.empty());
  }
}

// The log of an engine that met a preset's calls cold is a list of the kernels that they need, however often it says
// them. (A preset's own lines stand for more lengths.)
TEST_F(PresetTest, WhatAnEngineMissedIsWhatPrebuildBuilds) {
  for (const Preset& preset : all_presets()) {
    SCOPED_TRACE(preset.name);
    const ScratchDirectory cold;
    config_.cache_directory.value = cold.path();
    config_.miss_log.value = cold.path() + "/misses";
    for (int engines = 0; engines < 2; ++engines) {
      config_.cache_mode.value = cache::Mode::off;  // both miss everything
      const auto engine = make_engine("gfx950");
      for (const std::string& line : preset.lines) {
        const auto call = call_of(line);
        const auto outcome = ForwardCalls::run(*engine, &call, nullptr);
        ASSERT_TRUE(outcome) << line << ": " << outcome.error().detail;
      }
      engine->seal(true);  // what calls had made behind them is noted, too
    }
    config_.cache_mode.value = cache::Mode::read_write;
    const auto misses = lines_of(config_.miss_log.value);
    const std::set<std::string> different(misses.begin(), misses.end());
    EXPECT_EQ(misses.size(), 2 * different.size()) << "two engines noted the same";
    const std::set<std::string> missed = prebuild(misses, "gfx950");
    const auto engine = make_engine("gfx950");
    for (const std::string& line : preset.lines) {
      const auto call = call_of(line);
      ASSERT_TRUE(ForwardCalls::run(*engine, &call, nullptr)) << line;
    }
    EXPECT_EQ(statistics_of(*engine).compiled, 0U) << "what was missed is there";
    EXPECT_TRUE(std::ranges::includes(prebuild(preset.lines, "gfx950"), missed));
  }
}

}  // namespace
}  // namespace wavejit::tests
