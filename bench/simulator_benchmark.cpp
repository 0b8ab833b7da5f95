// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How fast the simulated GPU executes the attention kernel on either engine: wave-instructions a second, with and
// without matrix instructions, on one host core and on all of them; how much longer it takes under every check, and
// under the schedule `timed`; and how near matrix instructions come to what the host's fused multiply-adds could do.
#include <benchmark/benchmark.h>
#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "measure.h"
#include "simgpu/machine/matrix/matrix.h"
#include "simgpu/machine/matrix/matrix_kernel.h"
#include "simgpu/process/host_set.h"
#include "wavejit/simgpu.h"
#include "wavejit/wavejit.h"

namespace {

using wavejit::bench::processor_seconds;

void require(wavejit_status status) {
  if (status != WAVEJIT_OK) throw std::runtime_error(wavejit_last_detail());
}

wavejit_simgpu_counters counters() {
  wavejit_simgpu_counters c{};
  c.size = sizeof c;
  wavejit_simgpu_get_counters(&c);
  return c;
}

void set(unsigned threads, bool checked, wavejit_simgpu_engine engine = WAVEJIT_SIMGPU_INTERPRET,
         bool time_matrix = false) {
  wavejit_simgpu_settings settings{};
  settings.size = sizeof settings;
  wavejit_simgpu_get_settings(&settings);
  settings.threads = threads;
  settings.checks = checked ? WAVEJIT_SIMGPU_CHECK_ALL : 0;
  settings.arrival = checked ? WAVEJIT_SIMGPU_ARRIVES_LATE : WAVEJIT_SIMGPU_ARRIVES_EARLY;
  settings.engine = engine;
  settings.time_matrix = time_matrix ? 1 : 0;
  settings.translate_after = 20;  // so that the runs before the clock starts are enough
  if (wavejit_simgpu_set_settings(&settings) != 0) throw std::runtime_error("settings");
}

// One call on one simulated device, and its memory.
class Attention {
 public:
  Attention(const char* target, int head_dim) {
    const std::string device = std::string("sim:") + target;
    wavejit_engine_options options{};
    options.size = sizeof options;
    options.device = device.c_str();
    options.cache_mode = "off";
    require(wavejit_engine_create(&options, &engine_));
    call_.head.size = sizeof call_;
    call_.head.family = WAVEJIT_ATTENTION_FORWARD;
    call_.modifiers.scale = 0.1F;
    renew(head_dim);
    run();
  }
  ~Attention() {
    for (void* block : memory_) wavejit_device_free(engine_, block);
    wavejit_engine_destroy(engine_);
  }
  Attention(const Attention&) = delete;
  Attention& operator=(const Attention&) = delete;
  // Fresh memory, filled.
  void renew(int head_dim) {
    const std::vector<unsigned short> values(bytes(head_dim) / 2, 0x3C00);
    wavejit_tensor* tensors[4] = {&call_.q, &call_.k, &call_.v, &call_.o};
    for (int i = 0; i < 4; ++i) {
      wavejit_device_free(engine_, memory_[i]);
      require(wavejit_device_allocate(engine_, bytes(head_dim), &memory_[i]));
      require(wavejit_device_copy_in(engine_, memory_[i], values.data(), bytes(head_dim)));
      *tensors[i] = wavejit_dense_tensor(memory_[i], WAVEJIT_FP16, 1, length, heads, head_dim);
    }
  }
  void run() {
    require(wavejit_attention_forward(engine_, &call_, nullptr));
    require(wavejit_device_synchronize(engine_));
  }

 private:
  static constexpr long long length = 512;
  static constexpr long long heads = 4;
  static std::size_t bytes(int head_dim) { return static_cast<std::size_t>(length * heads * head_dim * 2); }

