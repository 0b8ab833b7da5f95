// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What ROCr itself writes into copy engines' queues: rectangles, dependencies, times. Run by `wavejit sim`.
//
//   engines            every byte checked
//   engines stray      a copy from memory that the GPU does not reach: the program ends, and a line says where
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
#define CHECK(call) succeeded((call), #call)

struct Machine {
  hsa_agent_t host{};
  hsa_agent_t gpu{};
  hsa_amd_memory_pool_t host_pool{};
  hsa_amd_memory_pool_t gpu_pool{};
};

hsa_status_t take_agent(hsa_agent_t agent, void* into) {
  hsa_device_type_t type{};
  CHECK(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type));
  auto& machine = *static_cast<Machine*>(into);
  (type == HSA_DEVICE_TYPE_GPU ? machine.gpu : machine.host) = agent;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t take_pool(hsa_amd_memory_pool_t pool, void* into) {
  bool allocates = false;
  CHECK(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, &allocates));
  auto& wanted = *static_cast<hsa_amd_memory_pool_t*>(into);
  if (allocates && wanted.handle == 0) wanted = pool;
  return HSA_STATUS_SUCCESS;
}

// Memory of a pool that both reach.
class Memory {
 public:
  Memory(const Machine& machine, hsa_amd_memory_pool_t pool, std::size_t bytes) : bytes_(bytes) {
    CHECK(hsa_amd_memory_pool_allocate(pool, bytes, 0, reinterpret_cast<void**>(&data_)));
    const std::array<hsa_agent_t, 1> agents = {machine.gpu};
    CHECK(hsa_amd_agents_allow_access(1, agents.data(), nullptr, data_));
    std::memset(data_, 0, bytes);
  }
  ~Memory() { CHECK(hsa_amd_memory_pool_free(data_)); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::uint8_t* data() { return data_; }
  std::uint8_t& operator[](std::size_t i) { return data_[i]; }
  std::size_t size() const { return bytes_; }
  void number(std::uint32_t seed) {
    for (std::size_t i = 0; i < bytes_; ++i) data_[i] = static_cast<std::uint8_t>(((i + seed) * 2654435761U) >> 13);
  }

 private:
  std::uint8_t* data_ = nullptr;
  std::size_t bytes_;
};

class Signal {
 public:
  explicit Signal(hsa_signal_value_t value) { CHECK(hsa_signal_create(value, 0, nullptr, &signal_)); }
  ~Signal() { CHECK(hsa_signal_destroy(signal_)); }
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;
  hsa_signal_t get() const { return signal_; }
  void wait() const {
    constexpr std::uint64_t long_enough = 20'000'000'000;
    expect(hsa_signal_wait_scacquire(signal_, HSA_SIGNAL_CONDITION_EQ, 0, long_enough, HSA_WAIT_STATE_BLOCKED) == 0,
           "a copy's signal is 0");
  }

