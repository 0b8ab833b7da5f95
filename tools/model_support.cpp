// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/model_support.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "tools/families.h"
#include "tools/family.h"
#include "tools/refused_lines.h"
#include "wavejit/prebuild.h"

namespace wavejit::tools {
namespace {

// A question alone: nothing is compiled, read from a cache or written.
wavejit_engine_options options_of_a_question() {
  wavejit_engine_options options{};
  options.size = sizeof options;
  options.cache_mode = "off";
  return options;
}

// "q1..8192": the word's letters and both ends; one number is a range of itself. Nothing else is a length here.
struct Range {
  std::string_view word;
  std::int64_t low = 0;
  std::int64_t high = 0;
};
std::optional<Range> range_of(const std::string& line, char letter) {
  const std::size_t at = line.find(std::string(" ") + letter);
  if (at == std::string::npos) return std::nullopt;
  const std::string_view word = std::string_view(line).substr(at + 1, line.find(' ', at + 1) - at - 1);
  Range range = {.word = word};
  const char* const end = word.data() + word.size();
  auto [stop, error] = std::from_chars(word.data() + 1, end, range.low);
  if (error != std::errc{}) return std::nullopt;
  range.high = range.low;
  if (end - stop > 2 && stop[0] == '.' && stop[1] == '.') std::from_chars(stop + 2, end, range.high);
  return range;
}

std::string with_length(std::string line, char letter, const Range& range, std::int64_t length) {
  return line.replace(line.find(" " + std::string(range.word)) + 1, range.word.size(),
                      fmt::format("{}{}", letter, length));
}

// A line's calls: of a range both ends, over keys in pages; without pages a prompt.
std::vector<RoutedCall> calls_of(const std::string& line) {
  const auto rows = range_of(line, 'q');
  const auto keys = range_of(line, 'k');
  const bool paged = line.contains(" layout=paged");
  if (!rows || !keys) return {{.name = "", .descriptor = line, .route = ""}};
  const std::string whole = with_length(line, 'k', *keys, keys->high);
  if (rows->low == rows->high)
    return {{.name = paged && rows->low == 1 ? "decode" : "", .descriptor = whole, .route = ""}};
  std::vector<RoutedCall> calls = {
      {.name = "prefill",
       .descriptor = with_length(whole, 'q', *rows, std::min(rows->high, std::max<std::int64_t>(keys->high, 1))),
       .route = ""}};
  if (paged) calls.push_back({.name = "decode", .descriptor = with_length(whole, 'q', *rows, rows->low), .route = ""});
  return calls;
}

// A refusal is an answer; anything else, such as a library that is not there, ends the command.
bool is_refusal(const Failure& failure) {
  return failure.code == ExitCode::unsupported || failure.code == ExitCode::usage;
}

// The route in the library's words, or why there is none.
Result<std::string> route_of(const std::string& descriptor, const std::string& target) {
  const wavejit_engine_options options = options_of_a_question();
  std::string route;
  const auto take = [](void* context, const char* line) {
    constexpr std::string_view label = "route    ";
    const std::string_view text = line;
    if (text.starts_with(label)) *static_cast<std::string*>(context) = text.substr(label.size());
  };
  if (auto done = checked(wavejit_explain(&options, descriptor.c_str(), target.c_str(), take, &route)); !done)
    return std::unexpected(done.error());
  return route;
}

// What the library refuses of the lines, each with all lengths of its ranges: what `wavejit prebuild` finds out before
// it compiles. "" where nothing is.
Result<std::vector<std::string>> refusals_of(const std::vector<LineAnswer>& lines, const std::string& target) {
  std::vector<const char*> descriptors;
  descriptors.reserve(lines.size());
  for (const LineAnswer& line : lines) descriptors.push_back(line.line.c_str());
  const wavejit_engine_options options = options_of_a_question();
  wavejit_prebuild_arguments request{};
  request.size = sizeof request;
  request.descriptors = descriptors.data();
  request.count = descriptors.size();
  request.targets = target.c_str();
  request.mode = WAVEJIT_PREBUILD_VERIFY;
  struct Told {
    std::vector<std::string> refusals;
    bool any = false;
  } told = {.refusals = std::vector<std::string>(lines.size())};
  const auto take = [](void* context, const wavejit_prebuild_list_progress* progress) {
    Told& all = *static_cast<Told*>(context);
    all.any = true;
    if (progress->descriptor != nullptr) all.refusals[progress->line] = progress->failure;
  };
  // That kernels are missing, where there is no cache to look in, says nothing. A list that was never begun does.
  if (auto done = checked(wavejit_prebuild_list(&options, &request, take, &told)); !done && !told.any)
    return std::unexpected(done.error());
  for (std::string& refusal : told.refusals) refusal = common_part(refusal, target);
  return std::move(told.refusals);
}

// Whether keys of a line stand in the KV cache: those of a prompt that is in no cache yet keep the model's type.
bool has_pages(const std::string& line) { return line.contains(" layout=paged") || line.contains(" page="); }

// The calls of each kind of layers by itself; a call that several kinds make is one line.
std::vector<LineAnswer> lines_of(const ServedModel& served, const std::string& target, bool in_8_bits) {
  std::vector<LineAnswer> lines;
  for (const Family* family : all_families()) {
    for (const LayerKind& kind : served.config.layers) {
      ServedModel of_kind = served;
      of_kind.config.layers = {kind};
      for (std::string& line : family->serving_lines(of_kind)) {
        if (in_8_bits && has_pages(line)) line = family->with_8_bit_cache(line, target, EightBits::floats);
        auto found = std::ranges::find(lines, line, &LineAnswer::line);
        if (found == lines.end()) {
          lines.push_back({.line = line, .kinds = {}, .calls = calls_of(line), .refusal = {}});
          found = std::prev(lines.end());
        }
        found->kinds.push_back(kind.name);
      }
    }
  }
  return lines;
}

// "head dim 256 needs LDS DMA of 16 bytes, which gfx942 does not have: …; accepted: …" up to its first colon.
std::string in_short(std::string_view refusal) {
  return std::string(refusal.substr(0, std::min(refusal.find(": "), refusal.find("; "))));
}

void judge(CacheAnswer& answer, const ModelConfig& model) {
  std::size_t served_kinds = 0;
  std::vector<std::string> missing;
  std::string first;
  for (const LayerKind& kind : model.layers) {
    const auto refused = std::ranges::find_if(answer.lines, [&](const LineAnswer& line) {
      return !line.refusal.empty() && std::ranges::contains(line.kinds, kind.name);
    });
    if (refused == answer.lines.end()) {
      ++served_kinds;
      continue;
    }
    missing.push_back(fmt::format("{} layers: {}", kind.name, in_short(refused->refusal)));
    if (first.empty()) first = in_short(refused->refusal);
  }
  const bool all = served_kinds == model.layers.size();
  answer.supported = served_kinds == 0 ? Supported::no : all ? Supported::yes : Supported::partly;
  if (model.linear_layers > 0 && answer.supported != Supported::no) {
    answer.supported = Supported::partly;
    missing.push_back(fmt::format("{} layers of linear attention have no calls here", model.linear_layers));
  }
  if (answer.supported == Supported::no) {
    answer.missing = first;
    return;
  }
  for (const std::string& each : missing) answer.missing += (answer.missing.empty() ? "" : "; ") + each;
}

Result<CacheAnswer> ask(const ServedModel& served, const std::string& target, bool in_8_bits) {
  CacheAnswer answer = {
      .cache = in_8_bits ? "fp8" : served.config.dtype, .lines = lines_of(served, target, in_8_bits), .missing = {}};
  const auto refusals = refusals_of(answer.lines, target);
  if (!refusals) return std::unexpected(refusals.error());
  for (std::size_t i = 0; i < refusals->size(); ++i) {
    LineAnswer& line = answer.lines[i];
    line.refusal = (*refusals)[i];
    for (RoutedCall& call : line.calls) {
      if (!line.refusal.empty()) break;
      auto route = route_of(call.descriptor, target);
      if (!route && !is_refusal(route.error())) return std::unexpected(route.error());
      if (route)
        call.route = *std::move(route);
      else
        line.refusal = common_part(route.error().what, target);
    }
  }
  judge(answer, served.config);
  return answer;
}

}  // namespace

std::string_view word_of(Supported supported) {
  return supported == Supported::yes ? "yes" : supported == Supported::partly ? "partly" : "no";
}

Result<ModelAnswer> answer_for(const std::string& name, const ServedModel& served,
                               const std::vector<NamedTarget>& targets) {
  ModelAnswer answer = {.name = name, .served = served, .refusal = {}, .targets = {}};
  for (const NamedTarget& target : targets) {
    TargetAnswer& of_target =
        answer.targets.emplace_back(TargetAnswer{.target = target.id, .product = target.product, .caches = {}});
    for (const bool in_8_bits : {false, true}) {
      auto cache = ask(served, target.id, in_8_bits);
      if (!cache) return std::unexpected(cache.error());
      of_target.caches.push_back(*std::move(cache));
    }
  }
  return answer;
}

ModelAnswer unread_model(const std::string& name, const std::string& where, const Failure& failure) {
  const std::string_view what = failure.what;
  const std::string before = where + ": ";
  return {.name = name,
          .served = {},
          .refusal = in_short(what.starts_with(before) ? what.substr(before.size()) : what),
          .targets = {}};
}

bool all_supported(const ModelAnswer& answer) {
  return answer.refusal.empty() && std::ranges::all_of(answer.targets, [](const TargetAnswer& target) {
           return target.caches.front().supported == Supported::yes;
         });
}

}  // namespace wavejit::tools
