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
#include <utility>
#include <vector>

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

// ---- Options of an engine ------------------------------------------------------------------------------------------

// The options of wavejit_engine_create by name; an empty string leaves a thing to the environment, then to the default.
// NOLINTBEGIN(readability-redundant-member-init): with them, {.device = "…"} warns of no missing field
struct EngineOptions {
  std::string device{};           // "hip", "hip:1", "sim:gfx950"
  std::string cache_directory{};  // $XDG_CACHE_HOME/wavejit, else ~/.cache/wavejit
  std::string cache_mode{};       // "off", "ro", "rw"
  std::string lowering{};         // "llvm", "comgr"
  std::string compile{};          // "inprocess", "isolated"
  std::string output_store{};     // "auto", "permlane", "scalar"
  std::string log_level{};        // "off", "error", "warning", "info", "debug"
  std::string pipeline{};         // "auto", "generic", "dualwave", "interleaved"
  std::string stagger{};          // "on", "off"
  std::string setprio{};          // "on", "off"
  std::string lazy_rescale{};     // "on", "off"
  std::string xcd_swizzle{};      // "auto", "on", "off"
  std::string kv_splits{};        // "auto", "1", "2", …
  std::string cache_layers{};     // "/image/kernels:/opt/kernels.wavejit-archive"
  std::string cache_limit{};      // "1GiB", "none"
  std::string cache_lock_wait{};  // milliseconds: "10000"
  std::string cache_remote{};     // "rediss://host:6379/0"
  std::string cache_remote_key_file{};
  std::string cache_remote_connect_timeout{};  // milliseconds: "200"
  std::string cache_remote_timeout{};          // milliseconds: "500"
  std::string miss_log{};                      // a file: "/var/log/engine.misses"
  std::string cache_packaged{};                // "on", "off"
  std::string cache_remote_authorities{};      // of rediss://: "/etc/fleet/authority.pem"
  // NOLINTEND(readability-redundant-member-init)
  // Hooks: plain functions, because they are called from any thread, without locks. wavejit.h says when.
  wavejit_compile_callback on_compile = nullptr;
  void* on_compile_context = nullptr;
  wavejit_allocate_callback allocate = nullptr;
  wavejit_release_callback release = nullptr;
  void* allocator_context = nullptr;
  wavejit_log_callback on_log = nullptr;
  void* on_log_context = nullptr;

  // Points into this object, which must stay while the result is used.
  wavejit_engine_options to_c() const noexcept {
    wavejit_engine_options options{};
    options.size = sizeof options;
    options.device = device.c_str();
    options.cache_directory = cache_directory.c_str();
    options.cache_mode = cache_mode.c_str();
    options.lowering = lowering.c_str();
    options.compile = compile.c_str();
    options.output_store = output_store.c_str();
    options.log_level = log_level.c_str();
    options.pipeline = pipeline.c_str();
    options.stagger = stagger.c_str();
    options.setprio = setprio.c_str();
    options.lazy_rescale = lazy_rescale.c_str();
    options.xcd_swizzle = xcd_swizzle.c_str();
    options.kv_splits = kv_splits.c_str();
    options.cache_layers = cache_layers.c_str();
    options.cache_limit = cache_limit.c_str();
    options.cache_lock_wait = cache_lock_wait.c_str();
    options.cache_remote = cache_remote.c_str();
    options.cache_remote_key_file = cache_remote_key_file.c_str();
    options.cache_remote_connect_timeout = cache_remote_connect_timeout.c_str();
    options.cache_remote_timeout = cache_remote_timeout.c_str();
    options.miss_log = miss_log.c_str();
    options.cache_packaged = cache_packaged.c_str();
    options.cache_remote_authorities = cache_remote_authorities.c_str();
    options.on_compile = on_compile;
    options.on_compile_context = on_compile_context;
    options.allocate = allocate;
    options.release = release;
    options.allocator_context = allocator_context;
    options.on_log = on_log;
    options.on_log_context = on_log_context;
    return options;
  }
};

// ---- Attention -----------------------------------------------------------------------------------------------------