 private:
  hsa_signal_t signal_{};
};

struct Rectangle {
  std::uint32_t width, height, depth;  // bytes, rows, planes
  std::size_t from_pitch, to_pitch;
  hsa_dim3_t from, to;  // where it begins
};

void copy_rectangle(const Machine& machine, const Rectangle& it, bool to_gpu) {
  const std::size_t rows = 40;
  const std::size_t planes = 4;
  Memory host(machine, machine.host_pool, it.from_pitch * rows * planes);
  Memory gpu(machine, machine.gpu_pool, it.to_pitch * rows * planes);
  Memory& source = to_gpu ? host : gpu;
  Memory& target = to_gpu ? gpu : host;
  const std::size_t from_pitch = to_gpu ? it.from_pitch : it.to_pitch;
  const std::size_t to_pitch = to_gpu ? it.to_pitch : it.from_pitch;
  source.number(it.width);
  const hsa_pitched_ptr_t from = {source.data(), from_pitch, from_pitch * rows};
  const hsa_pitched_ptr_t to = {target.data(), to_pitch, to_pitch * rows};
  const hsa_dim3_t range = {it.width, it.height, it.depth};
  const Signal done(1);
  CHECK(hsa_amd_memory_async_copy_rect(&to, &it.to, &from, &it.from, &range, machine.gpu,
                                       to_gpu ? hsaHostToDevice : hsaDeviceToHost, 0, nullptr, done.get()));
  done.wait();
  for (std::size_t z = 0; z < planes; ++z)
    for (std::size_t y = 0; y < rows; ++y)
      for (std::size_t x = 0; x < to_pitch; ++x) {
        const bool inside = x >= it.to.x && x < it.to.x + it.width && y >= it.to.y && y < it.to.y + it.height &&
                            z >= it.to.z && z < it.to.z + it.depth;
        const std::size_t at = ((z - it.to.z + it.from.z) * rows + (y - it.to.y + it.from.y)) * from_pitch;
        const std::uint8_t wanted = inside ? source[at + (x - it.to.x + it.from.x)] : 0;
        expect(target[((z * rows) + y) * to_pitch + x] == wanted, "a rectangle of " + std::to_string(it.width) +
                                                                      " bytes: " + std::to_string(x) + ", " +
                                                                      std::to_string(y) + ", " + std::to_string(z));
      }
}

// A copy that waits for the host, and one that waits for it; both with their times.
void copies_in_order(const Machine& machine) {
  constexpr std::size_t bytes = 300'000;
  Memory from(machine, machine.host_pool, bytes);
  Memory between(machine, machine.gpu_pool, bytes);
  Memory back(machine, machine.host_pool, bytes);
  from.number(3);
  CHECK(hsa_amd_profiling_async_copy_enable(true));
  const Signal start(1);
  const Signal first(1);
  const Signal second(1);
  const hsa_signal_t wait_for_host = start.get();
  const hsa_signal_t wait_for_first = first.get();
  CHECK(hsa_amd_memory_async_copy(between.data(), machine.gpu, from.data(), machine.host, bytes, 1, &wait_for_host,
                                  first.get()));
  CHECK(hsa_amd_memory_async_copy(back.data(), machine.host, between.data(), machine.gpu, bytes, 1, &wait_for_first,
                                  second.get()));
  expect(hsa_signal_load_scacquire(first.get()) == 1 && back[0] == 0, "nothing moves before the host says so");
  hsa_signal_store_screlease(start.get(), 0);
  second.wait();
  expect(std::memcmp(from.data(), back.data(), bytes) == 0, "bytes there and back");
  hsa_amd_profiling_async_copy_time_t one{};
  hsa_amd_profiling_async_copy_time_t two{};
  CHECK(hsa_amd_profiling_get_async_copy_time(first.get(), &one));
  CHECK(hsa_amd_profiling_get_async_copy_time(second.get(), &two));
  expect(one.start != 0 && one.start <= one.end && one.end <= two.start && two.start <= two.end, "times in order");
}

void stray_copy(const Machine& machine) {
  std::vector<std::uint8_t> unknown(1 << 20);
  Memory gpu(machine, machine.gpu_pool, unknown.size());
  const Signal done(1);
  CHECK(hsa_amd_memory_async_copy(gpu.data(), machine.gpu, unknown.data(), machine.host, unknown.size(), 0, nullptr,
                                  done.get()));
  done.wait();
}

}  // namespace

int main(int count, char** arguments) {
  CHECK(hsa_init());
  Machine machine;
  CHECK(hsa_iterate_agents(take_agent, &machine));
  CHECK(hsa_amd_agent_iterate_memory_pools(machine.host, take_pool, &machine.host_pool));
  CHECK(hsa_amd_agent_iterate_memory_pools(machine.gpu, take_pool, &machine.gpu_pool));
  if (count > 1 && std::string(arguments[1]) == "stray") {
    stray_copy(machine);
    return 0;
  }
  for (const bool to_gpu : {true, false}) {
    copy_rectangle(machine, {64, 5, 1, 128, 256, {0, 0, 0}, {0, 0, 0}}, to_gpu);
    copy_rectangle(machine, {77, 30, 3, 132, 100, {5, 2, 1}, {9, 3, 0}}, to_gpu);
    copy_rectangle(machine, {250, 17, 2, 512, 300, {16, 1, 0}, {4, 20, 2}}, to_gpu);
    copy_rectangle(machine, {1, 1, 1, 16, 20, {3, 7, 2}, {7, 0, 3}}, to_gpu);
  }
  copies_in_order(machine);
  CHECK(hsa_shut_down());
  static_cast<void>(std::printf("every byte is right\n"));
  return 0;
}
