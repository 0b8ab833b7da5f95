// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Modules, launches, what is refused before a kernel runs and what is found while it does.
#include <elf.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>

#include "front_fixture.h"
#include "wavejit/simgpu.h"

namespace wavejit::hip_kernels {
namespace {

TEST_F(Front, loads_bare_and_bundled_code_objects) {
  for (const char* which : {"gfx950", "bundle", "compressed"}) {
    const std::vector<char> bytes = code_bytes(which);
    hipModule_t module = nullptr;
    ASSERT_EQ(hipModuleLoadData(&module, bytes.data()), hipSuccess) << which;
    std::uint32_t* words = device_words(1);
    EXPECT_EQ(launch(function(module, "store"), 1, 1, nullptr, words, 123U), hipSuccess);
    EXPECT_EQ(read(words, 1)[0], 123U) << which;
    unsigned count = 0;
    EXPECT_EQ(hipModuleGetFunctionCount(&count, module), hipSuccess);
    EXPECT_EQ(count, 13U);
    EXPECT_EQ(hipFree(words), hipSuccess);
    EXPECT_EQ(hipModuleUnload(module), hipSuccess);
    EXPECT_EQ(hipModuleUnload(module), hipErrorNotFound);
  }
}

TEST_F(Front, chooses_the_code_object_of_the_device) {
  // The bundle has gfx942 for xnack+ and xnack- and gfx950; devices have no xnack.
  for (const int device : {0, 2}) {
    ASSERT_EQ(hipSetDevice(device), hipSuccess);
    for (const char* which : {"bundle", "compressed"}) {
      const hipModule_t module = load(which);
      std::uint32_t* words = device_words(1);
      EXPECT_EQ(launch(function(module, "read_module_word"), 1, 1, nullptr, words), hipSuccess);
      EXPECT_EQ(read(words, 1)[0], 77U);
      EXPECT_EQ(hipFree(words), hipSuccess);
      EXPECT_EQ(hipModuleUnload(module), hipSuccess);
    }
  }
  hipModule_t module = nullptr;
  EXPECT_EQ(hipModuleLoad(&module, code_path("gfx950").c_str()), hipErrorNoBinaryForGpu);
  EXPECT_EQ(hipModuleLoad(&module, code_path("xnack").c_str()), hipErrorNoBinaryForGpu);
  EXPECT_EQ(hipModuleLoad(&module, code_path("gfx90a").c_str()), hipErrorNoBinaryForGpu);
}

TEST_F(Front, refuses_images_that_are_none) {
  hipModule_t module = nullptr;
  EXPECT_EQ(hipModuleLoad(&module, "/no/such/file"), hipErrorFileNotFound);
  EXPECT_EQ(hipModuleLoad(&module, "/"), hipErrorInvalidValue);
  EXPECT_EQ(hipModuleLoad(nullptr, "/"), hipErrorInvalidValue);
  EXPECT_EQ(hipModuleLoadData(&module, nullptr), hipErrorInvalidValue);
  const std::vector<char> zeros(4096);
  EXPECT_EQ(hipModuleLoadData(&module, zeros.data()), hipErrorInvalidImage);
  EXPECT_EQ(hipModuleLoadData(&module, "CCOB\x09\x00\x01\x00"), hipErrorInvalidImage);
  EXPECT_EQ(module, nullptr);
}

// A size is believed only as far as what is there can unpack to it.
TEST_F(Front, takes_no_memory_for_sizes_that_only_a_header_claims) {
  constexpr std::uint64_t claimed = std::uint64_t{3} << 30;
  const auto peak = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;  // KiB
  };
  std::string image("CCOB\x03\x00\x01\x00", 8);
  const auto add = [&](std::uint64_t number) { image.append(reinterpret_cast<const char*>(&number), sizeof number); };
  const std::string block("\x01\x00\x00", 3);  // the last one, and empty
  add(32 + 5 + 8 + block.size());
  add(claimed);
  add(0);                           // a hash that nobody reads
  image += "\x28\xb5\x2f\xfd\xe0";  // zstd's frame: its content's size follows
  add(claimed);
  image += block;
  const long before = peak();
  hipModule_t module = nullptr;
  EXPECT_EQ(hipModuleLoadData(&module, image.data()), hipErrorInvalidImage);
  EXPECT_LT(peak() - before, 512 * 1024);
}

// A whole code object whose flags name no processor that is known, and whose notes name none: found by fuzzing, as an
// error without a word.
TEST_F(Front, refuses_code_objects_of_unknown_processors) {
  std::vector<char> image = code_bytes("gfx950");
  const std::uint32_t unknown = 0xb5;
  std::memcpy(image.data() + offsetof(Elf64_Ehdr, e_flags), &unknown, sizeof unknown);
  constexpr std::string_view key = "amdhsa.target";
  const auto named = std::ranges::search(image, key);
  ASSERT_FALSE(named.empty());
  *named.begin() = 'x';
  hipModule_t module = nullptr;
  EXPECT_EQ(hipModuleLoadData(&module, image.data()), hipErrorNoBinaryForGpu);
}

// Whatever is cut off or changed: an error or a module, never a crash.
TEST_F(Front, survives_damaged_images) {
  std::mt19937 random(7);  // NOLINT(bugprone-random-generator-seed): the same damage on every run
  const std::string path = std::filesystem::temp_directory_path() / ("wavejit_damaged_" + std::to_string(getpid()));
  std::size_t refused = 0;
  for (const char* which : {"gfx950", "bundle", "compressed"}) {
    const std::vector<char> whole = code_bytes(which);
    for (int round = 0; round < 60; ++round) {
      std::vector<char> damaged = whole;
      if (round % 2 == 0) {
        damaged.resize(random() % whole.size());
      } else {
        // Headers and tables are at the ends; the middle is mostly code and padding.
        for (int i = 0; i < 1 + round % 5; ++i) {
          const std::size_t at =
              random() % 3 == 0 ? random() % damaged.size() : random() % std::min<std::size_t>(damaged.size(), 600);
          damaged[at] = static_cast<char>(random());
        }
      }
      std::ofstream(path, std::ios::binary).write(damaged.data(), static_cast<std::streamsize>(damaged.size()));
      hipModule_t module = nullptr;
      const hipError_t error = hipModuleLoad(&module, path.c_str());
      if (error == hipSuccess) {
        EXPECT_EQ(hipModuleUnload(module), hipSuccess);
      } else {
        EXPECT_TRUE(error == hipErrorInvalidImage || error == hipErrorNoBinaryForGpu || error == hipErrorOutOfMemory)
            << error;
        ++refused;
      }
    }
  }
  std::filesystem::remove(path);
  EXPECT_GT(refused, 90U);  // every truncation at least
}

TEST_F(Front, finds_kernels_and_globals) {
  const hipModule_t module = load();
  hipFunction_t found = nullptr;
  EXPECT_EQ(hipModuleGetFunction(&found, module, "no_such_kernel"), hipErrorNotFound);
  EXPECT_EQ(hipModuleGetFunction(&found, module, ""), hipErrorInvalidValue);
  EXPECT_EQ(hipModuleGetFunction(&found, nullptr, "fill"), hipErrorInvalidHandle);
  EXPECT_EQ(hipModuleGetFunction(&found, module, "fill"), hipSuccess);
  EXPECT_STREQ(hipKernelNameRef(found), "fill");
  hipDeviceptr_t word = nullptr;
  std::size_t bytes = 0;
  ASSERT_EQ(hipModuleGetGlobal(&word, &bytes, module, "module_word"), hipSuccess);
  EXPECT_EQ(bytes, 4U);
  const std::uint32_t changed = 1234;
  EXPECT_EQ(hipMemcpyHtoD(word, &changed, 4), hipSuccess);
  std::uint32_t* words = device_words(1);
  EXPECT_EQ(launch(function(module, "read_module_word"), 1, 1, nullptr, words), hipSuccess);
  EXPECT_EQ(read(words, 1)[0], 1234U);
  EXPECT_EQ(hipFree(words), hipSuccess);
  EXPECT_EQ(hipModuleUnload(module), hipSuccess);
  EXPECT_EQ(launch(found, 1, 1, nullptr, words, 1U, 1U), hipErrorInvalidHandle);  // went with its module
}

TEST_F(Front, checks_launches_before_they_run) {
  const hipModule_t module = load();
  const hipFunction_t fill = function(module, "fill");
  std::uint32_t* words = device_words(256);
  std::uint32_t value = 1;
  std::uint32_t n = 256;
  void* arguments[] = {static_cast<void*>(&words), &value, &n};
  const auto with = [&](unsigned grid_x, unsigned grid_y, unsigned block_x, unsigned block_y, unsigned lds = 0) {
    return hipModuleLaunchKernel(fill, grid_x, grid_y, 1, block_x, block_y, 1, lds, nullptr, arguments, nullptr);
  };
  EXPECT_EQ(with(0, 1, 64, 1), hipErrorInvalidValue);
  EXPECT_EQ(with(1, 1, 0, 1), hipErrorInvalidValue);
  EXPECT_EQ(with(1, 1, 1025, 1), hipErrorInvalidValue);
  EXPECT_EQ(with(1, 1, 512, 3), hipErrorInvalidValue);
  EXPECT_EQ(with(1, 1, 0x10000, 0x10000), hipErrorInvalidValue);
  EXPECT_EQ(with(0x80000000U, 1, 1, 1), hipErrorInvalidValue);
  EXPECT_EQ(with(1, 65537, 1, 1), hipErrorInvalidValue);
  EXPECT_EQ(with(0x7fffffff, 1, 64, 1), hipErrorInvalidValue);  // more than 2³² threads
  EXPECT_EQ(with(1, 1, 64, 1, 161 * 1024), hipErrorInvalidValue);
  EXPECT_EQ(with(1, 1, 64, 1, 160 * 1024), hipSuccess);
  EXPECT_EQ(hipModuleLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr), hipErrorInvalidHandle);
  EXPECT_EQ(hipModuleLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), hipErrorInvalidValue);

  struct {
    std::uint32_t* to;
    std::uint32_t value;
    std::uint32_t n;
  } packed = {words, 7, 256};
  std::size_t bytes = sizeof packed;
  void* extra[] = {launch_param_buffer_pointer(), &packed, launch_param_buffer_size(), &bytes, launch_param_end()};
  EXPECT_EQ(hipModuleLaunchKernel(fill, 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr, extra), hipSuccess);
  EXPECT_EQ(read(words, 256), std::vector<std::uint32_t>(256, 7));
  EXPECT_EQ(hipModuleLaunchKernel(fill, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, extra), hipErrorInvalidValue);
  bytes = 12;
  EXPECT_EQ(hipModuleLaunchKernel(fill, 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr, extra), hipErrorInvalidValue);
  extra[4] = nullptr;
  EXPECT_EQ(hipModuleLaunchKernel(fill, 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr, extra), hipErrorInvalidValue);
  std::size_t some = 4;
  void* unwanted[] = {launch_param_buffer_pointer(), &packed, launch_param_buffer_size(), &some, launch_param_end()};
  EXPECT_EQ(hipModuleLaunchKernel(function(module, "no_arguments"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, unwanted),
            hipErrorLaunchOutOfResources);
  EXPECT_EQ(hipModuleLaunchKernel(function(module, "no_arguments"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
            hipSuccess);

  const hipFunction_t bounded = function(module, "at_most_128");
  void* one[] = {static_cast<void*>(&words)};
  EXPECT_EQ(hipModuleLaunchKernel(bounded, 1, 1, 1, 128, 1, 1, 0, nullptr, one, nullptr), hipSuccess);
  EXPECT_EQ(hipModuleLaunchKernel(bounded, 1, 1, 1, 129, 1, 1, 0, nullptr, one, nullptr), hipErrorLaunchFailure);
  const hipFunction_t big = function(module, "big_lds");
  EXPECT_EQ(hipModuleLaunchKernel(big, 1, 1, 1, 64, 1, 1, 120 * 1024, nullptr, one, nullptr), hipSuccess);
  EXPECT_EQ(hipModuleLaunchKernel(big, 1, 1, 1, 64, 1, 1, 120 * 1024 + 4, nullptr, one, nullptr),
            hipErrorLaunchOutOfResources);

  // A stream of another device, a kernel of another device.
  ASSERT_EQ(hipSetDevice(1), hipSuccess);
  EXPECT_EQ(with(1, 1, 64, 1), hipErrorInvalidDevice);
  EXPECT_EQ(hipSetDevice(0), hipSuccess);
  EXPECT_EQ(hipDeviceSynchronize(), hipSuccess);
  EXPECT_EQ(hipFree(words), hipSuccess);
  EXPECT_EQ(hipModuleUnload(module), hipSuccess);
}

// HIP's error and, on stderr, a line that says why.
TEST_F(Front, says_why_it_refuses) {
  const hipModule_t module = load();
  std::uint32_t* words = device_words(1024);
  const auto said = [](hipError_t expected, const char* why, const auto& call) {
    testing::internal::CaptureStderr();
    const hipError_t error = call();
    const std::string line = testing::internal::GetCapturedStderr();
    EXPECT_EQ(error, expected) << why;
    EXPECT_TRUE(line.starts_with(std::string("wavejit simulated GPU: ") + hipGetErrorName(expected) + ": ")) << line;
    EXPECT_NE(line.find(why), std::string::npos) << line;
    EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << line;
  };
  hipModule_t other = nullptr;
  said(hipErrorNoBinaryForGpu, "the image has code for gfx90a; the device is gfx950:", [&] {
    return hipModuleLoad(&other, code_path("gfx90a").c_str());
  });
  said(hipErrorNoBinaryForGpu, "the image has code for gfx942:xnack+; the device is gfx950:", [&] {
    return hipModuleLoad(&other, code_path("xnack").c_str());
  });
  const std::vector<char> zeros(4096);
  // As `strip` and ld.lld -s leave them. AMD's HIP refuses such an image, too.
  std::vector<char> stripped = code_bytes("gfx950");
  constexpr std::string_view strings(".strtab", 8);
  const auto name = std::ranges::search(stripped, strings);
  ASSERT_FALSE(name.empty());
  name.front() = '_';
  said(hipErrorInvalidImage, "no section .strtab", [&] { return hipModuleLoadData(&other, stripped.data()); });
  said(hipErrorInvalidImage, "no ELF code object", [&] { return hipModuleLoadData(&other, zeros.data()); });
  std::vector<char> bundle = code_bytes("bundle");
  bundle.resize(bundle.size() / 2);
  const std::string cut = std::filesystem::temp_directory_path() / ("wavejit_cut_" + std::to_string(getpid()));
  std::ofstream(cut, std::ios::binary).write(bundle.data(), static_cast<std::streamsize>(bundle.size()));
  said(hipErrorInvalidImage, "of a bundle reaches beyond it", [&] { return hipModuleLoad(&other, cut.c_str()); });
  std::filesystem::remove(cut);
  hipFunction_t found = nullptr;
  said(hipErrorNotFound, "no kernel 'flil'; the code object has ",
       [&] { return hipModuleGetFunction(&found, module, "flil"); });

  const auto launch_of = [&](const char* name, unsigned threads, unsigned lds) {
    void* arguments[] = {static_cast<void*>(&words), static_cast<void*>(&threads), static_cast<void*>(&threads)};
    return hipModuleLaunchKernel(function(module, name), 1, 1, 1, threads, 1, 1, lds, nullptr, arguments, nullptr);
  };
  said(hipErrorLaunchOutOfResources, "a workgroup on gfx950 has 163840",
       [&] { return launch_of("big_lds", 64, 121 * 1024); });
  said(hipErrorLaunchFailure, "129 threads a block; the kernel was compiled for at most 128",
       [&] { return launch_of("at_most_128", 129, 0); });
  said(hipErrorLaunchOutOfResources, "4 waves of 208 vector registers on a SIMD; gfx950 has 512",
       [&] { return launch_of("many_registers", 1024, 0); });
  EXPECT_EQ(launch_of("many_registers", 512, 0), hipSuccess);
  said(hipErrorInvalidValue, "a block has up to 1024 threads", [&] { return launch_of("no_arguments", 1025, 0); });
  said(hipErrorInvalidValue, "the kernel takes 16 bytes", [&] {
    return hipModuleLaunchKernel(function(module, "fill"), 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr, nullptr);
  });
  EXPECT_EQ(hipDeviceSynchronize(), hipSuccess);
  EXPECT_EQ(hipFree(words), hipSuccess);
  EXPECT_EQ(hipModuleUnload(module), hipSuccess);
}

// In a process of its own, which reads another limit.
void run_without_end(const char* kernel) {
  setenv("WAVEJIT_SIM_INSTRUCTION_LIMIT", "20000", 1);
  int ordinal = -1;
  if (wavejit_simgpu_open_devices("gfx950", 1, &ordinal) != 0 || hipSetDevice(ordinal) != hipSuccess) _exit(1);
  hipModule_t module = nullptr;
  hipFunction_t function = nullptr;
  std::uint32_t* flag = nullptr;
  const std::string path = std::string(WAVEJIT_TEST_KERNELS) + "/front.gfx950.co";
  if (hipModuleLoad(&module, path.c_str()) != hipSuccess) _exit(2);
  if (hipModuleGetFunction(&function, module, kernel) != hipSuccess) _exit(3);
  if (hipMalloc(reinterpret_cast<void**>(&flag), 4) != hipSuccess || hipMemset(flag, 0, 4) != hipSuccess) _exit(4);
  void* arguments[] = {static_cast<void*>(&flag)};
  if (hipModuleLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr) != hipSuccess) _exit(5);
  _exit(hipDeviceSynchronize() == hipErrorLaunchFailure ? 0 : 6);
}

TEST(FrontLimits, KernelsThatNeverEndAreStopped) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_without_end("endless"), testing::ExitedWithCode(0),
              "kernel endless.*no end after 20000 instructions");
  EXPECT_EXIT(run_without_end("deadlock"), testing::ExitedWithCode(0),
              "kernel deadlock.*no end after 20000 instructions.*waiting at the barrier");
}

