// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// attention_latent as the program's tools know it (tools/family.h): a descriptor → arrays, the call, float64. A row of
// the answer is a row of O.
#include <algorithm>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "templates/attention/program/cache_formats.h"
#include "templates/attention_latent/kernel/spec.h"
#include "templates/attention_latent/program/array_call.h"
#include "templates/attention_latent/program/device_call.h"
#include "templates/attention_latent/program/list_invariance.h"
#include "templates/attention_latent/program/tuning.h"
#include "tools/array_problem.h"
#include "tools/variants/variants.h"

namespace wavejit::attention_latent::program {
namespace {

using namespace tools;
using attention::program::Experiment;
using attention::program::Sequence;

ExactRow exact_row_at(const LatentArrays& arrays, std::int64_t row) {
  const Experiment& of = arrays.experiment;
  const std::int64_t token = row / of.query_heads;
  const std::vector<Sequence> sequences = attention::program::sequences_of(of);
  const auto behind = std::ranges::upper_bound(sequences, token, {}, &Sequence::first_query);
  const auto sequence = behind - sequences.begin() - 1;
  return exact_row_of(arrays, sequence, row % of.query_heads,
                      token - sequences[static_cast<std::size_t>(sequence)].first_query);
}

std::unique_ptr<Problem> problem_of(LatentArrays made) {
  ArrayProblem problem;
  problem.text = made.experiment.text;
  const auto queries = attention::program::queries_of(made.experiment);
  PointedInputs<DevicePointers> inputs;
  inputs.take(problem, &DevicePointers::q, made.q);
  inputs.take(problem, &DevicePointers::q_rope, made.q_rope);
  const auto take_keys = [&](auto& k, auto& k_rope, auto& second_k) {
    inputs.take(problem, &DevicePointers::k, k);
    inputs.take(problem, &DevicePointers::k_rope, k_rope);
    inputs.take(problem, &DevicePointers::second_k, second_k);
  };
  if (made.experiment.has_bytes()) {
    made.k = made.k_rope = made.second_k = {};
    take_keys(made.k_bytes, made.k_rope_bytes, made.second_k_bytes);
  } else {
    take_keys(made.k, made.k_rope, made.second_k);
  }
  inputs.add(problem, &DevicePointers::sinks, made.sinks);
  inputs.add(problem, &DevicePointers::query_starts, made.query_starts);
  inputs.add(problem, &DevicePointers::key_starts, made.key_starts);
  inputs.add(problem, &DevicePointers::key_lengths, made.key_lengths);
  inputs.add(problem, &DevicePointers::table, made.table);
  inputs.add(problem, &DevicePointers::key_indices, made.lists.indices);
  inputs.add(problem, &DevicePointers::key_counts, made.lists.counts);
  inputs.add(problem, &DevicePointers::second_indices, made.second_lists.indices);
  inputs.add(problem, &DevicePointers::second_counts, made.second_lists.counts);
  inputs.add(problem, &DevicePointers::k_scale, made.k_scales);
  if (made.experiment.lse)
    inputs.add(problem, &DevicePointers::lse, std::vector<float>(static_cast<std::size_t>(queries.rows())));
  problem.rows = queries.rows();
  problem.columns = made.latent();
  problem.type = made.experiment.type;
  const auto arrays = std::make_shared<const LatentArrays>(std::move(made));
  const auto call_with = [arrays, inputs](std::span<void* const> given, void* output) {
    DevicePointers memory = inputs.at(given);
    memory.o = output;
    return call_of(*arrays, memory);
  };
  set_call(problem, call_with, wavejit_attention_latent);
  // What exact rows are made of, made when somebody first asks, on any thread: profiles never do.
  const auto exact =
      std::async(std::launch::deferred, [text = arrays->experiment.text] { return *make_latent_arrays(text); }).share();
  problem.exact = [exact](std::int64_t row) { return exact_row_at(exact.get(), row).o; };
  problem.bounds = [exact](std::int64_t row) { return bounds_of(exact.get(), exact_row_at(exact.get(), row)); };
  return make_problem(std::move(problem));
}

constexpr tools::Variant variant_row[] = {
    {.name = "mla",
     .title = "Latent attention (MLA), absorbed",
     .meaning = "One latent of 576 elements a key, of which 512 are its value (or 512 and 512, 320 and 256), "
                "for 1 to 128 heads: decode, several rows a sequence, and prompts. "
                "Not absorbed, keys of 192 and values of 128, it is a head dim of attention_forward.",
     .descriptor = "attention_latent {type} b64 q1 k8192 h16 d576/512",
     .question = "Are values the first columns of keys, one latent for all heads (DeepSeek, Kimi, GLM)?",
     .peers = {"decode, fp8", "decode and prefill"}}};

class AttentionLatent : public Family {
 public:
  std::string_view name() const override { return "attention_latent"; }
  std::span<const tools::Variant> variant_rows() const override { return variant_row; }
  std::string_view grammar() const override {
    return "attention_latent <bf16|fp16> b<batch> q<query length> k<key length> h<heads> d576/512|d512|d320/256 "
           "[causal[=<prefix>]] [lse] [apart] [layout=packed|paged:<n>] [q_lengths=<n,…>] [k_lengths=<n,…>] "
           "[scale=<x>] [cache=e4m3|e5m2|e4m3_fnuz|e5m2_fnuz] [cache_scales=1|b] [row_scales=128|64] [sink] "
           "[softcap=<x>] [splits=<n>] [launches=<1|2>] [top_k=<n>[:slots][:mixed]] [second_top_k=<n>] [seed=<n>]";
  }
  std::string_view example() const override { return "attention_latent bf16 b2 q1 k1500 h16 d576/512 lse"; }
  std::vector<std::string> run_examples() const override {
    return {"attention_latent --q q.npy --k cache.npy --out out.npy --scale 0.0721688 --causal --check"};
  }
  std::vector<std::string> listed() const override {
    return {
        "attention_latent bf16 b2 q1 k100 h16 d576/512 lse",
        "attention_latent fp16 b1 q3 k130 h12 d576/512 causal lse apart",
        "attention_latent bf16 b2 q2 k200 h20 d512 causal k_lengths=200,17 sink",
        "attention_latent bf16 b1 q5 k90 h8 d320/256 causal softcap=20",
        "attention_latent bf16 b2 q1 k1100 h1 d576/512 layout=paged:16 k_lengths=1100,70",
        "attention_latent fp16 b2 q1 k90 h3 d576/512 layout=paged:1 k_lengths=90,3",
        "attention_latent bf16 b2 q2 k300 h16 d576/512 causal lse k_lengths=300,40 top_k=200:mixed",
        "attention_latent bf16 b1 q1 k900 h8 d576/512 layout=paged:64 top_k=600",
        "attention_latent fp16 b2 q1 k150 h40 d320/256 top_k=70:slots:mixed",
        "attention_latent bf16 b2 q2 k200 h24 d576/512 lse layout=paged:16 sink top_k=70:slots:mixed second_top_k=130",
        "attention_latent fp16 b1 q1 k700 h16 d512 splits=2 top_k=300:slots second_top_k=280"};
  }
  std::vector<std::string> examined() const override {
    return {
        "attention_latent bf16 b2 q1 k1100 h16 d576/512 lse",
        "attention_latent fp16 b1 q4 k130 h24 d576/512 causal sink layout=paged:64",
        "attention_latent bf16 b2 q1 k400 h16 d576/512 lse layout=paged:64 top_k=300:mixed",
        "attention_latent bf16 b2 q1 k300 h16 d576/512 lse layout=paged:64 k_lengths=300,77 cache=e4m3 row_scales=128",
        "attention_latent bf16 b1 q1 k300 h16 d576/512 layout=paged:64 cache=e4m3_fnuz cache_scales=1"};
  }
  std::vector<std::string> examined_for_time() const override {
    return {"attention_latent bf16 b64 q1 k8192 h16 d576/512", "attention_latent bf16 b64 q1 k4096 h128 d576/512"};
  }

