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

using families::Toggles;
using targets::Target;

struct Described final : families::DescribedBy<ProblemDescriptor> {
  using DescribedBy::DescribedBy;

  Result<families::Shape> shape(const boards::Board& board, const Toggles& /*toggles*/) const override {
    if (auto fits = fits_waves(descriptor_.dims, board); !fits) return std::unexpected(std::move(fits.error()));
    return descriptor_.shape().shape();
  }
};

MergeKernel kernel_of(const AskedWords& asked, const Target& target, const Toggles& toggles) {
  return {asked, std::string(target.id), toggles.lowering};
}

class AttentionMerge final : public families::FamilyOf<MergeShape, Described, parse_descriptor> {
 public:
  std::string_view name() const override { return MergeKernel::family; }

  Result<families::Route> kernels_of(const MergeShape& shape, const Target& target,
                                     const Toggles& toggles) const override {
    return families::route_of(kernel_of(shape, target, toggles));
  }

  families::Explanation explain(const families::Shape& /*shape*/, const Target& target,
                                const Toggles& /*toggles*/) const override {
    return {.description = "eight dims a lane, a token a wave, parts one after the other",
            .cost = std::to_string(threads) + " threads, up to " +
                    std::to_string(std::min(target.vgprs_per_wave, target.vgprs_per_simd_lane / waves_per_simd)) +
                    " VGPRs",
            .refused = {}};
  }

  std::vector<families::Shape> every_shape(const Target& target, const Toggles& toggles) const override {
    std::vector<families::Shape> shapes;
    for (const auto& [parts, parts_name] : part_types)
      for (const auto& [out, out_name] : part_types) {
        MergeShape shape;
        shape.parts = parts;
        shape.out = out;
        if (!refusal_of(kernel_of(shape, target, toggles))) shapes.push_back(shape.shape());
      }
    return shapes;
  }

  std::string supported(const Target& target) const override {
    const MergeKernel plain = {{}, std::string(target.id)};
    // Each type has a kernel with itself.
    const auto has = [](MergeKernel spec) {
      spec.out = spec.parts;
      return !refusal_of(spec);
    };
    return families::supported_words<MergeKernel>(families::texts_of(word_table), plain, has) +
           "; up to 8 tensors of parts anywhere, each the first of up to 4096 at one distance; LSE on request; head "
           "dims that are multiples of 8 up to " +
           std::to_string(std::min<std::int64_t>(max_dims, std::int64_t{dims_of_lane} * target.wave_size));
  }
};

}  // namespace

const families::Family& family() {
  static const AttentionMerge one;
  return one;
}

}  // namespace wavejit::attention_merge