// One attention call; wavejit_attention_forward_arguments says what each field means.
struct AttentionForward {
  wavejit_tensor q{};
  wavejit_tensor k{};
  wavejit_tensor v{};
  wavejit_tensor o{};
  float scale = 0;                        // 0: 1 / sqrt(head dim), unless flags have WAVEJIT_SCALE_IS_ZERO
  int mask = WAVEJIT_MASK_NONE;           // bits: WAVEJIT_MASK_CAUSAL is the diagonal aligned bottom-right
  wavejit_tensor lse{};                   // data null: not wanted
  wavejit_call_report* report = nullptr;  // filled when given; see make_report()

  int window_left = 0;  // with WAVEJIT_MASK_WINDOW; −1: no limit
  int window_right = 0;
  std::int64_t causal_prefix = 0;              // with WAVEJIT_MASK_PREFIX
  const std::int32_t* query_starts = nullptr;  // packed queries, device memory
  const std::int32_t* key_starts = nullptr;
  const std::int32_t* key_lengths = nullptr;
  std::int64_t sequences = 0;
  std::int64_t max_query_length = 0;
  std::int64_t max_key_length = 0;
  wavejit_tensor bias{};  // data null: none; so alibi and sink
  wavejit_tensor alibi{};
  wavejit_tensor sink{};
  float softcap = 0;  // 0: none
  int splits = 0;     // 0: the engine's choice
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  std::uint32_t flags = 0;
  const std::int32_t* block_table = nullptr;  // keys in pages, device memory; null: dense
  const std::int32_t* table_starts = nullptr;
  std::int64_t table_columns = 0;
  std::int64_t table_row_stride = 0;
  const std::int32_t* first_keys = nullptr;  // left padding, device memory
  int page_layout = WAVEJIT_PAGES_OF_ROWS;   // of keys in pages
  std::int64_t max_total_keys = 0;           // a hint: the keys of all sequences together; 0: nobody said

  wavejit_attention_forward_arguments to_c() const noexcept {
    wavejit_attention_forward_arguments arguments{};
    arguments.size = sizeof arguments;
    arguments.q = q;
    arguments.k = k;
    arguments.v = v;
    arguments.o = o;
    arguments.lse = lse;
    arguments.scale = scale;
    arguments.mask = mask;
    arguments.report = report;
    arguments.window_left = window_left;
    arguments.window_right = window_right;
    arguments.causal_prefix = causal_prefix;
    arguments.query_starts = query_starts;
    arguments.key_starts = key_starts;
    arguments.key_lengths = key_lengths;
    arguments.sequences = sequences;
    arguments.max_query_length = max_query_length;
    arguments.max_key_length = max_key_length;
    arguments.bias = bias;
    arguments.alibi = alibi;
    arguments.sink = sink;
    arguments.softcap = softcap;
    arguments.splits = splits;
    arguments.workspace = workspace;
    arguments.workspace_bytes = workspace_bytes;
    arguments.flags = flags;
    arguments.block_table = block_table;
    arguments.table_starts = table_starts;
    arguments.table_columns = table_columns;
    arguments.table_row_stride = table_row_stride;
    arguments.first_keys = first_keys;
    arguments.page_layout = page_layout;
    arguments.max_total_keys = max_total_keys;
    return arguments;
  }
};

// ---- Softmax -------------------------------------------------------------------------------------------------------

// Softmax of raw scores by itself; wavejit_softmax_lse_arguments says what each field means.
//
//   wavejit::SoftmaxLse call;
//   call.scores = wavejit::dense(scores, WAVEJIT_FP32, 1, 8, 128, 5000);   // [B, H, Sq, Sk]
//   call.weights = wavejit::dense(weights, WAVEJIT_BF16, 1, 8, 128, 5000);
//   engine.softmax_lse(call);
struct SoftmaxLse {
  wavejit_tensor scores{};
  wavejit_tensor weights{};               // data null: not wanted
  wavejit_tensor lse{};                   // data null: not wanted
  float scale = 0;                        // 0: 1, unless flags have WAVEJIT_SCALE_IS_ZERO
  int mask = WAVEJIT_MASK_NONE;           // bits
  wavejit_call_report* report = nullptr;  // filled when given; see make_report()
  int window_left = 0;                    // with WAVEJIT_MASK_WINDOW; −1: no limit
  int window_right = 0;
  std::int64_t causal_prefix = 0;             // with WAVEJIT_MASK_PREFIX
  const std::int32_t* key_lengths = nullptr;  // device memory
  std::uint32_t flags = 0;

