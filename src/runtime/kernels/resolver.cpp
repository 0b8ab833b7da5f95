// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/kernels/resolver.h"

#include <algorithm>
#include <new>
#include <utility>

namespace wavejit::runtime {
namespace {

using hip_abi::hipError_t;
using hip_abi::hipSuccess;

// Callers that ask for ever new shapes which do not exist must not fill memory. Guess: nobody has more kinds of
// failure.
constexpr std::size_t max_remembered_failures = 256;

// Else an entry that is good would go for what the device has.
bool blames_the_binary(hipError_t error) {
  return error != hipSuccess && error != hip_abi::hipErrorOutOfMemory && !is_of_earlier_work(error);
}

// What the same call would meet again: the compiler's own verdict, not a library that may yet be installed.
bool is_final(const Failure& failure) {
  return failure.status == WAVEJIT_COMPILE_FAILED || failure.status == WAVEJIT_UNSUPPORTED;
}

}  // namespace

// Whatever happens to the one who works, memory running out included, those who wait are told.
template <typename Where, typename Name, typename Outcome>
class Resolver::Landing {
 public:
  Landing(Resolver& resolver, Where& flights, const Name& name, Flight<Outcome>& flight)
      : resolver_(resolver), flights_(flights), name_(name), flight_(flight) {}
  ~Landing() {
    const std::scoped_lock lock(resolver_.mutex_);
    flight_.done = true;
    flights_.under_way.erase(name_);
    resolver_.landed_.notify_all();
  }
  Landing(const Landing&) = delete;
  Landing& operator=(const Landing&) = delete;

