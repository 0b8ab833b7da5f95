// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A kernel spec of whichever family, for those to whom a kernel is a kernel: the cache, the compile service, prebuild.
// The first word of a spec's text names its kernel, and each family has one kernel or more. No LLVM.
#pragma once

#include <cstddef>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "families/kernel/toggles.h"

namespace wavejit::families {

class KernelSpec;

namespace detail {
// No virtual functions: half of those who include this are compiled without type information, as LLVM is.
struct SpecOperations {
  std::string_view kernel;
  std::string_view family;
  std::string (*text)(const void*);
  const std::string& (*target)(const void*);
  Lowering (*lowering)(const void*);
  std::optional<std::string> (*refusal)(const void*);
  std::size_t (*argument_bytes)(const void*);
  bool (*equal)(const void*, const void*);
};

template <typename Spec>
const Spec& as(const void* spec) {
  return *static_cast<const Spec*>(spec);
}

template <typename Spec>
inline constexpr SpecOperations operations_of = {
    .kernel = Spec::kernel,
    .family = Spec::family,
    .text = [](const void* spec) -> std::string { return to_text(as<Spec>(spec)); },
    .target = [](const void* spec) -> const std::string& { return as<Spec>(spec).target; },
    .lowering = [](const void* spec) { return as<Spec>(spec).lowering; },
    .refusal = [](const void* spec) -> std::optional<std::string> { return refusal_of(as<Spec>(spec)); },
    .argument_bytes = [](const void* spec) -> std::size_t { return argument_bytes(as<Spec>(spec)); },
    .equal = [](const void* a, const void* b) { return as<Spec>(a) == as<Spec>(b); },
};
}  // namespace detail

// A value. What it holds is a spec of its family's own, a struct with
//   static constexpr std::string_view kernel   the first word of its text: "attention_combine"
//   static constexpr std::string_view family   whose folder and generator id it belongs to: "attention_forward"
//   std::string target; Lowering lowering; operator==
// and beside it, in the same namespace, to_text(spec), refusal_of(spec) and argument_bytes(spec), as the members below.
class KernelSpec {
 public:
  KernelSpec() = default;
  template <typename Spec>
    requires requires { Spec::kernel; }
  KernelSpec(Spec spec)  // NOLINT(google-explicit-constructor): a spec of one family is one of any
      : operations_(&detail::operations_of<Spec>), spec_(std::make_shared<const Spec>(std::move(spec))) {}

  bool empty() const { return spec_ == nullptr; }
  std::string_view kernel() const { return operations_->kernel; }
  std::string_view family() const { return operations_->family; }
  // Null if it is a spec of another kernel.
  template <typename Spec>
  const Spec* get_if() const {
    return !empty() && kernel() == Spec::kernel ? &get<Spec>() : nullptr;
  }
  // For who knows which it is.
  template <typename Spec>
  const Spec& get() const {
    return detail::as<Spec>(spec_.get());
  }

  // Canonical: parse_spec(spec.text()) == spec.
  std::string text() const { return operations_->text(spec_.get()); }
  const std::string& target() const { return operations_->target(spec_.get()); }
  Lowering lowering() const { return operations_->lowering(spec_.get()); }
  // Why the kernel cannot be built, in one sentence, or nothing.
  std::optional<std::string> refusal() const { return operations_->refusal(spec_.get()); }
  // The bytes of the argument struct that a launch hands over.
  std::size_t argument_bytes() const { return operations_->argument_bytes(spec_.get()); }

  bool operator==(const KernelSpec& other) const {
    if (empty() || other.empty()) return empty() == other.empty();
    return kernel() == other.kernel() && operations_->equal(spec_.get(), other.spec_.get());
  }

 private:
  const detail::SpecOperations* operations_ = nullptr;
  std::shared_ptr<const void> spec_;
};

// A kernel that a family has: one row of what it registers.
struct KernelKind {
  std::string_view kernel;
  std::string_view family;
  // The error names the word, its position and what is accepted.
  std::expected<KernelSpec, std::string> (*parse)(std::string_view text);
};
// `parse_typed`: text → expected<Spec, string>.
template <typename Spec, auto parse_typed>
inline constexpr KernelKind kind_of = {
    .kernel = Spec::kernel,
    .family = Spec::family,
    .parse = [](std::string_view text) -> std::expected<KernelSpec, std::string> {
      auto spec = parse_typed(text);
      if (!spec) return std::unexpected(std::move(spec.error()));
      return KernelSpec(*std::move(spec));
    },
};

// The kernels of all registered families.
std::span<const KernelKind> kernel_kinds();
std::expected<KernelSpec, std::string> parse_spec(std::string_view text);

}  // namespace wavejit::families
