// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/profile/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string_view>

#include "tools/profile/launch_text.h"

namespace wavejit::tools {

namespace {

using Json = nlohmann::json;

enum class Better : std::uint8_t { less, more, neither };

std::string verdict_of(double difference, Better better) {
  if (difference == 0 || better == Better::neither) return {};
  return (difference < 0) == (better == Better::less) ? "better" : "worse";
}

ComparisonRow counted(std::string name, double a, double b, Better better) {
  std::string difference = fmt::format("{:+.0f}", b - a);
  if (a != 0) difference += fmt::format(" ({:+.1f} %)", 100 * (b - a) / a);
  return {.name = std::move(name),
          .a = fmt::format("{:.0f}", a),
          .b = fmt::format("{:.0f}", b),
          .difference = a == b ? "same" : std::move(difference),
          .verdict = verdict_of(b - a, better)};
}

// Parts of a whole, 0 to 1.
ComparisonRow part(std::string name, double a, double b, Better better) {
  const double points = std::round(1000 * (b - a)) / 10;
  return {.name = std::move(name),
          .a = fmt::format("{:.1f} %", 100 * a),
          .b = fmt::format("{:.1f} %", 100 * b),
          .difference = points == 0 ? "same" : fmt::format("{:+.1f} points", points),
          .verdict = verdict_of(points, better)};
}

ComparisonRow word(std::string name, const std::string& a, const std::string& b) {
  return {.name = std::move(name), .a = a, .b = b, .difference = a == b ? "same" : "differs", .verdict = {}};
}

double of_field(const Json& launch, const char* name) { return launch.at(name).get<double>(); }

std::set<std::string> keys_of(const Json& a, const Json& b) {
  std::set<std::string> keys;
  for (const Json* json : {&a, &b})
    for (const auto& [key, value] : json->items()) keys.insert(key);
  return keys;
}

double number(const Json& json, std::string_view key) {
  const auto found = json.find(key);
  return found == json.end() ? 0 : found->get<double>();
}

void add_waits(std::vector<ComparisonRow>& rows, const Json& a, const Json& b) {
  const Json& a_waited = a.at("waves").at("waited");
  const Json& b_waited = b.at("waves").at("waited");
  const auto a_whole = a.at("waves").at("cycles").get<double>();
  const auto b_whole = b.at("waves").at("cycles").get<double>();
  for (const std::string& cause : keys_of(a_waited, b_waited)) {
    const double a_part = number(a_waited, cause) / a_whole;
    const double b_part = number(b_waited, cause) / b_whole;
    if (a_part < 0.005 && b_part < 0.005) continue;
    rows.push_back(part("waits: " + cause, a_part, b_part, Better::neither));
  }
}

void add_mix(std::vector<ComparisonRow>& rows, const Json& a, const Json& b) {
  const Json& a_mix = a.at("mix");
  const Json& b_mix = b.at("mix");
  for (const std::string& kind : keys_of(a_mix, b_mix)) {
    const auto count = [&](const Json& mix) { return mix.contains(kind) ? mix[kind].at("static").get<double>() : 0; };
    rows.push_back(counted("instructions: " + kind, count(a_mix), count(b_mix), Better::neither));
  }
}

// Launches in the same place where both have as many, those that take longest together; else the longest of each.
std::pair<const Json*, const Json*> compared_launches(const Prediction& a, const Prediction& b) {
  if (a.launches.size() != b.launches.size()) return {a.longest(), b.longest()};
  const auto both = [&](std::size_t i) {
    return of_field(a.launches[i], "cycles") + of_field(b.launches[i], "cycles");
  };
  std::size_t longest = 0;
  for (std::size_t i = 1; i < a.launches.size(); ++i)
    if (both(i) > both(longest)) longest = i;
  return {&a.launches[longest], &b.launches[longest]};
}

}  // namespace

std::vector<ComparisonRow> compare(const Prediction& a, const Prediction& b) {
  const auto [left_launch, right_launch] = compared_launches(a, b);
  const Json& left = *left_launch;
  const Json& right = *right_launch;
  std::vector<ComparisonRow> rows;
  const auto of = [](const Json& launch, const char* room, const char* field) {
    return launch.at(room).at(field).get<double>();
  };
  const auto field = [&](const char* name) {
    return std::pair(left.at(name).get<double>(), right.at(name).get<double>());
  };
  const auto add = [&](const std::string& name, std::pair<double, double> values, Better better) {
    rows.push_back(counted(name, values.first, values.second, better));
  };
  add("cycles", {static_cast<double>(a.cycles()), static_cast<double>(b.cycles())}, Better::less);
  add("launches", {static_cast<double>(a.launches.size()), static_cast<double>(b.launches.size())}, Better::neither);
  // A call of several kernels: the rows below are of one of them.
  for (std::size_t i = 0; a.launches.size() > 1 && a.launches.size() == b.launches.size() && i < a.launches.size();
       ++i) {
    const std::string of_launch = fmt::format(" of launch {}", i + 1);
    add("cycles" + of_launch, {of_field(a.launches[i], "cycles"), of_field(b.launches[i], "cycles")}, Better::less);
    rows.push_back(part("matrix pipes, steady" + of_launch, of_field(a.launches[i], "steady_matrix_busy"),
                        of_field(b.launches[i], "steady_matrix_busy"), Better::more));
  }
  const auto steady = field("steady_matrix_busy");
  rows.push_back(part("matrix pipes, steady", steady.first, steady.second, Better::more));
  const auto busy = field("matrix_busy");
  rows.push_back(part("matrix pipes, whole launch", busy.first, busy.second, Better::more));
  const auto a_units = unit_occupancy(left);
  const auto b_units = unit_occupancy(right);
  for (std::size_t i = 0; i < a_units.size(); ++i)
    rows.push_back(part("busy: " + a_units[i].first, a_units[i].second, b_units[i].second, Better::neither));
  add_waits(rows, left, right);
  rows.push_back(word("target", a.target, b.target));
  add("workgroups on a compute unit", {of(left, "occupancy", "resident"), of(right, "occupancy", "resident")},
      Better::neither);
  rows.push_back(word("limited by", left.at("occupancy").at("limited_by").get<std::string>(),
                      right.at("occupancy").at("limited_by").get<std::string>()));
  add("vector registers", field("vgprs"), Better::neither);
  for (const auto& [name, key] : {std::pair("of accumulation", "agprs"), std::pair("scalar registers", "sgprs"),
                                  std::pair("bytes of code", "code_bytes")})
    add(name, {of(left, "static", key), of(right, "static", key)}, Better::neither);
  add("bytes of private memory a lane", {of(left, "static", "private_bytes"), of(right, "static", "private_bytes")},
      Better::less);
  add("bytes of LDS", field("lds_bytes"), Better::neither);
  add_mix(rows, left, right);
  return rows;
}

std::string comparison_text(const Prediction& a, const Prediction& b) {
  std::string text;
  const auto [compared_a, compared_b] = compared_launches(a, b);
  for (const auto& [letter, prediction] : {std::pair('A', &a), std::pair('B', &b)}) {
    text += fmt::format("{}  {}{}{}\n", letter, prediction->subject, prediction->settings.empty() ? "" : ", ",
                        prediction->settings);
    for (const Json& launch : prediction->launches) {
      const bool below = prediction->launches.size() > 1 && (&launch == compared_a || &launch == compared_b);
      text +=
          fmt::format("   {}{}\n", launch.at("kernel").get<std::string>(), below ? "  (what is compared below)" : "");
    }
    text += fmt::format(
        "   {}; {} of {} workgroups ran{}\n", prediction->device_name, prediction->workgroups_run,
        prediction->workgroups,
        prediction->workgroups_run < prediction->workgroups ? ", the results of the others were not computed" : "");
  }
  for (const auto& [letter, prediction] : {std::pair('A', &a), std::pair('B', &b)})
    for (const Json& launch : prediction->launches)
      if (launch.contains("doubt")) text += fmt::format("doubt {}: {}\n", letter, launch["doubt"].get<std::string>());
  const std::vector<ComparisonRow> rows = compare(a, b);
  std::size_t name = 0;
  std::size_t left = 1;
  std::size_t right = 1;
  for (const ComparisonRow& row : rows) {
    name = std::max(name, row.name.size());
    left = std::max(left, row.a.size());
    right = std::max(right, row.b.size());
  }
  text += fmt::format("\n{:<{}}  {:>{}}  {:>{}}  B - A\n", "", name, "A", left, "B", right);
  std::ptrdiff_t alike = 0;
  for (const ComparisonRow& row : rows) {
    if (row.difference == "same")
      ++alike;
    else
      text += fmt::format("{:<{}}  {:>{}}  {:>{}}  {}\n", row.name, name, row.a, left, row.b, right, row.difference);
  }
  if (alike > 0) text += fmt::format("{} more are the same on both sides: --json\n", alike);
  return text + "\n" + model_error_text(b.target, b.launches) + "\n" + change_error_text() + "\n";
}

Json comparison_rows_json(const std::vector<ComparisonRow>& rows) {
  Json json = Json::array();
  for (const ComparisonRow& row : rows) {
    json.push_back(
        {{"name", row.name}, {"a", row.a}, {"b", row.b}, {"difference", row.difference}, {"verdict", row.verdict}});
  }
  return json;
}

Json comparison_json(const Prediction& a, const Prediction& b) {
  return {{"a", prediction_json(a)}, {"b", prediction_json(b)}, {"differences", comparison_rows_json(compare(a, b))}};
}

}  // namespace wavejit::tools