  wavejit_engine* engine_ = nullptr;
  void* memory_[4] = {};
  wavejit_attention_forward_arguments call_{};
};

// --- One matrix instruction by itself, and the most that the host could do.

namespace matrix = wavejit::simgpu::matrix;
using wavejit::simgpu::for_this_host;
using wavejit::simgpu::host_supports;
using wavejit::simgpu::HostSet;

void (*const matrix_kernel)(const matrix::MatrixCall&) = for_this_host(&matrix::x86_64_v2::multiply,
                                                                       &matrix::x86_64_v3::multiply,
                                                                       &matrix::x86_64_v4::multiply);

struct MatrixInstruction {
  explicit MatrixInstruction(std::string_view name) : registers(64 * wavejit::simgpu::lane_places) {
    for (const matrix::Shape& shape : matrix::shapes()) {
      if (shape.name == name) call.shape = &shape;
    }
    if (call.shape == nullptr) throw std::runtime_error("no such matrix instruction");
    std::mt19937 random(1);
    // float16 and bfloat16 numbers of moderate size.
    for (std::uint32_t& word : registers) word = 0x3c003c00U ^ (random() & 0x83ff83ffU);
    call.a = call.shape->a;
    call.b = call.shape->b;
    call.a_registers = registers.data();
    call.b_registers = registers.data() + (8 * wavejit::simgpu::lane_places);
    call.c_registers = call.d_registers = registers.data() + (16 * wavejit::simgpu::lane_places);
  }
  double products() const {
    return static_cast<double>(call.shape->m * call.shape->m * call.shape->k * call.shape->blocks);
  }
  std::vector<std::uint32_t> registers;
  matrix::MatrixCall call;
};

constexpr int chain_steps = 20'000;
// Twelve chains hide the latency of a fused multiply-add on every host known.
[[gnu::target("avx512f"), gnu::noinline]] double chains_of_16() {
  const __m512 factor = _mm512_set1_ps(0.999F);
  __m512 s[12];
  for (__m512& sum : s) sum = factor;
  for (int i = 0; i < chain_steps; ++i) {
    for (__m512& sum : s) sum = _mm512_fmadd_ps(sum, factor, factor);
  }
  for (int i = 1; i < 12; ++i) s[0] = _mm512_add_ps(s[0], s[i]);
  return static_cast<double>(_mm512_cvtss_f32(s[0]));
}
[[gnu::target("avx2,fma"), gnu::noinline]] double chains_of_8() {
  const __m256 factor = _mm256_set1_ps(0.999F);
  __m256 s[12];
  for (__m256& sum : s) sum = factor;
  for (int i = 0; i < chain_steps; ++i) {
    for (__m256& sum : s) sum = _mm256_fmadd_ps(sum, factor, factor);
  }
  for (int i = 1; i < 12; ++i) s[0] = _mm256_add_ps(s[0], s[i]);
  return static_cast<double>(_mm256_cvtss_f32(s[0]));
}

// One matrix instruction's seconds, and fused multiply-adds of float32 a second on the same core: the best of many
// short tries in turns, so that the clock's frequency and what else the host does are the same to both.
struct MatrixSpeed {
  double seconds = 1;
  double host_peak = 0;
};
MatrixSpeed speed_of_matrix_instruction(std::string_view name) {
  const MatrixInstruction instruction(name);
  const bool wide = host_supports(HostSet::x86_64_v4);
  MatrixSpeed speed;
  // The wall's clock: what else runs only lengthens a try, while a process's time may stand still for one.
  const auto now = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  for (int attempt = 0; attempt < 400; ++attempt) {
    const double started = now();
    for (int i = 0; i < 100; ++i) matrix_kernel(instruction.call);
    const double between = now();
    benchmark::DoNotOptimize(wide ? chains_of_16() : chains_of_8());
    const double ended = now();
    speed.seconds = std::min(speed.seconds, (between - started) / 100);
    speed.host_peak = std::max(speed.host_peak, 12.0 * chain_steps * (wide ? 16 : 8) / (ended - between));
  }
  return speed;
}

void matrix_instruction(benchmark::State& state, const char* name) {
  const MatrixInstruction instruction(name);
  for (auto _ : state) matrix_kernel(instruction.call);
  const MatrixSpeed speed = speed_of_matrix_instruction(name);
  state.counters["percent_of_host_peak"] = 100 * instruction.products() / speed.seconds / speed.host_peak;
  state.counters["host_peak"] = benchmark::Counter(speed.host_peak);
}

// --- Whole kernels.

// What a matrix instruction that does nothing would be timed as: two looks at the clock.
double empty_window_seconds() {
  using Clock = std::chrono::steady_clock;
  constexpr int windows = 100'000;
  Clock::duration sum{};
  for (int i = 0; i < windows; ++i) {
    const auto started = Clock::now();
    benchmark::ClobberMemory();
    sum += Clock::now() - started;
  }
  return std::chrono::duration<double>(sum).count() / windows;
}

// In turns: a run as users have it, and one whose matrix instructions are timed where they stand. What they take there
// is subtracted from the former. The shortest of each counts: these hosts are shared, and what others do only lengthens
// a run.
void simulated_attention(benchmark::State& state, const char* target, int head_dim, unsigned threads,
                         wavejit_simgpu_engine engine) {
  set(threads, false, engine);
  const wavejit_simgpu_counters cold = counters();
  Attention attention(target, head_dim);
  // Until everything that runs often has been translated.
  for (int i = 0; i < 8; ++i) attention.run();
  const wavejit_simgpu_counters before = counters();
  const double window = empty_window_seconds();
  constexpr double never = 1e9;
  double seconds = never;
  double wall = never;
  double matrix_seconds = never;
  double instructions = 0;
  double products = 0;
  for (auto _ : state) {
    set(threads, false, engine);
    const wavejit_simgpu_counters start = counters();
    const auto wall_start = std::chrono::steady_clock::now();
    const double started = processor_seconds();
    attention.run();
    seconds = std::min(seconds, processor_seconds() - started);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - wall_start;
    wall = std::min(wall, taken.count());
    const wavejit_simgpu_counters end = counters();
    // The same in every run.
    instructions = static_cast<double>(end.wave_instructions - start.wave_instructions);
    products = static_cast<double>(end.matrix_instructions - start.matrix_instructions);
    set(threads, false, engine, true);
    attention.run();
    const auto timed = static_cast<double>(counters().matrix_nanoseconds - end.matrix_nanoseconds);
    matrix_seconds = std::min(matrix_seconds, (1e-9 * timed) - (products * window));
  }
  state.counters["per_second"] = benchmark::Counter(instructions / wall);
  // By processor time, so that what else the host does does not count.
  state.counters["per_core_second"] = benchmark::Counter(instructions / seconds);
  state.counters["outside_matrix_per_core_second"] =
      benchmark::Counter((instructions - products) / (seconds - matrix_seconds));
  state.counters["matrix_time_percent"] = 100.0 * matrix_seconds / seconds;
  state.counters["matrix_share_percent"] = 100.0 * products / instructions;
  state.counters["translated"] = static_cast<double>(before.translated_instructions - cold.translated_instructions);
  state.counters["translation_ms"] =
      static_cast<double>(before.translation_nanoseconds - cold.translation_nanoseconds) * 1e-6;
  set(threads, false);
}

void keep_waves_abreast(bool abreast) {
  wavejit_simgpu_settings settings{};
  settings.size = sizeof settings;
  wavejit_simgpu_get_settings(&settings);
  settings.schedule = abreast ? WAVEJIT_SIMGPU_TIMED : WAVEJIT_SIMGPU_IN_ORDER;
  if (wavejit_simgpu_set_settings(&settings) != 0) throw std::runtime_error("settings");
}

// The schedule `timed` beside the one in order, in turn and by processor time.
void timed_attention(benchmark::State& state, const char* target, int head_dim) {
  set(1, false);
  Attention attention(target, head_dim);
  double in_order = 0;
  double abreast = 0;
  for (auto _ : state) {
    keep_waves_abreast(true);
    const double started = processor_seconds();
    attention.run();
    abreast += processor_seconds() - started;
    keep_waves_abreast(false);
    const double again = processor_seconds();
    attention.run();
    in_order += processor_seconds() - again;
  }
  state.counters["times_longer"] = abreast / in_order;
}

// Both ways in turn and by processor time, so that what else the host does strikes both, or neither.
void checked_attention(benchmark::State& state, const char* target, int head_dim) {
  set(1, true);
  Attention attention(target, head_dim);
  double plain = 0;
  double checked = 0;
  for (auto _ : state) {
    state.PauseTiming();
    // Memory is followed from its allocation on, and forgotten when checks go off.
    set(1, true);
    attention.renew(head_dim);
    state.ResumeTiming();
    const double started = processor_seconds();
    attention.run();
    checked += processor_seconds() - started;
    set(1, false);
    const double again = processor_seconds();
    attention.run();
    plain += processor_seconds() - again;
  }
  state.counters["times_longer"] = checked / plain;
}

}  // namespace

