// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copies of a HIP program, every byte checked, run by `wavejit sim` with copy engines and without (HSA_ENABLE_SDMA=0).
//
//   copies [time]        needs one GPU; with two or more also copies among them
#include <hip/hip_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace {

void check(hipError_t status, const char* call, int line) {
  if (status == hipSuccess) return;
  static_cast<void>(std::fprintf(stderr, "%d: %s: %s\n", line, call, hipGetErrorName(status)));
  std::exit(1);
}
#define CHECK(call) check((call), #call, __LINE__)

void expect(bool is_true, const std::string& what) {
  if (is_true) return;
  static_cast<void>(std::fprintf(stderr, "not true: %s\n", what.c_str()));
  std::exit(1);
}

using Bytes = std::vector<std::uint8_t>;

Bytes numbered(std::size_t count, std::uint32_t seed) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::uint8_t>(((i + seed) * 2654435761U) >> 13);
  return bytes;
}

class OnGpu {
 public:
  explicit OnGpu(std::size_t count) { CHECK(hipMalloc(reinterpret_cast<void**>(&data_), count)); }
  ~OnGpu() { CHECK(hipFree(data_)); }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;
  std::uint8_t* at(std::size_t offset) { return data_ + offset; }

 private:
  std::uint8_t* data_ = nullptr;
};

constexpr std::size_t guard = 256;  // bytes around what is copied

// Copies to the GPU, on the GPU and back, at unaligned offsets. The bytes around each copy must keep their values.
void there_and_back(std::size_t bytes, std::size_t offset) {
  const std::string what = std::to_string(bytes) + " bytes at offset " + std::to_string(offset);
  const std::size_t all = bytes + (2 * guard);
  const Bytes source = numbered(all, 1);
  OnGpu first(all);
  OnGpu second(all);
  CHECK(hipMemset(first.at(0), 0xee, all));
  CHECK(hipMemset(second.at(0), 0xdd, all));
  CHECK(hipMemcpy(first.at(offset), source.data() + 5, bytes, hipMemcpyHostToDevice));
  CHECK(hipMemcpy(second.at(offset + 2), first.at(offset), bytes, hipMemcpyDeviceToDevice));
  CHECK(hipDeviceSynchronize());
  Bytes back(all, 0xcc);
  CHECK(hipMemcpy(back.data() + 1, second.at(offset + 2), bytes, hipMemcpyDeviceToHost));
  expect(back[0] == 0xcc && back[bytes + 1] == 0xcc, what + ": the host's bytes around");
  expect(std::memcmp(back.data() + 1, source.data() + 5, bytes) == 0, what + ": there and back");
  CHECK(hipMemcpy(back.data(), second.at(0), all, hipMemcpyDeviceToHost));
  for (std::size_t i = 0; i < all; ++i) {
    const bool inside = i >= offset + 2 && i < offset + 2 + bytes;
    expect(back[i] == (inside ? source[i - offset - 2 + 5] : 0xdd), what + ": byte " + std::to_string(i));
  }
}

// More than a packet may carry (4 MiB), to memory that was not pinned before; without engines it would take long.
void in_pieces() {
  constexpr std::size_t bytes = (std::size_t{9} << 20) + 7;
  const Bytes source = numbered(bytes, 2);
  OnGpu memory(bytes);
  CHECK(hipMemcpy(memory.at(0), source.data(), bytes, hipMemcpyHostToDevice));
  Bytes back(bytes);
  CHECK(hipMemcpy(back.data(), memory.at(0), bytes, hipMemcpyDeviceToHost));
  expect(back == source, "9 MiB there and back");
}

