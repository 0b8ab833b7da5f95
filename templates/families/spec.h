// A kernel spec of whichever family, for those to whom a kernel is a kernel: the cache, the compile service, prebuild.
// The first word of a spec's text names its family.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "templates/attention_combine/call/spec.h"
#include "templates/attention_forward/call/spec.h"

namespace wavejit::families {

using KernelSpec = std::variant<attention_forward::KernelSpec, attention_combine::KernelSpec>;
using attention_forward::Lowering;

std::string to_text(const KernelSpec& spec);
// The error names the word, its position and what is accepted.
std::expected<KernelSpec, std::string> parse_spec(std::string_view text);

const std::string& target_of(const KernelSpec& spec);
Lowering lowering_of(const KernelSpec& spec);

// Why the kernel cannot be built, in one sentence, or nothing.
std::optional<std::string> refusal(const KernelSpec& spec);
// Of the argument struct that a launch hands over.
std::size_t argument_bytes(const KernelSpec& spec);

}  // namespace wavejit::families
