// How fast the simulated GPU executes the attention kernel: wave-instructions a second, matrix instructions included,
// on one host core and on all of them; and how much longer it takes under every check.
#include <benchmark/benchmark.h>

#include <ctime>
#include <stdexcept>
#include <string>
#include <vector>

#include "wavejit/simgpu.h"
#include "wavejit/wavejit.h"

namespace {

void require(wavejit_status status) {
  if (status != WAVEJIT_OK) throw std::runtime_error(wavejit_last_detail());
}

wavejit_simgpu_counters counters() {
  wavejit_simgpu_counters c{};
  c.size = sizeof c;
  wavejit_simgpu_get_counters(&c);
  return c;
}

void set(unsigned threads, bool checked) {
  wavejit_simgpu_settings settings{};
  settings.size = sizeof settings;
  wavejit_simgpu_get_settings(&settings);
  settings.threads = threads;
  settings.checks = checked ? WAVEJIT_SIMGPU_CHECK_ALL : 0;
  settings.arrival = checked ? WAVEJIT_SIMGPU_ARRIVES_LATE : WAVEJIT_SIMGPU_ARRIVES_EARLY;
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
    call_.size = sizeof call_;
    call_.scale = 0.1F;
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
  static size_t bytes(int head_dim) { return static_cast<size_t>(length * heads * head_dim * 2); }

  wavejit_engine* engine_ = nullptr;
  void* memory_[4] = {};
  wavejit_attention_forward_arguments call_{};
};

void simulated_attention(benchmark::State& state, const char* target, int head_dim, unsigned threads) {
  set(threads, false);
  Attention attention(target, head_dim);
  const wavejit_simgpu_counters before = counters();
  for (auto _ : state) attention.run();
  const wavejit_simgpu_counters after = counters();
  state.counters["wave_instructions_per_second"] = benchmark::Counter(
      static_cast<double>(after.wave_instructions - before.wave_instructions), benchmark::Counter::kIsRate);
  state.counters["matrix_share_percent"] = 100.0 *
                                           static_cast<double>(after.matrix_instructions - before.matrix_instructions) /
                                           static_cast<double>(after.wave_instructions - before.wave_instructions);
}

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + (static_cast<double>(now.tv_nsec) * 1e-9);
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
  for (const char* target : {"gfx950", "gfx942"}) {
    for (const int head_dim : {64, 128}) {
      for (const unsigned threads : {1U, 0U}) {
        const std::string name = std::string("simulated_attention/") + target + "/d" + std::to_string(head_dim) +
                                 (threads == 1 ? "/one_core" : "/all_cores");
        benchmark::RegisterBenchmark(name, simulated_attention, target, head_dim, threads)
            ->Unit(benchmark::kMillisecond)
            ->UseRealTime()
            ->MinTime(0.5);
      }
    }
  }
  for (const char* target : {"gfx950", "gfx942"}) {
    for (const int head_dim : {64, 128}) {
      benchmark::RegisterBenchmark(std::string("checked_attention/") + target + "/d" + std::to_string(head_dim),
                                   checked_attention, target, head_dim)
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime()
          ->MinTime(0.5);
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
