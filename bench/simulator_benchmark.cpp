// How fast the simulated GPU executes the attention kernel: wave-instructions a second, matrix instructions included,
// on one host core and on all of them.
#include <benchmark/benchmark.h>

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

void simulated_attention(benchmark::State& state, const char* target, int head_dim, unsigned threads) {
  wavejit_simgpu_settings settings{};
  settings.size = sizeof settings;
  wavejit_simgpu_get_settings(&settings);
  settings.threads = threads;
  if (wavejit_simgpu_set_settings(&settings) != 0) throw std::runtime_error("settings");

  const std::string device = std::string("sim:") + target;
  wavejit_engine_options options{};
  options.size = sizeof options;
  options.device = device.c_str();
  options.cache_mode = "off";
  wavejit_engine* engine = nullptr;
  require(wavejit_engine_create(&options, &engine));
  const long long length = 512;
  const long long heads = 4;
  const std::vector<unsigned short> values(length * heads * head_dim, 0x3C00);
  void* memory[4];
  for (void*& block : memory) {
    require(wavejit_device_allocate(engine, values.size() * 2, &block));
    require(wavejit_device_copy_in(engine, block, values.data(), values.size() * 2));
  }
  wavejit_attention_forward_arguments call{};
  call.size = sizeof call;
  wavejit_tensor* tensors[4] = {&call.q, &call.k, &call.v, &call.o};
  for (int i = 0; i < 4; ++i) *tensors[i] = wavejit_dense_tensor(memory[i], WAVEJIT_FP16, 1, length, heads, head_dim);
  call.scale = 0.1F;
  require(wavejit_attention_forward(engine, &call, nullptr));
  require(wavejit_device_synchronize(engine));

  const wavejit_simgpu_counters before = counters();
  for (auto _ : state) {
    require(wavejit_attention_forward(engine, &call, nullptr));
    require(wavejit_device_synchronize(engine));
  }
  const wavejit_simgpu_counters after = counters();
  state.counters["wave_instructions_per_second"] = benchmark::Counter(
      static_cast<double>(after.wave_instructions - before.wave_instructions), benchmark::Counter::kIsRate);
  state.counters["matrix_share_percent"] = 100.0 *
                                           static_cast<double>(after.matrix_instructions - before.matrix_instructions) /
                                           static_cast<double>(after.wave_instructions - before.wave_instructions);
  for (void* block : memory) wavejit_device_free(engine, block);
  wavejit_engine_destroy(engine);
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
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
