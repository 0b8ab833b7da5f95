// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/variants/routes.h"

#include <string_view>

#include "tools/families.h"
#include "wavejit/wavejit.h"

namespace wavejit::tools {
namespace {

constexpr std::string_view route_label = "route    ";

// Lines of explain: the first is kept that tells the route.
void take(void* context, const char* line) {
  std::string& text = *static_cast<std::string*>(context);
  if (text.empty() && std::string_view(line).starts_with(route_label))
    text = std::string_view(line).substr(route_label.size());
}

// "generic 32x64, 1 wave, heads of a kv head packed, keys cut into chunks of 1024" in a few words.
std::string shortened(const std::string& route) {
  std::string text = route.substr(0, route.find(','));
  if (route.find("heads of a kv head packed") != std::string::npos) text += ", heads packed";
  if (route.find("keys cut into chunks") != std::string::npos) text += ", keys split";
  return text;
}

// What a refusal says of the rule behind it, "head dim 256 needs …", without what would do: "… has no kernel on gfx942;
// use …; reason: head dim 256 needs …", "head dim 256 has no kernel where …; use …", "no kernel for … on gfx942: head dim
// 256 needs …; accepted: …".
std::string reason_of(const std::string& what, const std::string& target) {
  constexpr std::string_view before_reason = "; reason: ";
  if (const std::size_t at = what.find(before_reason); at != std::string::npos)
    return what.substr(at + before_reason.size());
  const std::string before = " on " + target + ": ";
  const std::size_t at = what.find(before);
  std::string reason = at == std::string::npos ? what : what.substr(at + before.size());
  for (const std::string_view advice : {"; accepted", "; use ", "; leave "})
    reason = reason.substr(0, reason.find(advice));
  return reason;
}

Result<std::string> explained(const std::string& descriptor, const std::string& target) {
  std::string line;
  wavejit_engine_options options{};
  options.size = sizeof options;
  const std::string device = "sim:" + target;  // which is not opened
  options.device = device.c_str();
  if (auto told = checked(wavejit_explain(&options, descriptor.c_str(), target.c_str(), take, &line)); !told)
    return std::unexpected(told.error());
  return line;
}

}  // namespace

Result<void> check_target(const std::string& target) {
  // A family's example is a call that every target can do.
  const auto told = explained(std::string(all_families().front()->example()), target);
  if (!told && told.error().code != ExitCode::unsupported)
    return failed(ExitCode::usage, "--target '" + target + "': " + told.error().what);
  return {};
}

RouteAnswer route_of(const std::string& descriptor, const std::string& target) {
  const auto told = explained(descriptor, target);
  if (!told) return {.found = false, .text = {}, .reason = reason_of(told.error().what, target)};
  return {.found = true, .text = shortened(*told), .reason = {}};
}

std::string with(std::string text, const std::string& name, const std::string& value) {
  const std::string word = "{" + name + "}";
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + value.size()))
    text.replace(at, word.size(), value);
  return text;
}

}  // namespace wavejit::tools
