// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "assembled.h"

#include <format>
#include <fstream>

#include "gtest/gtest.h"
#include "isa/instruction_set.h"
#include "simgpu/process/process.h"
#include "tests/simgpu/assembler/assembler.h"
#include "tests/simgpu/assembler/linker.h"
#include "tests/support/kept.h"
#include "tests/support/scratch_directory.h"

namespace wavejit::simgpu::testing {
namespace {

using tests::ScratchDirectory;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

std::string assembly_of(const KernelSource& source) {
  // RDNA4: waves of 32 unless the directives ask for 64, no registers of accumulation, the workgroup's place in TTMP.
  const bool is_rdna4 = isa::instruction_set(source.target) == isa::InstructionSet::rdna4;
  const unsigned lanes = is_rdna4 && !source.directives.contains("wavefront_size32 0") ? 32 : 64;
  const unsigned accumulation_offset = (source.vgprs + 3) / 4 * 4;
  const std::string arguments =
      source.arguments.empty() ? "      - {.offset: 0, .size: 8, .value_kind: global_buffer}\n" : source.arguments;
  return std::format(R"(.amdhsa_code_object_version 5
.text
.globl k
.p2align 8
.type k,@function
k:
{0}
  s_endpgm
{1}
.Lend:
.size k, .Lend-k
.rodata
.p2align 6
.amdhsa_kernel k
  .amdhsa_next_free_vgpr {2}
  .amdhsa_next_free_sgpr 100
{3}
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_system_sgpr_workgroup_id_x 1
  .amdhsa_system_sgpr_workgroup_id_y 1
  .amdhsa_system_sgpr_workgroup_id_z 1
  .amdhsa_kernarg_size {4}
  .amdhsa_group_segment_fixed_size {5}
  .amdhsa_private_segment_fixed_size {6}
{7}
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--{8}
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .kernarg_segment_size: {4}
    .kernarg_segment_align: 8
    .group_segment_fixed_size: {5}
    .private_segment_fixed_size: {6}
    .wavefront_size: {12}
    .sgpr_count: 100
    .vgpr_count: {2}
    .agpr_count: {9}
    .max_flat_workgroup_size: {10}
    .args:
{11}...
.end_amdgpu_metadata
)",
                     source.body, source.after, accumulation_offset + source.agprs,
                     is_rdna4 ? "" : std::format("  .amdhsa_accum_offset {}", accumulation_offset),
                     source.kernarg_bytes, source.lds_bytes, source.private_bytes, source.directives, source.target,
                     source.agprs, source.max_threads, arguments, lanes);
}

namespace {

std::string_view features_of(const KernelSource& source) {
  if (isa::instruction_set(source.target) != isa::InstructionSet::rdna4) return {};
  const bool is_wide = source.directives.contains("wavefront_size32 0");
  return is_wide ? "+real-true16,-wavefrontsize32,+wavefrontsize64" : "+real-true16";
}

// Its dynamic form, as loaders take it.
std::vector<std::byte> linked(const std::vector<std::uint8_t>& object) {
  const ScratchDirectory folder;
  const std::string input = folder.path() + "/kernel.o";
  const std::string output = folder.path() + "/kernel.co";
  std::ofstream(input, std::ios::binary)
      .write(reinterpret_cast<const char*>(object.data()), static_cast<std::streamsize>(object.size()));
  EXPECT_EQ(test::link_shared(input, output), "");
  const std::string bytes = read_file(output);
  const auto* start = reinterpret_cast<const std::byte*>(bytes.data());
  return {start, start + bytes.size()};
}

}  // namespace

std::vector<std::byte> assemble(const KernelSource& source) {
  const std::string text = assembly_of(source);
  return tests::kept(
      "assembled by " WAVEJIT_TEST_LINKER "\n" + source.target + "\n" + text, [&]() -> std::vector<std::byte> {
        std::string error;
        const std::vector<std::uint8_t> object = test::assemble_object(source.target, text, error, features_of(source));
        EXPECT_EQ(error, "");
        if (object.empty()) return {};
        return linked(object);
      });
}

Assembled::Assembled(const KernelSource& source) {
  const auto ordinals = Device::open(source.target, 1);
  if (!ordinals) {
    ADD_FAILURE() << ordinals.error().text;
    return;
  }
  device_ = Device::find(ordinals->front());
  auto module = device_->load(assemble(source));
  if (!module) {
    ADD_FAILURE() << module.error().text;
    return;
  }
  module_ = *module;
  kernel_ = module_->find_kernel("k");
  EXPECT_NE(kernel_, nullptr);
}

Status Assembled::run(const std::vector<std::uint64_t>& arguments, std::array<std::uint32_t, 3> workgroups,
                      std::array<std::uint32_t, 3> workgroup_size, std::uint32_t dynamic_lds) const {
  if (kernel_ == nullptr) return {.code = -1, .text = "not loaded"};
  return device_->launch({.kernel = kernel_,
                          .workgroups = workgroups,
                          .workgroup_size = workgroup_size,
                          .dynamic_lds_bytes = dynamic_lds,
                          .kernarg = std::as_bytes(std::span(arguments))});
}

ScopedSettings::ScopedSettings() : before_(Process::instance().settings()) {}
ScopedSettings::~ScopedSettings() { Process::instance().set_settings(before_); }
void ScopedSettings::set(const Settings& settings) const { Process::instance().set_settings(settings); }

}  // namespace wavejit::simgpu::testing
