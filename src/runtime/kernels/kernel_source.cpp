// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/kernels/kernel_source.h"

#include <algorithm>
#include <set>
#include <utility>

#include "codegen/generator_id.h"
#include "runtime/kernels/kernel_notes.h"
#include "runtime/libraries/remote_library.h"
#include "runtime/settings/packaged_kernels.h"

namespace wavejit::runtime {
namespace {

cache::KernelFacts facts_of(const wavejit_codegen_facts& facts) {
  const char* end = std::find(std::begin(facts.kernel_name), std::end(facts.kernel_name), '\0');
  return {.name = std::string(facts.kernel_name, end),
          .kernarg_bytes = facts.kernarg_bytes,
          .lds_bytes = facts.lds_bytes,
          .private_bytes = facts.private_bytes,
          .vgprs = facts.vgprs,
          .agprs = facts.agprs,
          .sgprs = facts.sgprs,
          .threads = facts.threads};
}

bool has_packaged(const Config& config) {
  return config.cache_packaged.value && !config.packaged_archive.empty() && config.cache_mode.value != cache::Mode::off;
}

}  // namespace

cache::CacheOptions cache_options(const Config& config, Logger& logger) {
  cache::CacheOptions options;
  if (config.cache_mode.value != cache::Mode::off) {
    const auto& layers = config.cache_layers.value;
    for (const std::string& path : layers) options.layers.push_back({.name = path, .root = path, .writable = false});
    if (has_packaged(config))
      options.layers.push_back({.name = "packaged", .root = config.packaged_archive, .writable = false});
    if (!config.cache_directory.value.empty())
      options.layers.push_back({.name = "user", .root = config.cache_directory.value, .writable = true});
  }
  options.mode = config.cache_mode.value;
  options.memory = config.cache_memory;
  options.limit_bytes = config.cache_limit.value;
  options.lock_wait_nanoseconds = config.cache_lock_wait.value;
  options.on_event = [&logger](const cache::Event& event) {
    using Kind = cache::Event::Kind;
    const bool routine = event.kind == Kind::lock_wait || event.kind == Kind::sweep || event.kind == Kind::remote;
    logger.write(routine ? LogLevel::info : LogLevel::warning, event.what);
  };
  return options;
}

namespace {

cache::CacheOptions all_options(const Config& config, Logger& logger) {
  auto options = cache_options(config, logger);
  if (options.mode != cache::Mode::off) options.remote = open_remote_or_warn(config, logger);
  return options;
}

}  // namespace

KernelSource::KernelSource(const Config& config, CodegenLibrary& codegen, Logger& logger)
    : codegen_(codegen),
      logger_(logger),
      mode_(config.compile.value),
      packaged_archive_(has_packaged(config) ? config.packaged_archive : std::string()),
      cache_(all_options(config, logger)) {}

Result<cache::Key> KernelSource::key_of(const families::KernelSpec& spec) {
  auto lowering = codegen_.lowering_identity(spec.lowering());
  if (!lowering) return std::unexpected(std::move(lowering.error()));
  return cache::Key(spec.text() + " generator=" + std::string(codegen::generator_id(spec.family())) + " " + *lowering,
                    spec.target());
}

namespace {

std::optional<KernelBinary> binary_of(const cache::Hit& hit) {
  const cache::Entry& entry = hit.entry();
  if (entry.kernels.empty()) return std::nullopt;
  return KernelBinary{.code_object = {entry.code_object.begin(), entry.code_object.end()},
                      .kernel_name = entry.kernels.front().name,
                      .kernarg_bytes = entry.kernels.front().kernarg_bytes,
                      .layer_index = hit.layer_index(),
                      .on_disk = hit.on_disk(),
                      .contradiction = notes_differ(entry.code_object, entry.kernels.front()).value_or("")};
}

}  // namespace

std::optional<KernelBinary> KernelSource::from_disk(const cache::Key& key, Phases& phases, std::size_t first_layer) {
  Stopwatch watch;
  const auto hit = cache_.lookup(key, first_layer);
  auto binary = hit ? binary_of(*hit) : std::nullopt;
  phases.lookup_ns += watch.lap();
  return binary;
}

void KernelSource::tell_of_other_version(const cache::Key& key) {
  if (packaged_archive_.empty()) return;
  const auto other = other_version_of(packaged_archive_, key.text());
  if (!other) return;
  static std::mutex mutex;
  static std::set<std::string> told;
  const std::scoped_lock lock(mutex);
  if (told.insert(*other).second) logger_.write(LogLevel::warning, "cache: " + *other);
}

Result<KernelSource::Compiled> KernelSource::compile(const families::KernelSpec& spec, const cache::Key& key,
                                                     Phases& phases, Wanted wanted) {
  Stopwatch watch;
  // Held until what is compiled here has been published.
  cache::Turn turn;
  if (wanted == Wanted::anybodys) turn = cache_.take_turn(key);
  if (turn.hit) {
    if (auto binary = binary_of(*turn.hit)) {
      phases.lookup_ns += watch.lap();
      return Compiled{.binary = *std::move(binary), .publish = {}, .by_others = true};
    }
  }
  phases.lookup_ns += watch.lap();

  std::call_once(packaged_judged_, [&] { tell_of_other_version(key); });
  const std::string text = spec.text();
  if (logger_.wants(LogLevel::info)) logger_.write(LogLevel::info, "compile " + text);
  auto result = codegen_.compile(text, mode_);
  if (!result) return std::unexpected(std::move(result.error()));
  phases.emit_ns += result->raw().emit_ns;
  phases.lower_ns += result->raw().lower_ns;
  phases.link_ns += result->raw().link_ns;
  phases.inspect_ns += result->raw().inspect_ns;

  watch.lap();
  const auto bytes = result->code_object();
  const cache::KernelFacts facts = facts_of(result->facts());
  auto published = cache_.publish(key, {.kernels = {facts}, .code_object = bytes});
  phases.publish_ns += watch.lap();
  return Compiled{.binary = {.code_object = {bytes.begin(), bytes.end()},
                             .kernel_name = facts.name,
                             .kernarg_bytes = facts.kernarg_bytes},
                  .publish = std::move(published),
                  .by_others = false};
}

}  // namespace wavejit::runtime
