// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// wavejit/wavejit.hpp: the C interface of wavejit.h for C++17 and later. Header-only: it adds ownership and exceptions,
// nothing else, so that one libwavejit.so serves every compiler and standard library.
//
// A complete program:
//
//   #include <wavejit/wavejit.hpp>
//
//   int main() {
//     wavejit::Engine engine("sim:gfx950");                        // or "hip": the GPU of this machine
//     const std::vector<std::uint16_t> ones(256 * 8 * 128, 0x3C00);  // [1, 256, 8, 128] in fp16
//     wavejit::DeviceBuffer q(engine, ones), k(engine, ones), v(engine, ones), o(engine, ones.size() * 2);
//     auto tensor = [](const wavejit::DeviceBuffer& b) { return wavejit::dense(b, WAVEJIT_FP16, 1, 256, 8, 128); };
//     engine.attention_forward({tensor(q), tensor(k), tensor(v), tensor(o), 0.0883883f});
//     engine.synchronize();
//     const auto result = o.read<std::uint16_t>();                 // 256 · 8 · 128 halves, each 1.0
//   }
//
// Errors are wavejit::Error: what() names the field, the value and what would be accepted, status() is the C status.
// Threads, streams and lifetimes are those of wavejit.h: an Engine may be used from any thread, calls are asynchronous
// on their stream, and device memory must stay until the stream has passed the call.
#ifndef WAVEJIT_WAVEJIT_HPP
#define WAVEJIT_WAVEJIT_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "wavejit/options.hpp"
#include "wavejit/wavejit.h"

namespace wavejit {

// ---- Errors --------------------------------------------------------------------------------------------------------

// What a call of the C interface answered when it was not WAVEJIT_OK.
class Error : public std::runtime_error {
 public:
  Error(wavejit_status status, const char* detail)
      : std::runtime_error(detail != nullptr && *detail != '\0' ? detail : wavejit_status_text(status)),
        status_(status) {}
  wavejit_status status() const noexcept { return status_; }

