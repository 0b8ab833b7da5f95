// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What mutation_test.cpp says of dense kernels, by whole calls for those of pages, left padding, mixes, lists, 8 bits,
// latent attention, softmax_lse, gradients and the sparse indexer: every wait, barrier, wait state and mask is reported
// when it goes, or makes the result another one, or stands in redundant.txt. The same --all and --print, and
// --journal=<folder> (journal.h). --only=s_min_i32 takes the changes of such instructions alone,
// --only=listed those that the list names: a new problem can only notice more.
//
// To add a kernel, add a row to `cases`, of 8 bits to byte_cases.cpp, of gfx1201 to rdna_cases.cpp: its words, and
// calls that launch it.
#include "called.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <format>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "analysis/kernel_code.h"
#include "append_problems.h"
#include "byte_cases.h"
#include "called_case.h"
#include "forward_problems.h"
#include "gradient_problems.h"
#include "indexer_problems.h"
#include "latent_problems.h"
#include "list_problems.h"
#include "mask_problems.h"
#include "merge_problems.h"
#include "mutation.h"
#include "rdna_cases.h"
#include "shared_wave_problems.h"
#include "softmax_lse/softmax_run.h"
#include "support/chosen.h"

namespace wavejit::tests {
namespace {

using Numbers = std::vector<std::int32_t>;

// ---- Problems

CallProblem softmax(const SoftmaxCase& which) {
  return {[which](wavejit_engine* engine, bool judges) {
    const SoftmaxOutput output = run_softmax(engine, which);
    CallResult result = result_of(output);
    result.bits = output.weights;
    append(result.bits, bits_of(output.lse));
    if (judges && output.status == WAVEJIT_OK) result.wrong = wrong_softmax(which, output);
    return result;
  }};
}

SoftmaxCase scores(std::int64_t rows, std::int64_t keys, std::uint64_t seed) {
  return softmax_case(softmax_lse::DataType::bf16, softmax_lse::DataType::bf16, rows, keys, seed, 3, 1, 2);
}
// Later keys have the larger scores: maxima rise from tile to tile.
SoftmaxCase rising_scores(std::int64_t rows, std::int64_t keys) {
  SoftmaxCase which = scores(rows, keys, 6);
  for (std::size_t i = 0; i < which.scores.size(); ++i) {
    const std::int64_t tile = static_cast<std::int64_t>(i) % keys / 64;
    const float risen = which.scores[i] + (10 * static_cast<float>(tile));
    which.scores[i] = from_storage(Storage::bf16, to_storage(Storage::bf16, risen));
  }
  return which;
}
SoftmaxCase without_scale(SoftmaxCase which) {
  which.scale = 0;
  return which;
}
SoftmaxCase scores_in_window(std::int64_t rows, std::int64_t keys, std::int32_t left, std::int32_t right) {
  SoftmaxCase which = scores(rows, keys, 3);
  which.window = {left, right};
  return which;
}
SoftmaxCase scores_with_lengths(const Numbers& lengths, std::int64_t keys) {
  SoftmaxCase which =
      softmax_case(softmax_lse::DataType::bf16, softmax_lse::DataType::bf16, 3, keys, 4, 3, std::ssize(lengths), 1);
  which.key_lengths = lengths;
  which.causal = true;
  return which;
}

// ---- Kernels

Problems these(std::vector<CallProblem> problems) {
  return [problems = std::move(problems)] { return problems; };
}

std::vector<CalledCase> cases() {
  const auto pages = [](const Pages& plain, const Pages& list, bool window) {
    std::vector<CallProblem> all;
    for (const ForwardProblem& problem : keys_in_pages(plain, list)) {
      AttentionCase which = problem.which;
      if (window) which = in_window(std::move(which), 40, 3);
      all.push_back(forward(which, problem.lies));
    }
    return all;
  };
  const std::vector<CallProblem> of_scores = {softmax(scores(5, 130, 1)),
                                              softmax(scores(3, 62, 2)),
                                              softmax(scores_in_window(40, 300, 20, 7)),
                                              softmax(scores_with_lengths({0, 1, 200, 64, 63}, 200)),
                                              softmax(rising_scores(3, 700)),
                                              softmax(without_scale(scores(2, 70, 7))),
                                              softmax(scores(2, 2150, 5))};
  std::vector<CalledCase> all = {
      {"dq_gfx950", "gfx950", {"attention_backward_dq "}, [] { return gradients_and_lies(" causal"); }, true},
      {"dkdv_gfx950",
       "gfx950",
       {"attention_backward_dkdv "},
       [] { return gradients_and_lies(" causal"); },
       true,
       "auto tile_queries=128"},
      {"dkdv_shared_gfx950",
       "gfx950",
       {"attention_backward_dkdv ", "keys=shared"},
       [] { return gradients_under(" causal"); },
       true,
       "auto tile_queries=64"},
      {"dq_window_gfx942", "gfx942", {"attention_backward_dq "}, [] { return gradients_and_lies(" window=40,3"); }, true},
      {"dkdv_window_gfx942",
       "gfx942",
       {"attention_backward_dkdv "},
       [] { return gradients_and_lies(" window=40,3"); },
       true,
       "auto tile_queries=128"},
      {"dkdv_shared_gfx942",
       "gfx942",
       {"attention_backward_dkdv ", "keys=shared"},
       [] { return gradients_under(" causal"); },
       true,
       "auto tile_queries=64"},
      {"dkdv_wide_gfx942",
       "gfx942",
       {"attention_backward_dkdv "},
       [] { return gradients_under(" causal", " d256"); },
       true},
      {"dq_wide_gfx942", "gfx942", {"attention_backward_dq "}, [] { return gradients_under(" causal", " d256"); }, true},
      {"dsink_gfx950", "gfx950", {"attention_backward_dsink "}, gradients_of_sinks, true},
      {"dbias_gfx950", "gfx950", {"attention_backward_dbias "}, [] { return gradients_of_biases("bf16"); }, true},
      {"paged_gfx950",
       "gfx950",
       {"attention_forward ", " paged ", "pipeline=generic"},
       [=] { return pages({.size = 16}, {.size = 48, .list = true}, false); }},
      {"paged_window_gfx942",
       "gfx942",
       {"attention_forward ", " paged ", "pipeline=generic", "window"},
       [=] { return pages({.size = 16}, {.size = 48, .list = true}, true); },
       false,
       "generic"},
      {"vectorised_gfx942",
       "gfx942",
       {"attention_forward ", " vectorised "},
       [=] {
         return pages({.size = 16, .layout = WAVEJIT_PAGES_VECTORISED},
                      {.size = 48, .list = true, .layout = WAVEJIT_PAGES_VECTORISED_KEYS}, false);
       }},
      {"first_keys_gfx950",
       "gfx950",
       {"attention_forward ", " first_keys "},
       these({forward(padded(70, {70, 33, 1}, {0, 37, 69}, 1)), forward(with_sink(padded(40, {300, 0}, {5, 305}, 2))),
              forward(padded(40, {3, 0}, {2, 5}, 5, 2)), forward(without_scale(padded(33, {33}, {4}, 6, 2))),
              forward(padded(126, {126}, {3}, 4, 2)), forward(padded(36, {2150}, {3}, 3, 2))})},
      {"many_rows_gfx942",
       "gfx942",
       {"attention_forward ", "rows=many"},
       // Two kernels share a call only where a sequence has more than a chunk of keys.
       these({forward(sequences({1, 140, 0, 8, 9, 1, 3, 1}, {1030, 300, 7, 25, 11, 0, 2, 20}, 1)),
              forward(sequences({1, 158, 1, 1, 1, 1}, {1030, 203, 1, 2, 1, 1}, 3, 2)),
              forward(sequences({1, 70, 1, 1, 1, 1}, {1030, 5, 1, 2, 1, 1}, 5, 2)),
              forward(without_scale(sequences({1, 70, 1, 1, 1, 1}, {1030, 70, 1, 2, 1, 1}, 4, 2))),
              forward(sequences({1, 40, 1, 1, 1, 1}, {3, 2150, 1, 2, 1, 1}, 6, 2)),
              forward(with_sink(
                  sequences({1, 1, 130, 70, 1, 2, 1, 1, 1, 1, 1}, {1030, 24, 60, 80, 3, 5, 6, 7, 8, 1, 1}, 2, 2)))})},
      {"shared_waves_gfx950",
       "gfx950",
       {"attention_forward ", " heads=packed chunk_waves=4 "},
       shared_waves,
       true,
       "generic chunk_waves=4"},
      {"shared_waves_merged_gfx950",
       "gfx950",
       {"attention_forward ", " merged "},
       merged_shared_waves,
       true,
       "generic chunk_waves=4"},
      {"softmax_lse_gfx950",
       "gfx950",
       {"softmax_lse bf16 "},
       these(of_scores)},
      {"softmax_lse_gfx1201", "gfx1201", {"softmax_lse bf16 "}, these(of_scores), true},
      {"key_lists_gfx950",
       "gfx950",
       {"attention_forward ", " lse ", " tile=32x64 "},
       [] { return lists_of_keys({}, false); }},
      {"key_lists_paged_gfx942",
       "gfx942",
       {"attention_forward ", " lse ", " tile=32x64 "},
       [] { return lists_of_keys({{.size = 16, .heads_first = true}, {.size = 48, .list = true}}, false); },
       true},
      {"key_lists_combine_gfx950", "gfx950", {"attention_combine "}, lists_of_keys_in_runs, true},
      {"block_lists_gfx942",
       "gfx942",
       {"attention_forward ", " tile=64x64 "},
       [] { return lists_of_blocks(64, 64, false); },
       true},
      {"block_lists_interleaved_gfx942",
       "gfx942",
       {"attention_forward ", " pipeline=interleaved "},
       [] {
         std::vector<CallProblem> all = lists_of_blocks(128, 64, true);
         std::ranges::copy(lists_of_blocks(128, 128, true), std::back_inserter(all));
         return all;
       },
       true},
      {"block_lists_gfx950",
       "gfx950",
       {"attention_forward ", " tile=64x64 "},
       [] { return lists_of_blocks(64, 64, false); }},
      {"block_walks_gfx950", "gfx950", {"attention_block_lists "}, [] { return lists_of_blocks(64, 128, true, true); }},
      {"mask_lists_gfx950", "gfx950", {"attention_mask_lists "}, [] { return bool_masks(64, true); }},
      {"mask_lists_gfx942", "gfx942", {"attention_mask_lists "}, [] { return bool_masks(64, true); }, true},
      {"mask_lists_of_bias_gfx950", "gfx950", {"attention_mask_lists "}, biases_by_tile, true},
      {"bool_mask_causal_gfx950",
       "gfx950",
       {"attention_forward ", " causal ", " bool_mask "},
       [] { return walks_of_masks(64, 290, MaskKind::bool_causal); },
       true},
      {"bool_mask_gfx950",
       "gfx950",
       {"attention_forward ", " bool_mask "},
       [] { return walks_of_masks(64, 290, MaskKind::bool_mask); },
       true},
      {"bias_by_tile_gfx942",
       "gfx942",
       {"attention_forward ", " bias_by_tile "},
       [] { return walks_of_masks(64, 200, MaskKind::bias); },
       true},
      {"bool_mask_few_rows_gfx950",
       "gfx950",
       {"attention_forward ", " split=1024 ", " bool_mask ", " tile=64x64 "},
       [] { return masks_of_few_rows(64, 9); },
       true},
      {"latent_gfx950", "gfx950", {"attention_latent ", " rows=64 "}, [] { return latent_dense(0); }, true},
      {"latent_rows128_gfx950",
       "gfx950@1x1",
       {"attention_latent ", " rows=128 "},
       [] { return latent_dense(64); },
       true},
      {"latent_gfx942", "gfx942", {"attention_latent ", " rows=64 "}, [] { return latent_dense(0); }, true},
      {"latent_paged_gfx950",
       "gfx950",
       {"attention_latent ", " mask=causal ", " pages=granules "},
       [] { return latent_paged("64", "16"); },
       true},
      {"latent_paged_gfx942",
       "gfx942",
       {"attention_latent ", " mask=causal ", " pages=granules "},
       [] { return latent_paged("64", "16"); },
       true},
      {"latent_listed_gfx950", "gfx950", {"attention_latent ", " rows=64 "}, [] { return latent_listed(""); }, true},
      {"latent_listed_gfx942",
       "gfx942",
       {"attention_latent ", " rows=64 "},
       [] { return latent_listed(" layout=paged:16"); },
       true},
      {"latent_combine_gfx950", "gfx950", {"attention_latent_combine "}, latent_in_runs, true},
      {"latent_merged_gfx950", "gfx950", {"attention_latent ", " merged "}, latent_merged, true},
      {"latent_merged_gfx942", "gfx942", {"attention_latent ", " merged "}, latent_merged, true},
      {"indexer_scores_gfx942", "gfx942@1x1", {"sparse_scores "}, dense_scores, false, "auto tile_queries=1"},
      {"indexer_scores_paged_gfx950",
       "gfx950@1x1",
       {"sparse_scores ", " paged "},
       paged_scores,
       false,
       "auto tile_queries=1"},
      {"indexer_scores_shared_gfx950",
       "gfx950@1x1",
       {"sparse_scores ", " shared "},
       dense_scores,
       true,
       "auto tile_queries=4"},
      {"indexer_scores_shared_paged_gfx942",
       "gfx942@1x1",
       {"sparse_scores ", " paged ", " shared "},
       paged_scores,
       true,
       "auto tile_queries=4"},
      {"indexer_select_gfx950", "gfx950", {"sparse_select "}, lists_of_scores},
      {"append_gfx942", "gfx942", {"cache_append ", " rotary=halves ", " angles=fp32 "}, turned_appends, true},
      {"append_narrow_gfx950", "gfx950", {"cache_append ", " scales=tokens "}, [] { return narrow_appends(512); }, true},
      {"append_gfx1201", "gfx1201", {"cache_append ", " rotary=halves ", " angles=fp32 "}, turned_appends, true},
      {"append_narrow_gfx1201",
       "gfx1201",
       {"cache_append ", " scales=tokens "},
       [] { return narrow_appends(256); },
       true},
      {"merge_gfx950", "gfx950", {"attention_merge "}, merges, true},
      {"merge_gfx1201", "gfx1201", {"attention_merge "}, merges},
  };
  std::ranges::move(byte_cases(), std::back_inserter(all));
  std::ranges::move(rdna_cases(), std::back_inserter(all));
  return all;
}

class CalledMutations : public ::testing::TestWithParam<CalledCase> {};

TEST_P(CalledMutations, AreNoticed) {
  const CalledCase& which = GetParam();
  if (which.in_soak && !extent().all_of_them) return;
  CalledKernel kernel(which.target, which.pipeline, which.words, which.problems(),
                      Journal(extent().journal, which.name));
  ASSERT_EQ(kernel.problem(), "");
  auto mutations = mutations_of(kernel.code_object());
  ASSERT_TRUE(mutations) << mutations.error();
  const auto code = analysis::KernelCode::read(kernel.code_object());
  ASSERT_TRUE(code) << code.error();
  // What old firmware runs instead of a part of the start.
  std::erase_if(*mutations, [&](const Mutation& mutation) { return mutation.offset < code->first_offset(); });
  expect_noticed({.name = which.name,
                  .mutations = *std::move(mutations),
                  .runs = [](std::uint32_t) { return true; },
                  .run = [&](const auto& code_object) { return kernel.run(code_object); }});
}

INSTANTIATE_TEST_SUITE_P(Shipped, CalledMutations, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace wavejit::tests

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (const int code = wavejit::tests::read_extent(argc, argv); code != 0) return code;
  return wavejit::tests::run_chosen();
}