TEST_F(Front, work_sizes_in_threads_and_events_of_launches) {
  const hipModule_t module = load();
  const hipFunction_t fill = function(module, "fill");
  std::uint32_t* words = device_words(256);
  std::uint32_t value = 3;
  std::uint32_t n = 256;
  void* arguments[] = {static_cast<void*>(&words), &value, &n};
  hipEvent_t start = nullptr;
  hipEvent_t stop = nullptr;
  ASSERT_EQ(hipEventCreate(&start), hipSuccess);
  ASSERT_EQ(hipEventCreate(&stop), hipSuccess);
  EXPECT_EQ(hipExtModuleLaunchKernel(fill, 256, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr, start, stop, 0),
            hipSuccess);
  EXPECT_EQ(hipEventSynchronize(stop), hipSuccess);
  float milliseconds = -1;
  EXPECT_EQ(hipEventElapsedTime(&milliseconds, start, stop), hipSuccess);
  EXPECT_GT(milliseconds, 0);
  EXPECT_EQ(read(words, 256), std::vector<std::uint32_t>(256, 3));
  EXPECT_EQ(hipExtModuleLaunchKernel(fill, 100, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr, nullptr, nullptr, 0),
            hipErrorInvalidValue);
  EXPECT_EQ(hipEventDestroy(start), hipSuccess);
  EXPECT_EQ(hipEventDestroy(stop), hipSuccess);
  EXPECT_EQ(hipFree(words), hipSuccess);
  EXPECT_EQ(hipModuleUnload(module), hipSuccess);
}

