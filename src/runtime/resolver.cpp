#include "runtime/resolver.h"

#include <algorithm>
#include <new>
#include <utility>

#include "templates/attention_combine/call/spec.h"

namespace wavejit::runtime {
namespace {

using hip_abi::hipError_t;
using hip_abi::hipSuccess;

// Callers that ask for ever new shapes which do not exist must not fill memory. Guess: nobody has more kinds of
// failure.
constexpr std::size_t max_remembered_failures = 256;

// What the same call would meet again: the compiler's own verdict, not a library that may yet be installed.
bool is_final(const Failure& failure) {
  return failure.status == WAVEJIT_COMPILE_FAILED || failure.status == WAVEJIT_UNSUPPORTED;
}

}  // namespace

// Whatever happens to the one who works, memory running out included, those who wait are told.
template <typename Name>
class Resolver::Landing {
 public:
  Landing(Resolver& resolver, Flights<Name>& flights, const Name& name, Flight& flight)
      : resolver_(resolver), flights_(flights), name_(name), flight_(flight) {}
  ~Landing() {
    const std::scoped_lock lock(resolver_.mutex_);
    flight_.done = true;
    flights_.erase(name_);
    resolver_.landed_.notify_all();
  }
  Landing(const Landing&) = delete;
  Landing& operator=(const Landing&) = delete;

