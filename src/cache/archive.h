// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Many entries in one file: what an image or a package ships instead of a folder of small files.
//
//   archive := head entry{…} padding index foot
//   head    := magic 8 bytes 89 'W' 'J' 'A' 'R' 0d 0a 1a   format_version u32   reserved u32 (0)   padding to 64 bytes
//   entry   := an entry exactly as its file would hold it (entry.h), at an offset that is a multiple of 64
//   index   := record{entry_count}, sorted by digest, then offset
//   record  := digest 32 bytes (SHA-256 of the key text)   offset u64   bytes u64
//   foot    := entry_count u64   index_offset u64   file_bytes u64   format_version u32   reserved u32 (0)
//              magic 8 bytes, the same   padding 8 bytes of 0   checksum 16 bytes
//   checksum:= XXH3-128 (seed 0) of the index and of the foot before it, in XXH's canonical order
//
// Integers are little-endian. The foot is the file's last 64 bytes, so that an archive is written front to back and one
// that was cut short has none. The index is checked when an archive is opened, an entry (by its own checksum) when it
// is read. Two entries may have one digest: one key text for two targets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/digest.h"
#include "cache/files.h"
#include "cache/io.h"

namespace wavejit::cache {

inline constexpr std::uint32_t archive_format_version = 1;
inline constexpr std::size_t archive_head_bytes = 64;
inline constexpr std::size_t archive_foot_bytes = 64;
inline constexpr std::size_t archive_record_bytes = 48;
inline constexpr std::size_t max_archive_entries = 1'000'000;
inline constexpr std::string_view archive_suffix = ".wavejit-archive";

struct ArchiveRecord {
  Digest digest;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

struct ArchiveFoot {
  std::uint64_t entry_count = 0;
  std::uint64_t index_offset = 0;
};

// Both read untrusted bytes and never outside them. `foot` is the file's last archive_foot_bytes; errors are one line.
std::expected<ArchiveFoot, std::string> parse_archive_foot(std::span<const std::byte> foot, std::uint64_t file_bytes);
std::expected<std::vector<ArchiveRecord>, std::string> parse_archive_index(std::span<const std::byte> index,
                                                                           std::span<const std::byte> foot,
                                                                           std::uint64_t file_bytes);
// The whole of a small archive that lies in memory: head, foot and index.
std::expected<std::vector<ArchiveRecord>, std::string> parse_archive(std::span<const std::byte> file);

// An open archive: the index in memory, entries by pread(2). Safe from any thread.
class ArchiveReader {
 public:
  static std::expected<ArchiveReader, ReadFailure> open(IoInterface& io, const std::string& path);

  const std::vector<ArchiveRecord>& records() const { return records_; }
  // Those of a digest, most often none or one.
  std::span<const ArchiveRecord> find(const Digest& digest) const;
  std::expected<FileBytes, ReadFailure> read(const ArchiveRecord& record) const;
  const FileStatus& status() const { return status_; }

 private:
  ArchiveReader(IoInterface& io, FileHandle file, FileStatus status)
      : io_(&io), file_(std::move(file)), status_(status) {}

  IoInterface* io_;
  FileHandle file_;
  FileStatus status_;
  std::vector<ArchiveRecord> records_;
};

// Writes an archive front to back into a file that the caller opened.
class ArchiveWriter {
 public:
  using Outcome = std::expected<void, std::string>;

  ArchiveWriter(IoInterface& io, int file, std::string path) : io_(&io), file_(file), path_(std::move(path)) {}

  Outcome begin();
  // `entry` is serialised; `digest` that of its key text.
  Outcome add(const Digest& digest, std::span<const std::byte> entry);
  Outcome finish();
  std::uint64_t bytes() const { return offset_; }
  std::size_t entries() const { return records_.size(); }

 private:
  Outcome write(std::span<const std::byte> bytes);
  Outcome pad();

  IoInterface* io_;
  int file_;
  std::string path_;
  std::uint64_t offset_ = 0;
  std::vector<ArchiveRecord> records_;
};

}  // namespace wavejit::cache
