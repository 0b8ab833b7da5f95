// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The files that ROCr reads in place of the kernel driver's: read back, against the structures that the thunk hands
// out.
#include "simgpu/front_ends/model/topology_folder.h"

#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "boards/board.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simgpu/front_ends/thunk/topology.h"
#include "simgpu/machine/device/device.h"
#include "tests/support/scratch_directory.h"

namespace wavejit::simgpu::model {
namespace {

using ::testing::HasSubstr;
using tests::ScratchDirectory;
using Properties = std::map<std::string, std::uint64_t>;

std::string text_in(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// As ROCr's thunk reads them: words and numbers, to the first that is none.
Properties properties_in(const std::string& file) {
  std::istringstream stream(text_in(file));
  Properties properties;
  std::string name;
  std::uint64_t value = 0;
  while (stream >> name >> value) properties[name] = value;
  EXPECT_TRUE(stream.eof()) << file << " holds something else behind " << name;
  return properties;
}

// All tests of a process share its first device.
constexpr const char* gpu_name = "gfx950";

TEST(TopologyFolder, HoldsTheValuesThatTheThunkHandsOut) {
  const ScratchDirectory scratch;
  const std::string folder = scratch / "topology";
  ASSERT_TRUE(write_topology(gpu_name, folder).has_value());
  thunk::NodeProperties gpu;
  ASSERT_TRUE(thunk::describe_node(1, gpu));
  const boards::Board& target = *boards::find_product(gpu_name);

  const Properties node = properties_in(folder + "/nodes/1/properties");
  EXPECT_EQ(node.at("simd_count"), gpu.simds);
  EXPECT_EQ(node.at("simd_count") / node.at("simd_per_cu"), static_cast<std::uint64_t>(target.compute_units));
  EXPECT_EQ(node.at("array_count") * node.at("cu_per_simd_array"), static_cast<std::uint64_t>(target.compute_units));
  EXPECT_EQ(node.at("gfx_target_version"), 90500U);
  EXPECT_EQ(node.at("lds_size_in_kb"), 160U);
  EXPECT_EQ(node.at("wave_front_size"), 64U);
  EXPECT_EQ(node.at("num_xcc"), 8U);
  EXPECT_EQ(node.at("max_waves_per_simd"), gpu.waves_per_simd);
  EXPECT_EQ(node.at("unique_id"), std::uint64_t{gpu.unique_id});
  EXPECT_EQ(node.at("location_id"), gpu.location_id);
  EXPECT_EQ(node.at("family_id"), gpu.family_id);
  EXPECT_EQ(node.at("max_engine_clk_fcompute"), gpu.gpu_clock_mhz);
  EXPECT_EQ(properties_in(folder + "/nodes/1/caches/1/properties").at("size"),
            static_cast<std::uint64_t>(target.l2_bytes) / 1024);
}

// Each of these ends or misleads ROCr when it is otherwise.
TEST(TopologyFolder, KeepsWhatThisDoorDemands) {
  const ScratchDirectory scratch;
  const std::string folder = scratch / "topology";
  ASSERT_TRUE(write_topology(gpu_name, folder).has_value());
  EXPECT_EQ(text_in(folder + "/generation_id"), "1\n");
  EXPECT_EQ(properties_in(folder + "/system_properties").size(), 3U);
  EXPECT_EQ(text_in(folder + "/nodes/0/gpu_id"), "0\n");
  EXPECT_EQ(text_in(folder + "/nodes/1/gpu_id"), "2\n");
  EXPECT_GT(properties_in(folder + "/nodes/0/properties").at("cpu_cores_count"), 0U);
  const Properties node = properties_in(folder + "/nodes/1/properties");
  const std::uint64_t capability = node.at("capability");
  EXPECT_EQ(capability >> 12 & 3, 2U) << "doorbells of 64 bits";
  EXPECT_EQ(capability >> 26 & 3, 3U) << "ECC, host memory by address";
  EXPECT_EQ(capability >> 29 & 3, 0U) << "no debugging";
  EXPECT_NE(node.at("drm_render_minor"), 0U);
  EXPECT_GE(node.at("num_sdma_engines"), 1U);
  EXPECT_EQ(node.at("num_sdma_xgmi_engines"), 0U);
  EXPECT_EQ(node.at("num_gws"), 0U);
  // LDS and private memory are not among the files' banks; all memory and more has room in 256 GiB of addresses.
  EXPECT_EQ(node.at("mem_banks_count"), 1U);
  const Properties bank = properties_in(folder + "/nodes/1/mem_banks/0/properties");
  EXPECT_EQ(bank.at("heap_type"), 1U);
  EXPECT_EQ(bank.at("size_in_bytes"), std::uint64_t{192} << 30);
  EXPECT_EQ(node.at("local_mem_size"), bank.at("size_in_bytes"));
  // A link to the host makes all of the memory the host's as well.
  EXPECT_EQ(node.at("io_links_count"), 1U);
  const Properties link = properties_in(folder + "/nodes/1/io_links/0/properties");
  EXPECT_EQ(link.at("type"), 2U);
  EXPECT_EQ(link.at("node_from"), 1U);
  EXPECT_EQ(link.at("node_to"), 0U);
  constexpr std::size_t page = 4096;
  for (const TopologyFile& file : topology_files(gpu_name)) EXPECT_LT(file.text.size(), page) << file.path;
}

TEST(TopologyFolder, IsWrittenOverItselfAndOverNothingElse) {
  const ScratchDirectory scratch;
  const std::string folder = scratch / "topology";
  ASSERT_TRUE(write_topology(gpu_name, folder).has_value());
  EXPECT_TRUE(write_topology(gpu_name, folder).has_value());
  const std::string other = scratch / "other";
  std::filesystem::create_directory(other);
  EXPECT_TRUE(write_topology(gpu_name, other).has_value()) << "an empty folder";
  std::filesystem::remove(other + "/wavejit_device");
  EXPECT_THAT(write_topology(gpu_name, other).error(), HasSubstr("holds other things"));
  std::ofstream(scratch / "file") << "text";
  EXPECT_THAT(write_topology(gpu_name, scratch / "file").error(), HasSubstr("file"));
  EXPECT_THAT(write_topology(gpu_name, "/proc/nothing").error(), HasSubstr("cannot be written"));
  EXPECT_THAT(write_topology(gpu_name, scratch / std::string(250, 'x')).error(), HasSubstr("up to 200"));
}

TEST(TopologyFolder, IsOfOneKnownGpu) {
  const ScratchDirectory scratch;
  for (const char* wrong : {"", "gfx950x2", "gfx950:0", "gfx9", "sim:gfx950"}) {
    const auto written = write_topology(wrong, scratch / "topology");
    ASSERT_FALSE(written.has_value()) << wrong;
    EXPECT_THAT(written.error(), HasSubstr("gfx942, gfx950, gfx1201, gfx1200"));
    EXPECT_EQ(written.error().find('\n'), std::string::npos);
  }
  EXPECT_TRUE(scratch.names().empty());
}

TEST(TopologyFolder, SaysWhoseItIs) {
  const ScratchDirectory scratch;
  ASSERT_TRUE(write_topology(gpu_name, scratch / "ours").has_value());
  EXPECT_EQ(device_of_topology(scratch / "ours").value(), gpu_name);
  EXPECT_THAT(device_of_topology("").error(), HasSubstr("HSA_MODEL_TOPOLOGY is not set"));
  EXPECT_THAT(device_of_topology(scratch / "none").error(), HasSubstr("was not written by this library"));
  std::filesystem::create_directory(scratch / "theirs");
  std::ofstream(scratch / "theirs/generation_id") << "1\n";
  EXPECT_THAT(device_of_topology(scratch / "theirs").error(), HasSubstr("--write-topology"));
  for (const char* text : {"\n", "gfx950x2\n", "gfx9\n"}) {
    std::ofstream(scratch / "ours/wavejit_device") << text;
    EXPECT_FALSE(device_of_topology(scratch / "ours").has_value()) << text;
  }
}

}  // namespace
}  // namespace wavejit::simgpu::model
