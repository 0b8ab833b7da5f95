// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What AMD's own ROCr says of simulated GPUs: a program against libhsa-runtime64, run by `wavejit sim`.
//
//   agents <ISA> <number of GPUs> <compute units> [model]
//
// model: through ROCr's interface for models, which asks the kernel's graphics driver for a name, has no clock and opens
// once in a process.
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

void expect(bool is_true, const std::string& what) {
  if (is_true) return;
  static_cast<void>(std::fprintf(stderr, "not true: %s\n", what.c_str()));
  std::exit(1);
}

void succeeded(hsa_status_t status, const char* call) {
  expect(status == HSA_STATUS_SUCCESS, std::string(call) + " answers " + std::to_string(status));
}

template <typename Value>
Value info(hsa_agent_t agent, int what) {
  Value value{};
  succeeded(hsa_agent_get_info(agent, static_cast<hsa_agent_info_t>(what), &value), "hsa_agent_get_info");
  return value;
}

hsa_status_t add_gpu(hsa_agent_t agent, void* gpus) {
  if (info<hsa_device_type_t>(agent, HSA_AGENT_INFO_DEVICE) == HSA_DEVICE_TYPE_GPU) {
    static_cast<std::vector<hsa_agent_t>*>(gpus)->push_back(agent);
  }
  return HSA_STATUS_SUCCESS;
}

// A barrier packet through a queue, completed by the packet processor.
void run_barrier(hsa_agent_t gpu) {
  hsa_queue_t* queue = nullptr;
  succeeded(hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_SINGLE, nullptr, nullptr, UINT32_MAX, UINT32_MAX, &queue),
            "hsa_queue_create");
  hsa_signal_t done{};
  succeeded(hsa_signal_create(1, 0, nullptr, &done), "hsa_signal_create");
  const std::uint64_t index = hsa_queue_add_write_index_screlease(queue, 1);
  auto* const packet = static_cast<hsa_barrier_and_packet_t*>(queue->base_address) + (index % queue->size);
  packet->completion_signal = done;
  constexpr std::uint16_t header = HSA_PACKET_TYPE_BARRIER_AND << HSA_PACKET_HEADER_TYPE;
  __atomic_store_n(&packet->header, header, __ATOMIC_RELEASE);
  hsa_signal_store_screlease(queue->doorbell_signal, static_cast<hsa_signal_value_t>(index));
  constexpr std::uint64_t long_enough = 10'000'000'000;
  expect(hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_EQ, 0, long_enough, HSA_WAIT_STATE_BLOCKED) == 0,
         "the barrier's signal is 0");
  succeeded(hsa_signal_destroy(done), "hsa_signal_destroy");
  succeeded(hsa_queue_destroy(queue), "hsa_queue_destroy");
}

}  // namespace

int main(int count, char** arguments) {
  expect(count == 4 || count == 5, "agents <ISA> <number of GPUs> <compute units> [model]");
  const bool by_model = count == 5 && std::string(arguments[4]) == "model";
  succeeded(hsa_init(), "hsa_init");
  std::vector<hsa_agent_t> gpus;
  succeeded(hsa_iterate_agents(add_gpu, &gpus), "hsa_iterate_agents");
  expect(std::to_string(gpus.size()) == arguments[2], "the number of GPUs: " + std::to_string(gpus.size()));
  for (const hsa_agent_t gpu : gpus) {
    const auto name = info<std::array<char, 64>>(gpu, HSA_AGENT_INFO_NAME);
    expect(std::string(name.data()) == arguments[1], std::string("its name: ") + name.data());
    const auto product = info<std::array<char, 64>>(gpu, HSA_AMD_AGENT_INFO_PRODUCT_NAME);
    expect(by_model || std::strstr(product.data(), "simulated") != nullptr,
           std::string("its product: ") + product.data());
    const auto units = info<std::uint32_t>(gpu, HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT);
    expect(std::to_string(units) == arguments[3], "its compute units: " + std::to_string(units));
    expect(info<std::uint32_t>(gpu, HSA_AGENT_INFO_WAVEFRONT_SIZE) == 64, "waves of 64");
    expect(info<std::uint32_t>(gpu, HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU) == 4, "4 SIMDs a compute unit");
    expect(info<std::uint32_t>(gpu, HSA_AMD_AGENT_INFO_NUM_XCC) == 8, "8 XCCs");
    const std::uint64_t clock_hz = by_model ? 0 : 100'000'000;
    expect(info<std::uint64_t>(gpu, HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY) == clock_hz, "a clock of 100 MHz, or none");
    run_barrier(gpu);
  }
  succeeded(hsa_shut_down(), "hsa_shut_down");
  if (!by_model) {
    // Once more in the same process.
    succeeded(hsa_init(), "the second hsa_init");
    succeeded(hsa_shut_down(), "the second hsa_shut_down");
  }
  static_cast<void>(std::printf("%zu GPUs\n", gpus.size()));
  return 0;
}
