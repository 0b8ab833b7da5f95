// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/hip/offload_bundle.h"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <format>
#include <optional>
#include <string>
#include <utility>

#include "simgpu/machine/allocations/memory.h"
#include "simgpu/machine/loader/code_object.h"

namespace wavejit::simgpu::hip_front {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::string_view bundle_magic = "__CLANG_OFFLOAD_BUNDLE__";
constexpr std::string_view compressed_magic = "CCOB";
constexpr std::size_t max_bundle_entries = 4096;  // far more than there are processors
constexpr std::size_t max_entry_id_bytes = 4096;
constexpr std::size_t max_unpacked_bytes = std::size_t{4} << 30;  // a guess at "certainly damaged"

// EF_AMDGPU_FEATURE_* of code object version 4 and later (LLVM's AMDGPU usage document, "e_flags").
constexpr std::uint32_t xnack_mask = 0x300;
constexpr std::uint32_t xnack_on = 0x300;
constexpr std::uint32_t sramecc_mask = 0xc00;
constexpr std::uint32_t sramecc_off = 0x800;

template <typename Value>
std::optional<Value> read(Bytes bytes, std::size_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(Value)) return std::nullopt;
  Value value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

bool starts_with(Bytes bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

bool is_elf(Bytes bytes) { return starts_with(bytes, {ELFMAG, SELFMAG}); }

// mincore answers ENOMEM for pages that are not mapped, without touching them.
bool is_mapped(const void* start, std::size_t bytes) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(start) / page * page;
  if (bytes > UINTPTR_MAX - reinterpret_cast<std::uintptr_t>(start) - page) return false;
  const std::uintptr_t last = (reinterpret_cast<std::uintptr_t>(start) + bytes + page - 1) / page * page;
  std::vector<unsigned char> residence(std::min<std::size_t>((last - first) / page, 4096));
  for (std::uintptr_t at = first; at < last;) {
    const std::size_t pages = std::min<std::size_t>((last - at) / page, residence.size());
    if (mincore(host_pointer<void>(at), pages * page, residence.data()) != 0) return false;
    at += pages * page;
  }
  return true;
}

Bytes mapped_prefix(const void* image, std::size_t bytes) {
  return is_mapped(image, bytes) ? Bytes(static_cast<const std::byte*>(image), bytes) : Bytes();
}

std::size_t elf_size(const void* image) {
  const auto header = read<Elf64_Ehdr>(mapped_prefix(image, sizeof(Elf64_Ehdr)), 0);
  if (!header || header->e_ident[EI_CLASS] != ELFCLASS64) return 0;
  std::size_t end = sizeof(Elf64_Ehdr);
  const auto include = [&](std::uint64_t offset, std::uint64_t bytes) {
    if (offset <= max_unpacked_bytes && bytes <= max_unpacked_bytes) end = std::max<std::size_t>(end, offset + bytes);
  };
  include(header->e_shoff, static_cast<std::uint64_t>(header->e_shnum) * sizeof(Elf64_Shdr));
  include(header->e_phoff, static_cast<std::uint64_t>(header->e_phnum) * sizeof(Elf64_Phdr));
  const Bytes tables = mapped_prefix(image, end);
  for (std::size_t i = 0; i < header->e_phnum; ++i) {
    const auto segment = read<Elf64_Phdr>(tables, header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment) return 0;
    include(segment->p_offset, segment->p_filesz);
  }
  for (std::size_t i = 0; i < header->e_shnum; ++i) {
    const auto section = read<Elf64_Shdr>(tables, header->e_shoff + i * sizeof(Elf64_Shdr));
    if (!section) return 0;
    if (section->sh_type != SHT_NOBITS) include(section->sh_offset, section->sh_size);
  }
  return is_mapped(image, end) ? end : 0;
}

struct Entry {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::string id;  // "hipv4-amdgcn-amd-amdhsa--gfx942:xnack-"
  std::size_t header_end = 0;
};

// Entry `index` whose header starts at `at`; nothing when the blob ends before it does.
std::optional<Entry> read_entry(Bytes bytes, std::size_t at) {
  const auto offset = read<std::uint64_t>(bytes, at);
  const auto size = read<std::uint64_t>(bytes, at + 8);
  const auto id_bytes = read<std::uint64_t>(bytes, at + 16);
  if (!offset || !size || !id_bytes || *id_bytes > max_entry_id_bytes) return std::nullopt;
  const std::size_t id_start = at + 24;
  if (bytes.size() < id_start || bytes.size() - id_start < *id_bytes) return std::nullopt;
  return Entry{.offset = *offset,
               .bytes = *size,
               .id = std::string(reinterpret_cast<const char*>(bytes.data()) + id_start, *id_bytes),
               .header_end = id_start + static_cast<std::size_t>(*id_bytes)};
}

std::size_t bundle_size(const void* image) {
  std::size_t known = bundle_magic.size() + 8;
  const auto count = read<std::uint64_t>(mapped_prefix(image, known), bundle_magic.size());
  if (!count || *count > max_bundle_entries) return 0;
  std::size_t at = known;
  std::size_t end = known;
  for (std::uint64_t i = 0; i < *count; ++i) {
    const auto id_bytes = read<std::uint64_t>(mapped_prefix(image, at + 24), at + 16);
    if (!id_bytes || *id_bytes > max_entry_id_bytes) return 0;
    const auto entry = read_entry(mapped_prefix(image, at + 24 + static_cast<std::size_t>(*id_bytes)), at);
    if (!entry || entry->offset > max_unpacked_bytes || entry->bytes > max_unpacked_bytes) return 0;
    at = entry->header_end;
    end = std::max<std::size_t>({end, at, entry->offset + entry->bytes});
  }
  return is_mapped(image, end) ? end : 0;
}

struct CompressedHeader {
  std::uint64_t file_bytes = 0;
  std::uint64_t unpacked_bytes = 0;
  std::uint16_t method = 0;  // 0 zlib, 1 zstd
  std::size_t header_bytes = 0;
};

std::optional<CompressedHeader> read_compressed_header(Bytes bytes) {
  const auto version = read<std::uint16_t>(bytes, 4);
  const auto method = read<std::uint16_t>(bytes, 6);
  if (!version || !method) return std::nullopt;
  if (*version == 2) {
    const auto file_bytes = read<std::uint32_t>(bytes, 8);
    const auto unpacked = read<std::uint32_t>(bytes, 12);
    if (!file_bytes || !unpacked) return std::nullopt;
    return CompressedHeader{*file_bytes, *unpacked, *method, 24};
  }
  if (*version == 3) {
    const auto file_bytes = read<std::uint64_t>(bytes, 8);
    const auto unpacked = read<std::uint64_t>(bytes, 16);
    if (!file_bytes || !unpacked) return std::nullopt;
    return CompressedHeader{*file_bytes, *unpacked, *method, 32};
  }
  return std::nullopt;  // version 1 does not say how long it is
}

constexpr std::size_t longest_compressed_header = 32;
// zlib's own bound on what deflate can reach. zstd has none to speak of, and no code of a compiler comes near this one.
constexpr std::size_t most_ratio = 1032;

std::optional<std::vector<std::byte>> decompress(Bytes bytes) {
  const auto header = read_compressed_header(bytes);
  if (!header || header->file_bytes > bytes.size() || header->file_bytes < header->header_bytes ||
      header->unpacked_bytes > max_unpacked_bytes) {
    return std::nullopt;
  }
  const Bytes packed = bytes.subspan(header->header_bytes, header->file_bytes - header->header_bytes);
  // The size is checked against the data before that much memory is taken.
  if (header->unpacked_bytes / most_ratio > packed.size()) return std::nullopt;
  if (header->method == 1 && ZSTD_getFrameContentSize(packed.data(), packed.size()) != header->unpacked_bytes)
    return std::nullopt;
  std::vector<std::byte> unpacked(header->unpacked_bytes);
  if (header->method == 1) {
    const std::size_t written = ZSTD_decompress(unpacked.data(), unpacked.size(), packed.data(), packed.size());
    if (ZSTD_isError(written) != 0 || written != unpacked.size()) return std::nullopt;
  } else if (header->method == 0) {
    auto written = static_cast<uLongf>(unpacked.size());
    const int status = uncompress(reinterpret_cast<Bytef*>(unpacked.data()), &written,
                                  reinterpret_cast<const Bytef*>(packed.data()), static_cast<uLong>(packed.size()));
    if (status != Z_OK || written != unpacked.size()) return std::nullopt;
  } else {
    return std::nullopt;
  }
  return unpacked;
}

BundleError no_binary(const std::vector<std::string>& made_for, std::string_view device_target) {
  std::string targets;
  for (const std::string& target : made_for) targets += (targets.empty() ? "" : ", ") + target;
  return {hip_abi::hipErrorNoBinaryForGpu, std::format("the image has code for {}; the device is {}",
                                                       targets.empty() ? "no AMD GPU" : targets, device_target)};
}

BundleError damaged(std::string_view what) {
  return {hip_abi::hipErrorInvalidImage, std::format("the image is damaged: {}", what)};
}

std::expected<std::vector<std::byte>, BundleError> select_elf(Bytes image, std::string_view device_target) {
  const std::string processor = code_object_processor(image);
  const auto header = read<Elf64_Ehdr>(image, 0);
  if (!header || processor.empty()) {
    const std::string problem = code_object_problem(image);
    if (!header || !problem.empty()) return std::unexpected(BundleError{hip_abi::hipErrorInvalidImage, problem});
    return std::unexpected(
        no_binary({std::format("a processor that is not known (e_flags {:#x})", header->e_flags)}, device_target));
  }
  const bool features_fit =
      (header->e_flags & xnack_mask) != xnack_on && (header->e_flags & sramecc_mask) != sramecc_off;
  if (target_match(processor, device_target) < 0 || !features_fit) {
    std::string made_for = processor;
    if ((header->e_flags & xnack_mask) == xnack_on) made_for += ":xnack+";
    if ((header->e_flags & sramecc_mask) == sramecc_off) made_for += ":sramecc-";
    return std::unexpected(no_binary({made_for}, device_target));
  }
  return std::vector<std::byte>(image.begin(), image.end());
}

std::expected<std::vector<std::byte>, BundleError> select_entry(Bytes bundle, std::string_view device_target) {
  const auto count = read<std::uint64_t>(bundle, bundle_magic.size());
  if (!count || *count > max_bundle_entries) return std::unexpected(damaged("a bundle without a number of entries"));
  std::vector<std::string> made_for;
  int best = -1;
  Bytes chosen;
  std::size_t at = bundle_magic.size() + 8;
  for (std::uint64_t i = 0; i < *count; ++i) {
    const auto entry = read_entry(bundle, at);
    if (!entry || entry->offset > bundle.size() || bundle.size() - entry->offset < entry->bytes) {
      return std::unexpected(damaged(std::format("entry {} of {} of a bundle reaches beyond it", i, *count)));
    }
    at = entry->header_end;
    // "<kind>-<four parts of the triple>-<target id>", the kind being hip or hipv4; features contain '-' too.
    const std::string_view id = entry->id;
    const std::size_t processor = id.find("gfx");
    if (!id.starts_with("hip") || id.find("amdgcn") == id.npos || processor == id.npos) continue;
    made_for.emplace_back(id.substr(processor));
    const int match = target_match(id.substr(processor), device_target);
    if (match > best) {
      best = match;
      chosen = bundle.subspan(entry->offset, entry->bytes);
    }
  }
  if (best < 0) return std::unexpected(no_binary(made_for, device_target));
  return std::vector<std::byte>(chosen.begin(), chosen.end());
}

// "name" without its ':feature±' parts, and those parts.
std::pair<std::string_view, std::vector<std::string_view>> split_target(std::string_view id) {
  const std::size_t colon = id.find(':');
  std::pair<std::string_view, std::vector<std::string_view>> parts{id.substr(0, colon), {}};
  while (id.find(':') != id.npos) {
    id.remove_prefix(id.find(':') + 1);
    parts.second.push_back(id.substr(0, id.find(':')));
  }
  return parts;
}

}  // namespace

