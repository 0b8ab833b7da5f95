// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/loader/code_object.h"

#include <algorithm>
#include <cstring>
#include <format>
#include <iterator>
#include <unordered_map>

#include "isa/instruction_set.h"
#include "simgpu/machine/loader/bytes.h"
#include "simgpu/machine/loader/elf_layout.h"
#include "simgpu/machine/loader/kernel_metadata.h"
#include "targets/targets.h"

namespace wavejit::simgpu {
namespace {

// EM_AMDGPU and the note: LLVM's AMDGPU usage document.
constexpr std::uint16_t elf_type_shared = 3;
constexpr std::uint16_t machine_amdgpu = 224;
constexpr std::uint8_t os_abi_amdhsa = 64;
constexpr std::uint32_t program_load = 1;
constexpr std::uint32_t program_dynamic = 2;
constexpr std::uint32_t program_note = 4;
constexpr std::uint32_t section_symbols = 2;
constexpr std::uint32_t note_metadata = 32;
// A code object larger than this in memory is damage: LDS arrays do not count, and gigabyte tables belong in buffers.
constexpr std::uint64_t largest_image = 1ULL << 32;
// Linkers write four or five; names of all symbols together are a few megabytes in the largest libraries.
constexpr std::size_t most_segments = 64;
constexpr std::uint64_t most_name_bytes = 256ULL << 20;
// What a wave's scratch can be on gfx9: 8 MiB for 64 lanes (LLVM refuses larger frames).
constexpr std::uint32_t most_private_bytes = 128 * 1024;

// What metadata and descriptor both state.
struct Contradiction {
  std::string_view what;
  std::optional<std::uint64_t> said;
  std::uint64_t described;
};

std::unexpected<std::string> wrong(std::string text) { return std::unexpected("code object: " + std::move(text)); }

class CodeObjectReader {
 public:
  explicit CodeObjectReader(std::span<const std::byte> image) : file_(image) {}

  std::expected<CodeObject, std::string> read() {
    for (auto step : {&CodeObjectReader::header, &CodeObjectReader::program_headers, &CodeObjectReader::dynamic,
                      &CodeObjectReader::local_symbols, &CodeObjectReader::metadata, &CodeObjectReader::descriptors}) {
      if (auto done = (this->*step)(); !done) return std::unexpected(done.error());
    }
    return std::move(object_);
  }

 private:
  using Step = std::expected<void, std::string>;

  Step header() {
    const auto header = file_.read<ElfHeader>(0);
    if (!header) return wrong(std::format("{} bytes are too short for an ELF header (64)", file_.size()));
    header_ = *header;
    constexpr std::uint8_t magic[4] = {0x7f, 'E', 'L', 'F'};
    if (!std::equal(std::begin(magic), std::end(magic), header_.ident)) return wrong("no ELF magic at the start");
    if (header_.ident[4] != 2 || header_.ident[5] != 1) return wrong("not a 64-bit little-endian ELF file");
    if (header_.machine != machine_amdgpu)
      return wrong(std::format("machine {}; it takes 224 (AMDGPU)", header_.machine));
    if (header_.ident[7] != os_abi_amdhsa) return wrong(std::format("OS ABI {}; it takes 64 (HSA)", header_.ident[7]));
    // ABI version 3 is code object v5, 4 is v6 (v4 is 2: same loading rules, older metadata).
    object_.abi_version = header_.ident[8];
    if (object_.abi_version < 2 || object_.abi_version > 4) {
      return wrong(std::format("ABI version {}; it takes 2, 3 or 4 (code object v4, v5, v6)", object_.abi_version));
    }
    if (header_.type != elf_type_shared) {
      return wrong(std::format("type {}; it takes 3 (a linked shared object)", header_.type));
    }
    object_.machine = header_.flags & 0xff;
    return {};
  }

