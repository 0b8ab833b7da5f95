// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/profile/iteration.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace wavejit::tools {

namespace {

using Json = nlohmann::json;

constexpr std::string_view own_interval = "own interval";

struct Span {
  std::uint64_t start = 0;
  std::uint64_t cycles = 0;
  std::string name;      // instruction text, or the cause of a wait
  std::string category;  // kind of instruction, "wait" or "matrix pipe"
  std::uint64_t offset = 0;
};

struct Track {
  std::string name;
  std::uint64_t simd = 0;
  std::vector<Span> spans;  // by start
  bool is_pipe() const { return name == "matrix pipe"; }
};

using Tracks = std::map<std::pair<std::uint64_t, std::uint64_t>, Track>;  // by SIMD and place on it

Tracks tracks_of(const Json& trace) {
  Tracks tracks;
  for (const Json& event : trace.at("traceEvents")) {
    const std::uint64_t simd = event.at("pid").get<std::uint64_t>();
    Track& track = tracks[{simd, event.at("tid").get<std::uint64_t>()}];
    track.simd = simd;
    if (event.at("ph") == "M") {
      if (event.at("name") == "thread_name") track.name = event.at("args").at("name").get<std::string>();
      continue;
    }
    Span span{.start = event.at("ts").get<std::uint64_t>(),
              .cycles = event.at("dur").get<std::uint64_t>(),
              .name = event.at("name").get<std::string>(),
              .category = event.at("cat").get<std::string>()};
    if (event.contains("args")) span.offset = event["args"].value("offset", std::uint64_t{0});
    constexpr std::string_view waits = "waits: ";
    if (span.category == "wait" && span.name.starts_with(waits)) span.name.erase(0, waits.size());
    track.spans.push_back(std::move(span));
  }
  for (auto& [place, track] : tracks) std::ranges::stable_sort(track.spans, {}, &Span::start);
  return tracks;
}

bool is_issue(const Span& span) { return span.category != "wait" && span.category != "matrix pipe"; }

struct Window {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  bool is_iteration = false;
};

// Where a wave jumps back, and when: the head of the loop that it went round most often, of those the longest.
std::optional<Window> turn_of(const Track& track) {
  std::map<std::uint64_t, std::vector<std::uint64_t>> visits;  // of offsets that were jumped back to
  std::set<std::uint64_t> heads;
  const Span* before = nullptr;
  for (const Span& span : track.spans) {
    if (!is_issue(span)) continue;
    if (before != nullptr && span.offset < before->offset) heads.insert(span.offset);
    before = &span;
  }
  for (const Span& span : track.spans)
    if (is_issue(span) && heads.contains(span.offset)) visits[span.offset].push_back(span.start);
  const std::vector<std::uint64_t>* chosen = nullptr;
  for (const auto& [offset, times] : visits) {
    if (times.size() < 2) continue;
    // An inner loop that spins a few cycles is not what the time is spent in: whole turns count by their length.
    const auto length = [](const std::vector<std::uint64_t>& of) { return of.back() - of.front(); };
    if (chosen == nullptr || length(times) > length(*chosen)) chosen = &times;
  }
  if (chosen == nullptr) return std::nullopt;
  const std::size_t middle = (chosen->size() - 1) / 2;
  return Window{.first = (*chosen)[middle], .last = (*chosen)[middle + 1], .is_iteration = true};
}

// Numbers for words, in the order in which they come.
class Words {
 public:
  std::size_t of(const std::string& word) {
    const auto [place, added] = numbers_.try_emplace(word, words_.size());
    if (added) words_.push_back(word);
    return place->second;
  }
  const std::vector<std::string>& list() const { return words_; }

 private:
  std::map<std::string, std::size_t> numbers_;
  std::vector<std::string> words_;
};

class Picture {
 public:
  Picture(const Tracks& tracks, Window window) : tracks_(&tracks), window_(window) {}

  Json json() {
    Json lanes = Json::array();
    std::uint64_t pipe_cycles = 0;
    std::uint64_t pipes = 0;
    for (const auto& [place, track] : *tracks_) {
      if (track.name.empty()) continue;
      if (track.is_pipe()) {
        ++pipes;
        lanes.push_back(pipe_lane(track, pipe_cycles));
      } else if (std::ranges::any_of(track.spans, [&](const Span& span) { return overlaps(span); })) {
        lanes.push_back(wave_lane(track));
      }
    }
    const std::uint64_t cycles = window_.last - window_.first;
    return {{"is_iteration", window_.is_iteration},
            {"first", window_.first},
            {"cycles", cycles},
            {"matrix_busy", pipes == 0 ? 0.0 : static_cast<double>(pipe_cycles) / static_cast<double>(pipes * cycles)},
            {"kinds", kinds_.list()},
            {"causes", causes_.list()},
            {"texts", texts_},
            {"lanes", std::move(lanes)},
            {"releases", releases()}};
  }