TEST_F(Front, a_fault_is_reported_later_and_stays) {
  const hipModule_t module = load();
  const hipFunction_t store = function(module, "store");
  std::uint32_t* words = device_words(16);
  // One word behind the end.
  EXPECT_EQ(launch(store, 1, 1, nullptr, words + 16, 1U), hipSuccess);
  EXPECT_EQ(hipDeviceSynchronize(), hipErrorIllegalAddress);
  EXPECT_EQ(hipGetLastError(), hipErrorIllegalAddress);
  EXPECT_EQ(launch(store, 1, 1, nullptr, words, 1U), hipErrorIllegalAddress);
  std::uint32_t word = 0;
  EXPECT_EQ(hipMemcpy(&word, words, 4, hipMemcpyDeviceToHost), hipErrorIllegalAddress);
  EXPECT_EQ(hipStreamSynchronize(nullptr), hipErrorIllegalAddress);
  std::string report(wavejit_simgpu_take_reports(nullptr, 0) + 1, 0);
  wavejit_simgpu_take_reports(report.data(), report.size());
  EXPECT_NE(report.find("global_store_dword"), std::string::npos) << report;
  EXPECT_NE(report.find("store"), std::string::npos) << report;

  ASSERT_EQ(hipSetDevice(1), hipSuccess);  // the other device is well
  EXPECT_EQ(hipDeviceSynchronize(), hipSuccess);
  ASSERT_EQ(hipSetDevice(0), hipSuccess);
  EXPECT_EQ(hipDeviceSynchronize(), hipErrorIllegalAddress);
  forget_fault();
  EXPECT_EQ(hipDeviceSynchronize(), hipSuccess);
  EXPECT_EQ(hipFree(words), hipErrorInvalidValue);  // a reset frees what the program had
  words = device_words(16);
  EXPECT_EQ(launch(store, 1, 1, nullptr, words, 42U), hipSuccess);
  EXPECT_EQ(read(words, 1)[0], 42U);
  EXPECT_EQ(hipFree(words), hipSuccess);
  EXPECT_EQ(hipModuleUnload(module), hipSuccess);
}