  Step program_headers() {
    if (header_.program_header_bytes != sizeof(ProgramHeader)) {
      return wrong(std::format("program header size {}; it takes 56", header_.program_header_bytes));
    }
    for (unsigned i = 0; i < header_.program_header_count; ++i) {
      const auto program = file_.read<ProgramHeader>(header_.program_headers + (i * sizeof(ProgramHeader)));
      if (header_.program_headers > file_.size() || !program) return wrong("program headers reach beyond the file");
      if (program->type == program_load && program->memory_bytes != 0) {
        if (!file_.holds(program->offset, program->file_bytes) || program->file_bytes > program->memory_bytes) {
          return wrong(std::format("segment {} reaches beyond the file", i));
        }
        if (program->address > largest_image || program->memory_bytes > largest_image) {
          return wrong(std::format("segment {} of {} bytes at {:#x} is beyond 4 GiB", i, program->memory_bytes,
                                   program->address));
        }
        object_.segments.push_back({.file_offset = program->offset,
                                    .file_bytes = program->file_bytes,
                                    .address = program->address,
                                    .memory_bytes = program->memory_bytes,
                                    .executable = (program->flags & 1) != 0,
                                    .writable = (program->flags & 2) != 0});
        object_.memory_bytes = std::max(object_.memory_bytes, program->address + program->memory_bytes);
      } else if (program->type == program_dynamic) {
        dynamic_ = file_.part(program->offset, program->file_bytes);
        if (!dynamic_) return wrong("dynamic segment reaches beyond the file");
      } else if (program->type == program_note) {
        const auto note = file_.part(program->offset, program->file_bytes);
        if (!note) return wrong("note segment reaches beyond the file");
        notes_.push_back(*note);
      }
    }
    if (object_.segments.empty()) return wrong("no loadable segment");
    if (object_.segments.size() > most_segments) {
      return wrong(std::format("{} loadable segments; it takes up to {}", object_.segments.size(), most_segments));
    }
    std::ranges::sort(object_.segments, {}, &Segment::address);
    for (std::size_t i = 1; i < object_.segments.size(); ++i) {
      const Segment& before = object_.segments[i - 1];
      if (before.address + before.memory_bytes > object_.segments[i].address) return wrong("segments overlap");
    }
    return {};
  }

  // File bytes behind an address of the loaded image.
  std::optional<Bytes> at_address(std::uint64_t address, std::uint64_t bytes) const {
    for (const Segment& segment : object_.segments) {
      if (address < segment.address || address - segment.address > segment.file_bytes) continue;
      if (bytes > segment.file_bytes - (address - segment.address)) continue;
      return file_.part(segment.file_offset + (address - segment.address), bytes);
    }
    return std::nullopt;
  }

  Step dynamic() {
    if (!dynamic_) return wrong("no dynamic segment (not linked?)");
    std::unordered_map<std::int64_t, std::uint64_t> tags;
    for (std::uint64_t at = 0;; at += 16) {
      const auto tag = dynamic_->read<std::int64_t>(at);
      const auto value = dynamic_->read<std::uint64_t>(at + 8);
      if (!tag || !value || *tag == 0) break;
      tags[*tag] = *value;
    }
    constexpr std::int64_t tag_hash = 4;
    constexpr std::int64_t tag_strings = 5;
    constexpr std::int64_t tag_symbols = 6;
    constexpr std::int64_t tag_relocations = 7;
    constexpr std::int64_t tag_relocation_bytes = 8;
    constexpr std::int64_t tag_string_bytes = 10;
    constexpr std::int64_t tag_plt_relocations = 23;
    constexpr std::int64_t tag_plt_relocation_bytes = 2;
    if (!tags.contains(tag_strings) || !tags.contains(tag_symbols) || !tags.contains(tag_hash)) {
      return wrong("dynamic segment without symbol table, string table or hash");
    }
    const auto strings = at_address(tags[tag_strings], tags[tag_string_bytes]);
    const auto hash = at_address(tags[tag_hash], 8);
    if (!strings || !hash) return wrong("dynamic string table or hash lies outside the file");
    const std::uint64_t count = hash->read<std::uint32_t>(4).value_or(0);
    const auto table = at_address(tags[tag_symbols], count * sizeof(ElfSymbol));
    if (!table) return wrong(std::format("dynamic symbol table of {} entries lies outside the file", count));
    if (auto done = read_symbols(*table, *strings, object_.dynamic_symbols); !done) return done;
    object_.symbols = object_.dynamic_symbols;
    for (const auto& [start, size] :
         {std::pair{tag_relocations, tag_relocation_bytes}, std::pair{tag_plt_relocations, tag_plt_relocation_bytes}}) {
      if (!tags.contains(start) || !tags.contains(size)) continue;
      const auto entries = at_address(tags[start], tags[size]);
      if (!entries) return wrong("relocations lie outside the file");
      for (std::uint64_t at = 0; at + sizeof(ElfRelocation) <= entries->size(); at += sizeof(ElfRelocation)) {
        const auto entry = entries->read<ElfRelocation>(at);
        const auto symbol = static_cast<std::uint32_t>(entry->info >> 32);
        if (symbol >= object_.dynamic_symbols.size()) {
          return wrong(std::format("relocation names symbol {} of {}", symbol, object_.dynamic_symbols.size()));
        }
        object_.relocations.push_back({.offset = entry->offset,
                                       .type = static_cast<std::uint32_t>(entry->info),
                                       .symbol = symbol,
                                       .addend = entry->addend});
      }
    }
    return {};
  }

