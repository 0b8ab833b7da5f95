// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <format>
#include <string_view>
#include <type_traits>
#include <variant>

#include "templates/attention_forward/emit/dualwave_schedule.h"
#include "templates/attention_forward/emit/interleaved_schedule.h"
#include "templates/attention_forward/program/answers.h"

namespace wavejit::attention_forward::program {
namespace {

using schedule::Product;
using schedule::Softmax;
using schedule::Stream;
using schedule::Tile;

std::string number_text(int ahead) { return ahead == 0 ? "t" : std::format("t{:+}", ahead); }
std::string tile_text(const Tile& tile) {
  return std::format("{}({})", tile.stream == Stream::keys ? "K" : "V", number_text(tile.ahead));
}

std::string text_of(const schedule::LookUp& act) {
  return std::format("look up the page of {}", number_text(act.ahead));
}
std::string text_of(const schedule::ReadWalk& act) {
  return std::format("read the walk at {}", number_text(act.ahead));
}
std::string text_of(const schedule::Fetch& act) {
  return std::format("fetch {}{}", tile_text(act.tile), act.may_be_past_the_end ? " or the last tile" : "");
}
std::string text_of(const schedule::LoadModifiers& act) {
  return std::format("fetch bias({})", number_text(act.ahead));
}
std::string text_of(const schedule::Modify& act) {
  return std::format("modify and mask S({})", number_text(act.ahead));
}
std::string text_of(const schedule::Rescale& /*act*/) { return "rescale O and l"; }

std::string overlap_text(Product product, Softmax softmax) {
  std::string text;
  if (product == Product::scores) text = "S(t+1) = K(t+1)·Q";
  if (product == Product::output) text = "O += P(t)·V(t)";
  if (softmax == Softmax::none) return text;
  const std::string_view part = softmax == Softmax::begin ? "softmax of S(t+1) begins" : "softmax of S(t) ends";
  return text.empty() ? std::string(part) : std::format("{} over which {}", text, part);
}

std::string text_of(const schedule::Merge& act) {
  if (act.apart) return "where t begins a chunk, merge l and O of the one before in two stretches of its own";
  if (act.half == schedule::Half::both) return "where t begins a chunk, merge l and O of the one before";
  return act.half == schedule::Half::first ? "where t begins a chunk, merge l and half of O of the one before"
                                           : "then the other half of O";
}
std::string text_of(const schedule::EndPart& /*act*/) { return "where t+1 ends a chunk, put its maximum aside"; }

std::string text_of(const dualwave::Read& act) { return "read " + tile_text(act.tile); }
std::string text_of(const dualwave::Wait& act) {
  if (act.fetches_left == dualwave::Wait::all) return "wait for LDS reads";
  return std::format("wait for LDS reads and for fetches but {}", act.fetches_left);
}
std::string text_of(const dualwave::Overlap& act) { return overlap_text(act.product, act.softmax); }
std::string text_of(const dualwave::Rest& /*act*/) { return "what of the softmax did not fit under the product"; }

std::string text_of(const interleaved::Read& act) { return std::format("begin to read {}", tile_text(act.tile)); }
std::string text_of(const interleaved::Overlap& act) {
  std::string text = overlap_text(act.product, act.softmax);
  if (act.write) text += std::format("{}{} goes into LDS", text.empty() ? "" : ", and ", tile_text(*act.write));
  return text;
}

// What a kernel without a bias, without lists or without pages does not do is left out.
template <typename Act>
bool is_done(const Act& /*act*/, const ForwardKernel& spec) {
  if (std::is_same_v<Act, schedule::LoadModifiers>) return spec.has(Modifier::bias);
  if (std::is_same_v<Act, schedule::ReadWalk>) return spec.block_lists;
  return !std::is_same_v<Act, schedule::LookUp> || spec.paged;
}

template <typename Acts>
std::string acts_text(const Acts& acts, const ForwardKernel& spec) {
  std::string text;
  for (const auto& act : acts) {
    if (!std::visit([&](const auto& one) { return is_done(one, spec); }, act)) continue;
    if (!text.empty()) text += "; ";
    text += std::visit([](const auto& one) { return text_of(one); }, act);
  }
  return text;
}

std::string row_text(std::string_view part, std::string_view name, std::string_view kind, const std::string& acts) {
  return std::format("  {:<9} {:<8} {:<8} {}\n", part, name, kind, acts);
}

std::string text_of_row(const ForwardKernel& spec, std::string_view part, const dualwave::Cluster& cluster) {
  if (const auto* memory = std::get_if<dualwave::Memory>(&cluster))
    return row_text(part, memory->name, "memory", acts_text(memory->acts, spec));
  const auto& compute = std::get<dualwave::Compute>(cluster);
  return row_text(part, compute.name, "compute",
                  acts_text(compute.acts, spec) + (compute.raised_priority ? "; at raised priority" : "") +
                      (compute.behind.size() == 0 ? "" : "; behind its barrier: " + acts_text(compute.behind, spec)));
}

std::string text_of_row(const ForwardKernel& spec, std::string_view part, const interleaved::Step& step) {
  return row_text(part, step.name, "step", acts_text(step.acts, spec));
}

template <typename Schedule>
std::string rows_text(const ForwardKernel& spec, const Schedule& schedule) {
  std::string text;
  const auto add = [&](std::string_view part, const auto& rows) {
    for (const auto& row : rows) text += text_of_row(spec, part, row);
  };
  add("start", schedule.start);
  add("prologue", schedule.prologue);
  add("steady", schedule.steady);
  add("drain", schedule.drain);
  return text;
}

constexpr std::string_view legend =
    "A row a stretch between two barriers. start and prologue run once, steady once for each key tile t but the last,\n"
    "drain for the last one. K(t), V(t), S(t), P(t): keys, values, scores and weights of tile t; in the prologue t = -1.\n";

}  // namespace

std::string schedule_text(const ForwardKernel& spec) {
  switch (spec.pipeline) {
    case Pipeline::dualwave:
      return std::string(legend) +
             "Eight waves in two groups; with stagger=on the second group runs one row behind the first, so that one "
             "of a SIMD's\ntwo waves moves data while the other computes.\n" +
             rows_text(spec, dualwave::schedule_in(dualwave::order_of(spec)));
    case Pipeline::interleaved:
      return std::string(legend) + "Four waves; each overlaps its own softmax with its own products.\n" +
             rows_text(spec, interleaved::schedule_in(interleaved::order_of(spec), interleaved::look_ups_of(spec)));
    case Pipeline::generic:
      break;
  }
  return {};
}

}  // namespace wavejit::attention_forward::program
