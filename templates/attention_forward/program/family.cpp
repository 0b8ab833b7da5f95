// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// attention_forward as the program's tools know it (tools/family.h).
#include "tools/family.h"

#include <fmt/format.h>

#include "templates/attention/program/cache_formats.h"
#include "templates/attention_forward/program/answers.h"
#include "templates/attention_forward/program/attention_case.h"
#include "templates/attention_forward/program/described_experiment.h"
#include "tools/invariance/joined.h"
#include "tools/targets.h"

namespace wavejit::attention_forward::program {

namespace {

class AttentionForward : public tools::Family {
 public:
  std::string_view name() const override { return "attention_forward"; }
  std::string_view grammar() const override {
    return "attention_forward <fp16|bf16> b<batch> q<query length> k<key length> h<heads>[/<kv heads>] d<head dim> [causal] [lse]";
  }
  std::string_view example() const override { return "attention_forward bf16 b1 q1024 k8192 h64/8 d128 causal lse"; }
  std::vector<std::string> run_examples() const override {
    return {fmt::format("attention_forward --q q.npy --k k.npy --v v.npy --out o.npy --device sim:{} --check",
                        example_targets().last),
            "attention_forward --q q.npy --k k.npy --v v.npy --out o.npy --lse lse.npy --causal --dtype bf16"};
  }

  std::string schedule(const std::string& kernel_spec) const override {
    const auto spec = parse_spec(kernel_spec);
    return spec ? schedule_text(*spec) : std::string();
  }

  std::vector<std::string> step_names(const std::string& kernel_spec, std::string_view kernel,
                                      std::span<const tools::CodeStretch> stretches) const override {
    const auto spec = parse_spec(kernel_spec);
    return spec ? program::step_names(*spec, kernel, stretches) : std::vector<std::string>();
  }

  std::string without_setting(const std::string& kernel_spec, std::string_view name) const override {
    const auto spec = parse_spec(kernel_spec);
    if (!spec) return {};
    if ((name == "stagger" || name == "setprio") && spec->pipeline != Pipeline::dualwave)
      return fmt::format("only pipeline=dualwave has it, and this kernel has pipeline={}", to_text(spec->pipeline));
    if (name == "o_store" && spec->split_keys != 0) return "a kernel of split keys stores no O; another kernel does";
    return {};
  }

  tools::Result<std::unique_ptr<tools::Problem>> parse(const std::string& descriptor) const override {
    auto problem = parse_experiment(descriptor);
    if (!problem) return std::unexpected(problem.error());
    return std::make_unique<ParsedProblem>(std::move(*problem));
  }
  std::vector<std::string> listed() const override { return published_list(); }
  std::vector<std::string> examined() const override { return examined_list(); }
  std::vector<std::string> examined_for_time() const override { return timed_list(); }
  std::unique_ptr<tools::ArrayCall> make_call() const override { return make_array_call(); }
  std::string with_8_bit_cache(const std::string& descriptor, std::string_view target,
                               tools::EightBits kind) const override {
    return attention::program::with_cache_of(target, descriptor, kind);
  }
  std::vector<std::string> serving_lines(const tools::ServedModel& served) const override {
    return program::serving_lines(served);
  }
  const tools::Tuning* tuning() const override { return &attention_tuning(); }
  const tools::Invariance* invariance() const override {
    static const tools::JoinedInvariance both = {&attention_invariance(), &key_list_invariance()};
    return &both;
  }
  std::span<const tools::Variant> variant_rows() const override { return program::variant_rows(); }
  const tools::Variants* variants() const override { return &attention_variants(); }
};

}  // namespace

const tools::Family& family() { return tools::only<AttentionForward>(); }

}  // namespace wavejit::attention_forward::program