  Step read_symbols(const Bytes& table, const Bytes& strings, std::vector<Symbol>& symbols) {
    for (std::uint64_t at = 0; at + sizeof(ElfSymbol) <= table.size(); at += sizeof(ElfSymbol)) {
      const auto entry = table.read<ElfSymbol>(at);
      const auto name = entry->name == 0 && strings.size() == 0 ? std::string_view() : strings.text(entry->name);
      if (!name) return wrong(std::format("symbol {} has a name outside the string table", at / sizeof(ElfSymbol)));
      name_bytes_ += name->size();
      if (name_bytes_ > most_name_bytes) return wrong("symbol names are longer than any linker writes");
      symbols.push_back({.name = std::string(*name),
                         .value = entry->value,
                         .bytes = entry->bytes,
                         .type = static_cast<std::uint8_t>(entry->info & 0xf),
                         .binding = static_cast<std::uint8_t>(entry->info >> 4),
                         .defined = entry->section != 0});
    }
    return {};
  }

  // Names of functions that are not exported: for reports and for where functions end. Optional: stripped files have
  // none.
  Step local_symbols() {
    if (header_.section_headers == 0 || header_.section_header_bytes != sizeof(SectionHeader)) return {};
    for (unsigned i = 0; i < header_.section_header_count; ++i) {
      const auto section = section_header(i);
      if (!section || section->type != section_symbols) continue;
      const auto names = section_header(section->link);
      const auto table = file_.part(section->offset, section->bytes);
      const auto strings = names ? file_.part(names->offset, names->bytes) : std::nullopt;
      if (!table || !strings) return wrong("symbol table lies outside the file");
      std::vector<Symbol> all;
      if (auto done = read_symbols(*table, *strings, all); !done) return done;
      for (Symbol& symbol : all) {
        if (symbol.defined && symbol.binding == 0 && symbol.type == 2) object_.symbols.push_back(std::move(symbol));
      }
    }
    return {};
  }

  std::optional<SectionHeader> section_header(std::uint64_t index) const {
    if (index >= header_.section_header_count || header_.section_headers > file_.size()) return std::nullopt;
    return file_.read<SectionHeader>(header_.section_headers + (index * sizeof(SectionHeader)));
  }

  // Code objects that were linked from several objects, as those of rocBLAS' products, have one note each.
  Step metadata() {
    bool found = false;
    for (const Bytes& notes : notes_) {
      for (std::uint64_t at = 0; notes.holds(at, 12);) {
        const std::uint64_t name_bytes = *notes.read<std::uint32_t>(at);
        const std::uint64_t content_bytes = *notes.read<std::uint32_t>(at + 4);
        const std::uint32_t type = *notes.read<std::uint32_t>(at + 8);
        const std::uint64_t name_at = at + 12;
        const std::uint64_t content_at = name_at + ((name_bytes + 3) & ~std::uint64_t{3});
        const auto name = notes.text(name_at);
        const auto content = notes.part(content_at, content_bytes);
        if (!content) return wrong("a note reaches beyond its segment");
        if (type == note_metadata && name && *name == "AMDGPU") {
          if (auto done = read_kernel_metadata(*content, object_); !done) return wrong(std::move(done.error()));
          found = true;
        }
        at = content_at + ((content_bytes + 3) & ~std::uint64_t{3});
      }
    }
    if (!found) return wrong("no AMDGPU metadata note");
    return {};
  }