  Result<std::unique_ptr<Problem>> parse(const std::string& descriptor) const override {
    return lazy_problem(parse_experiment(descriptor),
                        [](const std::string& text) { return problem_of(*make_latent_arrays(text, false)); });
  }
  std::unique_ptr<ArrayCall> make_call() const override { return make_array_call(); }
  std::string with_8_bit_cache(const std::string& descriptor, std::string_view target,
                               tools::EightBits kind) const override {
    return attention::program::with_cache_of(target, descriptor, kind);
  }
  // 656 bytes of 576 columns, 584 of 512: of bf16 alone, whose rope they have.
  std::string with_8_bit_rows(const std::string& descriptor, std::string_view target) const override {
    std::string in_bytes = with_8_bit_cache(descriptor, target, tools::EightBits::floats);
    const auto given = parse_experiment(descriptor);
    if (in_bytes == descriptor || !given || given->type != HalfType::bf16 || descriptor.contains(" apart"))
      return in_bytes;
    for (const auto& [scales, name] : row_scales_names)
      if (given->head_dim_qk == head_dims(dims_of(scales)).qk) return in_bytes + " row_scales=" + std::string(name);
    return in_bytes;
  }
  std::vector<std::string> serving_lines(const ServedModel& served) const override;
  const Tuning* tuning() const override { return &latent_tuning(); }
  const Invariance* invariance() const override { return &invariance_with_lists(); }
};

std::vector<std::string> AttentionLatent::serving_lines(const ServedModel& served) const {
  if (!served.config.latent) return {};
  const LatentDims& latent = *served.config.latent;
  const std::string dims = latent.rope == 0
                               ? "d" + std::to_string(latent.rank)
                               : "d" + std::to_string(latent.rank + latent.rope) + "/" + std::to_string(latent.rank);
  const auto line = [&](int rows, const std::string& words) {
    return "attention_latent " + served.config.dtype + " b" + std::to_string(sequences_of_step) + " q" +
           std::to_string(rows) + " k" + std::to_string(served.config.longest) + " h" + std::to_string(served.heads()) +
           " " + dims + (rows > 1 ? " causal " : " ") + served.layout() + words;
  };
  // Tokens; several rows a sequence, few and many: speculation, pieces of prompts.
  std::vector<std::string> lines = {line(1, ""), line(4, ""), line(64, "")};
  if (latent.top_k != 0) {
    const std::string list = " top_k=" + std::to_string(latent.top_k);
    lines.push_back(line(1, list));
    lines.push_back(line(1, list + ":slots"));
  }
  return lines;
}

}  // namespace

const tools::Family& family() { return tools::only<AttentionLatent>(); }

}  // namespace wavejit::attention_latent::program
