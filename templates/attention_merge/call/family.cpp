// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// attention_merge as the runtime and its tools know it.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "families/call/family_of.h"
#include "templates/attention/call/data_type.h"
#include "templates/attention_merge/call/descriptor.h"

namespace wavejit::attention_merge {
namespace {

using families::Explanation;
using families::Shape;
using families::Toggles;
using targets::Target;

struct Described final : families::DescribedBy<ProblemDescriptor> {
  using DescribedBy::DescribedBy;

  Result<Shape> shape(const boards::Board& board, const Toggles& /*toggles*/) const override {
    if (auto fits = fits_waves(descriptor_.dims, board); !fits) return std::unexpected(std::move(fits.error()));
    return descriptor_.shape().shape();
  }
};

class AttentionMerge final : public families::FamilyOfKernel<MergeKernel, MergeShape, Described, parse_descriptor> {
 public:
  Explanation explain_shape(const MergeShape& /*shape*/, const Target& target,
                            const Toggles& /*toggles*/) const override {
    return {.description = "eight dims a lane, a token a wave, parts one after the other",
            .cost = families::cost_of(threads, waves_per_simd, target),
            .refused = {}};
  }

  std::vector<Shape> every_shape(const Target& target, const Toggles& toggles) const override {
    std::vector<Shape> shapes;
    for (const auto& [parts, parts_name] : part_types)
      for (const auto& [out, out_name] : output_types)
        add_if_built(shapes, {{.parts = parts, .out = out}}, target, toggles);
    return shapes;
  }

  std::string supported(const Target& target) const override {
    // Each type has a kernel with itself.
    const auto has = [](MergeKernel spec) {
      spec.out = spec.parts;
      return !refusal_of(spec);
    };
    return words_on(target, has) +
           "; up to 8 tensors of parts anywhere, each the first of up to 4096 at one distance; LSE on request; head "
           "dims that are multiples of 8 up to " +
           std::to_string(std::min<std::int64_t>(max_dims, std::int64_t{dims_of_lane} * target.wave_size));
  }
};

}  // namespace

const families::Family& family() { return families::only<AttentionMerge>(); }

}  // namespace wavejit::attention_merge
