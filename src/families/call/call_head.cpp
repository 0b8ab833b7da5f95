// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "families/call/call_head.h"

#include <bit>
#include <cstring>
#include <string>

#include "families/call/refusal.h"
#include "families/call/struct_size.h"

namespace wavejit::families {

namespace {

[[gnu::cold, gnu::noinline]] std::unexpected<Failure> refuse_absent(const AbsentField& field, std::uint64_t value,
                                                                    const char* family) {
  const auto number = [&] {
    return std::to_string(field.bytes == 4 ? static_cast<std::int32_t>(value) : static_cast<std::int64_t>(value));
  };
  const bool pointer = field.bytes == 8 && value > UINT32_MAX;
  return fail(WAVEJIT_UNSUPPORTED, std::string(field.name) + " = " +
                                       (pointer ? refusal::pointer_text(std::bit_cast<const void*>(value)) : number()) +
                                       "; accepted: 0, since " + family + " has no such field");
}

}  // namespace

Result<void> check_head(const wavejit_call_head* head, std::size_t known, std::int32_t family, const char* name,
                        std::span<const AbsentField> absent) {
  const auto of_struct = [&] { return "a struct wavejit_" + std::string(name) + "_arguments"; };
  if (head == nullptr) return fail(WAVEJIT_INVALID_ARGUMENT, "arguments = null; accepted: " + of_struct());
  // A struct that is too small has no family that anyone may read.
  if (head->size >= sizeof *head && head->family != family) {
    return fail(WAVEJIT_INVALID_ARGUMENT, "head.family = " + std::to_string(head->family) +
                                              "; accepted: " + std::to_string(family) + " in " + of_struct());
  }
  if (auto size = check_struct_size(head, head->size, known, "head"); !size) return size;
  if (head->report != nullptr)
    if (auto size = check_output_size(*head->report, "report"); !size) return size;
  for (const AbsentField& field : absent) {
    std::uint64_t value = 0;
    std::memcpy(&value, reinterpret_cast<const std::byte*>(head) + field.at, field.bytes);
    if (value != 0) [[unlikely]]
      return refuse_absent(field, value, name);
  }
  return {};
}

}  // namespace wavejit::families
