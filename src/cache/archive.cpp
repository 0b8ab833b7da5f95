// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cache/archive.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <new>

#include "cache/checksum.h"
#include "cache/entry.h"

namespace wavejit::cache {

namespace {

static_assert(std::endian::native == std::endian::little, "fields are copied as they lie in memory");

constexpr std::array<unsigned char, 8> archive_magic = {0x89, 'W', 'J', 'A', 'R', 0x0d, 0x0a, 0x1a};

struct Head {
  std::array<unsigned char, 8> magic;
  std::uint32_t format_version;
  std::uint32_t reserved;
  std::array<unsigned char, 48> padding;
};
static_assert(sizeof(Head) == archive_head_bytes);

struct Foot {
  std::uint64_t entry_count;
  std::uint64_t index_offset;
  std::uint64_t file_bytes;
  std::uint32_t format_version;
  std::uint32_t reserved;
  std::array<unsigned char, 8> magic;
  std::array<unsigned char, 8> padding;
  Checksum checksum;
};
static_assert(sizeof(Foot) == archive_foot_bytes);

struct Record {
  std::array<std::uint8_t, 32> digest;
  std::uint64_t offset;
  std::uint64_t bytes;
};
static_assert(sizeof(Record) == archive_record_bytes);

constexpr Head head_of_ours() {
  return {.magic = archive_magic, .format_version = archive_format_version, .reserved = 0, .padding = {}};
}

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

bool in_order(const ArchiveRecord& a, const ArchiveRecord& b) {
  return a.digest.bytes != b.digest.bytes ? a.digest.bytes < b.digest.bytes : a.offset < b.offset;
}

std::expected<void, std::string> check_head(std::span<const std::byte> bytes) {
  Head head;
  std::memcpy(&head, bytes.data(), sizeof head);
  const Head ours = head_of_ours();
  if (head.magic != ours.magic) return std::unexpected("the magic bytes are wrong; this is no wavejit archive");
  if (head.format_version != ours.format_version) {
    return std::unexpected("format version is " + std::to_string(head.format_version) + "; this program reads " +
                           std::to_string(archive_format_version));
  }
  if (std::memcmp(&head, &ours, sizeof head) != 0) return std::unexpected("its head holds more than zeros");
  return {};
}

std::unexpected<std::string> too_small(std::uint64_t bytes) {
  return std::unexpected("file size is " + std::to_string(bytes) + "; an archive has at least " +
                         std::to_string(archive_head_bytes + archive_foot_bytes) + " bytes");
}

// One pread after the other until everything is there.
std::expected<void, ReadFailure> read_exactly(IoInterface& io, int file, std::span<std::byte> bytes,
                                              std::uint64_t offset) {
  while (!bytes.empty()) {
    const auto count = uninterrupted([&] { return io.pread(file, bytes.data(), bytes.size(), offset); });
    if (!count) return read_failure(ReadProblem::fault, "cannot read: " + errno_text(count.error()));
    if (*count == 0)
      return read_failure(ReadProblem::damaged, "it ends " + std::to_string(bytes.size()) + " bytes early");
    bytes = bytes.subspan(*count);
    offset += *count;
  }
  return {};
}

}  // namespace

std::expected<ArchiveFoot, std::string> parse_archive_foot(std::span<const std::byte> bytes, std::uint64_t file_bytes) {
  if (bytes.size() != archive_foot_bytes || file_bytes < archive_head_bytes + archive_foot_bytes)
    return too_small(file_bytes);
  Foot foot;
  std::memcpy(&foot, bytes.data(), sizeof foot);
  if (foot.magic != archive_magic)
    return std::unexpected("its last bytes are no archive's; it was cut short or appended to");
  if (foot.format_version != archive_format_version) {
    return std::unexpected("format version is " + std::to_string(foot.format_version) + "; this program reads " +
                           std::to_string(archive_format_version));
  }
  if (foot.reserved != 0 || foot.padding != std::array<unsigned char, 8>{})
    return std::unexpected("reserved fields are not 0");
  if (foot.file_bytes != file_bytes) {
    return std::unexpected("it says that it has " + std::to_string(foot.file_bytes) + " bytes and has " +
                           std::to_string(file_bytes));
  }
  if (foot.entry_count > max_archive_entries) {
    return std::unexpected("entry_count is " + std::to_string(foot.entry_count) + "; at most " +
                           std::to_string(max_archive_entries) + " is accepted");
  }
  // No overflow: the count is bounded and the offset compared before it is used.
  const std::uint64_t index_bytes = foot.entry_count * archive_record_bytes;
  if (foot.index_offset < archive_head_bytes || foot.index_offset > file_bytes ||
      file_bytes - foot.index_offset != index_bytes + archive_foot_bytes) {
    return std::unexpected("index_offset " + std::to_string(foot.index_offset) + " and entry_count " +
                           std::to_string(foot.entry_count) + " do not add up to the file's " +
                           std::to_string(file_bytes) + " bytes");
  }
  return ArchiveFoot{.entry_count = foot.entry_count, .index_offset = foot.index_offset};
}

std::expected<std::vector<ArchiveRecord>, std::string> parse_archive_index(std::span<const std::byte> index,
                                                                           std::span<const std::byte> foot_bytes,
                                                                           std::uint64_t file_bytes) {
  const auto foot = parse_archive_foot(foot_bytes, file_bytes);
  if (!foot) return std::unexpected(foot.error());
  if (index.size() != foot->entry_count * archive_record_bytes)
    return std::unexpected("the index is not whole: " + std::to_string(index.size()) + " bytes");
  const auto covered = foot_bytes.first(archive_foot_bytes - sizeof(Checksum));
  const Checksum checksum = checksum_of(index, covered);
  if (std::memcmp(&checksum, foot_bytes.data() + covered.size(), sizeof checksum) != 0)
    return std::unexpected("the checksum of the index does not match");
  std::vector<ArchiveRecord> records(foot->entry_count);
  for (std::size_t i = 0; i < records.size(); ++i) {
    Record raw;
    std::memcpy(&raw, index.data() + i * sizeof raw, sizeof raw);
    records[i] = {.digest = {.bytes = raw.digest}, .offset = raw.offset, .bytes = raw.bytes};
    const bool inside = raw.offset >= archive_head_bytes && raw.offset % entry_alignment == 0 &&
                        raw.offset <= foot->index_offset && raw.bytes <= max_entry_bytes &&
                        raw.bytes <= foot->index_offset - raw.offset;
    if (!inside) return std::unexpected("record " + std::to_string(i) + " of the index leads outside the entries");
    if (i > 0 && !in_order(records[i - 1], records[i])) return std::unexpected("the index is not in order");
  }
  return records;
}

std::expected<std::vector<ArchiveRecord>, std::string> parse_archive(std::span<const std::byte> file) {
  if (file.size() < archive_head_bytes + archive_foot_bytes) return too_small(file.size());
  if (auto head = check_head(file.first(archive_head_bytes)); !head) return std::unexpected(head.error());
  const auto foot_bytes = file.last(archive_foot_bytes);
  const auto foot = parse_archive_foot(foot_bytes, file.size());
  if (!foot) return std::unexpected(foot.error());
  const auto index = file.subspan(foot->index_offset, foot->entry_count * archive_record_bytes);
  return parse_archive_index(index, foot_bytes, file.size());
}

std::expected<ArchiveReader, ReadFailure> ArchiveReader::open(IoInterface& io, const std::string& path) {
  auto opened = open_trusted(io, path);
  if (!opened) return std::unexpected(opened.error());
  ArchiveReader reader(io, std::move(opened->file), opened->status);
  const int file = reader.file_.number();
  const std::uint64_t size = reader.status_.size;
  const auto damaged = [](const std::string& what) { return read_failure(ReadProblem::damaged, what); };
  if (size < archive_head_bytes + archive_foot_bytes) return damaged(too_small(size).error());

  std::array<std::byte, archive_head_bytes> head;
  if (auto read = read_exactly(io, file, head, 0); !read) return std::unexpected(read.error());
  if (auto good = check_head(head); !good) return damaged(good.error());
  std::array<std::byte, archive_foot_bytes> foot_bytes;
  if (auto read = read_exactly(io, file, foot_bytes, size - foot_bytes.size()); !read)
    return std::unexpected(read.error());
  const auto foot = parse_archive_foot(foot_bytes, size);
  if (!foot) return damaged(foot.error());
  std::vector<std::byte> index(foot->entry_count * archive_record_bytes);
  if (auto read = read_exactly(io, file, index, foot->index_offset); !read) return std::unexpected(read.error());
  auto records = parse_archive_index(index, foot_bytes, size);
  if (!records) return damaged(records.error());
  reader.records_ = *std::move(records);
  return reader;
}

std::span<const ArchiveRecord> ArchiveReader::find(const Digest& digest) const {
  const auto range = std::ranges::equal_range(records_, digest.bytes, {},
                                              [](const ArchiveRecord& record) { return record.digest.bytes; });
  return {range.begin(), range.end()};
}

std::expected<FileBytes, ReadFailure> ArchiveReader::read(const ArchiveRecord& record) const {
  FileBytes bytes;
  bytes.size = static_cast<std::size_t>(record.bytes);
  bytes.status = status_;
  bytes.bytes.reset(new (std::nothrow) std::byte[bytes.size]);
  if (!bytes.bytes) return read_failure(ReadProblem::fault, "no memory for " + std::to_string(bytes.size) + " bytes");
  if (auto read = read_exactly(*io_, file_.number(), {bytes.bytes.get(), bytes.size}, record.offset); !read)
    return std::unexpected(read.error());
  return bytes;
}

ArchiveWriter::Outcome ArchiveWriter::write(std::span<const std::byte> bytes) {
  offset_ += bytes.size();
  return write_whole(*io_, file_, path_, bytes);
}

ArchiveWriter::Outcome ArchiveWriter::pad() {
  static constexpr std::array<std::byte, entry_alignment> zeros{};
  const std::size_t over = offset_ % entry_alignment;
  return over == 0 ? Outcome{} : write(std::span(zeros).first(entry_alignment - over));
}

ArchiveWriter::Outcome ArchiveWriter::begin() { return write(bytes_of(head_of_ours())); }

ArchiveWriter::Outcome ArchiveWriter::add(const Digest& digest, std::span<const std::byte> entry) {
  if (records_.size() == max_archive_entries)
    return std::unexpected("an archive holds at most " + std::to_string(max_archive_entries) + " entries");
  if (auto padded = pad(); !padded) return padded;
  records_.push_back({.digest = digest, .offset = offset_, .bytes = entry.size()});
  return write(entry);
}

ArchiveWriter::Outcome ArchiveWriter::finish() {
  if (auto padded = pad(); !padded) return padded;
  std::ranges::sort(records_, in_order);
  std::vector<Record> index;
  index.reserve(records_.size());
  for (const ArchiveRecord& record : records_)
    index.push_back({.digest = record.digest.bytes, .offset = record.offset, .bytes = record.bytes});
  const auto index_bytes = std::as_bytes(std::span(index));
  Foot foot = {.entry_count = records_.size(),
               .index_offset = offset_,
               .file_bytes = offset_ + index_bytes.size() + sizeof(Foot),
               .format_version = archive_format_version,
               .reserved = 0,
               .magic = archive_magic,
               .padding = {},
               .checksum = {}};
  foot.checksum = checksum_of(index_bytes, bytes_of(foot).first(sizeof foot - sizeof foot.checksum));
  if (auto written = write(index_bytes); !written) return written;
  return write(bytes_of(foot));
}

}  // namespace wavejit::cache
