// The cold and the warm path: from a shape that the kernel table does not have to a kernel that it has.
//
// One thread does the work of a kernel while others that need it wait; different kernels proceed in parallel. A compile
// that failed is remembered: the same call fails at once instead of compiling again.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/hip_library.h"
#include "runtime/kernel_source.h"
#include "runtime/kernel_table.h"
#include "runtime/route.h"
#include "runtime/statistics.h"

namespace wavejit::runtime {

// Never changes once it stands in the table.
struct LoadedKernel {
  families::KernelSpec spec;
  std::string spec_text;
  std::string key;
  hip_abi::hipFunction_t function = nullptr;
  hip_abi::hipModule_t module = nullptr;
  // HIP may keep pointing into the image that a module was loaded from.
  std::vector<std::byte> code_object;
  // Of a kernel that splits keys: the one that merges its partial results.
  const LoadedKernel* combine = nullptr;
};

struct Resolved {
  const LoadedKernel* kernel = nullptr;
  wavejit_origin origin = WAVEJIT_ORIGIN_MEMORY;  // of two kernels: of the one that took more
};

class Resolver {
 public:
  Resolver(const HipDevice& device, const targets::Target& target, const Toggles& toggles, KernelSource& source,
           Logger& logger, Statistics& statistics);
  ~Resolver();  // unloads the modules
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  const LoadedKernel* find(std::uint64_t code) const noexcept { return table_.find(code); }
  Result<Resolved> resolve(const AttentionShape& shape, Phases& phases);

 private:
  struct Flight {
    bool done = false;
    // Stands unless the work comes to an end.
    Result<Resolved> outcome = fail(WAVEJIT_OUT_OF_MEMORY, {});
  };
  // What is being made: by table code, and by spec, because several codes may lead to one.
  template <typename Name>
  using Flights = std::unordered_map<Name, std::shared_ptr<Flight>>;
  template <typename Name>
  class Landing;
  // Statistics count calls, and a call by its main kernel.
  enum class Part : std::uint8_t { main, combine };

  // Makes what nobody makes, or waits for who does. `lock` is that of mutex_.
  template <typename Name, typename Make>
  Result<Resolved> together(std::unique_lock<std::mutex> lock, Flights<Name>& flights, const Name& name, Part part,
                            Make make);
  // The kernel of a table code, made once whoever asks for it.
  template <typename Make>
  Result<Resolved> once(std::uint64_t code, Part part, Make make);
  Result<Resolved> make(const AttentionShape& shape, Phases& phases);
  // `worked` becomes true when this thread fetched or compiled something.
  Result<Resolved> make_kernels(attention_forward::KernelSpec spec, Phases& phases, bool& worked);
  Result<Resolved> make_combine(const attention_forward::KernelSpec& split, Phases& phases, bool& worked);
  Result<Resolved> obtain_once(families::KernelSpec spec, const LoadedKernel* combine, Phases& phases, bool& worked);
  Result<Resolved> obtain(families::KernelSpec spec, const LoadedKernel* combine, Part part, Phases& phases);
  static void count(std::atomic<std::uint64_t>& counter, Part part) {
    if (part == Part::main) counter.fetch_add(1);
  }
  // The error of HIP, if it refused.
  hip_abi::hipError_t load(LoadedKernel& kernel, KernelBinary binary, Phases& phases);
  void reject(const LoadedKernel& kernel, const cache::Key& key, std::size_t layer, hip_abi::hipError_t error);
  Failure name_field(const AttentionShape& shape, Failure failure) const;
  Failure load_failure(const LoadedKernel& kernel, hip_abi::hipError_t error) const;
  Resolved keep(std::unique_ptr<LoadedKernel> kernel, wavejit_origin origin);

  const HipDevice& device_;
  const targets::Target& target_;
  Toggles toggles_;
  KernelSource& source_;
  Logger& logger_;
  Statistics& statistics_;

  KernelTable table_;
  std::mutex mutex_;
  std::condition_variable landed_;
  Flights<std::uint64_t> flights_;
  Flights<std::string> spec_flights_;
  std::unordered_map<std::uint64_t, Failure> failures_;  // compiles that failed
  std::vector<std::unique_ptr<LoadedKernel>> kernels_;
};

}  // namespace wavejit::runtime
