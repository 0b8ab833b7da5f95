#include "cache/cache.h"

#include <utility>

namespace wavejit::cache {

std::optional<Mode> parse_mode(std::string_view text) {
  if (text == "off") return Mode::off;
  if (text == "ro") return Mode::read_only;
  if (text == "rw") return Mode::read_write;
  return std::nullopt;
}

std::string_view to_text(Mode mode) {
  switch (mode) {
    case Mode::off:
      return "off";
    case Mode::read_only:
      return "ro";
    case Mode::read_write:
      return "rw";
  }
  return "off";
}

Key::Key(std::string text, std::string target_id)
    : text_(std::move(text)), target_id_(std::move(target_id)), digest_(digest_of(text_)) {}

Cache::Cache(CacheOptions options)
    : options_(std::move(options)), io_(options_.io != nullptr ? options_.io : &posix_io()) {}

void Cache::tell(Event::Kind kind, const std::string& what) {
  if (options_.on_event) options_.on_event({.kind = kind, .what = "cache: " + what});
}

const Layer* Cache::writable_layer() const {
  if (options_.mode != Mode::read_write) return nullptr;
  for (const Layer& layer : options_.layers) {
    if (layer.writable) return &layer;
  }
  return nullptr;
}

}  // namespace wavejit::cache
