// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/loader/message_pack.h"

#include <bit>

namespace wavejit::simgpu {
namespace {

// Metadata nests four levels deep; anything much deeper is damage.
constexpr int deepest = 16;

class Reader {
 public:
  explicit Reader(const Bytes& bytes) : bytes_(bytes) {}

  bool value(MessageValue& out, int depth) {
    if (depth > deepest) return false;
    const auto tag = bytes_.read<std::uint8_t>(at_++);
    if (!tag) return false;
    const std::uint8_t first = *tag;
    if (first < 0x80) return integer(out, first);
    if (first >= 0xe0) return integer(out, static_cast<std::int8_t>(first));
    if (first < 0x90) return map(out, first & 0x0f, depth);
    if (first < 0xa0) return array(out, first & 0x0f, depth);
    if (first < 0xc0) return text(out, first & 0x1f);
    std::uint64_t number = 0;
    switch (first) {
      case 0xc0:
        return true;
      case 0xc2:
      case 0xc3:
        out.kind = MessageValue::Kind::boolean;
        out.integer = first & 1;
        return true;
      case 0xc4:
      case 0xd9:
        return big_endian(1, number) && text(out, number);
      case 0xc5:
      case 0xda:
        return big_endian(2, number) && text(out, number);
      case 0xc6:
      case 0xdb:
        return big_endian(4, number) && text(out, number);
      case 0xca:
        if (!big_endian(4, number)) return false;
        out.kind = MessageValue::Kind::real;
        out.real = std::bit_cast<float>(static_cast<std::uint32_t>(number));
        return true;
      case 0xcb:
        if (!big_endian(8, number)) return false;
        out.kind = MessageValue::Kind::real;
        out.real = std::bit_cast<double>(number);
        return true;
      case 0xcc:
        return big_endian(1, number) && integer(out, static_cast<std::int64_t>(number));
      case 0xcd:
        return big_endian(2, number) && integer(out, static_cast<std::int64_t>(number));
      case 0xce:
        return big_endian(4, number) && integer(out, static_cast<std::int64_t>(number));
      case 0xcf:
        return big_endian(8, number) && integer(out, static_cast<std::int64_t>(number));
      case 0xd0:
        return big_endian(1, number) && integer(out, static_cast<std::int8_t>(number));
      case 0xd1:
        return big_endian(2, number) && integer(out, static_cast<std::int16_t>(number));
      case 0xd2:
        return big_endian(4, number) && integer(out, static_cast<std::int32_t>(number));
      case 0xd3:
        return big_endian(8, number) && integer(out, static_cast<std::int64_t>(number));
      case 0xdc:
        return big_endian(2, number) && array(out, number, depth);
      case 0xdd:
        return big_endian(4, number) && array(out, number, depth);
      case 0xde:
        return big_endian(2, number) && map(out, number, depth);
      case 0xdf:
        return big_endian(4, number) && map(out, number, depth);
      default:
        return false;
    }
  }

 private:
  static bool integer(MessageValue& out, std::int64_t number) {
    out.kind = MessageValue::Kind::integer;
    out.integer = number;
    return true;
  }

  bool big_endian(unsigned count, std::uint64_t& number) {
    number = 0;
    for (unsigned i = 0; i < count; ++i) {
      const auto byte = bytes_.read<std::uint8_t>(at_++);
      if (!byte) return false;
      number = (number << 8) | *byte;
    }
    return true;
  }

  bool text(MessageValue& out, std::uint64_t length) {
    const auto part = bytes_.part(at_, length);
    if (!part) return false;
    out.kind = MessageValue::Kind::text;
    out.text.assign(reinterpret_cast<const char*>(part->data().data()), length);
    at_ += length;
    return true;
  }

  // Every element takes at least one byte: a count beyond what is left is damage, found before anything is allocated.
  bool array(MessageValue& out, std::uint64_t count, int depth) {
    if (!bytes_.holds(at_, count)) return false;
    out.kind = MessageValue::Kind::array;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (!value(out.elements.emplace_back(), depth + 1)) return false;
    }
    return true;
  }

  bool map(MessageValue& out, std::uint64_t count, int depth) {
    if (!bytes_.holds(at_, count)) return false;
    out.kind = MessageValue::Kind::map;
    for (std::uint64_t i = 0; i < count; ++i) {
      MessageValue key;
      if (!value(key, depth + 1) || key.kind != MessageValue::Kind::text) return false;
      out.keys.push_back(std::move(key.text));
      if (!value(out.elements.emplace_back(), depth + 1)) return false;
    }
    return true;
  }

  const Bytes& bytes_;
  std::uint64_t at_ = 0;
};

}  // namespace

const MessageValue* MessageValue::find(std::string_view key) const {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] == key) return &elements[i];
  }
  return nullptr;
}

std::string_view MessageValue::text_of(std::string_view key, std::string_view otherwise) const {
  const MessageValue* value = find(key);
  return value != nullptr && value->kind == Kind::text ? std::string_view(value->text) : otherwise;
}

std::uint64_t MessageValue::number_of(std::string_view key, std::uint64_t otherwise) const {
  const MessageValue* value = find(key);
  const bool counts = value != nullptr && (value->kind == Kind::integer || value->kind == Kind::boolean);
  return counts ? static_cast<std::uint64_t>(value->integer) : otherwise;
}

std::optional<MessageValue> read_message_pack(const Bytes& bytes) {
  MessageValue root;
  if (!Reader(bytes).value(root, 0)) return std::nullopt;
  return root;
}

}  // namespace wavejit::simgpu