TEST_F(Front, memory_of_the_program_is_no_device_memory) {
  const hipModule_t module = load();
  std::uint32_t on_host = 5;
  EXPECT_EQ(launch(function(module, "store"), 1, 1, nullptr, &on_host, 1U), hipSuccess);
  EXPECT_EQ(hipDeviceSynchronize(), hipErrorIllegalAddress);
  EXPECT_EQ(on_host, 5U);
  forget_fault();
  EXPECT_EQ(hipModuleUnload(module), hipSuccess);
}

TEST_F(Front, dynamic_lds_is_as_large_as_the_launch_says) {
  const hipModule_t module = load();
  std::uint32_t* words = device_words(1);
  std::uint32_t count = 5000;
  void* arguments[] = {static_cast<void*>(&words), &count};
  EXPECT_EQ(hipModuleLaunchKernel(function(module, "dynamic_lds_sum"), 1, 1, 1, 256, 1, 1, count * 4, nullptr,
                                  arguments, nullptr),
            hipSuccess);
  EXPECT_EQ(read(words, 1)[0], 5000U * 4999 / 2);
  EXPECT_EQ(hipFree(words), hipSuccess);
  EXPECT_EQ(hipModuleUnload(module), hipSuccess);
}

// Places from LLVM's AMDGPU usage document: implicit arguments of code object version 5, AQL dispatch packet.
TEST_F(Front, tells_kernels_about_their_launch) {
  const hipModule_t module = load();
  std::uint32_t* implicit = device_words(64, 0xeeeeeeee);
  std::uint32_t* packet = device_words(16, 0xeeeeeeee);
  void* arguments[] = {static_cast<void*>(&implicit), static_cast<void*>(&packet)};
  EXPECT_EQ(
      hipModuleLaunchKernel(function(module, "launch_facts"), 3, 5, 1, 64, 2, 1, 1024, nullptr, arguments, nullptr),
      hipSuccess);
  const auto facts = read(implicit, 64);
  EXPECT_EQ(facts[0], 3U);  // block counts
  EXPECT_EQ(facts[1], 5U);
  EXPECT_EQ(facts[2], 1U);
  EXPECT_EQ(facts[3], 64U | 2U << 16);  // group sizes x and y, 16 bits each
  EXPECT_EQ(facts[4], 1U);              // group size z, remainder x
  EXPECT_EQ(facts[5], 0U);              // remainders y and z
  EXPECT_EQ(facts[10], 0U);             // global offset x
  EXPECT_EQ(facts[16] & 0xffff, 3U);    // dimensions of the grid: HIP says three always
  EXPECT_EQ(facts[30], 1024U);          // dynamic LDS
  const auto dispatch = read(packet, 16);
  EXPECT_EQ(dispatch[1], 64U | 2U << 16);  // workgroup sizes x and y
  EXPECT_EQ(dispatch[2] & 0xffff, 1U);
  EXPECT_EQ(dispatch[3], 3U * 64);  // grid sizes in threads
  EXPECT_EQ(dispatch[4], 5U * 2);
  EXPECT_EQ(dispatch[5], 1U);
  EXPECT_EQ(dispatch[7], 1024U);  // LDS of a workgroup
  EXPECT_EQ(hipFree(implicit), hipSuccess);
  EXPECT_EQ(hipFree(packet), hipSuccess);
  EXPECT_EQ(hipModuleUnload(module), hipSuccess);
}