 private:
  wavejit_status status_;
};

inline void check(wavejit_status status) {
  if (status != WAVEJIT_OK) throw Error(status, wavejit_last_detail());
}

// The struct of a call of the C interface that knows its size and family; wavejit.h says what each field means. Zero in
// a field is its default.
template <typename Arguments, std::int32_t family>
struct CallOf : Arguments {
  using C = Arguments;
  CallOf() noexcept : Arguments() {
    this->head.size = sizeof(Arguments);
    this->head.family = family;
  }
  const Arguments& to_c() const noexcept { return *this; }
};

// ---- Attention -----------------------------------------------------------------------------------------------------

// One attention call.
//
//   wavejit::AttentionForward call(q, k, v, o);   // tensors; make them with dense()
//   call.mask.bits = WAVEJIT_MASK_CAUSAL;
//   engine.attention_forward(call);
struct AttentionForward : CallOf<wavejit_attention_forward_arguments, WAVEJIT_ATTENTION_FORWARD> {
  AttentionForward() = default;
  AttentionForward(const wavejit_tensor& query, const wavejit_tensor& key, const wavejit_tensor& value,
                   const wavejit_tensor& output, float scale_of_scores = 0,
                   int mask_bits = WAVEJIT_MASK_NONE) noexcept {
    q = query;
    k = key;
    v = value;
    o = output;
    modifiers.scale = scale_of_scores;
    mask.bits = mask_bits;
  }
};

// ---- Gradients of attention ----------------------------------------------------------------------------------------

// Gradients of attention.
//
//   wavejit::AttentionBackward call;
//   call.q = wavejit::dense(q, WAVEJIT_BF16, 1, 256, 8, 128);   // [B, S, H, D]; k, v, o, d_o, dq, dk and dv alike
//   call.lse = wavejit::dense(lse, WAVEJIT_FP32, 1, 8, 256, 1);  // of the forward call
//   engine.attention_backward(call);
struct AttentionBackward : CallOf<wavejit_attention_backward_arguments, WAVEJIT_ATTENTION_BACKWARD> {};

// ---- Latent attention ----------------------------------------------------------------------------------------------

// Keys and values in one tensor (MLA, absorbed).
//
//   wavejit::AttentionLatent call;
//   call.q = wavejit::dense(q, WAVEJIT_BF16, 64, 1, 16, 576);     // [B, S, H, D]
//   call.k = wavejit::dense(k, WAVEJIT_BF16, 64, 8192, 1, 576);   // V is its first 512 columns
//   call.o = wavejit::dense(o, WAVEJIT_BF16, 64, 1, 16, 512);
//   call.modifiers.scale = 1 / std::sqrt(192.0F);
//   engine.attention_latent(call);
struct AttentionLatent : CallOf<wavejit_attention_latent_arguments, WAVEJIT_ATTENTION_LATENT> {};

// ---- Softmax -------------------------------------------------------------------------------------------------------

// Softmax of raw scores by itself.
//
//   wavejit::SoftmaxLse call;
//   call.scores = wavejit::dense(scores, WAVEJIT_FP32, 1, 8, 128, 5000);   // [B, H, Sq, Sk]
//   call.weights = wavejit::dense(weights, WAVEJIT_BF16, 1, 8, 128, 5000);
//   engine.softmax_lse(call);
struct SoftmaxLse : CallOf<wavejit_softmax_lse_arguments, WAVEJIT_SOFTMAX_LSE> {};

// ---- The indexer of sparse attention -------------------------------------------------------------------------------

// Which keys each row is to attend to.
//
//   wavejit::SparseIndexer call;
//   call.queries = wavejit::dense(q, WAVEJIT_BF16, 48, 1, 64, 128);   // [B, Sq, index heads, 128]
//   call.keys = wavejit::dense(keys, WAVEJIT_BF16, 48, 8192, 1, 128);
//   call.weights = wavejit::dense(weights, WAVEJIT_FP32, 48, 1, 64, 1);
//   call.indices = list.as<std::int32_t>();                           // [48, 2048]
//   call.top_k = 2048;
//   engine.sparse_indexer(call);
struct SparseIndexer : CallOf<wavejit_sparse_indexer_arguments, WAVEJIT_SPARSE_INDEXER> {};

//   wavejit::CacheAppend call;
//   call.k = wavejit::dense(k, WAVEJIT_BF16, 1, tokens, 8, 128);
//   call.k_cache = wavejit::dense(pages, WAVEJIT_BF16, 4096, 16, 8, 128);
//   call.slots = slots.data();
//   engine.cache_append(call);
struct CacheAppend : CallOf<wavejit_cache_append_arguments, WAVEJIT_CACHE_APPEND> {};

//   wavejit::AttentionMerge call;
//   call.add(prefix.o, prefix.lse);                        // tensors of two calls
//   call.add(own.o, own.lse);
//   call.o = wavejit::dense(o, WAVEJIT_BF16, 1, tokens, 64, 128);
//   engine.attention_merge(call);
struct AttentionMerge : CallOf<wavejit_attention_merge_arguments, WAVEJIT_ATTENTION_MERGE> {
  // A stack of `count` parts: each lies `o_stride` and `lse_stride` elements after the one before.
  void add(const wavejit_tensor& o_of_part, const wavejit_tensor& lse_of_part, std::int64_t count = 1,
           std::int64_t o_stride = 0, std::int64_t lse_stride = 0) {
    if (part_count == WAVEJIT_MAX_ATTENTION_PARTS)
      throw Error(WAVEJIT_INVALID_ARGUMENT, "AttentionMerge::add: accepted: up to 8 parts, each the first of a stack");
    parts[part_count++] = {o_of_part, lse_of_part, count, o_stride, lse_stride};
  }
};

// Every kind of call.
using Calls = std::tuple<AttentionForward, AttentionBackward, AttentionLatent, SoftmaxLse, SparseIndexer, CacheAppend,
                         AttentionMerge>;

// The C function of a call, found by its struct.
inline wavejit_status launch(wavejit_engine* engine, const wavejit_attention_forward_arguments& call,
                             ihipStream_t* stream) noexcept {
  return wavejit_attention_forward(engine, &call, stream);
}
inline wavejit_status launch(wavejit_engine* engine, const wavejit_attention_backward_arguments& call,
                             ihipStream_t* stream) noexcept {
  return wavejit_attention_backward(engine, &call, stream);
}
inline wavejit_status launch(wavejit_engine* engine, const wavejit_attention_latent_arguments& call,
                             ihipStream_t* stream) noexcept {
  return wavejit_attention_latent(engine, &call, stream);
}
inline wavejit_status launch(wavejit_engine* engine, const wavejit_attention_merge_arguments& call,
                             ihipStream_t* stream) noexcept {
  return wavejit_attention_merge(engine, &call, stream);
}
inline wavejit_status launch(wavejit_engine* engine, const wavejit_softmax_lse_arguments& call,
                             ihipStream_t* stream) noexcept {
  return wavejit_softmax_lse(engine, &call, stream);
}
inline wavejit_status launch(wavejit_engine* engine, const wavejit_sparse_indexer_arguments& call,
                             ihipStream_t* stream) noexcept {
  return wavejit_sparse_indexer(engine, &call, stream);
}
inline wavejit_status launch(wavejit_engine* engine, const wavejit_cache_append_arguments& call,
                             ihipStream_t* stream) noexcept {
  return wavejit_cache_append(engine, &call, stream);
}

// ---- Reports and prepared lines ------------------------------------------------------------------------------------

// A report ready to be handed to a call.
inline wavejit_call_report make_report() noexcept {
  wavejit_call_report report{};
  report.size = sizeof report;
  return report;
}

// What became of one line of Engine::try_prepare.
struct Prepared {
  wavejit_status status = WAVEJIT_OK;
  std::string failure;  // empty, or why
};

class DeviceBuffer;

// ---- The engine ----------------------------------------------------------------------------------------------------

// Owns a wavejit_engine. Movable; destroy it only when its work has ended.
class Engine {
 public:
  explicit Engine(const EngineOptions& options = {}) {
    const wavejit_engine_options c = options.to_c();
    wavejit_engine* engine = nullptr;
    check(wavejit_engine_create(&c, &engine));
    engine_.reset(engine);
  }
  explicit Engine(const char* device) : Engine(with_device(device)) {}

