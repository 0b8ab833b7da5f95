// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/metadata.h"

#include <llvm/BinaryFormat/ELF.h>
#include <llvm/BinaryFormat/MsgPackDocument.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/Error.h>

#include <cstring>
#include <format>
#include <optional>

namespace wavejit::codegen {
namespace {

using llvm::object::ELF64LE;
using ElfFile = llvm::object::ELFFile<ELF64LE>;

std::unexpected<Failure> malformed(const std::string& what) {
  return fail(Status::rejected, "malformed code object: " + what);
}

std::unexpected<Failure> malformed(const char* where, llvm::Error error) {
  return malformed(std::format("{}: {}", where, llvm::toString(std::move(error))));
}

// The AMDGPU metadata note's MessagePack bytes; empty when there is none.
std::expected<llvm::StringRef, Failure> metadata_note(const ElfFile& elf) {
  auto segments = elf.program_headers();
  if (!segments) return malformed("program headers", segments.takeError());
  for (const auto& segment : *segments) {
    if (segment.p_type != llvm::ELF::PT_NOTE) continue;
    llvm::Error error = llvm::Error::success();
    std::optional<llvm::StringRef> found;
    for (const auto& note : elf.notes(segment, error)) {
      if (note.getName() == "AMDGPU" && note.getType() == llvm::ELF::NT_AMDGPU_METADATA) {
        found = note.getDescAsStringRef(segment.p_align);
      }
    }
    if (error) return malformed("notes", std::move(error));
    if (found) return *found;
  }
  return llvm::StringRef();
}

std::uint32_t number(llvm::msgpack::MapDocNode& map, const char* key) {
  const auto entry = map.find(key);
  if (entry == map.end()) return 0;
  switch (entry->second.getKind()) {
    case llvm::msgpack::Type::UInt:
      return static_cast<std::uint32_t>(entry->second.getUInt());
    case llvm::msgpack::Type::Int:
      return static_cast<std::uint32_t>(entry->second.getInt());
    default:
      return 0;
  }
}

llvm::StringRef text(llvm::msgpack::MapDocNode& map, const char* key) {
  const auto entry = map.find(key);
  if (entry == map.end() || entry->second.getKind() != llvm::msgpack::Type::String) return {};
  return entry->second.getString();
}

std::expected<void, Failure> read_metadata(llvm::StringRef blob, KernelImage& image) {
  llvm::msgpack::Document document;
  if (blob.empty() || !document.readFromBlob(blob, /*Multi=*/false) || !document.getRoot().isMap()) {
    return malformed("no readable AMDGPU metadata");
  }
  llvm::msgpack::MapDocNode& root = document.getRoot().getMap();
  image.target_id = text(root, "amdhsa.target").str();
  const auto kernels = root.find("amdhsa.kernels");
  if (kernels == root.end() || !kernels->second.isArray()) return malformed("metadata lists no kernels");
  llvm::msgpack::ArrayDocNode& list = kernels->second.getArray();
  if (list.size() != 1 || !list[0].isMap()) {
    return malformed(std::format("metadata lists {} kernels; exactly one is accepted", list.size()));
  }
  llvm::msgpack::MapDocNode& kernel = list[0].getMap();
  const llvm::StringRef name = text(kernel, ".name");
  Facts& facts = image.facts;
  if (name.empty() || name.size() >= sizeof facts.kernel_name) {
    return malformed(
        std::format("kernel name of {} characters; 1 to {} are accepted", name.size(), sizeof facts.kernel_name - 1));
  }
  std::memcpy(facts.kernel_name, name.data(), name.size());
  facts.kernarg_bytes = number(kernel, ".kernarg_segment_size");
  facts.lds_bytes = number(kernel, ".group_segment_fixed_size");
  facts.private_bytes = number(kernel, ".private_segment_fixed_size");
  facts.vgprs = number(kernel, ".vgpr_count");
  facts.agprs = number(kernel, ".agpr_count");
  facts.sgprs = number(kernel, ".sgpr_count");
  facts.vgpr_spills = number(kernel, ".vgpr_spill_count");
  facts.sgpr_spills = number(kernel, ".sgpr_spill_count");
  facts.threads = number(kernel, ".max_flat_workgroup_size");
  return {};
}

// The kernel's instructions, through the function symbol that metadata names.
std::expected<void, Failure> find_code(const ElfFile& elf, KernelImage& image) {
  auto sections = elf.sections();
  if (!sections) return malformed("sections", sections.takeError());
  for (const auto& section : *sections) {
    if (section.sh_type != llvm::ELF::SHT_DYNSYM) continue;
    auto symbols = elf.symbols(&section);
    if (!symbols) return malformed("symbols", symbols.takeError());
    auto names = elf.getStringTableForSymtab(section);
    if (!names) return malformed("symbol names", names.takeError());
    for (const auto& symbol : *symbols) {
      auto name = symbol.getName(*names);
      if (!name) return malformed("symbol name", name.takeError());
      if (*name != image.facts.kernel_name || symbol.getType() != llvm::ELF::STT_FUNC) continue;
      auto code_section = elf.getSection(symbol.st_shndx);
      if (!code_section) return malformed("section of the kernel", code_section.takeError());
      auto contents = elf.getSectionContents(**code_section);
      if (!contents) return malformed("code of the kernel", contents.takeError());
      const std::uint64_t offset = symbol.st_value - (*code_section)->sh_addr;
      if (symbol.st_value < (*code_section)->sh_addr || offset > contents->size() ||
          symbol.st_size > contents->size() - offset) {
        return malformed(std::format("symbol {} lies outside its section", image.facts.kernel_name));
      }
      image.address = symbol.st_value;
      image.code = std::span(contents->data() + offset, symbol.st_size);
      return {};
    }
  }
  return malformed(std::format("no function symbol {}", image.facts.kernel_name));
}

}  // namespace

std::expected<KernelImage, Failure> read_kernel_image(std::span<const unsigned char> code_object) {
  auto elf = ElfFile::create(llvm::StringRef(reinterpret_cast<const char*>(code_object.data()), code_object.size()));
  if (!elf) return malformed("ELF", elf.takeError());
  const auto& header = elf->getHeader();
  if (code_object.size() < sizeof header || !header.checkMagic() || header.getFileClass() != llvm::ELF::ELFCLASS64 ||
      header.e_machine != llvm::ELF::EM_AMDGPU) {
    return malformed("not an ELF file for AMDGPU");
  }
  KernelImage image;
  image.machine = header.e_flags & llvm::ELF::EF_AMDGPU_MACH;
  auto note = metadata_note(*elf);
  if (!note) return std::unexpected(note.error());
  if (auto read = read_metadata(*note, image); !read) return std::unexpected(read.error());
  if (auto found = find_code(*elf, image); !found) return std::unexpected(found.error());
  return image;
}

}  // namespace wavejit::codegen
