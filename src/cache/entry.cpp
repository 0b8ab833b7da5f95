// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cache/entry.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "cache/checksum.h"

namespace wavejit::cache {

namespace {

static_assert(std::endian::native == std::endian::little, "fields are copied as they lie in memory");

constexpr std::array<unsigned char, 8> entry_magic = {0x89, 'W', 'J', 'I', 'T', 0x0d, 0x0a, 0x1a};

struct Fixed {
  std::array<unsigned char, 8> magic;
  std::uint32_t format_version;
  std::uint32_t header_bytes;
  std::uint64_t payload_bytes;
  std::uint32_t key_text_bytes;
  std::uint32_t target_id_bytes;
  std::uint32_t kernel_count;
  std::uint32_t reserved;
};
static_assert(sizeof(Fixed) == entry_fixed_bytes);

struct FixedKernel {
  std::uint32_t name_bytes;
  std::uint32_t kernarg_bytes;
  std::uint32_t lds_bytes;
  std::uint32_t private_bytes;
  std::uint32_t vgprs;
  std::uint32_t agprs;
  std::uint32_t sgprs;
  std::uint32_t threads;
};
static_assert(sizeof(FixedKernel) == entry_kernel_bytes);

constexpr std::size_t rounded_up(std::size_t size) {
  return (size + entry_alignment - 1) / entry_alignment * entry_alignment;
}

static_assert(sizeof(Checksum) == entry_checksum_bytes);

// Takes pieces off the front of the header; the caller has checked that they are there.
class Taker {
 public:
  explicit Taker(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
  T take() {
    T value;
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_ = bytes_.subspan(sizeof value);
    return value;
  }
  std::string take_text(std::size_t size) {
    std::string text(reinterpret_cast<const char*>(bytes_.data()), size);
    bytes_ = bytes_.subspan(size);
    return text;
  }
  std::span<const std::byte> rest() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

void append(std::vector<std::byte>& bytes, const void* data, std::size_t size) {
  const auto* begin = static_cast<const std::byte*>(data);
  bytes.insert(bytes.end(), begin, begin + size);
}

// An error line: "<field> is <value>; <what is accepted>".
std::unexpected<std::string> wrong(std::string_view field, std::uint64_t value, std::string_view accepted) {
  return std::unexpected(std::string(field) + " is " + std::to_string(value) + "; " + std::string(accepted));
}

std::unexpected<std::string> wrong_length(std::string_view field, std::uint64_t value, std::uint64_t limit) {
  return wrong(field, value, "1 to " + std::to_string(limit) + " is accepted");
}

bool within(std::uint64_t value, std::uint64_t limit) { return value >= 1 && value <= limit; }

// Key texts and names end up on terminals and in logs: no control characters.
bool is_printable(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

}  // namespace

bool is_target_id(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == ':' || c == '+' ||
           c == '-' || c == '_' || c == '.';
  };
  return within(text.size(), max_target_id_bytes) && text.front() != '.' && std::ranges::all_of(text, allowed);
}

std::expected<std::vector<std::byte>, std::string> serialise(const Entry& entry) {
  if (!within(entry.key_text.size(), max_key_text_bytes)) {
    return wrong_length("key text bytes", entry.key_text.size(), max_key_text_bytes);
  }
  if (!is_printable(entry.key_text)) return std::unexpected("the key text holds control characters; text is accepted");
  if (!is_target_id(entry.target_id)) {
    return std::unexpected("target id '" + entry.target_id +
                           "' is no folder name; letters, digits and :+-_. are accepted");
  }
  if (!within(entry.kernels.size(), max_kernels))
    return wrong_length("kernel count", entry.kernels.size(), max_kernels);
  std::size_t header =
      sizeof(Fixed) + entry.kernels.size() * sizeof(FixedKernel) + entry.key_text.size() + entry.target_id.size();
  for (const KernelFacts& kernel : entry.kernels) {
    if (!within(kernel.name.size(), max_kernel_name_bytes)) {
      return wrong_length("kernel name bytes", kernel.name.size(), max_kernel_name_bytes);
    }
    if (!is_printable(kernel.name)) return std::unexpected("a kernel name holds control characters; text is accepted");
    header += kernel.name.size();
  }
  header = rounded_up(header);
  const std::size_t room = max_entry_bytes - header - entry_checksum_bytes;
  if (!within(entry.code_object.size(), room)) return wrong_length("code object bytes", entry.code_object.size(), room);

  std::vector<std::byte> bytes;
  bytes.reserve(header + entry.code_object.size() + entry_checksum_bytes);
  const Fixed fixed = {.magic = entry_magic,
                       .format_version = entry_format_version,
                       .header_bytes = static_cast<std::uint32_t>(header),
                       .payload_bytes = entry.code_object.size(),
                       .key_text_bytes = static_cast<std::uint32_t>(entry.key_text.size()),
                       .target_id_bytes = static_cast<std::uint32_t>(entry.target_id.size()),
                       .kernel_count = static_cast<std::uint32_t>(entry.kernels.size()),
                       .reserved = 0};
  append(bytes, &fixed, sizeof fixed);
  for (const KernelFacts& kernel : entry.kernels) {
    const FixedKernel record = {.name_bytes = static_cast<std::uint32_t>(kernel.name.size()),
                                .kernarg_bytes = kernel.kernarg_bytes,
                                .lds_bytes = kernel.lds_bytes,
                                .private_bytes = kernel.private_bytes,
                                .vgprs = kernel.vgprs,
                                .agprs = kernel.agprs,
                                .sgprs = kernel.sgprs,
                                .threads = kernel.threads};
    append(bytes, &record, sizeof record);
  }
  append(bytes, entry.key_text.data(), entry.key_text.size());
  append(bytes, entry.target_id.data(), entry.target_id.size());
  for (const KernelFacts& kernel : entry.kernels) append(bytes, kernel.name.data(), kernel.name.size());
  bytes.resize(header);
  append(bytes, entry.code_object.data(), entry.code_object.size());
  const Checksum checksum = checksum_of(bytes);
  append(bytes, &checksum, sizeof checksum);
  return bytes;
}

std::expected<Entry, std::string> parse(std::span<const std::byte> file) {
  constexpr std::size_t smallest = entry_fixed_bytes + entry_checksum_bytes;
  if (file.size() < smallest) {
    return wrong("file size", file.size(), "an entry has at least " + std::to_string(smallest) + " bytes");
  }
  if (file.size() > max_entry_bytes) {
    return wrong("file size", file.size(), "an entry has at most " + std::to_string(max_entry_bytes) + " bytes");
  }
  Taker taker(file);
  const auto fixed = taker.take<Fixed>();
  if (fixed.magic != entry_magic) return std::unexpected("the magic bytes are wrong; this is no wavejit cache entry");
  if (fixed.format_version != entry_format_version) {
    return wrong("format version", fixed.format_version, "this program reads " + std::to_string(entry_format_version));
  }
  // The sum is of one 32-bit and one bounded 64-bit number: no overflow.
  if (fixed.payload_bytes == 0 || fixed.payload_bytes > file.size() ||
      fixed.header_bytes + fixed.payload_bytes + entry_checksum_bytes != file.size()) {
    return std::unexpected("header_bytes " + std::to_string(fixed.header_bytes) + " and payload_bytes " +
                           std::to_string(fixed.payload_bytes) + " do not add up to the file's " +
                           std::to_string(file.size()) + " bytes; it was cut short or appended to");
  }
  if (!within(fixed.key_text_bytes, max_key_text_bytes)) {
    return wrong_length("key_text_bytes", fixed.key_text_bytes, max_key_text_bytes);
  }
  if (!within(fixed.target_id_bytes, max_target_id_bytes)) {
    return wrong_length("target_id_bytes", fixed.target_id_bytes, max_target_id_bytes);
  }
  if (!within(fixed.kernel_count, max_kernels)) return wrong_length("kernel_count", fixed.kernel_count, max_kernels);
  if (fixed.reserved != 0) return wrong("reserved", fixed.reserved, "only 0 is accepted");

  std::size_t used = sizeof(Fixed) + fixed.kernel_count * sizeof(FixedKernel);
  if (used > fixed.header_bytes)
    return wrong("header_bytes", fixed.header_bytes, "its kernels need " + std::to_string(used));
  std::array<FixedKernel, max_kernels> records{};
  used += fixed.key_text_bytes + fixed.target_id_bytes;
  for (std::uint32_t i = 0; i < fixed.kernel_count; ++i) {
    records[i] = taker.take<FixedKernel>();
    if (!within(records[i].name_bytes, max_kernel_name_bytes)) {
      return wrong_length("name_bytes", records[i].name_bytes, max_kernel_name_bytes);
    }
    used += records[i].name_bytes;
  }
  if (rounded_up(used) != fixed.header_bytes) {
    return wrong("header_bytes", fixed.header_bytes, "its parts need " + std::to_string(rounded_up(used)));
  }
  // Everything that the checksum covers was only measured so far, nothing was believed.
  const std::size_t covered = file.size() - entry_checksum_bytes;
  const Checksum checksum = checksum_of(file.first(covered));
  if (std::memcmp(&checksum, file.data() + covered, sizeof checksum) != 0) {
    return std::unexpected("the checksum does not match");
  }

  Entry entry;
  entry.key_text = taker.take_text(fixed.key_text_bytes);
  entry.target_id = taker.take_text(fixed.target_id_bytes);
  if (!is_printable(entry.key_text)) return std::unexpected("the key text holds control characters");
  if (!is_target_id(entry.target_id)) return std::unexpected("the target id is no folder name");
  entry.kernels.reserve(fixed.kernel_count);
  for (std::uint32_t i = 0; i < fixed.kernel_count; ++i) {
    const FixedKernel& record = records[i];
    entry.kernels.push_back({.name = taker.take_text(record.name_bytes),
                             .kernarg_bytes = record.kernarg_bytes,
                             .lds_bytes = record.lds_bytes,
                             .private_bytes = record.private_bytes,
                             .vgprs = record.vgprs,
                             .agprs = record.agprs,
                             .sgprs = record.sgprs,
                             .threads = record.threads});
    if (!is_printable(entry.kernels.back().name)) return std::unexpected("a kernel name holds control characters");
  }
  const auto padding = taker.rest().first(fixed.header_bytes - used);
  if (!std::ranges::all_of(padding, [](std::byte b) { return b == std::byte{0}; })) {
    return std::unexpected("the padding after the header is not zero");
  }
  entry.code_object = file.subspan(fixed.header_bytes, fixed.payload_bytes);
  return entry;
}

}  // namespace wavejit::cache