  wavejit_softmax_lse_arguments to_c() const noexcept {
    wavejit_softmax_lse_arguments arguments{};
    arguments.size = sizeof arguments;
    arguments.scores = scores;
    arguments.weights = weights;
    arguments.lse = lse;
    arguments.scale = scale;
    arguments.mask = mask;
    arguments.report = report;
    arguments.window_left = window_left;
    arguments.window_right = window_right;
    arguments.causal_prefix = causal_prefix;
    arguments.key_lengths = key_lengths;
    arguments.flags = flags;
    return arguments;
  }
};

// ---- Gradients of attention ----------------------------------------------------------------------------------------

// Gradients of attention; wavejit_attention_backward_arguments says what each field means.
//
//   wavejit::AttentionBackward call;
//   call.q = wavejit::dense(q, WAVEJIT_BF16, 1, 256, 8, 128);   // [B, S, H, D]; k, v, o, d_o, dq, dk and dv alike
//   call.lse = wavejit::dense(lse, WAVEJIT_FP32, 1, 8, 256, 1);  // of the forward call
//   engine.attention_backward(call);
struct AttentionBackward {
  wavejit_tensor q{};
  wavejit_tensor k{};
  wavejit_tensor v{};
  wavejit_tensor o{};
  wavejit_tensor d_o{};
  wavejit_tensor lse{};
  wavejit_tensor d_lse{};  // data null: none
  wavejit_tensor dq{};
  wavejit_tensor dk{};
  wavejit_tensor dv{};
  wavejit_tensor alibi{};                 // data null: none
  float scale = 0;                        // 0: 1 / sqrt(D), unless flags have WAVEJIT_SCALE_IS_ZERO
  float softcap = 0;                      // 0: none
  int mask = WAVEJIT_MASK_NONE;           // bits
  wavejit_call_report* report = nullptr;  // filled when given; see make_report()
  int window_left = 0;                    // with WAVEJIT_MASK_WINDOW; −1: no limit
  int window_right = 0;
  std::int64_t causal_prefix = 0;              // with WAVEJIT_MASK_PREFIX
  const std::int32_t* query_starts = nullptr;  // device memory, as the other two
  const std::int32_t* key_starts = nullptr;
  const std::int32_t* key_lengths = nullptr;
  std::int64_t sequences = 0;
  std::int64_t max_query_length = 0;
  std::int64_t max_key_length = 0;
  void* workspace = nullptr;  // null: the engine's own
  std::size_t workspace_bytes = 0;
  std::uint32_t flags = 0;

  wavejit_attention_backward_arguments to_c() const noexcept {
    wavejit_attention_backward_arguments arguments{};
    arguments.size = sizeof arguments;
    arguments.q = q;
    arguments.k = k;
    arguments.v = v;
    arguments.o = o;
    arguments.d_o = d_o;
    arguments.lse = lse;
    arguments.d_lse = d_lse;
    arguments.dq = dq;
    arguments.dk = dk;
    arguments.dv = dv;
    arguments.alibi = alibi;
    arguments.scale = scale;
    arguments.softcap = softcap;
    arguments.mask = mask;
    arguments.report = report;
    arguments.window_left = window_left;
    arguments.window_right = window_right;
    arguments.causal_prefix = causal_prefix;
    arguments.query_starts = query_starts;
    arguments.key_starts = key_starts;
    arguments.key_lengths = key_lengths;
    arguments.sequences = sequences;
    arguments.max_query_length = max_query_length;
    arguments.max_key_length = max_key_length;
    arguments.workspace = workspace;
    arguments.workspace_bytes = workspace_bytes;
    arguments.flags = flags;
    return arguments;
  }
};

// ---- Reports and prepared lines ------------------------------------------------------------------------------------

// A report ready to be handed to a call.
inline wavejit_call_report make_report() noexcept {
  wavejit_call_report report{};
  report.size = sizeof report;
  return report;
}