  // Device memory, freed at the end of its scope; this engine must outlive it.
  DeviceBuffer allocate(std::size_t bytes);

  // Asynchronous: returns when the kernel is launched. The first call of a kind may compile.
  void attention_forward(const AttentionForward& call, ihipStream_t* stream = nullptr) { run(call, stream); }
  void attention_backward(const AttentionBackward& call, ihipStream_t* stream = nullptr) { run(call, stream); }
  void attention_latent(const AttentionLatent& call, ihipStream_t* stream = nullptr) { run(call, stream); }
  void softmax_lse(const SoftmaxLse& call, ihipStream_t* stream = nullptr) { run(call, stream); }
  void sparse_indexer(const SparseIndexer& call, ihipStream_t* stream = nullptr) { run(call, stream); }
  void cache_append(const CacheAppend& call, ihipStream_t* stream = nullptr) { run(call, stream); }
  void attention_merge(const AttentionMerge& call, ihipStream_t* stream = nullptr) { run(call, stream); }
  // The same for a call of any family.
  template <typename Call>
  void run(const Call& call, ihipStream_t* stream = nullptr) {
    check(launch(get(), call, stream));
  }

  // What can be asked of a call of any family.
  // Device memory that the call has use for beside its tensors.
  template <typename Call>
  std::size_t workspace_bytes(const Call& call) {
    std::size_t bytes = 0;
    check(wavejit_call_workspace(get(), &call.head, &bytes));
    return bytes;
  }
  // Whether there is a kernel for the call; Error has the reason of everything else that the call would refuse.
  template <typename Call>
  bool supports(const Call& call) {
    const wavejit_status status = wavejit_call_supported(get(), &call.head);
    if (status != WAVEJIT_UNSUPPORTED) check(status);
    return status == WAVEJIT_OK;
  }
  // Whether its kernel is loaded.
  template <typename Call>
  bool is_ready(const Call& call) {
    const wavejit_status status = wavejit_call_ready(get(), &call.head);
    if (status != WAVEJIT_NOT_READY) check(status);
    return status == WAVEJIT_OK;
  }
  // Loads its kernels without launching them.
  template <typename Call>
  void prepare_call(const Call& call) {
    check(wavejit_call_prepare(get(), &call.head));
  }
  // The call as a problem descriptor.
  template <typename Call>
  std::string describe(const Call& call) {
    std::string text;
    const auto keep = [](void* context, const char* line) { *static_cast<std::string*>(context) = line; };
    check(wavejit_call_describe(get(), &call.head, keep, &text));
    return text;
  }

