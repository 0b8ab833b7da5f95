// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/profile/page.h"

#include <string_view>

#include "tools/profile/iteration.h"
#include "tools/profile/launch_text.h"
#include "tools/profile/page_parts.h"

namespace wavejit::tools {

namespace {

using Json = nlohmann::json;

// What stands inside <script> must not end it; names come out of code objects that anybody may have made.
std::string for_script(const Json& data) {
  std::string text;
  for (const char c : data.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

std::string for_markup(const std::string& plain) {
  std::string text;
  for (const char c : plain) {
    if (c == '<') {
      text += "&lt;";
    } else if (c == '&') {
      text += "&amp;";
    } else {
      text += c;
    }
  }
  return text;
}

Json profile_json(const Prediction& prediction) {
  Json json = prediction_json(prediction);
  json["iteration"] = steady_iteration(prediction.timeline);
  for (Json& launch : json["launches"]) {
    launch["units"] = Json::array();
    for (const auto& [name, busy] : unit_occupancy(launch)) launch["units"].push_back({{"name", name}, {"busy", busy}});
  }
  return json;
}

}  // namespace

std::string page_of(const std::string& title, const std::vector<const Prediction*>& predictions,
                    const Json& comparison) {
  Json data = {{"title", title}, {"version", wavejit_version()}, {"comparison", comparison}};
  data["profiles"] = Json::array();
  for (const Prediction* prediction : predictions) data["profiles"].push_back(profile_json(*prediction));

  // One pass over the frame: what is put in is never looked at again.
  std::string page;
  for (std::string_view rest = page_parts::frame; !rest.empty();) {
    const std::size_t begin = rest.find("{{");
    const std::size_t end = begin == std::string_view::npos ? begin : rest.find("}}", begin);
    page += rest.substr(0, end == std::string_view::npos ? rest.size() : begin);
    if (end == std::string_view::npos) break;
    const std::string_view name = rest.substr(begin + 2, end - begin - 2);
    if (name == "title") page += for_markup(title);
    if (name == "style") page += page_parts::style;
    if (name == "script") page += page_parts::script;
    if (name == "data") page += for_script(data);
    rest.remove_prefix(end + 2);
  }
  return page;
}

}  // namespace wavejit::tools
