// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Streams, events and the order of work.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "front_fixture.h"

namespace wavejit::hip_kernels {
namespace {

// A host function in a stream that waits until the test opens it: makes "not finished yet" certain instead of likely.
class Gate {
 public:
  static void wait(void* gate) {
    auto& self = *static_cast<Gate*>(gate);
    std::unique_lock lock(self.mutex_);
    self.opened_.wait(lock, [&] { return self.open_; });
  }
  void open() {
    const std::scoped_lock lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

TEST_F(Front, launches_return_before_the_work_is_done) {
  const hipModule_t module = load();
  std::uint32_t* words = device_words(64);
  hipStream_t stream = nullptr;
  ASSERT_EQ(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), hipSuccess);
  hipEvent_t event = nullptr;
  ASSERT_EQ(hipEventCreate(&event), hipSuccess);
  EXPECT_EQ(hipEventQuery(event), hipSuccess);  // never recorded
  Gate gate;
  ASSERT_EQ(hipLaunchHostFunc(stream, &Gate::wait, &gate), hipSuccess);
  EXPECT_EQ(launch(function(module, "fill"), 1, 64, stream, words, 5U, 64U), hipSuccess);
  EXPECT_EQ(hipEventRecord(event, stream), hipSuccess);
  EXPECT_EQ(hipStreamQuery(stream), hipErrorNotReady);
  EXPECT_EQ(hipEventQuery(event), hipErrorNotReady);
  EXPECT_EQ(hipGetLastError(), hipSuccess);  // "not ready" is no error
  float milliseconds = 0;
  EXPECT_EQ(hipEventElapsedTime(&milliseconds, event, event), hipErrorNotReady);
  // The null stream does not wait for a non-blocking one.
  EXPECT_EQ(read(words, 1)[0], 0U);
  gate.open();
  EXPECT_EQ(hipEventSynchronize(event), hipSuccess);
  EXPECT_EQ(hipEventElapsedTime(&milliseconds, event, event), hipSuccess);
  EXPECT_EQ(milliseconds, 0);
  EXPECT_EQ(hipStreamQuery(stream), hipSuccess);
  EXPECT_EQ(read(words, 64), std::vector<std::uint32_t>(64, 5));
  EXPECT_EQ(hipEventDestroy(event), hipSuccess);
  EXPECT_EQ(hipEventDestroy(event), hipErrorContextIsDestroyed);
  EXPECT_EQ(hipStreamDestroy(stream), hipSuccess);
  EXPECT_EQ(hipFree(words), hipSuccess);
  EXPECT_EQ(hipModuleUnload(module), hipSuccess);
}

TEST_F(Front, the_null_stream_waits_and_is_waited_for) {
  const hipModule_t module = load();
  const hipFunction_t append = function(module, "append");
  std::uint32_t* list = device_words(64);
  hipStream_t first = nullptr;
  hipStream_t second = nullptr;
  ASSERT_EQ(hipStreamCreate(&first), hipSuccess);
  ASSERT_EQ(hipStreamCreate(&second), hipSuccess);
  Gate gate;
  ASSERT_EQ(hipLaunchHostFunc(first, &Gate::wait, &gate), hipSuccess);
  EXPECT_EQ(launch(append, 1, 1, first, list, 1U), hipSuccess);
  EXPECT_EQ(launch(append, 1, 1, nullptr, list, 2U), hipSuccess);  // behind `first`
  EXPECT_EQ(launch(append, 1, 1, second, list, 3U), hipSuccess);   // behind the null stream
  EXPECT_EQ(hipStreamQuery(nullptr), hipErrorNotReady);
  EXPECT_EQ(hipStreamQuery(second), hipErrorNotReady);
  gate.open();
  EXPECT_EQ(hipStreamSynchronize(second), hipSuccess);
  EXPECT_EQ(read(list, 4), (std::vector<std::uint32_t>{3, 1, 2, 3}));
  EXPECT_EQ(hipStreamDestroy(first), hipSuccess);
  EXPECT_EQ(hipStreamDestroy(second), hipSuccess);
  EXPECT_EQ(hipFree(list), hipSuccess);
  EXPECT_EQ(hipModuleUnload(module), hipSuccess);
}

TEST_F(Front, streams_wait_for_events_of_others) {
  const hipModule_t module = load();
  const hipFunction_t append = function(module, "append");
  std::uint32_t* list = device_words(64);
  hipStream_t producer = nullptr;
  hipStream_t consumer = nullptr;
  ASSERT_EQ(hipStreamCreateWithFlags(&producer, hipStreamNonBlocking), hipSuccess);
  ASSERT_EQ(hipStreamCreateWithPriority(&consumer, hipStreamNonBlocking, -5), hipSuccess);
  int priority = 0;
  EXPECT_EQ(hipStreamGetPriority(consumer, &priority), hipSuccess);
  EXPECT_EQ(priority, -1);
  hipEvent_t made = nullptr;
  ASSERT_EQ(hipEventCreateWithFlags(&made, hipEventDisableTiming), hipSuccess);
  Gate gate;
  ASSERT_EQ(hipLaunchHostFunc(producer, &Gate::wait, &gate), hipSuccess);
  EXPECT_EQ(launch(append, 1, 1, producer, list, 10U), hipSuccess);
  EXPECT_EQ(hipEventRecord(made, producer), hipSuccess);
  EXPECT_EQ(hipStreamWaitEvent(consumer, made, 0), hipSuccess);
  EXPECT_EQ(launch(append, 1, 1, consumer, list, 20U), hipSuccess);
  EXPECT_EQ(hipStreamQuery(consumer), hipErrorNotReady);
  gate.open();
  EXPECT_EQ(hipStreamSynchronize(consumer), hipSuccess);
  EXPECT_EQ(read(list, 3), (std::vector<std::uint32_t>{2, 10, 20}));
  float milliseconds = 0;
  EXPECT_EQ(hipEventElapsedTime(&milliseconds, made, made), hipErrorInvalidHandle);
  EXPECT_EQ(hipEventDestroy(made), hipSuccess);
  EXPECT_EQ(hipStreamDestroy(producer), hipSuccess);
  EXPECT_EQ(hipStreamDestroy(consumer), hipSuccess);
  EXPECT_EQ(hipFree(list), hipSuccess);
  EXPECT_EQ(hipModuleUnload(module), hipSuccess);
}

TEST_F(Front, stream_order_holds_for_allocations_copies_and_callbacks) {
  const hipModule_t module = load();
  hipStream_t stream = nullptr;
  ASSERT_EQ(hipStreamCreate(&stream), hipSuccess);
  std::uint32_t* pinned = nullptr;
  ASSERT_EQ(hipHostMalloc(reinterpret_cast<void**>(&pinned), 64 * 4, 0), hipSuccess);
  pinned[0] = 0;
  std::uint32_t* words = nullptr;
  ASSERT_EQ(hipMallocAsync(reinterpret_cast<void**>(&words), 64 * 4, stream), hipSuccess);
  EXPECT_EQ(launch(function(module, "fill"), 1, 64, stream, words, 8U, 64U), hipSuccess);
  EXPECT_EQ(hipMemcpyAsync(pinned, words, 64 * 4, hipMemcpyDeviceToHost, stream), hipSuccess);
  struct Seen {
    std::atomic<std::uint32_t> word = 0;
    std::uint32_t* from;
    hipError_t status = hipErrorUnknown;
  } seen;
  seen.from = pinned;
  EXPECT_EQ(hipStreamAddCallback(
                stream,
                [](hipStream_t, hipError_t status, void* data) {
                  auto& into = *static_cast<Seen*>(data);
                  into.status = status;
                  into.word = into.from[63];
                },
                &seen, 0),
            hipSuccess);
  EXPECT_EQ(hipFreeAsync(words, stream), hipSuccess);
  EXPECT_EQ(hipStreamSynchronize(stream), hipSuccess);
  EXPECT_EQ(seen.word, 8U);
  EXPECT_EQ(seen.status, hipSuccess);
  EXPECT_EQ(hipFree(words), hipErrorInvalidValue);
  EXPECT_EQ(hipHostFree(pinned), hipSuccess);
  EXPECT_EQ(hipStreamDestroy(stream), hipSuccess);
  EXPECT_EQ(hipModuleUnload(module), hipSuccess);
}

TEST_F(Front, refuses_streams_that_are_none) {
  hipStream_t stream = nullptr;
  EXPECT_EQ(hipStreamCreateWithFlags(&stream, 8), hipErrorInvalidValue);
  EXPECT_EQ(hipStreamCreate(nullptr), hipErrorInvalidValue);
  ASSERT_EQ(hipStreamCreate(&stream), hipSuccess);
  int device = -1;
  EXPECT_EQ(hipStreamGetDevice(stream, &device), hipSuccess);
  EXPECT_EQ(device, 0);
  EXPECT_EQ(hipStreamDestroy(stream), hipSuccess);
  EXPECT_EQ(hipStreamDestroy(stream), hipErrorContextIsDestroyed);
  EXPECT_EQ(hipStreamSynchronize(stream), hipErrorContextIsDestroyed);
  EXPECT_EQ(hipStreamDestroy(nullptr), hipErrorInvalidHandle);
  EXPECT_EQ(hipEventRecord(nullptr, nullptr), hipErrorInvalidHandle);
  EXPECT_EQ(hipStreamWaitEvent(nullptr, nullptr, 0), hipErrorInvalidHandle);
  hipEvent_t event = nullptr;
  EXPECT_EQ(hipEventCreateWithFlags(&event, 0x100), hipErrorInvalidValue);
}

TEST_F(Front, no_stream_captures_until_asked) {
  hipStreamCaptureStatus status = hipStreamCaptureStatusActive;
  unsigned long long id = 1;
  EXPECT_EQ(hipStreamIsCapturing(nullptr, &status), hipSuccess);
  EXPECT_EQ(status, hipStreamCaptureStatusNone);
  status = hipStreamCaptureStatusActive;
  EXPECT_EQ(hipStreamGetCaptureInfo_v2(stream_per_thread(), &status, &id, nullptr, nullptr, nullptr), hipSuccess);
  EXPECT_EQ(status, hipStreamCaptureStatusNone);
}

TEST_F(Front, every_thread_has_a_default_stream_of_its_own) {
  const hipModule_t module = load();
  const hipFunction_t append = function(module, "append");
  std::uint32_t* list = device_words(64);
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (std::uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([=] {
      for (std::uint32_t i = 0; i < 5; ++i) {
        EXPECT_EQ(launch(append, 1, 1, stream_per_thread(), list, t), hipSuccess);
      }
      EXPECT_EQ(hipStreamSynchronize(stream_per_thread()), hipSuccess);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read(list, 1)[0], 20U);
  EXPECT_EQ(hipFree(list), hipSuccess);
  EXPECT_EQ(hipModuleUnload(module), hipSuccess);
}

TEST_F(Front, many_threads_use_everything_at_once) {
  const hipModule_t module = load();
  const hipFunction_t fill = function(module, "fill");
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (std::uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([=] {
      for (std::uint32_t i = 0; i < 6; ++i) {
        hipStream_t stream = nullptr;
        EXPECT_EQ(hipStreamCreateWithFlags(&stream, i % 2 == 0 ? hipStreamDefault : hipStreamNonBlocking), hipSuccess);
        std::uint32_t* words = nullptr;
        EXPECT_EQ(hipMalloc(reinterpret_cast<void**>(&words), 4096), hipSuccess);
        EXPECT_EQ(launch(fill, 2, 128, stream, words, t * 100 + i, 1024U), hipSuccess);
        std::vector<std::uint32_t> got(1024);
        EXPECT_EQ(hipMemcpyAsync(got.data(), words, 4096, hipMemcpyDeviceToHost, stream), hipSuccess);
        EXPECT_EQ(hipStreamSynchronize(stream), hipSuccess);
        EXPECT_EQ(got, std::vector<std::uint32_t>(1024, t * 100 + i));
        EXPECT_EQ(hipFree(words), hipSuccess);
        EXPECT_EQ(hipStreamDestroy(stream), hipSuccess);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(hipModuleUnload(module), hipSuccess);
}

}  // namespace
}  // namespace wavejit::hip_kernels