  // Loads what the problem descriptors need, `jobs` at a time (0: all cores). A line that fails leaves the others
  // alone; then Error names every line that failed and why, with the status of the first. wavejit_prepare tells
  // progress.
  void prepare(const std::vector<std::string>& descriptors, int jobs = 0) {
    const std::vector<Prepared> prepared = try_prepare(descriptors, jobs);
    wavejit_status first = WAVEJIT_OK;
    std::size_t failed = 0;
    std::string lines;
    for (std::size_t i = 0; i < prepared.size(); ++i) {
      if (prepared[i].status == WAVEJIT_OK) continue;
      if (failed++ == 0) first = prepared[i].status;
      lines += "\n'" + descriptors[i] + "': " + prepared[i].failure;
    }
    if (failed == 0) return;
    const std::string told = "prepare: " + std::to_string(failed) + " of " + std::to_string(prepared.size()) +
                             " lines could not be prepared:" + lines;
    throw Error(first, told.c_str());
  }
  // The same, and throws nothing for a line that fails: the answer of each is in the result.
  [[nodiscard]] std::vector<Prepared> try_prepare(const std::vector<std::string>& descriptors, int jobs = 0) {
    std::vector<const char*> lines;
    lines.reserve(descriptors.size());
    for (const std::string& line : descriptors) lines.push_back(line.c_str());
    std::vector<Prepared> prepared(lines.size());
    const auto tell = [](void* context, const wavejit_prepare_progress* progress) {
      if (progress->descriptor == nullptr) return;
      Prepared& line = (*static_cast<std::vector<Prepared>*>(context))[progress->line];
      line.status = static_cast<wavejit_status>(progress->status);
      if (progress->failure != nullptr) line.failure = progress->failure;
    };
    const wavejit_status status = wavejit_prepare(get(), lines.data(), lines.size(), jobs, nullptr, tell, &prepared);
    bool of_a_line = false;
    for (const Prepared& line : prepared) of_a_line = of_a_line || line.status != WAVEJIT_OK;
    if (!of_a_line) check(status);
    return prepared;
  }
  // A miss from now on is an Error of status WAVEJIT_SEALED that names the line to prebuild.
  void seal() { check(wavejit_engine_seal(get(), 1)); }
  void unseal() { check(wavejit_engine_seal(get(), 0)); }

  // Waits for the device and gives the engine's own workspaces back.
  void trim() { check(wavejit_engine_trim(get())); }

  // Waits for the device; a kernel that failed shows here.
  void synchronize() { check(wavejit_device_synchronize(get())); }

  wavejit_statistics statistics() const {
    wavejit_statistics statistics{};
    statistics.size = sizeof statistics;
    check(wavejit_engine_statistics(engine_.get(), &statistics));
    return statistics;
  }

  std::string statistics_json() const {
    std::string text;
    std::size_t length = 0;
    check(wavejit_engine_statistics_json(engine_.get(), nullptr, 0, &length));
    // A kernel that is being loaded may add its line in between.
    for (wavejit_status status = WAVEJIT_INVALID_ARGUMENT; status == WAVEJIT_INVALID_ARGUMENT;) {
      text.resize(2 * length + 1);
      status = wavejit_engine_statistics_json(engine_.get(), text.data(), text.size(), &length);
      if (status != WAVEJIT_INVALID_ARGUMENT) check(status);
    }
    text.resize(length);
    return text;
  }

  std::string target() const { return wavejit_engine_target(engine_.get()); }
  std::string device_name() const { return wavejit_engine_device_name(engine_.get()); }
  wavejit_engine* get() const noexcept { return engine_.get(); }