// Pinned memory, several streams, copies behind each other.
void streams_of_copies(bool registered) {
  constexpr std::size_t bytes = (std::size_t{1} << 18) + 12;
  constexpr int count = 3;
  struct Row {
    hipStream_t stream = nullptr;
    hipEvent_t done = nullptr;
    std::uint8_t* in = nullptr;
    std::uint8_t* out = nullptr;
    Bytes own_in, own_out;
  };
  std::vector<Row> rows(count);
  std::vector<std::uint8_t*> device(count);
  for (int i = 0; i < count; ++i) {
    Row& row = rows[i];
    CHECK(hipStreamCreate(&row.stream));
    CHECK(hipEventCreate(&row.done));
    CHECK(hipMalloc(reinterpret_cast<void**>(&device[i]), 2 * bytes));
    if (registered) {
      row.own_in.resize(bytes);
      row.own_out.resize(bytes);
      row.in = row.own_in.data();
      row.out = row.own_out.data();
      CHECK(hipHostRegister(row.in, bytes, hipHostRegisterDefault));
      CHECK(hipHostRegister(row.out, bytes, hipHostRegisterDefault));
    } else {
      CHECK(hipHostMalloc(reinterpret_cast<void**>(&row.in), bytes));
      CHECK(hipHostMalloc(reinterpret_cast<void**>(&row.out), bytes));
    }
    const Bytes source = numbered(bytes, 100 + i);
    std::memcpy(row.in, source.data(), bytes);
    std::memset(row.out, 0, bytes);
  }
  for (int i = 0; i < count; ++i) {
    Row& row = rows[i];
    // Each waits for the one before: the engines wait for signals.
    if (i > 0) CHECK(hipStreamWaitEvent(row.stream, rows[i - 1].done, 0));
    CHECK(hipMemcpyAsync(device[i], row.in, bytes, hipMemcpyHostToDevice, row.stream));
    CHECK(hipMemcpyAsync(device[i] + bytes, device[i], bytes, hipMemcpyDeviceToDevice, row.stream));
    CHECK(hipMemcpyAsync(row.out, device[i] + bytes, bytes, hipMemcpyDeviceToHost, row.stream));
    CHECK(hipEventRecord(row.done, row.stream));
  }
  for (int i = 0; i < count; ++i) {
    Row& row = rows[i];
    CHECK(hipStreamSynchronize(row.stream));
    expect(std::memcmp(row.in, row.out, bytes) == 0, "copies of stream " + std::to_string(i));
    expect(numbered(bytes, 100 + i)[bytes - 1] == row.out[bytes - 1], "its last byte");
    if (registered) {
      CHECK(hipHostUnregister(row.in));
      CHECK(hipHostUnregister(row.out));
    } else {
      CHECK(hipHostFree(row.in));
      CHECK(hipHostFree(row.out));
    }
    CHECK(hipFree(device[i]));
    CHECK(hipEventDestroy(row.done));
    CHECK(hipStreamDestroy(row.stream));
  }
}

void fills() {
  constexpr std::size_t bytes = 100'003;
  OnGpu memory(bytes + 1);
  Bytes back(bytes + 1);
  CHECK(hipMemset(memory.at(0), 0x11, bytes + 1));
  CHECK(hipMemset(memory.at(3), 0x5a, bytes - 6));
  CHECK(hipMemcpy(back.data(), memory.at(0), bytes, hipMemcpyDeviceToHost));
  for (std::size_t i = 0; i < bytes; ++i)
    expect(back[i] == (i < 3 || i >= bytes - 3 ? 0x11 : 0x5a), "a filled byte " + std::to_string(i));
  CHECK(hipMemsetD32(memory.at(0), static_cast<int>(0xa1b2c3d4), bytes / 4));
  CHECK(hipMemsetD16(memory.at(40), 0x1234, 9));
  CHECK(hipMemcpy(back.data(), memory.at(0), bytes, hipMemcpyDeviceToHost));
  for (std::size_t i = 0; i < bytes / 4 * 4; ++i) {
    const bool half = i >= 40 && i < 58;
    const std::uint32_t value = half ? 0x12341234 : 0xa1b2c3d4;
    expect(back[i] == (value >> (i % 4 * 8) & 0xff), "a filled word's byte " + std::to_string(i));
  }
}