int main(int argc, char** argv) {
  for (const char* target : {"gfx950", "gfx942", "gfx1201"}) {
    for (const int head_dim : {64, 128}) {
      for (const unsigned threads : {1U, 0U}) {
        for (const auto engine : {WAVEJIT_SIMGPU_INTERPRET, WAVEJIT_SIMGPU_COMPILE}) {
          const std::string name = std::string("simulated_attention/") + target + "/d" + std::to_string(head_dim) +
                                   (threads == 1 ? "/one_core" : "/all_cores") +
                                   (engine == WAVEJIT_SIMGPU_COMPILE ? "/compile" : "/interpret");
          benchmark::RegisterBenchmark(name, simulated_attention, target, head_dim, threads, engine)
              ->Unit(benchmark::kMillisecond)
              ->UseRealTime();
        }
      }
    }
  }
  for (const char* target : {"gfx950", "gfx942"}) {
    for (const int head_dim : {64, 128}) {
      benchmark::RegisterBenchmark(std::string("checked_attention/") + target + "/d" + std::to_string(head_dim),
                                   checked_attention, target, head_dim)
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
      benchmark::RegisterBenchmark(std::string("timed_attention/") + target + "/d" + std::to_string(head_dim),
                                   timed_attention, target, head_dim)
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    }
  }
  for (const char* name : {"v_mfma_f32_32x32x16_f16", "v_mfma_f32_32x32x16_bf16", "v_mfma_f32_16x16x32_bf16",
                           "v_mfma_f32_16x16x32_f16", "v_mfma_f32_32x32x8_f16", "v_mfma_f32_32x32x8_bf16"}) {
    benchmark::RegisterBenchmark(std::string("matrix_instruction/") + name, matrix_instruction, name)->MinTime(0.05);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
