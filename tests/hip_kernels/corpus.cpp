// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "corpus.h"

#include <cmath>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "targets/targets.h"

namespace wavejit::hip_kernels {

using namespace hip_abi;

constexpr std::string_view wide_waves = "w64";

std::string name_of(const Build& build) {
  return build.target + std::string(build.wide_waves ? wide_waves : "") + "_O" + std::to_string(build.optimisation);
}

void Corpus::SetUp() {
  settings_.size = sizeof settings_;
  wavejit_simgpu_get_settings(&settings_);
  int ordinal = -1;
  ASSERT_EQ(wavejit_simgpu_open_devices(GetParam().target.c_str(), 1, &ordinal), 0);
  ASSERT_EQ(hipSetDevice(ordinal), hipSuccess);
}

void Corpus::TearDown() {
  EXPECT_EQ(hipDeviceSynchronize(), hipSuccess);
  for (const auto& [file, loaded] : modules_) EXPECT_EQ(hipModuleUnload(loaded), hipSuccess);
  std::string reports(wavejit_simgpu_take_reports(nullptr, 0) + 1, 0);
  wavejit_simgpu_take_reports(reports.data(), reports.size());
  EXPECT_STREQ(reports.c_str(), "");
  // After a fault the device stays lost; the next test gets it back.
  EXPECT_EQ(hipDeviceReset(), hipSuccess);
  (void)hipGetLastError();
  EXPECT_EQ(wavejit_simgpu_set_settings(&settings_), 0);
}

void Corpus::leave_out(wavejit_simgpu_check check) {
  wavejit_simgpu_settings settings{};
  settings.size = sizeof settings;
  wavejit_simgpu_get_settings(&settings);
  settings.checks &= ~static_cast<std::uint32_t>(check);
  EXPECT_EQ(wavejit_simgpu_set_settings(&settings), 0);
}

bool Corpus::ocp_fp8() const { return targets::find_target(GetParam().target)->fp8 == targets::Fp8::ocp; }

std::uint32_t Corpus::wave_size() const {
  return GetParam().wide_waves ? 64 : static_cast<std::uint32_t>(targets::find_target(GetParam().target)->wave_size);
}
bool Corpus::has_mfma() const {
  return targets::find_target(GetParam().target)->matrix_form == targets::MatrixForm::mfma;
}

hipModule_t Corpus::module(const char* file) {
  hipModule_t& loaded = modules_[file];
  if (loaded == nullptr) {
    const std::string path = std::string(WAVEJIT_TEST_KERNELS) + "/" + file + "." + name_of(GetParam()) + ".co";
    EXPECT_EQ(hipModuleLoad(&loaded, path.c_str()), hipSuccess) << path;
  }
  return loaded;
}

void Corpus::launch_with(const char* file, const char* kernel, dim3 grid, dim3 block, unsigned lds_bytes,
                         void** arguments) {
  hipFunction_t function = nullptr;
  ASSERT_EQ(hipModuleGetFunction(&function, module(file), kernel), hipSuccess) << kernel;
  ASSERT_EQ(hipModuleLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z, lds_bytes, nullptr,
                                  arguments, nullptr),
            hipSuccess)
      << kernel;
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess) << kernel;
}

std::vector<std::uint32_t> Corpus::random_words(std::size_t count) {
  std::vector<std::uint32_t> words(count);
  for (std::uint32_t& word : words) word = static_cast<std::uint32_t>(random());
  return words;
}

std::vector<int> Corpus::random_ints(std::size_t count, int low, int high) {
  std::vector<int> values(count);
  const auto range = static_cast<std::uint64_t>(static_cast<std::int64_t>(high) - low + 1);
  for (int& value : values) value = static_cast<int>(low + static_cast<std::int64_t>(random() % range));
  return values;
}

std::vector<float> Corpus::random_floats(std::size_t count, float low, float high) {
  std::vector<float> values(count);
  for (float& value : values) {
    value = low + (high - low) * static_cast<float>(static_cast<double>(random()) / 4294967296.0);
  }
  return values;
}

void expect_close(const std::vector<float>& got, const std::vector<double>& expected, double ulps, double absolute,
                  const char* what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  std::size_t wrong = 0;
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(expected[i])) continue;
    const auto nearest = static_cast<float>(expected[i]);
    if (got[i] == nearest) continue;
    const double unit = std::nextafter(std::fabs(nearest), INFINITY) - std::fabs(nearest);
    const double error = std::fabs(got[i] - expected[i]);
    if (error <= absolute || error <= ulps * unit) {
      worst = std::max(worst, error / unit);
      continue;
    }
    if (++wrong <= 4) {
      ADD_FAILURE() << what << "[" << i << "]: " << got[i] << ", expected " << expected[i] << ", off by "
                    << error / unit << " ulp";
    }
  }
  EXPECT_EQ(wrong, 0U) << what << ": wrong elements of " << got.size();
}

namespace {
std::vector<Build> all_builds() {
  std::vector<Build> builds;
  // Those that code was compiled for (CMakeLists.txt).
  std::istringstream names(WAVEJIT_TEST_TARGETS);
  for (std::string target; names >> target;) {
    const bool wide = target.ends_with(wide_waves);
    if (wide) target.resize(target.size() - wide_waves.size());
    for (const int level : {0, 1, 2, 3}) builds.push_back({target, level, wide});
  }
  return builds;
}

INSTANTIATE_TEST_SUITE_P(Builds, Corpus, testing::ValuesIn(all_builds()),
                         [](const auto& build) { return name_of(build.param); });
}  // namespace

}  // namespace wavejit::hip_kernels