 private:
  Resolver& resolver_;
  Where& flights_;
  const Name& name_;
  Flight<Outcome>& flight_;
};

Resolver::Resolver(const HipDevice& device, const targets::Target& target, const families::Toggles& toggles,
                   KernelSource& source, Logger& logger, Statistics& statistics)
    : device_(device), target_(target), toggles_(toggles), source_(source), logger_(logger), statistics_(statistics) {}

Resolver::~Resolver() {
  const CurrentDevice current(device_.hip, device_.ordinal);
  const RelaxedCapture relaxed(device_.hip);
  for (const auto& kernel : kernels_) (void)device_.hip.hipModuleUnload(kernel->module);
}

// What an outcome is to a thread that others worked for.
Resolver::KernelOutcome Resolver::without_work(KernelOutcome outcome) {
  outcome.counted = outcome.kernel ? Counted::memory : Counted::failed;
  outcome.worked = false;
  return outcome;
}

Resolver::ShapeOutcome Resolver::without_work(ShapeOutcome outcome) {
  Resolution& resolution = outcome.resolution;
  outcome.counted = resolution.kernels ? Counted::memory : Counted::failed;
  resolution.origin = resolution.kernels ? WAVEJIT_ORIGIN_MEMORY : WAVEJIT_ORIGIN_NONE;
  resolution.worked = false;
  resolution.work = {};
  return outcome;
}

template <typename Outcome, typename Where, typename Name, typename Work>
Outcome Resolver::work_once(std::unique_lock<std::mutex> lock, Where& flights, const Name& name, Work work) {
  auto& slot = flights.under_way[name];
  // Ours: the slot is gone when the work is done.
  std::shared_ptr<Flight<Outcome>> flight = slot;
  if (flight) {
    landed_.wait(lock, [&] { return flight->done; });
    return without_work(flight->outcome);
  }
  flight = slot = std::make_shared<Flight<Outcome>>();
  lock.unlock();
  const Landing<Where, Name, Outcome> landing(*this, flights, name, *flight);
  Outcome outcome = flight->outcome;
  try {
    outcome = work();
  } catch (const std::bad_alloc&) {
    return outcome;
  }
  const std::scoped_lock again(mutex_);
  flight->outcome = outcome;
  return outcome;
}

Resolution Resolver::resolve(const families::Shape& shape, Phases& phases, Helpers& helpers) {
  const auto outcome = [&]() -> ShapeOutcome {
    std::unique_lock lock(mutex_);
    if (const auto failed = shapes_.failures.find(shape); failed != shapes_.failures.end())
      return {.resolution = {.kernels = std::unexpected(failed->second)}};
    if (const LoadedKernels* kernels = table_.find(shape))
      return {.resolution = {.kernels = kernels, .origin = WAVEJIT_ORIGIN_MEMORY}, .counted = Counted::memory};
    return work_once<ShapeOutcome>(std::move(lock), shapes_, shape,
                                   [&] { return route_and_load(shape, phases, helpers); });
  }();
  count(outcome);
  return outcome.resolution;
}

std::optional<Failure> Resolver::known_failure(const families::Shape& shape) {
  const std::scoped_lock lock(mutex_);
  const auto failed = shapes_.failures.find(shape);
  if (failed == shapes_.failures.end()) return std::nullopt;
  return failed->second;
}

void Resolver::count(const ShapeOutcome& outcome) {
  const auto& kernels = outcome.resolution.kernels;
  // What has no kernel is nothing that a compiler failed at.
  if (!kernels && kernels.error().status == WAVEJIT_UNSUPPORTED) {
    statistics_.refused_unsupported.fetch_add(1);
    return;
  }
  switch (outcome.counted) {
    case Counted::memory:
      return;  // what is left of all calls
    case Counted::disk:
      statistics_.disk_hits.fetch_add(1);
      return;
    case Counted::compiled:
      statistics_.compiled.fetch_add(1);
      return;
    case Counted::failed:
      statistics_.compile_failures.fetch_add(1);
      return;
  }
}

Resolver::ShapeOutcome Resolver::route_and_load(const families::Shape& shape, Phases& phases, Helpers& helpers) {
  const auto refused = [&](Failure failure) {
    const std::scoped_lock lock(mutex_);
    if (is_final(failure) && shapes_.failures.size() < max_remembered_failures)
      shapes_.failures.emplace(shape, failure);
    return std::unexpected(std::move(failure));
  };
  Stopwatch watch;
  ShapeOutcome all;
  auto route = shape.family->route(shape, target_, toggles_);
  if (!route) {
    all.resolution.kernels = refused(shape.family->name_field(shape, target_, std::move(route.error())));
    return all;
  }
  Phases waited = {.route_ns = watch.lap()};
  all.resolution.first = route->kernels.front().spec;
  auto loaded = std::make_unique<LoadedKernels>();
  loaded->shape = shape;
  loaded->kernels.resize(route->kernels.size());
  loaded->specs.resize(route->kernels.size());
  all.resolution.work = waited;
  std::vector<Made> made = make_all(*route, helpers, waited);
  for (const Made& one : made) {
    all.resolution.worked |= one.outcome.worked;
    all.resolution.work += one.phases;
  }
  // A kernel that was there, or that another thread made, has no times to show.
  if (all.resolution.worked) phases += waited;
  Counted took_most = Counted::memory;
  // From the last to the first, as they were begun (make_all): of several that failed, the one that was begun first is
  // told.
  for (std::size_t i = made.size(); i-- > 0;) {
    KernelOutcome& one = made[i].outcome;
    if (!one.kernel) {
      // A call that launches nothing has failed, whatever became of the kernels behind its first.
      all.counted = i == 0 ? one.counted : Counted::failed;
      all.resolution.kernels = refused(std::move(one.kernel.error()));
      return all;
    }
    loaded->kernels[i] = *one.kernel;
    loaded->specs[i] = &(*one.kernel)->spec;
    took_most = std::max(took_most, one.counted);
    all.counted = one.counted;
  }
  all.resolution.origin = took_most == Counted::compiled ? WAVEJIT_ORIGIN_COMPILED
                          : took_most == Counted::disk   ? WAVEJIT_ORIGIN_DISK
                                                         : WAVEJIT_ORIGIN_MEMORY;
  const std::scoped_lock lock(mutex_);
  resolved_.push_back(std::move(loaded));
  table_.insert(shape, resolved_.back().get());
  all.resolution.kernels = resolved_.back().get();
  return all;
}

std::vector<Resolver::Made> Resolver::make_all(const families::Route& route, Helpers& helpers, Phases& waited) {
  const std::size_t count = route.kernels.size();
  std::vector<Made> made(count);
  // Times of the calling thread: until now, and until it had helpers, whose own times follow these.
  Phases mine;
  Phases before_help;
  SideBySide crew(count, helpers, [&](std::size_t piece, std::size_t worker) {
    // The first kernel last: a process that finds it on disk finds the others too, unless one died between two that
    // were made side by side.
    const std::size_t i = count - 1 - piece;
    Made& one = made[i];
    one.worker = worker;
    one.outcome = load_once(route.kernels[i].spec, one.phases, [&] {
      if (!crew.hire(worker)) return;
      before_help = mine;
      before_help += one.phases;
    });
    if (worker == 0) mine += one.phases;
    if (!one.outcome.kernel) crew.stop();
  });
  crew.run();
  std::vector<Phases> of_workers(count, before_help);
  of_workers[0] = {};
  for (const Made& one : made) of_workers[one.worker] += one.phases;
  waited += *std::ranges::max_element(of_workers, {}, &Phases::total_ns);
  return made;
}

Resolver::KernelOutcome Resolver::load_once(const families::KernelSpec& spec, Phases& phases,
                                            const BeforeCompile& before_compile) {
  const std::string text = spec.text();
  std::unique_lock lock(mutex_);
  if (const auto failed = specs_.failures.find(text); failed != specs_.failures.end())
    return {.kernel = std::unexpected(failed->second)};
  for (const auto& loaded : kernels_)
    if (loaded->spec_text == text) return {.kernel = loaded.get(), .counted = Counted::memory};
  return work_once<KernelOutcome>(std::move(lock), specs_, text, [&] {
    KernelOutcome outcome = fetch_or_compile(spec, phases, before_compile);
    outcome.worked = true;
    if (!outcome.kernel && is_final(outcome.kernel.error())) {
      const std::scoped_lock keeping(mutex_);
      if (specs_.failures.size() < max_remembered_failures) specs_.failures.emplace(text, outcome.kernel.error());
    }
    return outcome;
  });
}

Resolver::KernelOutcome Resolver::fetch_or_compile(const families::KernelSpec& spec, Phases& phases,
                                                   const BeforeCompile& before_compile) {
  Stopwatch watch;
  auto kernel = std::make_unique<LoadedKernel>();
  kernel->spec = spec;
  kernel->spec_text = spec.text();
  const auto key = source_.key_of(spec);
  if (!key) return {.kernel = std::unexpected(key.error())};
  kernel->key = key->hex();
  phases.route_ns += watch.lap();

  // An entry that passed every check of ours and that the driver refuses all the same goes, once; the next layer may
  // have a better one.
  auto wanted = KernelSource::Wanted::anybodys;
  for (auto binary = source_.from_disk(*key, phases); binary;) {
    const std::size_t next_layer = binary->layer_index + 1;
    const hipError_t error = load(*kernel, *std::move(binary), phases);
    if (error == hipSuccess) return {.kernel = keep(std::move(kernel), Counted::disk), .counted = Counted::disk};
    if (!blames_the_binary(error))
      return {.kernel = std::unexpected(load_failure(*kernel, error)), .counted = Counted::disk};
    reject(*kernel, *key, next_layer - 1, error);
    wanted = KernelSource::Wanted::fresh;
    binary = source_.from_disk(*key, phases, next_layer);
  }

  before_compile();
  for (;;) {
    auto compiled = source_.compile(spec, *key, phases, wanted);
    if (!compiled) {
      // Not an error line: the caller gets the sentence with the status and decides what to do with it.
      logger_.write(LogLevel::info, compiled.error().detail);
      return {.kernel = std::unexpected(std::move(compiled.error()))};
    }
    const bool by_others = compiled->by_others;
    const std::size_t layer = compiled->binary.layer_index;
    const hipError_t error = load(*kernel, std::move(compiled->binary), phases);
    if (by_others && blames_the_binary(error)) {
      reject(*kernel, *key, layer, error);
      wanted = KernelSource::Wanted::fresh;
      continue;
    }
    const Counted from = by_others ? Counted::disk : Counted::compiled;
    if (error != hipSuccess) return {.kernel = std::unexpected(load_failure(*kernel, error)), .counted = from};
    return {.kernel = keep(std::move(kernel), from), .counted = from};
  }
}

void Resolver::reject(const LoadedKernel& kernel, const cache::Key& key, std::size_t layer, hipError_t error) {
  statistics_.loader_rejections.fetch_add(1);
  (void)source_.cache().drop(key, layer);
  logger_.write(LogLevel::warning, "the loader refused the cached kernel " + kernel.key + " (" +
                                       error_text(device_.hip, error) + "); it is dropped and compiled again");
}

hipError_t Resolver::load(LoadedKernel& kernel, KernelBinary binary, Phases& phases) {
  Stopwatch watch;
  // The launch hands over exactly the struct of arguments; a kernel that reads more is not one of ours.
  if (binary.kernarg_bytes > kernel.spec.argument_bytes()) return hip_abi::hipErrorInvalidImage;
  if (!binary.contradiction.empty()) {
    logger_.write(LogLevel::warning, "the cached kernel " + kernel.key + ": " + binary.contradiction);
    return hip_abi::hipErrorInvalidImage;
  }
  kernel.code_object = std::move(binary.code_object);
  const hipError_t error =
      load_module(device_, kernel.code_object.data(), binary.kernel_name, &kernel.module, &kernel.function);
  phases.load_ns += watch.lap();
  return error;
}

Failure Resolver::load_failure(const LoadedKernel& kernel, hipError_t error) {
  if (is_of_earlier_work(error)) return earlier_kernel_failed(error);
  return {error == hip_abi::hipErrorOutOfMemory ? WAVEJIT_OUT_OF_MEMORY : WAVEJIT_LAUNCH_FAILED,
          "HIP does not load " + kernel.spec_text + " on " + device_.name + ": " + error_text(device_.hip, error)};
}

Failure Resolver::earlier_kernel_failed(hipError_t error, const LoadedKernel* refused) {
  constexpr std::size_t enough = 4;
  std::string names;
  std::size_t count = 0;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& kernel : kernels_) {
      if (!trail_.may_run(kernel->mark)) continue;
      if (++count <= enough) names += (names.empty() ? "" : "; ") + kernel->spec_text;
    }
  }
  if (count == 0 && refused != nullptr) {
    // Nothing else was on its way, so the fault is this kernel's own; later calls tell it too.
    trail_.launched(refused->mark);
    names = refused->spec_text;
    count = 1;
  }
  if (count > enough) names += "; and " + std::to_string(count - enough) + " more";
  // A graph replays what was launched at its capture without asking anybody.
  return {WAVEJIT_DEVICE_ERROR,
          "an earlier kernel on " + device_.name + " failed: " + error_text(device_.hip, error) +
              "; since the device last came to rest this engine launched " + (count == 0 ? "none" : names) +
              " (replays of graphs not counted); start a new process: the device takes nothing more in this one"};
}

const LoadedKernel* Resolver::keep(std::unique_ptr<LoadedKernel> kernel, Counted from) {
  if (logger_.wants(LogLevel::info)) {
    logger_.write(LogLevel::info, std::string(from == Counted::disk ? "loaded from disk " : "compiled ") +
                                      kernel->spec_text + " key " + kernel->key);
  }
  const std::scoped_lock lock(mutex_);
  kernels_.push_back(std::move(kernel));
  return kernels_.back().get();
}

}  // namespace wavejit::runtime
