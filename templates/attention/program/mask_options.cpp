// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/program/mask_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "templates/attention/kernel/mask_kinds.h"
#include "templates/attention/program/option_texts.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention::program {

namespace {

std::optional<std::int64_t> parse_prefix(const std::string& text) {
  const auto value = parse_number<std::int64_t>(text);
  return value && *value >= 0 ? value : std::nullopt;
}

// "--local-chunk"
std::string flag_of(const MaskKind& kind) {
  std::string flag = "--" + std::string(kind.field);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

std::optional<std::pair<std::int32_t, std::int32_t>> parse_window(const std::string& text) {
  const std::size_t comma = text.find(',');
  if (comma == std::string::npos) return std::nullopt;
  const auto left = parse_number<std::int32_t>(std::string_view(text).substr(0, comma));
  const auto right = parse_number<std::int32_t>(std::string_view(text).substr(comma + 1));
  if (!left || !right || *left < -1 || *right < -1) return std::nullopt;
  return std::pair(*left, *right);
}

}  // namespace

void MaskOptions::add_to(CLI::App& command, const std::string& row, MaskKinds kinds) {
  command.add_flag("--causal", causal_,
                   fmt::format("a {0} sees no later key; the last {0} sees all (aligned bottom-right)", row));
  add_parsed(command, "--causal-prefix", prefix_, "N",
             fmt::format("causal, with N keys before the first {}'s own", row), parse_prefix,
             "numbers of keys are, from 0");
  if (kinds == MaskKinds::causal) return;
  add_parsed(command, "--window", window_, "LEFT,RIGHT",
             fmt::format("keys that a {} sees before and after its own place; -1: no limit", row), parse_window,
             "two numbers from -1 are, as 1023,0");
  if (kinds == MaskKinds::windows) return;
  for (std::size_t i = 0; i < mask_kinds.size(); ++i)
    add_parsed(
        command, flag_of(mask_kinds[i]), numbers_[i], "KEYS", fmt::format(fmt::runtime(mask_kinds[i].help), row),
        [least = mask_kinds[i].least](const std::string& text) {
          const auto value = parse_number<std::int64_t>(text);
          return value && *value >= least ? value : std::nullopt;
        },
        fmt::format("numbers of keys from {} are", mask_kinds[i].least));
}

tools::Result<void> MaskOptions::check() const {
  const std::int32_t bits = given().bits;
  for (std::size_t i = 0; i < mask_kinds.size(); ++i) {
    const MaskKind& kind = mask_kinds[i];
    if ((bits & kind.bit) == 0) continue;
    const std::string told = flag_of(kind) + " " + numbers_[i];
    if ((kind.beside & WAVEJIT_MASK_CAUSAL & ~bits) != 0)
      return failed(tools::ExitCode::usage, told + " needs --causal");
    if ((bits & WAVEJIT_MASK_WINDOW & ~kind.beside) != 0)
      return failed(tools::ExitCode::usage,
                    fmt::format("{} beside --window {}: one of them is accepted", told, window_));
  }
  return {};
}

wavejit_masking MaskOptions::given() const {
  wavejit_masking mask{};
  if (causal_ || !prefix_.empty()) mask.bits |= WAVEJIT_MASK_CAUSAL;
  if (const auto prefix = parse_prefix(prefix_)) {
    mask.bits |= WAVEJIT_MASK_PREFIX;
    mask.causal_prefix = *prefix;
  }
  if (const auto window = parse_window(window_)) {
    mask.bits |= WAVEJIT_MASK_WINDOW;
    mask.window_left = window->first;
    mask.window_right = window->second;
  }
  for (std::size_t i = 0; i < mask_kinds.size(); ++i) {
    const auto number = parse_number<std::int64_t>(numbers_[i]);
    if (!number) continue;
    mask.bits |= mask_kinds[i].bit;
    mask.*mask_kinds[i].number = static_cast<std::int32_t>(*number);
  }
  return mask;
}

void MaskOptions::describe(wavejit_masking& call) const {
  const std::int32_t bits = call.bits;
  call = given();
  call.bits |= bits;
}

}  // namespace wavejit::attention::program
