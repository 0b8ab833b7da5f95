// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cache/cache.h"

#include <limits>
#include <utility>

#include "cache/layer.h"
#include "cache/lock.h"

namespace wavejit::cache {

namespace {

// What a process that ends gives to a sweep under way.
constexpr std::int64_t last_sweep_nanoseconds = 250 * nanoseconds_per_millisecond;

}  // namespace

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

Turn::Turn() = default;
Turn::Turn(Turn&&) noexcept = default;
Turn& Turn::operator=(Turn&&) noexcept = default;
Turn::~Turn() = default;

Cache::Cache(CacheOptions options)
    : options_(std::move(options)),
      io_(options_.io != nullptr ? options_.io : &posix_io()),
      // As if all that may lie there were new: the first publish of a process looks.
      unswept_bytes_(options_.limit_bytes),
      sweep_deadline_(std::numeric_limits<std::int64_t>::max()) {
  for (std::size_t i = 0; i < options_.layers.size(); ++i)
    open_layers_.push_back(std::make_unique<OpenLayer>(*io_, options_.layers[i], i));
  if (options_.remote.store == nullptr || options_.mode == Mode::off) return;
  remote_ =
      std::make_unique<RemoteLayer>(*io_, options_.remote, counters_, [this](RemoteNews news, const std::string& what) {
        switch (news) {
          case RemoteNews::damaged:
            return tell(Event::Kind::damaged, what);
          case RemoteNews::outage:
            return tell(Event::Kind::remote_outage, what);
          case RemoteNews::routine:
            return tell(Event::Kind::remote, what);
        }
      });
}

Cache::~Cache() {
  remote_.reset();
  if (!sweeper_.joinable()) return;
  if (io_->process_id() != sweeping_process_) {
    sweeper_.detach();  // the thread stayed behind in the process that forked this one
    return;
  }
  sweep_deadline_ = io_->monotonic_nanoseconds() + last_sweep_nanoseconds;
}

void Cache::tell(Event::Kind kind, const std::string& what) {
  if (options_.on_event && !what.empty()) options_.on_event({.kind = kind, .what = "cache: " + what});
}

const Layer* Cache::writable_layer() const {
  if (options_.mode != Mode::read_write) return nullptr;
  for (const Layer& layer : options_.layers) {
    if (layer.writable) return &layer;
  }
  return nullptr;
}

}  // namespace wavejit::cache
