// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every wait, barrier, wait state and mask of the shipped kernels is there for a reason, and the checks know it: taking
// one out is reported, or makes the result another one, or redundant.txt says why nobody can tell.
//
//   simgpu_mutation_tests                some of every kernel; ./dev test takes the kernels of tests/chosen
//   simgpu_mutation_tests --all          every one of them; redundant_counts.txt must then be exact
//   simgpu_mutation_tests --all --print  and what redundant_counts.txt would have to list
#include "mutation.h"

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "redundant.h"
#include "subject.h"
#include "support/chosen.h"
#include "targets/targets.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::tests {
namespace {

using attention_forward::DataType;
using attention_forward::Mask;
using attention_forward::Pipeline;
using ForwardSpec = attention_forward::ForwardKernel;

struct Case {
  std::string name;
  std::vector<families::KernelSpec> kernels;
  std::size_t mutated = 0;
  std::vector<SubjectProblem> problems;
  bool in_soak = false;  // alone: the sample of its twins says as much
};
void PrintTo(const Case& which, std::ostream* out) { *out << which.name; }

ForwardSpec forward(const std::string& target, Pipeline pipeline, int head_dim, int queries, Mask mask = Mask::causal) {
  return {{.dtype = DataType::bf16, .head_dim_qk = head_dim, .head_dim_v = head_dim, .mask = mask, .lse = true},
          {.pipeline = pipeline,
           .tile_queries = queries,
           .output_store = attention_forward::default_output_store(*targets::find_target(target)),
           .target = target}};
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](const std::string& name, const ForwardSpec& spec, std::vector<SubjectProblem> problems,
                       bool in_soak = false) {
    all.push_back({.name = name, .kernels = {spec}, .mutated = 0, .problems = std::move(problems), .in_soak = in_soak});
  };
  // A ragged last tile of queries and of keys, several whole ones before it, and walks of every short length; sequences
  // one behind the other, keys that do not count, and arrays of lengths that must be cut to what is there.
  std::vector<SubjectProblem> large = {{.queries = 300, .keys = 333},
                                       {.queries = 200, .keys = 600, .sink = true},
                                       {.queries = 62, .keys = 62},
                                       {.queries = 62, .keys = 126},
                                       {.queries = 62, .keys = 190},
                                       {.queries = 90, .keys = 30, .sink = true},
                                       // Two and three chunks, the last of one tile and of two.
                                       {.queries = 40, .keys = 1080},
                                       {.queries = 40, .keys = 2150},
                                       {.queries = 70, .keys = 70, .query_heads = 4, .dies = 2}};
  std::vector<SubjectProblem> few = {{.queries = 30, .keys = 460},
                                     {.queries = 5, .keys = 130, .sink = true},
                                     {.queries = 31, .keys = 31},
                                     {.queries = 31, .keys = 62},
                                     {.queries = 31, .keys = 95},
                                     {.queries = 31, .keys = 126},
                                     {.queries = 31, .keys = 10, .sink = true},
                                     {.queries = 20, .keys = 2150},
                                     {.queries = 20, .keys = 70, .query_heads = 4, .dies = 2}};
  std::vector<SubjectProblem> cut = {
      {.queries = 5, .keys = 600, .sink = true},
      {.queries = 70, .keys = 540},
      {.queries = 5, .keys = 2100},
      {.queries = 5, .keys = 2100, .key_lengths = {0}},
      {.queries = 5, .keys = 600, .wants_lse = false},
      {.queries = 90, .keys = 300, .sink = true},
      {.queries = 400, .keys = 300},
      {.queries = 25, .keys = 300, .query_starts = {0, 7, 32}, .key_starts = {0, 20, 320}},
      {.queries = 10, .keys = 600, .key_lengths = {150}},
      {.queries = 20, .keys = 300, .query_heads = 4, .dies = 2}};
  // Runs of several chunks, for the kernel that splits keys; for the one that merges a turn of sixteen chunks and all four
  // groups of another.
  const std::vector<SubjectProblem> long_runs = {{.queries = 5, .keys = 2150, .runs = 1},
                                                 {.queries = 5, .keys = 3100, .runs = 2, .wants_lse = false}};
  const std::vector<SubjectProblem> many_chunks = {{.queries = 5, .keys = (30 * attention_forward::chunk_keys) + 70}};
  const std::vector<SubjectProblem> sequences = {
      {.queries = 25, .keys = 150, .query_starts = {0, 7, 32}, .key_starts = {0, 150, 260}},
      {.queries = 10, .keys = 200, .key_starts = {0, 200}, .key_lengths = {150}},
      // Before the tensor, backwards, beyond it, and longer than the longest.
      {.queries = 30, .keys = 100, .query_starts = {-7, 20, 900, 40}, .wrong = true},
      {.queries = 30, .keys = 100, .query_starts = {290, 10, 300}, .wrong = true},
      {.queries = 10,
       .keys = 90,
       .query_starts = {0, 10, 20, 30, 40},
       .key_starts = {-5, 80, 70, 900, 120},
       .wrong = true},
      {.queries = 10, .keys = 50, .query_starts = {0, 30}, .key_starts = {0, 150}, .wrong = true},
      {.queries = 10, .keys = 100, .key_lengths = {-3}, .wrong = true},
      {.queries = 31, .keys = 10, .sink = true, .wrong = true},  // sinks of −∞
      {.queries = 10, .keys = 100, .key_lengths = {170}, .wrong = true},
      {.queries = 30, .keys = 30, .zero_scale = true}};
  for (std::vector<SubjectProblem>* problems : {&large, &few, &cut})
    problems->insert(problems->end(), sequences.begin(), sequences.end());
  for (const int head_dim : {64, 128}) {
    const std::string d = "_d" + std::to_string(head_dim);
    add("dualwave_gfx950" + d, forward("gfx950", Pipeline::dualwave, head_dim, 256), large);
    add("interleaved_gfx942" + d, forward("gfx942", Pipeline::interleaved, head_dim, 128), large);
    for (const std::string target : {"gfx942", "gfx950"})
      add("generic_" + target + d, forward(target, Pipeline::generic, head_dim, 128), large);
  }
  add("generic_gfx1201_d128", forward("gfx1201", Pipeline::generic, 128, 128), large, true);
  add("few_rows_gfx950", forward("gfx950", Pipeline::generic, 128, 32), few);
  for (const std::string target : {"gfx942", "gfx950", "gfx1201"}) {
    ForwardSpec split = forward(target, Pipeline::generic, 128, target == "gfx950" ? 32 : 128);
    split.lse = false;
    split.output_store = attention_forward::OutputStore::scalar;
    split.split_keys = attention_forward::chunk_keys;
    const attention_combine::CombineKernel combine = attention_combine::combine_of(split);
    const auto and_then = [](std::vector<SubjectProblem> problems, const std::vector<SubjectProblem>& more) {
      problems.insert(problems.end(), more.begin(), more.end());
      return problems;
    };
    all.push_back({.name = "split_" + target,
                   .kernels = {split, combine},
                   .mutated = 0,
                   .problems = and_then(cut, long_runs),
                   .in_soak = target == "gfx1201"});
    all.push_back({.name = "combine_" + target,
                   .kernels = {split, combine},
                   .mutated = 1,
                   .problems = and_then(cut, many_chunks),
                   .in_soak = target == "gfx1201"});
  }
  return all;
}

