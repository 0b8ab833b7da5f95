// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cache_append as the runtime and its tools know it.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "families/call/family_of.h"
#include "templates/attention/call/data_type.h"
#include "templates/cache_append/call/descriptor.h"

namespace wavejit::cache_append {
namespace {

using families::Explanation;
using families::Shape;
using families::Toggles;
using targets::Target;

struct Described final : families::DescribedBy<ProblemDescriptor> {
  using DescribedBy::DescribedBy;

  Result<Shape> shape(const boards::Board& board, const Toggles& /*toggles*/) const override {
    const std::int64_t widest = std::max(descriptor_.key_dims, descriptor_.value_dims);
    if (auto fits = fits_waves(widest, board); !fits) return std::unexpected(std::move(fits.error()));
    return descriptor_.shape().shape();
  }
};

class CacheAppend final : public families::FamilyOfKernel<AppendKernel, AppendShape, Described, parse_descriptor> {
 public:
  void add_words(families::ProblemWords<AppendShape>& words) const override {
    const DataType own = words.shape.cache;
    words.add_choice("a cache in " + std::string(attention::to_text(own)), "a cache in", [](AppendShape& other) {
      other.cache = other.source;
      other.scales = Scales::none;
    });
    // Types of as many bits keep the scales; others have none.
    for (const auto& [type, name] : attention::data_types)
      words.add_value(type != own && is_narrow(type) && is_narrow(own), std::string(name),
                      [type](AppendShape& other) { other.cache = type; });
    words.add_value(own != words.shape.source && !in_rows(words.shape.scales),
                    std::string(attention::to_text(words.shape.source)), [](AppendShape& other) {
                      other.cache = other.source;
                      other.scales = Scales::none;
                    });
    words.add_other(words.shape.source != DataType::bf16,
                    "k and v in " + std::string(attention::to_text(words.shape.source)), "k and v in", "bf16",
                    [](AppendShape& other) { other.source = DataType::bf16; });
  }

  Explanation explain_shape(const AppendShape& of, const Target& target, const Toggles& /*toggles*/) const override {
    std::string text = "eight dims a lane, " + std::to_string(tokens_of_wave) + " tokens a wave";
    const std::pair<Access, const char*> all[] = {{of.source_access, "the source"},
                                                  {of.key_access, "keys"},
                                                  {of.value_access, "values"},
                                                  {of.queries, "queries"}};
    for (const auto& [access, which] : all)
      if (access == Access::elements) text += std::string(", ") + which + " an element at a time";
    if (of.rotary != Rotary::none)
      text += of.angles == Angles::base ? ", turned by a base's frequencies" : ", turned by tables";
    if (of.scales == Scales::heads) text += ", in 8 bits by given scales";
    if (of.scales == Scales::tokens) text += ", in 8 bits by scales that are found, one for each head of a token";
    if (in_rows(of.scales))
      text += ", rows of " + std::to_string(latent_row(of.scales).columns) + " bytes with scales of their own";
    return {.description = text, .cost = families::cost_of(threads, waves_per_simd(of), target), .refused = {}};
  }

  std::vector<Shape> every_shape(const Target& target, const Toggles& toggles) const override {
    // Rows that move in vectors, into all types; turned, with and without queries, by tables of fp32 and of the type.
    // Other pages and strides are a line of a list.
    std::vector<Shape> shapes;
    for (const auto& [source, source_name] : operand_types)
      for (const auto& [cache, cache_name] : attention::data_types)
        for (const auto& [scales, scales_name] : scale_names)
          add_if_built(shapes, {{.source = source, .cache = cache, .scales = scales}}, target, toggles);
    for (const auto& [type, name] : operand_types) {
      AppendShape plain;
      plain.source = plain.cache = type;
      shapes.push_back(plain.shape());
      for (const Rotary rotary : {Rotary::halves, Rotary::interleaved})
        for (const Angles angles : {Angles::fp32, type == DataType::bf16 ? Angles::bf16 : Angles::fp16})
          for (const Access queries : {Access::none, Access::vectors}) {
            AppendShape turned = plain;
            turned.rotary = rotary;
            turned.angles = angles;
            turned.queries = queries;
            shapes.push_back(turned.shape());
          }
    }
    return shapes;
  }

  std::string supported(const Target& target) const override {
    // A cache of 16 bits has the type of what is appended.
    const auto has = [](AppendKernel spec) {
      if (bytes_of(spec.cache) == 2) spec.cache = spec.source;
      if (is_narrow(spec.cache)) spec.scales = Scales::heads;
      return !refusal_of(spec);
    };
    return words_on(target, has) + ", by scales that are given or found" +
           (has_rows(target) ? ", in rows of 656 and 584 bytes" : "") +
           "; pages of any size and order, dense caches; rotary none halves interleaved, by tables or a base, "
           "of Q too; head dims that are multiples of 8 up to " +
           std::to_string(std::min<std::int64_t>(max_dims, std::int64_t{dims_of_lane} * target.wave_size));
  }
};

}  // namespace

const families::Family& family() { return families::only<CacheAppend>(); }

}  // namespace wavejit::cache_append