 private:
  Resolver& resolver_;
  Flights<Name>& flights_;
  const Name& name_;
  Flight& flight_;
};

// The template speaks of head dims; the caller of the C ABI needs to know which field that was.
Failure Resolver::name_field(const AttentionShape& shape, Failure failure) const {
  // Without anything forced, only the head dim can stand in the way.
  if (!choose_route(shape, target_, {}))
    failure.detail = "q.sizes[3] (head dim) = " + std::to_string(shape.head_dim_qk) + ": " + failure.detail;
  return failure;
}

Resolver::Resolver(const HipDevice& device, const targets::Target& target, const Toggles& toggles, KernelSource& source,
                   Logger& logger, Statistics& statistics)
    : device_(device), target_(target), toggles_(toggles), source_(source), logger_(logger), statistics_(statistics) {}

Resolver::~Resolver() {
  const CurrentDevice current(device_.hip, device_.ordinal);
  const RelaxedCapture relaxed(device_.hip);
  for (const auto& kernel : kernels_) (void)device_.hip.hipModuleUnload(kernel->module);
}

template <typename Name, typename Make>
Result<Resolved> Resolver::together(std::unique_lock<std::mutex> lock, Flights<Name>& flights, const Name& name,
                                    Part part, Make make) {
  std::shared_ptr<Flight>& slot = flights[name];
  // Ours: the slot is gone when the work is done.
  std::shared_ptr<Flight> flight = slot;
  if (flight) {
    landed_.wait(lock, [&] { return flight->done; });
    if (flight->outcome) return Resolved{flight->outcome->kernel, WAVEJIT_ORIGIN_MEMORY};
    count(statistics_.compile_failures, part);
    return flight->outcome;
  }
  flight = slot = std::make_shared<Flight>();
  lock.unlock();
  const Landing<Name> landing(*this, flights, name, *flight);
  Result<Resolved> outcome = flight->outcome;
  try {
    outcome = make();
  } catch (const std::bad_alloc&) {
    count(statistics_.compile_failures, part);
  }
  const std::scoped_lock again(mutex_);
  flight->outcome = outcome;
  return outcome;
}

template <typename Make>
Result<Resolved> Resolver::once(std::uint64_t code, Part part, Make make) {
  std::unique_lock lock(mutex_);
  if (const auto failed = failures_.find(code); failed != failures_.end()) {
    count(statistics_.compile_failures, part);
    return std::unexpected(failed->second);
  }
  if (const LoadedKernel* kernel = table_.find(code)) return Resolved{kernel, WAVEJIT_ORIGIN_MEMORY};
  return together(std::move(lock), flights_, code, part, [&]() -> Result<Resolved> {
    Result<Resolved> outcome = make();
    const std::scoped_lock keeping(mutex_);
    if (outcome) {
      table_.insert(code, outcome->kernel);
    } else if (is_final(outcome.error()) && failures_.size() < max_remembered_failures) {
      failures_.emplace(code, outcome.error());
    }
    return outcome;
  });
}

Result<Resolved> Resolver::resolve(const AttentionShape& shape, Phases& phases) {
  return once(shape.code(), Part::main, [&] { return make(shape, phases); });
}

Result<Resolved> Resolver::make(const AttentionShape& shape, Phases& phases) {
  Stopwatch watch;
  auto route = choose_route(shape, target_, toggles_);
  if (!route) {
    statistics_.compile_failures.fetch_add(1);
    return std::unexpected(name_field(shape, std::move(route.error())));
  }
  const std::uint64_t before = phases.route_ns;
  phases.route_ns += watch.lap();
  bool worked = false;
  auto resolved = make_kernels(std::move(route->spec), phases, worked);
  // Whose kernel was there, or was made by another thread, has no times to show.
  if (!worked) phases.route_ns = before;
  return resolved;
}

Result<Resolved> Resolver::make_kernels(attention_forward::KernelSpec spec, Phases& phases, bool& worked) {
  if (spec.split_keys == 0) return obtain_once(std::move(spec), nullptr, phases, worked);
  const auto combine = make_combine(spec, phases, worked);
  if (!combine) {
    statistics_.compile_failures.fetch_add(1);
    return combine;
  }
  auto resolved = obtain_once(std::move(spec), combine->kernel, phases, worked);
  if (resolved) resolved->origin = std::max(resolved->origin, combine->origin);
  return resolved;
}

// Queries of another length lead to another shape and perhaps to the same kernel.
Result<Resolved> Resolver::obtain_once(families::KernelSpec spec, const LoadedKernel* combine, Phases& phases,
                                       bool& worked) {
  const std::string text = families::to_text(spec);
  std::unique_lock lock(mutex_);
  for (const auto& loaded : kernels_)
    if (loaded->spec == spec) return Resolved{loaded.get(), WAVEJIT_ORIGIN_MEMORY};
  return together(std::move(lock), spec_flights_, text, Part::main, [&] {
    worked = true;
    return obtain(std::move(spec), combine, Part::main, phases);
  });
}

// One for all split kernels of a data type and head dim, whatever their masks and pipelines.
Result<Resolved> Resolver::make_combine(const attention_forward::KernelSpec& split, Phases& phases, bool& worked) {
  const attention_combine::KernelSpec spec = attention_combine::combine_of(split);
  const std::uint64_t code = AttentionShape::combine_code(spec.dtype, spec.head_dim);
  return once(code, Part::combine, [&] {
    worked = true;
    return obtain(spec, nullptr, Part::combine, phases);
  });
}

Result<Resolved> Resolver::obtain(families::KernelSpec spec, const LoadedKernel* combine, Part part, Phases& phases) {
  Stopwatch watch;
  auto kernel = std::make_unique<LoadedKernel>();
  kernel->spec = std::move(spec);
  kernel->spec_text = families::to_text(kernel->spec);
  kernel->combine = combine;
  const auto key = source_.key_of(kernel->spec);
  if (!key) {
    count(statistics_.compile_failures, part);
    return std::unexpected(key.error());
  }
  kernel->key = key->hex();
  phases.route_ns += watch.lap();

  // An entry that passed every check of ours and that the driver refuses all the same goes, once; the next layer may
  // have a better one.
  auto wanted = KernelSource::Wanted::anybodys;
  for (auto binary = source_.from_disk(*key, phases); binary;) {
    const std::size_t next_layer = binary->layer_index + 1;
    const hipError_t error = load(*kernel, *std::move(binary), phases);
    if (error == hipSuccess) {
      count(statistics_.disk_hits, part);
      return keep(std::move(kernel), WAVEJIT_ORIGIN_DISK);
    }
    if (error == hip_abi::hipErrorOutOfMemory) {
      count(statistics_.disk_hits, part);
      return std::unexpected(load_failure(*kernel, error));
    }
    reject(*kernel, *key, next_layer - 1, error);
    wanted = KernelSource::Wanted::fresh;
    binary = source_.from_disk(*key, phases, next_layer);
  }

  for (;;) {
    auto compiled = source_.compile(kernel->spec, *key, phases, wanted);
    if (!compiled) {
      count(statistics_.compile_failures, part);
      // Not an error line: the caller gets the sentence with the status and decides what to do with it.
      logger_.write(LogLevel::info, compiled.error().detail);
      return std::unexpected(std::move(compiled.error()));
    }
    const bool by_others = compiled->by_others;
    const std::size_t layer = compiled->binary.layer_index;
    const hipError_t error = load(*kernel, std::move(compiled->binary), phases);
    if (by_others && error != hipSuccess && error != hip_abi::hipErrorOutOfMemory) {
      reject(*kernel, *key, layer, error);
      wanted = KernelSource::Wanted::fresh;
      continue;
    }
    count(by_others ? statistics_.disk_hits : statistics_.compiled, part);
    if (error != hipSuccess) return std::unexpected(load_failure(*kernel, error));
    return keep(std::move(kernel), by_others ? WAVEJIT_ORIGIN_DISK : WAVEJIT_ORIGIN_COMPILED);
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
  if (binary.kernarg_bytes > families::argument_bytes(kernel.spec)) return hip_abi::hipErrorInvalidImage;
  kernel.code_object = std::move(binary.code_object);
  const hipError_t error =
      load_module(device_, kernel.code_object.data(), binary.kernel_name, &kernel.module, &kernel.function);
  phases.load_ns += watch.lap();
  return error;
}

Failure Resolver::load_failure(const LoadedKernel& kernel, hipError_t error) const {
  return {error == hip_abi::hipErrorOutOfMemory ? WAVEJIT_OUT_OF_MEMORY : WAVEJIT_LAUNCH_FAILED,
          "HIP does not load " + kernel.spec_text + " on " + device_.name + ": " + error_text(device_.hip, error)};
}

Resolved Resolver::keep(std::unique_ptr<LoadedKernel> kernel, wavejit_origin origin) {
  if (logger_.wants(LogLevel::info)) {
    logger_.write(LogLevel::info, std::string(origin == WAVEJIT_ORIGIN_DISK ? "loaded from disk " : "compiled ") +
                                      kernel->spec_text + " key " + kernel->key);
  }
  const std::scoped_lock lock(mutex_);
  kernels_.push_back(std::move(kernel));
  return {kernels_.back().get(), origin};
}

}  // namespace wavejit::runtime