class Mutations : public ::testing::TestWithParam<Case> {};

TEST_P(Mutations, AreNoticed) {
  const Case& which = GetParam();
  if (which.in_soak && !extent().all_of_them) return;
  const Subject subject(which.kernels, which.problems);
  ASSERT_EQ(subject.problem(), "");
  const auto mutations = mutations_of(subject.code_object(which.mutated));
  ASSERT_TRUE(mutations) << mutations.error();
  const std::set<std::uint32_t>& visited = subject.visited(which.mutated);
  ASSERT_FALSE(visited.empty());
  std::vector<Mutation> wanted;
  for (const Mutation& mutation : *mutations) {
    // In front of the entry stands what old firmware runs instead.
    if (mutation.offset >= *visited.begin()) wanted.push_back(mutation);
  }
  expect_noticed({.name = which.name,
                  .mutations = std::move(wanted),
                  .runs = [&](std::uint32_t offset) { return visited.contains(offset); },
                  .run = [&](const auto& code_object) { return subject.run(which.mutated, code_object); }});
}

INSTANTIATE_TEST_SUITE_P(Shipped, Mutations, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace wavejit::tests

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (const int code = wavejit::tests::read_extent(argc, argv); code != 0) return code;
  return wavejit::tests::run_chosen();
}
