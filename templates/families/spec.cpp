#include "templates/families/spec.h"

#include "templates/attention_combine/call/arguments.h"
#include "templates/attention_combine/call/parameters.h"
#include "templates/attention_forward/call/arguments.h"
#include "templates/attention_forward/call/parameters.h"

namespace wavejit::families {
namespace {

template <typename... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};

template <typename Spec>
std::expected<KernelSpec, std::string> any(std::expected<Spec, std::string> spec) {
  if (!spec) return std::unexpected(std::move(spec.error()));
  return *std::move(spec);
}

}  // namespace

std::string to_text(const KernelSpec& spec) {
  return std::visit([](const auto& one) { return to_text(one); }, spec);
}

std::expected<KernelSpec, std::string> parse_spec(std::string_view text) {
  if (text.substr(0, text.find(' ')) == attention_combine::family) return any(attention_combine::parse_spec(text));
  return any(attention_forward::parse_spec(text));
}

const std::string& target_of(const KernelSpec& spec) {
  return std::visit([](const auto& one) -> const std::string& { return one.target; }, spec);
}

Lowering lowering_of(const KernelSpec& spec) {
  return std::visit([](const auto& one) { return one.lowering; }, spec);
}

std::optional<std::string> refusal(const KernelSpec& spec) {
  return std::visit(
      Overloaded{[](const attention_forward::KernelSpec& one) -> std::optional<std::string> {
                   auto resources = attention_forward::resources_of(one);
                   if (resources) return std::nullopt;
                   return std::move(resources.error());
                 },
                 [](const attention_combine::KernelSpec& one) { return attention_combine::refusal(one); }},
      spec);
}

std::size_t argument_bytes(const KernelSpec& spec) {
  return std::visit(
      Overloaded{[](const attention_forward::KernelSpec&) { return sizeof(attention_forward::Arguments); },
                 [](const attention_combine::KernelSpec&) { return sizeof(attention_combine::Arguments); }},
      spec);
}

}  // namespace wavejit::families