// What became of one line of Engine::prepare.
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
  void attention_forward(const AttentionForward& call, ihipStream_t* stream = nullptr) {
    const wavejit_attention_forward_arguments arguments = call.to_c();
    check(wavejit_attention_forward(get(), &arguments, stream));
  }
  // Device memory that the call would use beside its tensors.
  std::size_t attention_forward_workspace(const AttentionForward& call) {
    const wavejit_attention_forward_arguments arguments = call.to_c();
    std::size_t bytes = 0;
    check(wavejit_attention_forward_workspace(get(), &arguments, &bytes));
    return bytes;
  }

  // Whether there is a kernel for the call; Error has the reason of everything else that the call would refuse.
  bool supports(const AttentionForward& call) {
    const wavejit_attention_forward_arguments arguments = call.to_c();
    const wavejit_status status = wavejit_attention_forward_supported(get(), &arguments);
    if (status != WAVEJIT_UNSUPPORTED) check(status);
    return status == WAVEJIT_OK;
  }
  // Whether its kernel is loaded.
  bool is_ready(const AttentionForward& call) {
    const wavejit_attention_forward_arguments arguments = call.to_c();
    const wavejit_status status = wavejit_attention_forward_ready(get(), &arguments);
    if (status != WAVEJIT_NOT_READY) check(status);
    return status == WAVEJIT_OK;
  }
  // The call as a problem descriptor.
  std::string describe(const AttentionForward& call) {
    const wavejit_attention_forward_arguments arguments = call.to_c();
    std::string text;
    const auto keep = [](void* context, const char* line) { *static_cast<std::string*>(context) = line; };
    check(wavejit_attention_forward_describe(get(), &arguments, keep, &text));
    return text;
  }

  // The softmax alone; its questions are those of attention.
  void softmax_lse(const SoftmaxLse& call, ihipStream_t* stream = nullptr) {
    const wavejit_softmax_lse_arguments arguments = call.to_c();
    check(wavejit_softmax_lse(get(), &arguments, stream));
  }
  bool supports(const SoftmaxLse& call) {
    const wavejit_softmax_lse_arguments arguments = call.to_c();
    const wavejit_status status = wavejit_softmax_lse_supported(get(), &arguments);
    if (status != WAVEJIT_UNSUPPORTED) check(status);
    return status == WAVEJIT_OK;
  }
  bool is_ready(const SoftmaxLse& call) {
    const wavejit_softmax_lse_arguments arguments = call.to_c();
    const wavejit_status status = wavejit_softmax_lse_ready(get(), &arguments);
    if (status != WAVEJIT_NOT_READY) check(status);
    return status == WAVEJIT_OK;
  }
  std::string describe(const SoftmaxLse& call) {
    const wavejit_softmax_lse_arguments arguments = call.to_c();
    std::string text;
    const auto keep = [](void* context, const char* line) { *static_cast<std::string*>(context) = line; };
    check(wavejit_softmax_lse_describe(get(), &arguments, keep, &text));
    return text;
  }

  // Gradients; the questions are those of attention.
  void attention_backward(const AttentionBackward& call, ihipStream_t* stream = nullptr) {
    const wavejit_attention_backward_arguments arguments = call.to_c();
    check(wavejit_attention_backward(get(), &arguments, stream));
  }
  std::size_t workspace_bytes(const AttentionBackward& call) {
    const wavejit_attention_backward_arguments arguments = call.to_c();
    std::size_t bytes = 0;
    check(wavejit_attention_backward_workspace(get(), &arguments, &bytes));
    return bytes;
  }
  bool supports(const AttentionBackward& call) {
    const wavejit_attention_backward_arguments arguments = call.to_c();
    const wavejit_status status = wavejit_attention_backward_supported(get(), &arguments);
    if (status != WAVEJIT_UNSUPPORTED) check(status);
    return status == WAVEJIT_OK;
  }
  bool is_ready(const AttentionBackward& call) {
    const wavejit_attention_backward_arguments arguments = call.to_c();
    const wavejit_status status = wavejit_attention_backward_ready(get(), &arguments);
    if (status != WAVEJIT_NOT_READY) check(status);
    return status == WAVEJIT_OK;
  }
  std::string describe(const AttentionBackward& call) {
    const wavejit_attention_backward_arguments arguments = call.to_c();
    std::string text;
    const auto keep = [](void* context, const char* line) { *static_cast<std::string*>(context) = line; };
    check(wavejit_attention_backward_describe(get(), &arguments, keep, &text));
    return text;
  }

  // Loads what the problem descriptors need, `jobs` at a time (0: all cores). Throws nothing for a line that fails: the
  // answer of each is in the result. wavejit_prepare tells progress.
  std::vector<Prepared> prepare(const std::vector<std::string>& descriptors, int jobs = 0) {
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
  void seal() { check(wavejit_engine_seal(get())); }
  void unseal() { check(wavejit_engine_unseal(get())); }

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
inline std::vector<std::string> targets() {
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
