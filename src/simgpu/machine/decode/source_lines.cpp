// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/decode/source_lines.h"

#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>

#include <format>

namespace wavejit::simgpu {

struct SourceLines::Llvm {
  std::unique_ptr<llvm::MemoryBuffer> image;
  std::unique_ptr<llvm::object::ObjectFile> object;
  std::unique_ptr<llvm::DWARFContext> lines;  // made at the first question
};

std::string SourceLine::text() const {
  return std::format("{}:{}", std::string_view(file).substr(file.rfind('/') + 1), line);
}

SourceLines::SourceLines(std::unique_ptr<Llvm> llvm) : llvm_(std::move(llvm)) {}
SourceLines::~SourceLines() = default;

std::unique_ptr<SourceLines> SourceLines::read(std::span<const std::byte> image) {
  const llvm::StringRef bytes(reinterpret_cast<const char*>(image.data()), image.size());
  // The loader keeps no image: a copy is made of those that have a table, which few have.
  if (!bytes.contains(".debug_line")) return nullptr;
  auto llvm = std::make_unique<Llvm>();
  llvm->image = llvm::MemoryBuffer::getMemBufferCopy(bytes);
  auto object = llvm::object::ObjectFile::createObjectFile(llvm->image->getMemBufferRef());
  if (!object) {
    llvm::consumeError(object.takeError());
    return nullptr;
  }
  llvm->object = std::move(*object);
  bool has_table = false;
  for (const llvm::object::SectionRef& section : llvm->object->sections()) {
    auto name = section.getName();
    has_table = has_table || (name && *name == ".debug_line");
    if (!name) llvm::consumeError(name.takeError());
  }
  if (!has_table) return nullptr;
  return std::unique_ptr<SourceLines>(new SourceLines(std::move(llvm)));
}

std::optional<SourceLine> SourceLines::at(std::uint64_t address) {
  const std::scoped_lock lock(mutex_);
  if (llvm_->lines == nullptr) {
    // A damaged table says less; it is not worth a word of its own.
    const auto quiet = [](llvm::Error error) { llvm::consumeError(std::move(error)); };
    llvm_->lines = llvm::DWARFContext::create(*llvm_->object, llvm::DWARFContext::ProcessDebugRelocations::Process,
                                              nullptr, "", quiet, quiet);
  }
  const auto found = llvm_->lines->getLineInfoForAddress(
      {.Address = address, .SectionIndex = llvm::object::SectionedAddress::UndefSection},
      {llvm::DILineInfoSpecifier::FileLineInfoKind::AbsoluteFilePath,
       llvm::DILineInfoSpecifier::FunctionNameKind::None});
  if (!found || found->Line == 0 || found->FileName == llvm::DILineInfo::BadString) return std::nullopt;
  return SourceLine{.file = found->FileName, .line = found->Line};
}

}  // namespace wavejit::simgpu