TEST_F(Front, counts_resources_and_occupancy) {
  const hipModule_t module = load();
  const hipFunction_t big = function(module, "big_lds");
  const hipFunction_t bounded = function(module, "at_most_128");
  int value = 0;
  EXPECT_EQ(hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, big), hipSuccess);
  EXPECT_EQ(value, 40 * 1024);
  EXPECT_EQ(hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, big), hipSuccess);
  EXPECT_EQ(value, 120 * 1024);
  EXPECT_EQ(hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, bounded), hipSuccess);
  EXPECT_EQ(value, 128);
  EXPECT_EQ(hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_BINARY_VERSION, bounded), hipSuccess);
  EXPECT_EQ(value, 95);
  EXPECT_EQ(hipFuncGetAttribute(&value, static_cast<hipFunction_attribute>(99), bounded), hipErrorInvalidValue);
  EXPECT_EQ(hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_NUM_REGS, nullptr), hipErrorInvalidHandle);
  EXPECT_EQ(hipFuncSetAttribute(big, hipFuncAttributeMaxDynamicSharedMemorySize, 100 * 1024), hipSuccess);
  EXPECT_EQ(hipFuncSetAttribute(big, hipFuncAttributeMaxDynamicSharedMemorySize, 121 * 1024), hipErrorInvalidValue);
  hipFuncAttributes attributes;
  EXPECT_EQ(hipFuncGetAttributes(&attributes, big), hipErrorInvalidSymbol);  // it takes a host function

  int blocks = 0;  // 160 KiB a compute unit hold four of 40
  EXPECT_EQ(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, big, 64, 0), hipSuccess);
  EXPECT_EQ(blocks, 4);
  // 54,000 bytes are 27 granules of 2,048 out of 80: by bytes alone three would fit.
  EXPECT_EQ(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, big, 64, 54000 - 40960), hipSuccess);
  EXPECT_EQ(blocks, 2);
  EXPECT_EQ(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, bounded, 128, 0), hipSuccess);
  EXPECT_EQ(blocks, 16);  // 32 waves, two a block
  EXPECT_EQ(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, bounded, 0, 0), hipErrorInvalidValue);
  int grid = 0;
  int block = 0;
  EXPECT_EQ(hipModuleOccupancyMaxPotentialBlockSize(&grid, &block, bounded, 0, 0), hipSuccess);
  EXPECT_EQ(block, 128);
  EXPECT_EQ(grid, 16 * 256);
  EXPECT_EQ(hipModuleUnload(module), hipSuccess);
}