 private:
  struct Destroy {
    void operator()(wavejit_engine* engine) const noexcept { wavejit_engine_destroy(engine); }
  };
  static EngineOptions with_device(const char* device) {
    EngineOptions options;
    if (device != nullptr) options.device = device;
    return options;
  }
  std::unique_ptr<wavejit_engine, Destroy> engine_;
};

// ---- Device memory and tensors -------------------------------------------------------------------------------------

// Device memory for programs without HIP of their own. The engine must outlive it.
class DeviceBuffer {
 public:
  DeviceBuffer(Engine& engine, std::size_t bytes) : engine_(engine.get()), bytes_(bytes) {
    check(wavejit_device_allocate(engine_, bytes, &memory_));
  }
  template <typename T>
  DeviceBuffer(Engine& engine, const std::vector<T>& values) : DeviceBuffer(engine, values.size() * sizeof(T)) {
    write(values);  // the buffer is whole by now: its destructor runs if this throws
  }
  ~DeviceBuffer() {
    if (engine_ != nullptr) (void)wavejit_device_free(engine_, memory_);
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : engine_(std::exchange(other.engine_, nullptr)),
        memory_(std::exchange(other.memory_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(engine_, other.engine_);
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  void* data() const noexcept { return memory_; }
  std::size_t bytes() const noexcept { return bytes_; }

  // The whole buffer from and to host memory of at least as many bytes.
  void copy_in(const void* host) { check(wavejit_device_copy_in(engine_, memory_, host, bytes_)); }
  void copy_out(void* host) const { check(wavejit_device_copy_out(engine_, host, memory_, bytes_)); }

  template <typename T>
  void write(const std::vector<T>& values) {
    if (values.size() * sizeof(T) > bytes_) throw Error(WAVEJIT_INVALID_ARGUMENT, "values do not fit the buffer");
    check(wavejit_device_copy_in(engine_, memory_, values.data(), values.size() * sizeof(T)));
  }
  // Everything, as whole elements. HIP's copy waits for work on the default stream.
  template <typename T>
  std::vector<T> read() const {
    std::vector<T> values(bytes_ / sizeof(T));
    check(wavejit_device_copy_out(engine_, values.data(), memory_, values.size() * sizeof(T)));
    return values;
  }

 private:
  wavejit_engine* engine_ = nullptr;
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

inline DeviceBuffer Engine::allocate(std::size_t bytes) { return DeviceBuffer(*this, bytes); }

// A dense [batch, length, heads, head dim] tensor (BSHD).
inline wavejit_tensor dense(void* data, wavejit_dtype dtype, std::int64_t batch, std::int64_t length,
                            std::int64_t heads, std::int64_t head_dim) {
  return wavejit_dense_tensor(data, dtype, batch, length, heads, head_dim);
}
inline wavejit_tensor dense(const DeviceBuffer& buffer, wavejit_dtype dtype, std::int64_t batch, std::int64_t length,
                            std::int64_t heads, std::int64_t head_dim) {
  return wavejit_dense_tensor(buffer.data(), dtype, batch, length, heads, head_dim);
}

namespace detail {
inline void collect_line(void* context, const char* line) {
  static_cast<std::vector<std::string>*>(context)->emplace_back(line);
}
}  // namespace detail

// ---- Questions without a device ------------------------------------------------------------------------------------

// The lines of wavejit_explain and wavejit_supported.
inline std::vector<std::string> explain(const std::string& descriptor, const std::string& target = {},
                                        const EngineOptions& options = {}) {
  std::vector<std::string> lines;
  const wavejit_engine_options c = options.to_c();
  check(
      wavejit_explain(&c, descriptor.c_str(), target.empty() ? nullptr : target.c_str(), detail::collect_line, &lines));
  return lines;
}
// The lines of wavejit_targets: "gfx942", ….
inline std::vector<std::string> target_names() {
  std::vector<std::string> lines;
  check(wavejit_targets(detail::collect_line, &lines));
  return lines;
}

// A kernel of a problem, as wavejit_kernel_texts tells it.
struct KernelText {
  std::string spec;
  std::string text;
};
inline std::vector<KernelText> kernel_texts(const std::string& descriptor, wavejit_kernel_form form,
                                            const std::string& target = {}, const EngineOptions& options = {}) {
  std::vector<KernelText> kernels;
  const wavejit_engine_options c = options.to_c();
  wavejit_kernel_text_arguments arguments{};
  arguments.size = sizeof arguments;
  arguments.descriptor = descriptor.c_str();
  arguments.target = target.empty() ? nullptr : target.c_str();
  arguments.form = form;
  const auto collect = [](void* context, const wavejit_kernel_text* kernel) {
    static_cast<std::vector<KernelText>*>(context)->push_back({kernel->kernel_spec, kernel->text});
  };
  check(wavejit_kernel_texts(&c, &arguments, collect, &kernels));
  return kernels;
}

inline std::vector<std::string> supported() {
  std::vector<std::string> lines;
  check(wavejit_supported(detail::collect_line, &lines));
  return lines;
}

}  // namespace wavejit

#endif
