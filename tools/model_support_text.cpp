// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An answer about a model as text, Markdown and JSON.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/model_support.h"
#include "tools/targets.h"

namespace wavejit::tools {
namespace {

using Json = nlohmann::ordered_json;

// "dualwave 256x64": a route up to its first comma. The whole stands in the text and in JSON.
std::string beginning_of(const std::string& route) { return route.substr(0, route.find_first_of(",;:")); }

std::string route_by_name(const CacheAnswer& cache, std::string_view name) {
  for (const LineAnswer& line : cache.lines)
    for (const RoutedCall& call : line.calls)
      if (call.name == name && !call.route.empty()) return fmt::format("{} {}", name, beginning_of(call.route));
  return "";
}

// "yes: prefill dualwave 256x64, decode generic 32x64", "partly: full layers: …", "no: …".
std::string cell_of(const CacheAnswer& cache) {
  const std::string word(word_of(cache.supported));
  if (cache.supported != Supported::yes) return word + ": " + cache.missing;
  std::vector<std::string> routes;
  for (const std::string_view name : {"prefill", "decode"})
    if (std::string route = route_by_name(cache, name); !route.empty()) routes.push_back(std::move(route));
  return routes.empty() ? word : word + ": " + joined(routes, ", ");
}

// A second answer stands behind the first where a cache of 8 bits lacks other calls.
std::string cell_of(const TargetAnswer& target) {
  const CacheAnswer& own = target.caches.front();
  const CacheAnswer& bytes = target.caches.back();
  std::string cell = cell_of(own);
  if (own.supported == bytes.supported && own.missing == bytes.missing) return cell;
  return fmt::format("{}; {} KV cache: {}{}", cell, bytes.cache, word_of(bytes.supported),
                     bytes.missing.empty() ? "" : ", " + bytes.missing);
}

// The first line that has a step of decode says the model's attention best.
std::string told_line(const ModelAnswer& answer) {
  for (const TargetAnswer& target : answer.targets)
    for (const LineAnswer& line : target.caches.front().lines)
      if (std::ranges::contains(line.calls, "decode", &RoutedCall::name)) return line.line;
  return "";
}

// What a reader would see twice: refusals, and routes in the order of the lines.
bool alike(const CacheAnswer& one, const CacheAnswer& other) {
  return std::ranges::equal(one.lines, other.lines, [](const LineAnswer& a, const LineAnswer& b) {
    return a.refusal == b.refusal && std::ranges::equal(a.calls, b.calls, {}, &RoutedCall::route, &RoutedCall::route);
  });
}

std::string lines_text(const CacheAnswer& cache) {
  std::string text;
  for (const LineAnswer& line : cache.lines) {
    text += fmt::format("    {}   ({} layers)\n", line.line, joined(line.kinds, ", "));
    if (!line.refusal.empty()) text += fmt::format("      refused  {}\n", line.refusal);
    for (const RoutedCall& call : line.calls)
      if (!call.route.empty())
        text += fmt::format("      {:<8} {}\n", call.name.empty() ? "route" : call.name, call.route);
  }
  return text;
}

Json json_of(const CacheAnswer& cache) {
  Json lines = Json::array();
  for (const LineAnswer& line : cache.lines) {
    Json calls = Json::array();
    for (const RoutedCall& call : line.calls)
      if (!call.route.empty())
        calls.push_back({{"call", call.name}, {"descriptor", call.descriptor}, {"route", call.route}});
    lines.push_back({{"line", line.line},
                     {"layers", line.kinds},
                     {"supported", line.refusal.empty()},
                     {"refusal", line.refusal},
                     {"calls", calls}});
  }
  return {
      {"cache", cache.cache}, {"supported", word_of(cache.supported)}, {"missing", cache.missing}, {"lines", lines}};
}

Json json_of(const ModelAnswer& answer) {
  Json json = {{"model", answer.name}, {"refusal", answer.refusal}};
  if (!answer.refusal.empty()) return json;
  const ModelConfig& model = answer.served.config;
  Json defaults = Json::array();
  for (const DefaultFigure& each : model.defaults) defaults.push_back({{"field", each.field}, {"value", each.value}});
  json["model_type"] = model.type;
  json["read"] = told(answer.served);
  json["defaults"] = {{"of", model.defaults_of}, {"figures", defaults}};
  json["targets"] = Json::array();
  for (const TargetAnswer& target : answer.targets) {
    Json caches = Json::array();
    for (const CacheAnswer& cache : target.caches) caches.push_back(json_of(cache));
    json["targets"].push_back({{"target", target.target}, {"product", target.product}, {"caches", caches}});
  }
  return json;
}

}  // namespace

std::string model_text(const ModelAnswer& answer) {
  std::string text = answer.name + "\n";
  for (const std::string& line : told(answer.served)) text += fmt::format("  {}\n", line);
  for (const TargetAnswer& target : answer.targets) {
    text += fmt::format("\n{} ({})\n", target.target, target.product);
    for (const CacheAnswer& cache : target.caches) {
      text += fmt::format("  {} KV cache: {}{}\n", cache.cache, word_of(cache.supported),
                          cache.missing.empty() ? "" : ": " + cache.missing);
      const bool again = &cache != &target.caches.front() && alike(cache, target.caches.front());
      text += again ? "    as above, in 8 bits\n" : lines_text(cache);
    }
  }
  return text;
}

std::string models_markdown(const std::vector<ModelAnswer>& answers, const std::vector<NamedTarget>& targets) {
  std::string text = "| model | one of its calls |";
  std::string line = "|---|---|";
  for (const NamedTarget& target : targets) {
    text += fmt::format(" {} ({}) |", target.id, target.product);
    line += "---|";
  }
  text += "\n" + line + "\n";
  for (const ModelAnswer& answer : answers) {
    const std::string call = told_line(answer);
    text += fmt::format("| {} | {} |", answer.name, call.empty() ? "" : "`" + call + "`");
    for (std::size_t i = 0; i < targets.size(); ++i)
      text += fmt::format(" {} |", answer.refusal.empty() ? cell_of(answer.targets[i]) : "no: " + answer.refusal);
    text += "\n";
  }
  return text;
}

std::string models_text(const std::vector<ModelAnswer>& answers) {
  std::string text;
  for (const ModelAnswer& answer : answers) {
    text += fmt::format("{}{}\n", text.empty() ? "" : "\n", answer.name);
    if (!answer.refusal.empty()) text += fmt::format("  no: {}\n", answer.refusal);
    for (const TargetAnswer& target : answer.targets)
      text += fmt::format("  {:<8} {}\n", target.target, cell_of(target));
  }
  return text;
}

std::string model_json(const ModelAnswer& answer) { return json_of(answer).dump(2) + "\n"; }

std::string models_json(const std::vector<ModelAnswer>& answers) {
  Json all = Json::array();
  for (const ModelAnswer& answer : answers) all.push_back(json_of(answer));
  return all.dump(2) + "\n";
}

}  // namespace wavejit::tools