 private:
  bool overlaps(const Span& span) const {
    return span.start < window_.last && span.start + span.cycles > window_.first;
  }
  // Start and length of what of it lies in the window.
  std::pair<std::uint64_t, std::uint64_t> clipped(std::uint64_t start, std::uint64_t end) const {
    const std::uint64_t from = std::max(start, window_.first);
    return {from - window_.first, std::min(end, window_.last) - from};
  }
  std::size_t text_of(const Span& span) {
    const auto [place, added] = text_numbers_.try_emplace({span.offset, span.name}, texts_.size());
    if (added) texts_.push_back({span.offset, span.name});
    return place->second;
  }

  Json pipe_lane(const Track& track, std::uint64_t& pipe_cycles) {
    Json spans = Json::array();
    for (const Span& span : track.spans) {
      if (!overlaps(span)) continue;
      const auto [start, cycles] = clipped(span.start, span.start + span.cycles);
      pipe_cycles += cycles;
      spans.push_back({start, cycles, text_of(span)});
    }
    return {{"name", track.name}, {"simd", track.simd}, {"pipe", true}, {"spans", std::move(spans)}};
  }

  Json wave_lane(const Track& track) {
    Json issued = Json::array();
    Json waits = Json::array();
    Json arrivals = Json::array();
    for (std::size_t i = 0; i < track.spans.size(); ++i) {
      const Span& span = track.spans[i];
      if (!is_issue(span)) {
        // What an instruction takes of its own wave is part of that instruction.
        if (!overlaps(span) || span.name == own_interval) continue;
        const auto [start, cycles] = clipped(span.start, span.start + span.cycles);
        waits.push_back({start, cycles, causes_.of(span.name)});
        if (span.name == "barrier" && span.start + span.cycles < window_.last)
          opened_[workgroup_of(track)].push_back(start + cycles);
        continue;
      }
      std::uint64_t end = span.start + span.cycles;
      if (i + 1 < track.spans.size() && !is_issue(track.spans[i + 1]) && track.spans[i + 1].name == own_interval)
        end = std::max(end, track.spans[i + 1].start + track.spans[i + 1].cycles);
      if (span.start >= window_.last || end <= window_.first) continue;
      const auto [start, cycles] = clipped(span.start, end);
      issued.push_back({start, cycles, kinds_.of(span.category), text_of(span)});
      if (span.category == "barrier" && span.start >= window_.first) arrivals.push_back(start);
    }
    return {{"name", track.name},          {"simd", track.simd},        {"workgroup", workgroup_of(track)},
            {"issued", std::move(issued)}, {"waits", std::move(waits)}, {"barriers", std::move(arrivals)}};
  }

  // "workgroup 12, wave 3" → "workgroup 12"
  static std::string workgroup_of(const Track& track) { return track.name.substr(0, track.name.find(',')); }

  // A barrier opens for all waves of a workgroup at once; SIMDs notice one after the other.
  Json releases() const {
    constexpr std::uint64_t together = 8;
    Json json = Json::array();
    for (const auto& [workgroup, unsorted] : opened_) {
      std::vector<std::uint64_t> times = unsorted;
      std::ranges::sort(times);
      std::optional<std::uint64_t> last;
      for (const std::uint64_t time : times) {
        if (!last || time > *last + together) json.push_back({{"at", time}, {"workgroup", workgroup}});
        last = time;
      }
    }
    return json;
  }

  const Tracks* tracks_;
  Window window_;
  Words kinds_;
  Words causes_;
  std::map<std::pair<std::uint64_t, std::string>, std::size_t> text_numbers_;
  Json texts_ = Json::array();
  std::map<std::string, std::vector<std::uint64_t>> opened_;  // by workgroup
};

}  // namespace

Json steady_iteration(const std::string& timeline) {
  const Json trace = Json::parse(timeline, nullptr, false);
  if (!trace.is_object()) return nullptr;
  const Tracks tracks = tracks_of(trace);
  std::optional<Window> window;
  std::uint64_t begin = UINT64_MAX;
  std::uint64_t end = 0;
  for (const auto& [place, track] : tracks) {
    if (track.is_pipe()) continue;
    for (const Span& span : track.spans) {
      begin = std::min(begin, span.start);
      end = std::max(end, span.start + span.cycles);
    }
    if (!window) window = turn_of(track);
  }
  if (end <= begin) return nullptr;
  constexpr std::uint64_t most = 12288;  // beyond that nothing can be told apart
  if (!window || window->last - window->first > most)
    window = Window{.first = begin, .last = std::min(end, begin + most), .is_iteration = false};
  return Picture(tracks, *window).json();
}

}  // namespace wavejit::tools