int target_match(std::string_view wanted, std::string_view device) {
  const auto [wanted_processor, wanted_features] = split_target(wanted);
  const auto [device_processor, device_features] = split_target(device);
  if (wanted_processor != device_processor) return -1;
  for (const std::string_view feature : wanted_features) {
    if (std::ranges::find(device_features, feature) == device_features.end()) return -1;
  }
  return static_cast<int>(wanted_features.size());
}

std::size_t image_size(const void* image) {
  if (image == nullptr) return 0;
  if (is_elf(mapped_prefix(image, SELFMAG))) return elf_size(image);
  if (starts_with(mapped_prefix(image, compressed_magic.size()), compressed_magic)) {
    const auto header = read_compressed_header(mapped_prefix(image, longest_compressed_header));
    return header && is_mapped(image, header->file_bytes) ? header->file_bytes : 0;
  }
  if (starts_with(mapped_prefix(image, bundle_magic.size()), bundle_magic)) return bundle_size(image);
  return 0;
}

std::expected<std::vector<std::byte>, BundleError> select_code_object(std::span<const std::byte> image,
                                                                      std::string_view device_target) {
  if (is_elf(image)) return select_elf(image, device_target);
  if (starts_with(image, bundle_magic)) return select_entry(image, device_target);
  if (starts_with(image, compressed_magic)) {
    const auto unpacked = decompress(image);
    // A compressed bundle holds a plain one; nothing else is followed, so that damage cannot make this recurse.
    if (unpacked && starts_with(*unpacked, bundle_magic)) return select_entry(*unpacked, device_target);
    return std::unexpected(damaged("a compressed bundle that cannot be unpacked"));
  }
  return std::unexpected(BundleError{hip_abi::hipErrorInvalidImage,
                                     "the image is no ELF code object, offload bundle or compressed bundle"});
}

}  // namespace wavejit::simgpu::hip_front