  Step descriptors() {
    for (KernelDescription& kernel : object_.kernels) {
      const std::string name = kernel.info.name + ".kd";
      const auto found = std::ranges::find_if(
          object_.dynamic_symbols, [&](const Symbol& symbol) { return symbol.defined && symbol.name == name; });
      if (found == object_.dynamic_symbols.end())
        return wrong(std::format("kernel descriptor symbol {} is missing", name));
      const auto bytes = at_address(found->value, 64);
      if (!bytes || found->value % 64 != 0) {
        return wrong(
            std::format("kernel descriptor {} at {:#x} is not 64 aligned bytes of the file", name, found->value));
      }
      kernel.descriptor_address = found->value;
      kernel.descriptor =
          read_descriptor(bytes->data().first<descriptor_bytes>(), targets::find_target_by_machine(object_.machine));
      const KernelDescriptor& descriptor = kernel.descriptor;
      if (auto done = check_descriptor(kernel); !done) return done;
      kernel.info.static_lds_bytes = descriptor.group_segment_fixed_size;
      kernel.info.private_bytes = descriptor.private_segment_fixed_size;
      kernel.info.uses_dynamic_stack = kernel.info.uses_dynamic_stack || descriptor.property(property_dynamic_stack);
    }
    return {};
  }

  Step check_descriptor(const KernelDescription& kernel) const {
    const KernelDescriptor& descriptor = kernel.descriptor;
    const std::string& name = kernel.info.name;
    const std::uint64_t entry = kernel.descriptor_address + static_cast<std::uint64_t>(descriptor.entry_offset);
    const auto segment = std::ranges::find_if(object_.segments, [&](const Segment& candidate) {
      return candidate.executable && entry >= candidate.address && entry - candidate.address < candidate.file_bytes;
    });
    if (segment == object_.segments.end() || entry % 256 != 0) {
      return wrong(std::format("kernel {}: entry {:#x} is not a 256-aligned place in executable code", name, entry));
    }
    const unsigned lanes = descriptor.property(property_wavefront_size32) ? 32 : 64;
    const targets::Target* target = targets::find_target_by_machine(object_.machine);
    const bool has_both = target != nullptr && isa::instruction_set(*target) == isa::InstructionSet::rdna4;
    if (target != nullptr && !has_both && lanes != static_cast<unsigned>(target->wave_size)) {
      return wrong(std::format("kernel {}: wave{}; {} runs wave{}", name, lanes, target->id, target->wave_size));
    }
    if (descriptor.kernarg_size != 0 && descriptor.kernarg_size != kernel.info.kernarg_bytes) {
      return wrong(std::format("kernel {}: kernarg size {} in the descriptor, {} in the metadata", name,
                               descriptor.kernarg_size, kernel.info.kernarg_bytes));
    }
    for (const auto& [what, said, described] :
         {Contradiction{"bytes of LDS", kernel.stated_lds_bytes, descriptor.group_segment_fixed_size},
          Contradiction{"bytes of private memory a lane", kernel.stated_private_bytes,
                        descriptor.private_segment_fixed_size}}) {
      if (said && *said != described) {
        return wrong(
            std::format("kernel {}: {} {} in the descriptor, {} in the metadata", name, described, what, *said));
      }
    }
    if (kernel.info.vgprs > descriptor.vgprs()) {
      return wrong(std::format("kernel {}: {} vector registers in the metadata, {} allocated by the descriptor", name,
                               kernel.info.vgprs, descriptor.vgprs()));
    }
    if (kernel.stated_wavefront_size && *kernel.stated_wavefront_size != lanes) {
      return wrong(std::format("kernel {}: a wavefront of {} in the metadata, of {} in the descriptor", name,
                               *kernel.stated_wavefront_size, lanes));
    }
    if (descriptor.private_segment_fixed_size > most_private_bytes || kernel.info.kernarg_bytes > (1u << 20)) {
      return wrong(std::format("kernel {}: {} bytes of private memory a lane, {} of arguments", name,
                               descriptor.private_segment_fixed_size, kernel.info.kernarg_bytes));
    }
    return {};
  }

