// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/kernels/kernel_notes.h"

#include <elf.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

namespace wavejit::runtime {
namespace {

// LLVM's "User Guide for AMDGPU Backend", "Code Object V3 and Above Note Records": a note of owner "AMDGPU" and this
// type holds a MessagePack map.
constexpr std::uint32_t metadata_note = 32;
constexpr std::string_view metadata_owner{"AMDGPU\0", 7};

using Bytes = std::span<const std::byte>;

// Nothing when it does not lie in `bytes`.
std::optional<Bytes> part(Bytes bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) return std::nullopt;
  return bytes.subspan(offset, size);
}

template <typename T>
std::optional<T> value_at(Bytes bytes, std::uint64_t offset) {
  const auto found = part(bytes, offset, sizeof(T));
  if (!found) return std::nullopt;
  T value;
  std::memcpy(&value, found->data(), sizeof value);
  return value;
}

std::uint64_t rounded_up(std::uint64_t bytes) { return (bytes + 3) / 4 * 4; }

std::optional<Bytes> metadata_of_segment(Bytes notes) {
  for (std::uint64_t at = 0;;) {
    const auto header = value_at<Elf64_Nhdr>(notes, at);
    if (!header) return std::nullopt;
    const std::uint64_t name_at = at + sizeof *header;
    const std::uint64_t text_at = name_at + rounded_up(header->n_namesz);
    const auto name = part(notes, name_at, header->n_namesz);
    const auto text = part(notes, text_at, header->n_descsz);
    if (!name || !text) return std::nullopt;
    if (header->n_type == metadata_note && name->size() == metadata_owner.size() &&
        std::memcmp(name->data(), metadata_owner.data(), metadata_owner.size()) == 0)
      return text;
    at = text_at + rounded_up(header->n_descsz);
  }
}

std::optional<Bytes> metadata_of(Bytes code_object) {
  const auto header = value_at<Elf64_Ehdr>(code_object, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_phentsize != sizeof(Elf64_Phdr))
    return std::nullopt;
  const auto table = part(code_object, header->e_phoff, std::uint64_t{header->e_phnum} * sizeof(Elf64_Phdr));
  if (!table) return std::nullopt;
  for (std::uint64_t i = 0; i < header->e_phnum; ++i) {
    const auto segment = *value_at<Elf64_Phdr>(*table, i * sizeof(Elf64_Phdr));
    if (segment.p_type != PT_NOTE) continue;
    const auto notes = part(code_object, segment.p_offset, segment.p_filesz);
    if (!notes) return std::nullopt;
    if (auto metadata = metadata_of_segment(*notes)) return metadata;
  }
  return std::nullopt;
}

// nlohmann's reader of MessagePack calls itself for every value inside another: notes that go deeper than any metadata
// of a compiler's would use up the stack.
class ShallowEnough : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return true; }
  bool string(string_t& /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool key(string_t& /*value*/) override { return true; }
  bool start_object(std::size_t /*elements*/) override { return ++depth_ <= deepest; }
  bool start_array(std::size_t /*elements*/) override { return ++depth_ <= deepest; }
  bool end_object() override { return --depth_ >= 0; }
  bool end_array() override { return --depth_ >= 0; }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::json::exception& /*error*/) override {
    return false;
  }

 private:
  static constexpr int deepest = 16;
  int depth_ = 0;
};

struct Compared {
  const char* name;  // in the notes
  std::uint32_t cache::KernelFacts::* fact;
  const char* what;
};
constexpr std::array compared = {
    Compared{".kernarg_segment_size", &cache::KernelFacts::kernarg_bytes, "bytes of arguments"},
    Compared{".group_segment_fixed_size", &cache::KernelFacts::lds_bytes, "bytes of LDS"},
    Compared{".max_flat_workgroup_size", &cache::KernelFacts::threads, "threads"}};

}  // namespace

std::optional<std::string> notes_differ(std::span<const std::byte> code_object, const cache::KernelFacts& kernel) {
  const auto metadata = metadata_of(code_object);
  if (!metadata) return std::nullopt;
  const auto* begin = reinterpret_cast<const std::uint8_t*>(metadata->data());
  ShallowEnough shallow;
  if (!nlohmann::json::sax_parse(begin, begin + metadata->size(), &shallow, nlohmann::json::input_format_t::msgpack))
    return std::nullopt;
  const auto told = nlohmann::json::from_msgpack(begin, begin + metadata->size(), true, false);
  if (!told.is_object()) return std::nullopt;
  const auto kernels = told.find("amdhsa.kernels");
  if (kernels == told.end() || !kernels->is_array()) return std::nullopt;
  for (const auto& one : *kernels) {
    if (!one.is_object() || one.value(".name", nlohmann::json()) != kernel.name) continue;
    for (const Compared& each : compared) {
      const auto found = one.find(each.name);
      const std::uint64_t in_notes =
          found != one.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
      if (in_notes == kernel.*each.fact) continue;
      return "its notes say " + std::to_string(in_notes) + " " + each.what + ", the entry " +
             std::to_string(kernel.*each.fact);
    }
    return std::nullopt;
  }
  return "its notes have no kernel " + kernel.name;
}

}  // namespace wavejit::runtime
