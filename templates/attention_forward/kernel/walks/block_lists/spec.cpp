// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/kernel/walks/block_lists/spec.h"

#include <tuple>

#include "families/kernel/spec_words.h"
#include "targets/targets.h"
#include "templates/attention/kernel/coverage.h"
#include "templates/attention_forward/kernel/walks/block_lists/arguments.h"
#include "templates/attention_forward/kernel/walks/block_lists/walks.h"

namespace wavejit::attention_block_lists {
namespace {

constexpr auto words = families::texts_of(std::tuple{
    families::flag<&BlockListsKernel::first_keys, BlockListsKernel>({.accepted = "first_keys", .name = "first_keys"}),
    families::target_word<BlockListsKernel>(),
    families::lowering_word<BlockListsKernel>(),
});

}  // namespace

std::string to_text(const BlockListsKernel& spec) { return families::text_of_spec(words, spec); }
std::expected<BlockListsKernel, std::string> parse_spec(std::string_view text) {
  return families::parse_words(words, text);
}
std::string kernel_name(const BlockListsKernel& spec) { return families::name_of_kernel(words, spec); }

std::size_t argument_bytes(const BlockListsKernel&) { return sizeof(Arguments); }

std::optional<std::string> refusal_of(const BlockListsKernel& spec) {
  const targets::Target* target = targets::find_target(spec.target);
  if (target == nullptr)
    return "target=" + spec.target + " is not in the target table; accepted: " + targets::known_targets();
  return attention::lacks_kernels(*target, attention::Need::waves_of_64, BlockListsKernel::kernel);
}

BlockListsKernel lists_of(const attention_forward::ForwardKernel& walker) {
  return {.first_keys = walker.first_keys && !walker.paged, .target = walker.target, .lowering = walker.lowering};
}

attention_forward::LaunchGeometry launch_geometry(std::uint32_t units, std::uint32_t heads, std::uint32_t batch) {
  const std::uint32_t sorters = (units + ordered_units - 1) / ordered_units;
  return {.grid_x = sorters + units, .grid_y = heads, .grid_z = batch, .threads = threads};
}

}  // namespace wavejit::attention_block_lists
