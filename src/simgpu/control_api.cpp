// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The C interface of include/wavejit/simgpu.h and simgpu_devices.h.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <string>

#include "include/wavejit/simgpu.h"
#include "include/wavejit/simgpu_devices.h"
#include "simgpu/checkers/clock/launch_clock.h"
#include "simgpu/machine/device/device.h"
#include "simgpu/process/check.h"
#include "simgpu/process/device_names.h"
#include "simgpu/process/process.h"

using namespace wavejit::simgpu;

namespace {

// A check is one bit, here as in the C interface.
constexpr bool is(Check check, wavejit_simgpu_check told) {
  return static_cast<std::uint32_t>(check) == static_cast<std::uint32_t>(told);
}
static_assert(is(Check::waits, WAVEJIT_SIMGPU_CHECK_WAITS) && is(Check::races, WAVEJIT_SIMGPU_CHECK_RACES) &&
              is(Check::uninitialised, WAVEJIT_SIMGPU_CHECK_UNINITIALISED) &&
              is(Check::bounds, WAVEJIT_SIMGPU_CHECK_BOUNDS) && is(Check::hazards, WAVEJIT_SIMGPU_CHECK_HAZARDS) &&
              is(Check::exec, WAVEJIT_SIMGPU_CHECK_EXEC) && is(Check::barriers, WAVEJIT_SIMGPU_CHECK_BARRIERS) &&
              is(Check::uniform, WAVEJIT_SIMGPU_CHECK_UNIFORM) && all_checks == WAVEJIT_SIMGPU_CHECK_ALL);

// Copies as much of a structure as the caller knows.
template <typename Struct>
void copy_out(Struct* to, const Struct& from) {
  const std::size_t size = to->size;
  std::memcpy(to, &from, std::min(size, sizeof(Struct)));
  to->size = size;
}

std::size_t copy_text(const std::string& from, char* text, std::size_t capacity) {
  if (text != nullptr && capacity != 0) {
    const std::size_t copied = std::min(from.size(), capacity - 1);
    std::memcpy(text, from.data(), copied);
    text[copied] = 0;
  }
  return from.size();
}

}  // namespace

