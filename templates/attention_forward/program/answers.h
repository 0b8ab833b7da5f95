// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What family.cpp answers the program's tools with (tools/family.h), by the file that knows it. No LLVM.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "templates/attention_forward/kernel/spec.h"
#include "templates/attention_forward/program/vocabulary.h"
#include "tools/family.h"
#include "tools/invariance/invariance.h"
#include "tools/served_model.h"
#include "tools/tuning.h"
#include "tools/variants/variants.h"

namespace wavejit::attention_forward::program {

// array_call.cpp, for `wavejit run`: q, k and v from .npy files, one call, O and LSE to .npy files.
std::unique_ptr<ArrayCall> make_array_call();

// listed_problems.cpp. `sweep`: every shape of the published tests (FlyDSL's forward matrix: dense, split, tail, packed
// and unequal) × head dim 64, 128 × bf16, fp16 × non-causal, causal, with LSE, inputs uniform in (−1, 1) and seed 123 as
// they are there; and what the field does not test. `doctor`: every route and modifier in problems of a few thousand
// multiplications, the smallest first; and calls of a millisecond or more.
std::vector<std::string> published_list();
std::vector<std::string> examined_list();
std::vector<std::string> timed_list();

// serving_lines.cpp, for `prebuild --model`: calls of an engine that serves a model.
std::vector<std::string> serving_lines(const ServedModel& served);

// schedule_text.cpp, for `explain --isa`. Lines, each with its end: what every row of the pipeline's table does, in order.
// Empty for a pipeline without a table.
std::string schedule_text(const ForwardKernel& spec);

// step_names.cpp, for `profile`. A name for each stretch, as "scores: QK, softmax" or "keys", empty where no row of the
// schedule is it; none for pipelines without a schedule and kernels that are not the spec's.
std::vector<std::string> step_names(const ForwardKernel& spec, std::string_view kernel,
                                    std::span<const CodeStretch> stretches);

// invariance.cpp, key_list_invariance.cpp: what may change about a call, and about one with lists of keys, without
// showing in a bit of O or LSE.
const Invariance& attention_invariance();
const Invariance& key_list_invariance();

// tuning.cpp: parameters of these templates, the values that each target and pipeline has, and the combinations that
// make sense, all from call/. And the rows of kernel/tuned_defaults.inc.
const Tuning& attention_tuning();

// variants.cpp: what people ask for by name, and the questions that lead to a variant of any family.
std::span<const Variant> variant_rows();
const Variants& attention_variants();

}  // namespace wavejit::attention_forward::program