// The calls that a program's constructors and stubs make, made by hand.
TEST_F(Front, registers_fat_binaries) {
  const std::vector<char> bundle = code_bytes("bundle");
  struct {
    std::uint32_t magic = 0x48495046;
    std::uint32_t version = 1;
    const void* binary;
    void* unused = nullptr;
  } wrapper;
  wrapper.binary = bundle.data();
  void** handle = __hipRegisterFatBinary(&wrapper);
  static char stub = 0;
  static char shadow = 0;
  char device_name[] = "store";
  char variable_name[] = "module_word";
  __hipRegisterFunction(handle, &stub, device_name, device_name, ~0U, nullptr, nullptr, nullptr, nullptr, nullptr);
  __hipRegisterVar(handle, &shadow, variable_name, variable_name, 0, 4, 0, 0);

  std::uint32_t* words = device_words(1);
  std::uint32_t value = 11;
  void* arguments[] = {static_cast<void*>(&words), &value};
  EXPECT_EQ(__hipPushCallConfiguration({2, 1, 1}, {3, 1, 1}, 8, nullptr), hipSuccess);
  dim3 grid;
  dim3 block;
  std::size_t lds = 0;
  hipStream_t stream = stream_legacy();
  EXPECT_EQ(__hipPopCallConfiguration(&grid, &block, &lds, &stream), hipSuccess);
  EXPECT_EQ(grid.x, 2U);
  EXPECT_EQ(block.x, 3U);
  EXPECT_EQ(lds, 8U);
  EXPECT_EQ(stream, nullptr);
  EXPECT_EQ(__hipPopCallConfiguration(&grid, &block, &lds, &stream), hipErrorMissingConfiguration);
  EXPECT_EQ(hipLaunchKernel(&stub, grid, block, arguments, lds, stream), hipSuccess);
  EXPECT_EQ(read(words, 1)[0], 11U);
  EXPECT_EQ(hipLaunchKernel(&stub, {1, 1, 1}, {2000, 1, 1}, arguments, 0, nullptr), hipErrorInvalidConfiguration);
  EXPECT_EQ(hipLaunchKernel(&stub, {0, 1, 1}, {1, 1, 1}, arguments, 0, nullptr), hipErrorInvalidConfiguration);
  EXPECT_EQ(hipLaunchKernel(&value, {1, 1, 1}, {1, 1, 1}, arguments, 0, nullptr), hipErrorInvalidDeviceFunction);

  std::uint32_t got = 0;
  EXPECT_EQ(hipMemcpyFromSymbol(&got, &shadow, 4, 0, hipMemcpyDeviceToHost), hipSuccess);
  EXPECT_EQ(got, 77U);
  EXPECT_EQ(hipMemcpyFromSymbol(&got, &shadow, 4, 1, hipMemcpyDeviceToHost), hipErrorInvalidValue);
  EXPECT_EQ(hipMemcpyToSymbol(&value, &got, 4, 0, hipMemcpyHostToDevice), hipErrorInvalidSymbol);
  std::size_t bytes = 0;
  EXPECT_EQ(hipGetSymbolSize(&bytes, &shadow), hipSuccess);
  EXPECT_EQ(bytes, 4U);
  EXPECT_EQ(hipFree(words), hipSuccess);
  __hipUnregisterFatBinary(handle);
  EXPECT_EQ(hipLaunchKernel(&stub, {1, 1, 1}, {1, 1, 1}, arguments, 0, nullptr), hipErrorInvalidDeviceFunction);
  (void)hipGetLastError();
}

}  // namespace
}  // namespace wavejit::hip_kernels
