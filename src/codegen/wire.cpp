// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/wire.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <format>

#include "codegen/generator_id.h"

namespace wavejit::codegen::wire {
namespace {

struct Header {
  std::array<char, 16> generator = {};  // both ends must be the same build
  std::int32_t status = 0;
  std::uint32_t detail_bytes = 0;
  std::uint64_t payload_bytes = 0;
  PhaseTimes times;
  Facts facts = {};
};

std::array<char, 16> generator() {
  std::array<char, 16> id = {};
  std::memcpy(id.data(), build_id().data(), std::min(id.size(), build_id().size()));
  return id;
}

}  // namespace

Bytes encode(const Compiled& compiled) {
  Header header;
  header.generator = generator();
  header.status = static_cast<std::int32_t>(compiled.status);
  header.detail_bytes = static_cast<std::uint32_t>(compiled.detail.size());
  header.payload_bytes = compiled.bytes.size();
  header.times = compiled.times;
  header.facts = compiled.facts;
  Bytes frame(sizeof header);
  std::memcpy(frame.data(), &header, sizeof header);
  frame.insert(frame.end(), compiled.detail.begin(), compiled.detail.end());
  frame.insert(frame.end(), compiled.bytes.begin(), compiled.bytes.end());
  return frame;
}

std::expected<Compiled, std::string> decode(std::span<const unsigned char> frame) {
  Header header;
  if (frame.size() < sizeof header) return std::unexpected(std::format("its answer ends after {} bytes", frame.size()));
  std::memcpy(&header, frame.data(), sizeof header);
  if (header.generator != generator()) return std::unexpected("it comes from another build than this library");
  const std::uint64_t rest = frame.size() - sizeof header;
  if (header.detail_bytes > rest || header.payload_bytes != rest - header.detail_bytes ||
      header.status < WAVEJIT_CODEGEN_OK || header.status > WAVEJIT_CODEGEN_INTERNAL) {
    return std::unexpected("its answer is damaged");
  }
  const auto detail = frame.subspan(sizeof header, header.detail_bytes);
  const auto payload = frame.subspan(sizeof header + header.detail_bytes);
  Compiled compiled;
  compiled.status = static_cast<Status>(header.status);
  compiled.detail.assign(detail.begin(), detail.end());
  compiled.bytes.assign(payload.begin(), payload.end());
  compiled.facts = header.facts;
  compiled.times = header.times;
  return compiled;
}

}  // namespace wavejit::codegen::wire
