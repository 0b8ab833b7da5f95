// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What families have alike whose problems are descriptors and whose shapes are structs: a line is read into a
// descriptor, and a shape that has no kernels is refused with the words that stand in the way.
//
//   struct Described final : families::DescribedBy<ProblemDescriptor> {
//     using DescribedBy::DescribedBy;
//     Result<families::Shape> shape(const boards::Board& board, const Toggles& toggles) const override;
//   };
//   class SparseIndexer final : public families::FamilyOf<ScoresKernel, IndexerShape, Described, parse_descriptor> {
//     Result<Route> kernels_of(const IndexerShape& shape, const Target&, const Toggles&) const override;
//     // explain_shape, every_shape, supported
//   };
//   const families::Family& family() { return families::only<SparseIndexer>(); }
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "families/call/family.h"
#include "families/call/obstacles.h"
#include "families/kernel/kernel_of.h"

namespace wavejit::families {

// The route of a single kernel, or the rule that refuses it (`refusal_of(spec)`).
template <typename Spec>
Result<Route> route_of(const Spec& spec) {
  if (auto refusal = refusal_of(spec)) return fail(WAVEJIT_UNSUPPORTED, *std::move(refusal));
  return Route{.kernels = {{.label = "spec", .spec = spec}}};
}

// `to_text(descriptor)`: its canonical line.
template <typename Descriptor>
class DescribedBy : public DescribedProblem {
 public:
  explicit DescribedBy(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}
  std::string text() const override { return to_text(descriptor_); }

 protected:
  Descriptor descriptor_;
};

// `Kernel`: one of its kernels' specs. `parse_line(text)`: a descriptor, or why the line is none.
template <typename Kernel, typename KernelShape, typename Described, auto parse_line>
class FamilyOf : public Family {
 public:
  std::string_view name() const final { return Kernel::family; }

  Result<std::unique_ptr<DescribedProblem>> parse(std::string_view text) const final {
    auto descriptor = parse_line(text);
    if (!descriptor) return std::unexpected(std::move(descriptor.error()));
    return std::make_unique<Described>(*std::move(descriptor));
  }

  Result<Route> route(const Shape& shape, const targets::Target& target, const Toggles& toggles) const override {
    auto route = kernels_of(ProblemWords<KernelShape>::shape_of(shape.code), target, toggles);
    if (!route) return std::unexpected(in_words(shape.code, target, toggles, std::move(route.error())));
    return route;
  }

  Explanation explain(const Shape& shape, const targets::Target& target, const Toggles& toggles) const final {
    return explain_shape(ProblemWords<KernelShape>::shape_of(shape.code), target, toggles);
  }

 protected:
  ~FamilyOf() = default;

  // The kernels of a shape, or the rule's own sentence.
  virtual Result<Route> kernels_of(const KernelShape& shape, const targets::Target& target,
                                   const Toggles& toggles) const = 0;
  virtual Explanation explain_shape(const KernelShape& shape, const targets::Target& target,
                                    const Toggles& toggles) const = 0;
  // What a caller asked for, word by word, and what may stand in its place.
  virtual void add_words(ProblemWords<KernelShape>& /*words*/) const {}
  // A shape with words changed, as a call would have it: some words follow from others.
  virtual KernelShape settled(const KernelShape& shape, const targets::Target& /*target*/) const { return shape; }

 private:
  [[gnu::cold]] Failure in_words(std::uint64_t code, const targets::Target& target, const Toggles& toggles,
                                 Failure failure) const {
    ProblemWords<KernelShape> words(code);
    add_words(words);
    const auto refusal = [&](std::uint64_t other) -> std::optional<std::string> {
      auto route = kernels_of(settled(ProblemWords<KernelShape>::shape_of(other), target), target, toggles);
      return route ? std::nullopt : std::optional(std::move(route.error().detail));
    };
    return with_obstacles({.code = code, .words = words.all(), .refusal = refusal, .target = target.id},
                          std::move(failure));
  }
};

// A family of one kernel, whose spec is what a problem asks for, a target and a lowering.
template <typename Kernel, typename KernelShape, typename Described, auto parse_line>
class FamilyOfKernel : public FamilyOf<Kernel, KernelShape, Described, parse_line> {
 public:
  Result<Route> kernels_of(const KernelShape& shape, const targets::Target& target,
                           const Toggles& toggles) const final {
    return route_of(kernel_of(shape, target, toggles));
  }

 protected:
  ~FamilyOfKernel() = default;

  static Kernel kernel_of(const KernelShape& shape, const targets::Target& target, const Toggles& toggles) {
    return {shape, std::string(target.id), toggles.lowering};
  }
  // What `wavejit supported` says of the kernel's words; `has(spec)`: whether such a one has a kernel.
  static std::string words_on(const targets::Target& target, const HasKernel<Kernel>& has) {
    return supported_words<Kernel>(words_of_kernel<typename Kernel::Words>, {{}, std::string(target.id)}, has);
  }
  // A row of every_shape, where it has a kernel.
  static void add_if_built(std::vector<Shape>& shapes, const KernelShape& shape, const targets::Target& target,
                           const Toggles& toggles) {
    if (!refusal_of(kernel_of(shape, target, toggles))) shapes.push_back(shape.shape());
  }
};

// "256 threads, up to 64 VGPRs": what `explain` says of kernels that ask for the registers of so many waves.
inline std::string cost_of(int threads, int waves_per_simd, const targets::Target& target) {
  const int vgprs = std::min(target.vgprs_per_wave, target.vgprs_per_simd_lane / waves_per_simd);
  return std::to_string(threads) + " threads, up to " + std::to_string(vgprs) + " VGPRs";
}

// A family has no state: there is one of each.
template <typename One>
const Family& only() {
  static const One one;
  return one;
}

}  // namespace wavejit::families
