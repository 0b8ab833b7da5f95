// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From a problem to a kernel: a pure function of the problem's shape, the target and the toggles. No environment, no
// clock, no device; the same question has the same answer everywhere, and the answer says why not the others.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "families/call/failure.h"
#include "families/call/family.h"
#include "targets/targets.h"
#include "templates/attention_forward/call/pins.h"
#include "templates/attention_forward/call/problem.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::attention_forward {

using families::Refusal;
using families::Toggles;

struct ChosenKernel {
  ForwardKernel spec;
  Resources resources;
};

// WAVEJIT_UNSUPPORTED with the reason when no route is left.
Result<ChosenKernel> choose_kernel(const AttentionShape& shape, const targets::Target& target, const Toggles& toggles);

// Why the generic pipeline has no kernel of all that the shape says: of shared chunks, split keys and parts that are
// merged, which choose_kernel takes as wishes. Empty: it has one. `pins`: query rows of a workgroup.
std::string why_no_kernel(const AttentionShape& shape, const targets::Target& target, const Pins& pins = {});
// Whether it has one on some target.
bool has_kernel_somewhere(const AttentionShape& shape);

// For people: the kernels that might have been, and why each is not it.
std::vector<Refusal> why_not_others(const AttentionShape& shape, const targets::Target& target, const Toggles& toggles,
                                    const ChosenKernel& route);

// The pipeline that it begins with, and the query rows of a workgroup there.
Pipeline pipeline_of(const AttentionShape& shape, const targets::Target& target, const Pins& pins);
int tile_queries_of(const AttentionShape& shape, const targets::Target& target, Pipeline pipeline);

// "generic 128x64, 4 waves, scalar O store"
std::string describe(const ChosenKernel& route);

// "34048 bytes of LDS, up to 256 VGPRs, 4 workgroups per CU"
std::string cost_of(const ChosenKernel& route);

// Every shape that has a kernel on the target with these toggles, in the order in which people list them.
std::vector<AttentionShape> supported_shapes(const targets::Target& target, const Toggles& toggles);
// The words of a shape, as descriptors have them: "fp16 d128 causal lse".
std::string to_text(const AttentionShape& shape);

}  // namespace wavejit::attention_forward