// Rows of one pitch into rows of another, there and back.
void rectangles(std::size_t width, std::size_t height) {
  const std::size_t host_pitch = width + 36;
  const std::size_t device_pitch = width + 104;
  const Bytes source = numbered(host_pitch * height, 7);
  OnGpu first(device_pitch * height);
  OnGpu second(device_pitch * height);
  CHECK(hipMemset(first.at(0), 0, device_pitch * height));
  CHECK(hipMemset(second.at(0), 0, device_pitch * height));
  Bytes back(host_pitch * height, 0xcc);
  CHECK(hipMemcpy2D(first.at(0), device_pitch, source.data(), host_pitch, width, height, hipMemcpyHostToDevice));
  CHECK(hipMemcpy2D(second.at(0), device_pitch, first.at(0), device_pitch, width, height, hipMemcpyDeviceToDevice));
  CHECK(hipMemcpy2DAsync(back.data(), host_pitch, second.at(0), device_pitch, width, height, hipMemcpyDeviceToHost,
                         nullptr));
  CHECK(hipDeviceSynchronize());
  for (std::size_t y = 0; y < height; ++y)
    for (std::size_t x = 0; x < host_pitch; ++x)
      expect(back[(y * host_pitch) + x] == (x < width ? source[(y * host_pitch) + x] : 0xcc),
             "row " + std::to_string(y) + ", byte " + std::to_string(x));
}

void among_gpus(std::size_t bytes) {
  int count = 0;
  CHECK(hipGetDeviceCount(&count));
  if (count < 2) return;
  const Bytes source = numbered(bytes, 31);
  std::uint8_t* here = nullptr;
  std::uint8_t* there = nullptr;
  CHECK(hipSetDevice(1));
  CHECK(hipMalloc(reinterpret_cast<void**>(&there), bytes));
  CHECK(hipSetDevice(0));
  CHECK(hipMalloc(reinterpret_cast<void**>(&here), bytes));
  CHECK(hipMemcpy(here, source.data(), bytes, hipMemcpyHostToDevice));
  const auto arrives = [&](const char* how) {
    Bytes back(bytes);
    CHECK(hipMemcpy(back.data(), there, bytes, hipMemcpyDeviceToHost));
    expect(back == source, std::string(how) + " of " + std::to_string(bytes) + " bytes");
    CHECK(hipMemset(there, 0, bytes));
    CHECK(hipDeviceSynchronize());
  };
  CHECK(hipMemcpyPeer(there, 1, here, 0, bytes));
  arrives("a copy between GPUs");
  CHECK(hipDeviceEnablePeerAccess(1, 0));
  CHECK(hipMemcpyPeerAsync(there, 1, here, 0, bytes, nullptr));
  CHECK(hipDeviceSynchronize());
  arrives("a copy with peer access");
  CHECK(hipDeviceDisablePeerAccess(1));
  CHECK(hipFree(here));
  CHECK(hipFree(there));
}

double milliseconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

void time_copies() {
  for (const std::size_t bytes : {std::size_t{4} << 10, std::size_t{256} << 10, std::size_t{16} << 20}) {
    OnGpu memory(bytes);
    std::uint8_t* host = nullptr;
    CHECK(hipHostMalloc(reinterpret_cast<void**>(&host), bytes));
    std::memset(host, 1, bytes);
    const auto to = [&] { CHECK(hipMemcpy(memory.at(0), host, bytes, hipMemcpyHostToDevice)); };
    const auto from = [&] { CHECK(hipMemcpy(host, memory.at(0), bytes, hipMemcpyDeviceToHost)); };
    to();
    from();
    double best_to = 1e9;
    double best_from = 1e9;
    for (int i = 0; i < 5; ++i) {
      best_to = std::min(best_to, milliseconds(to));
      best_from = std::min(best_from, milliseconds(from));
    }
    static_cast<void>(std::printf("%9zu bytes: to the GPU %8.3f ms, from it %8.3f ms\n", bytes, best_to, best_from));
    CHECK(hipHostFree(host));
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1 && std::string(arguments[1]) == "time") {
    time_copies();
    return 0;
  }
  // 16 KiB is where HIP changes from its own kernels to copy engines.
  for (const std::size_t bytes : {1U, 4U, 100U, 4096U, 16384U, 16385U, 65539U})
    for (const std::size_t offset : {0U, 1U, 6U}) there_and_back(bytes, offset);
  there_and_back((std::size_t{1} << 18) + 5, 3);
  const char* const engines = std::getenv("HSA_ENABLE_SDMA");
  if (engines == nullptr || std::string(engines) != "0") in_pieces();
  streams_of_copies(false);
  streams_of_copies(true);
  fills();
  rectangles(64, 5);
  rectangles(1021, 33);
  rectangles(20'000, 4);
  among_gpus(100);
  among_gpus((std::size_t{1} << 17) + 3);
  static_cast<void>(std::printf("every byte is right\n"));
  return 0;
}