  Bytes file_;
  ElfHeader header_{};
  std::optional<Bytes> dynamic_;
  std::vector<Bytes> notes_;
  CodeObject object_;
  std::uint64_t name_bytes_ = 0;
};

}  // namespace

KernelDescriptor read_descriptor(std::span<const std::byte, descriptor_bytes> bytes, const targets::Target* target) {
  const Bytes fields(bytes);
  KernelDescriptor descriptor;
  descriptor.group_segment_fixed_size = *fields.read<std::uint32_t>(0);
  descriptor.private_segment_fixed_size = *fields.read<std::uint32_t>(4);
  descriptor.kernarg_size = *fields.read<std::uint32_t>(8);
  descriptor.entry_offset = *fields.read<std::int64_t>(16);
  descriptor.resource3 = *fields.read<std::uint32_t>(44);
  descriptor.resource1 = *fields.read<std::uint32_t>(48);
  descriptor.resource2 = *fields.read<std::uint32_t>(52);
  descriptor.properties = *fields.read<std::uint16_t>(56);
  descriptor.kernarg_preload = *fields.read<std::uint16_t>(58);
  // Waves of 64 on targets that have both kinds count registers in fours (LLVM, getVGPREncodingGranule).
  constexpr unsigned wide_unit = 4;
  const bool is_rdna = target != nullptr && isa::instruction_set(*target) == isa::InstructionSet::rdna4;
  if (is_rdna && !descriptor.property(property_wavefront_size32)) descriptor.vgpr_unit = wide_unit;
  return descriptor;
}

FunctionExtent function_around(std::span<const Symbol> symbols, std::uint64_t place, std::uint64_t begin,
                               std::uint64_t end) {
  constexpr std::uint8_t type_function = 2;
  FunctionExtent extent{.name = std::format("code at {:#x}", place), .first = place, .end = end};
  for (const Symbol& symbol : symbols) {
    if (!symbol.defined || symbol.type != type_function) continue;
    if (symbol.value > place) {
      extent.end = std::min(extent.end, symbol.value);
    } else if (symbol.value == place && symbol.bytes == 0) {
      extent.name = symbol.name;  // assembled by hand, without a size
    } else if (place - symbol.value < symbol.bytes && symbol.value >= begin && symbol.value % 4 == 0) {
      return {
          .name = symbol.name, .first = symbol.value, .end = std::min(end, symbol.value + symbol.bytes), .named = true};
    }
  }
  return extent;
}

std::expected<CodeObject, std::string> read_code_object(std::span<const std::byte> image) {
  return CodeObjectReader(image).read();
}

// Linkers put the headers, the note and the dynamic symbols into the first segment, which begins at 0 in the file and
// in memory. Behind it places in the file are not those in memory.
std::vector<std::byte> code_object_in_memory(std::span<const std::byte> memory) {
  const Bytes bytes(memory);
  auto header = bytes.read<ElfHeader>(0);
  constexpr std::uint8_t magic[4] = {0x7f, 'E', 'L', 'F'};
  if (!header || !std::equal(std::begin(magic), std::end(magic), header->ident)) return {};
  if (header->program_header_bytes != sizeof(ProgramHeader) || header->program_header_count > most_segments) return {};
  if (!bytes.holds(header->program_headers, header->program_header_count * sizeof(ProgramHeader))) return {};
  std::vector<std::byte> file(memory.begin(), memory.end());
  header->section_headers = 0;
  header->section_header_count = 0;
  std::memcpy(file.data(), &*header, sizeof *header);
  for (unsigned i = 0; i < header->program_header_count; ++i) {
    const std::uint64_t at = header->program_headers + (i * sizeof(ProgramHeader));
    ProgramHeader program = *bytes.read<ProgramHeader>(at);
    program.offset = program.address;
    std::memcpy(file.data() + at, &program, sizeof program);
  }
  return file;
}

std::string code_object_problem(std::span<const std::byte> image) {
  const auto object = read_code_object(image);
  return object ? std::string() : object.error();
}

std::string code_object_processor(std::span<const std::byte> image) {
  const auto object = read_code_object(image);
  if (!object) return {};
  const targets::Target* target = targets::find_target_by_machine(object->machine);
  if (target != nullptr) return std::string(target->id);
  return object->target_id.substr(0, object->target_id.find(':'));
}

}  // namespace wavejit::simgpu