extern "C" {

WAVEJIT_SIMGPU_API int wavejit_simgpu_open_devices(const char* target, int count, int* ordinals) {
  if (target == nullptr || count < 1 || ordinals == nullptr) return hip_error_invalid_value;
  if (Process::instance().left_threads_behind()) return hip_error_not_initialised;
  const auto opened = Device::open(target, count);
  if (!opened) return opened.error().code;
  std::ranges::copy(*opened, ordinals);
  return hip_success;
}

WAVEJIT_SIMGPU_API std::size_t wavejit_simgpu_devices_problem(const char* devices, char* text, std::size_t capacity) {
  const auto named = devices_named(devices == nullptr ? "" : devices);
  if (named && !named->ordinal) return 0;
  return copy_text("<target>[xN] with " + accepted_devices(), text, capacity);
}

WAVEJIT_SIMGPU_API void wavejit_simgpu_get_settings(struct wavejit_simgpu_settings* settings) {
  if (settings == nullptr || settings->size < sizeof(std::size_t)) return;
  const Settings now = Process::instance().settings();
  copy_out(settings, {.size = 0,
                      .schedule = static_cast<std::int32_t>(now.schedule),
                      .threads = now.threads,
                      .seed = now.seed,
                      .workgroup_first = now.workgroup_first,
                      .workgroup_step = now.workgroup_step,
                      .workgroup_count = now.workgroup_count,
                      .checks = now.checks,
                      .arrival = static_cast<std::int32_t>(now.arrival),
                      .sampled_only = now.sampled_only ? 1U : 0U,
                      .engine = static_cast<std::int32_t>(now.engine),
                      .translate_after = now.translate_after,
                      .time_matrix = now.time_matrix ? 1U : 0U,
                      .matrix = static_cast<std::int32_t>(now.matrix),
                      .transcendentals = static_cast<std::int32_t>(now.transcendentals),
                      .matrix_seed = now.matrix_seed,
                      .transcendentals_seed = now.transcendentals_seed,
                      .rules = static_cast<std::int32_t>(now.rules)});
}

WAVEJIT_SIMGPU_API int wavejit_simgpu_set_settings(const struct wavejit_simgpu_settings* settings) {
  if (settings == nullptr || settings->size != sizeof *settings) return hip_error_invalid_value;
  if (settings->rules < WAVEJIT_SIMGPU_RULES_COMPILER || settings->rules > WAVEJIT_SIMGPU_RULES_STRICT ||
      settings->matrix < WAVEJIT_SIMGPU_MATRIX_SEQUENTIAL || settings->matrix > WAVEJIT_SIMGPU_MATRIX_SEEDED ||
      settings->transcendentals < WAVEJIT_SIMGPU_TRANSCENDENTALS_NEAREST ||
      settings->transcendentals > WAVEJIT_SIMGPU_TRANSCENDENTALS_SEEDED ||
      settings->engine < WAVEJIT_SIMGPU_INTERPRET || settings->engine > WAVEJIT_SIMGPU_COMPILE) {
    return hip_error_invalid_value;
  }
  if ((settings->checks & ~all_checks) != 0 || settings->arrival < WAVEJIT_SIMGPU_ARRIVES_EARLY ||
      settings->arrival > WAVEJIT_SIMGPU_ARRIVES_UNORDERED) {
    return hip_error_invalid_value;
  }
  if (settings->schedule < WAVEJIT_SIMGPU_IN_ORDER || settings->schedule > WAVEJIT_SIMGPU_TIMED ||
      settings->threads > 1024) {
    return hip_error_invalid_value;
  }
  Settings next = Process::instance().settings();
  next.schedule = static_cast<Schedule>(settings->schedule);
  next.threads = settings->threads;
  next.seed = settings->seed;
  next.workgroup_first = settings->workgroup_first;
  next.workgroup_step = std::max<std::uint64_t>(settings->workgroup_step, 1);
  next.workgroup_count = settings->workgroup_count;
  next.checks = settings->checks;
  next.arrival = static_cast<Arrival>(settings->arrival);
  next.sampled_only = settings->sampled_only != 0;
  next.engine = static_cast<Engine>(settings->engine);
  next.translate_after = settings->translate_after;
  next.time_matrix = settings->time_matrix != 0;
  next.matrix = static_cast<MatrixSums>(settings->matrix);
  next.transcendentals = static_cast<Transcendentals>(settings->transcendentals);
  next.matrix_seed = settings->matrix_seed;
  next.transcendentals_seed = settings->transcendentals_seed;
  next.rules = static_cast<Rules>(settings->rules);
  Process::instance().set_settings(next);
  return hip_success;
}

WAVEJIT_SIMGPU_API void wavejit_simgpu_get_counters(struct wavejit_simgpu_counters* counters) {
  if (counters == nullptr || counters->size < sizeof(std::size_t)) return;
  const Counters& now = Process::instance().counters();
  copy_out(counters, {.size = 0,
                      .launches = now.launches.load(),
                      .workgroups = now.workgroups.load(),
                      .wave_instructions = now.wave_instructions.load(),
                      .matrix_instructions = now.matrix_instructions.load(),
                      .reports = now.reports.load(),
                      .translated_instructions = now.translated_instructions.load(),
                      .translation_nanoseconds = now.translation_nanoseconds.load(),
                      .matrix_nanoseconds = now.matrix_nanoseconds.load()});
}

WAVEJIT_SIMGPU_API std::size_t wavejit_simgpu_take_reports(char* text, std::size_t capacity) {
  return copy_text(Process::instance().take_reports(text == nullptr ? 0 : capacity), text, capacity);
}

WAVEJIT_SIMGPU_API std::size_t wavejit_simgpu_take_findings(char* text, std::size_t capacity) {
  return copy_text(Process::instance().take_findings(text == nullptr ? 0 : capacity), text, capacity);
}

WAVEJIT_SIMGPU_API void wavejit_simgpu_set_clock(std::uint32_t workgroups) {
  clock::ClockLog::instance().set_sample(workgroups);
}

WAVEJIT_SIMGPU_API void wavejit_simgpu_set_warm(std::uint32_t warm) { clock::ClockLog::instance().set_warm(warm != 0); }

WAVEJIT_SIMGPU_API void wavejit_simgpu_set_timeline(std::uint64_t cycles) {
  clock::ClockLog::instance().set_timeline(cycles);
}

WAVEJIT_SIMGPU_API std::size_t wavejit_simgpu_take_timeline(char* text, std::size_t capacity) {
  return copy_text(clock::ClockLog::instance().take_trace(text == nullptr ? 0 : capacity), text, capacity);
}

WAVEJIT_SIMGPU_API std::size_t wavejit_simgpu_take_cycles(char* text, std::size_t capacity) {
  return copy_text(clock::ClockLog::instance().take(text == nullptr ? 0 : capacity), text, capacity);
}

}  // extern "C"
