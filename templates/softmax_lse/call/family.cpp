// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// softmax_lse as the runtime and its tools know it.
#include <memory>
#include <utility>

#include "families/call/family_of.h"
#include "templates/attention/call/data_type.h"
#include "templates/attention/kernel/canon.h"
#include "templates/softmax_lse/call/descriptor.h"

namespace wavejit::softmax_lse {
namespace {

using families::Explanation;
using families::Shape;
using families::Toggles;
using targets::Target;

struct Described final : families::DescribedBy<ProblemDescriptor> {
  using DescribedBy::DescribedBy;

  Result<Shape> shape(const boards::Board& /*board*/, const Toggles& /*toggles*/) const override {
    return descriptor_.shape().shape();
  }
};

class SoftmaxLse final : public families::FamilyOfKernel<SoftmaxKernel, SoftmaxShape, Described, parse_descriptor> {
 public:
  Explanation explain_shape(const SoftmaxShape& of, const Target& target, const Toggles& /*toggles*/) const override {
    const bool resident = of.rows == Rows::resident;
    return {.description = std::string("two lanes a tile of ") + std::to_string(attention::tile_keys) + " scores, " +
                           (resident ? "read once" : "read twice") +
                           (of.access == Access::vectors ? "" : ", an element at a time"),
            .cost = families::cost_of(threads, waves_per_simd, target) + ", " +
                    std::to_string(tiles_of_workgroup * attention::tile_keys) + " scores a workgroup",
            .refused = {}};
  }

  std::vector<Shape> every_shape(const Target& /*target*/, const Toggles& /*toggles*/) const override {
    // Weights of the scores' type; other pairs are a line of a list.
    std::vector<Shape> shapes;
    for (const auto& [type, name] : data_types)
      for (const auto& [rows, rows_name] : rows_names)
        for (const bool unaligned : {false, true}) {
          const Access access = access_of(type, type, 2, unaligned);
          if (unaligned && access == Access::vectors) continue;
          shapes.push_back(SoftmaxShape{{.scores = type, .weights = type, .rows = rows, .access = access}}.shape());
        }
    return shapes;
  }

  std::string supported(const Target& target) const override {
    const auto has = [](const SoftmaxKernel& spec) { return !refusal_of(spec); };
    return words_on(target, has) + " or none; masks none causal window; LSE on request; rows of any length";
  }
};

}  // namespace

const families::Family& family() { return families::only<SoftmaxLse>(); }

}  // namespace wavejit::softmax_lse
