// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every registered mnemonic has a record that says all there is to say of its class: whoever adds a row and leaves a
// fact out hears of it here.
#include <gtest/gtest.h>

#include <format>
#include <functional>
#include <string>
#include <vector>

#include "simgpu/machine/decode/registry.h"
#include "simgpu/machine/device/rooms.h"
#include "targets/targets.h"

namespace wavejit::simgpu::test {
namespace {

// What is missing or does not fit; empty for a whole record.
std::string fault_of(const Record& record) {
  const auto counts = [&] { return record.counts_vector || record.counts_local; };
  switch (record.instruction_class) {
    case InstructionClass::scalar:
      if (record.kind != IssueKind::scalar) return "a scalar instruction that is not issued as one";
      if (record.changes_exec && !record.writes_scc) return "EXEC changes and SCC does not say whether it is zero";
      return {};
    case InstructionClass::vector:
      if (record.kind > IssueKind::multiply || record.kind == IssueKind::matrix) return "no rate";
      if (record.space != Space::none || counts()) return "a vector instruction that touches memory";
      if (record.action == Action::none && record.steering != 0 && record.flow != Flow::move) return "steers nothing";
      return {};
    case InstructionClass::matrix:
      if (record.shape == nullptr) return "no shape";
      if (record.kind != IssueKind::matrix || record.action != Action::matrix) return "not treated as a matrix product";
      if (!record.all_lanes) return "minds EXEC";
      return {};
    case InstructionClass::memory:
      if (record.space == Space::none || record.space == Space::lds) return "no memory";
      if (!record.loads && !record.stores) return "neither loads nor stores";
      if (record.bytes == 0) return "no width";
      if (!counts()) return "nobody can wait for it";
      if (record.to_lds && record.kind != IssueKind::lds_dma) return "an LDS DMA that is issued as a load";
      return {};
    case InstructionClass::lds:
      if (!record.counts_local) return "nobody can wait for it";
      if (record.space == Space::none) return record.flow == Flow::move ? "" : "neither memory nor a move";
      if (record.space != Space::lds) return "another memory";
      if (record.bytes == 0 || (!record.loads && !record.stores)) return "moves nothing";
      if (record.elements == 2 && record.stride == 0) return "two places without a distance";
      return {};
    case InstructionClass::control:
      switch (record.action) {
        case Action::branch:
        case Action::branch_scc:
        case Action::branch_vcc:
        case Action::branch_exec:
        case Action::call:
        case Action::jump:
        case Action::end:
        case Action::barrier:
          return record.ends_block ? "" : "control goes elsewhere and the block goes on";
        case Action::wait:
          return record.kind == IssueKind::wait ? "" : "a wait that is issued as something else";
        default:
          return {};
      }
  }
  return "no class";
}

void each_record(const std::function<void(const std::string&, const Record&)>& see) {
  for (const targets::Target& target : targets::complete_targets()) {
    Registry registry(target);
    register_rooms(registry);
    EXPECT_GT(registry.size(), 900u) << target.id;
    for (const std::string_view mnemonic : registry.mnemonics())
      see(std::format("{} {}", target.id, mnemonic), registry.find(mnemonic)->record);
  }
}

TEST(Records, SayAllThatTheirClassNeeds) {
  each_record([](const std::string& name, const Record& record) { EXPECT_EQ(fault_of(record), "") << name; });
}

// The rules above can fail: each takes a fact from a whole record.
TEST(Records, AFactLeftOutIsFound) {
  struct Spoilt {
    const char* mnemonic;
    void (*spoil)(Record&);
  };
  const std::vector<Spoilt> all = {
      {"s_add_u32", [](Record& record) { record.kind = IssueKind::plain; }},
      {"s_and_saveexec_b64", [](Record& record) { record.writes_scc = false; }},
      {"v_add_f32", [](Record& record) { record.kind = IssueKind::scalar; }},
      {"v_mfma_f32_32x32x8_f16", [](Record& record) { record.shape = nullptr; }},
      {"global_load_dword", [](Record& record) { record.bytes = 0; }},
      {"global_load_dword", [](Record& record) { record.counts_vector = false; }},
      {"ds_read2_b32", [](Record& record) { record.stride = 0; }},
      {"ds_bpermute_b32", [](Record& record) { record.flow = Flow::arithmetic; }},
      {"s_cbranch_scc0", [](Record& record) { record.ends_block = false; }},
      {"s_waitcnt", [](Record& record) { record.kind = IssueKind::scalar; }},
  };
  Registry registry(*targets::find_target("gfx950"));
  register_rooms(registry);
  for (const Spoilt& spoilt : all) {
    const Registry::Entry* entry = registry.find(spoilt.mnemonic);
    ASSERT_NE(entry, nullptr) << spoilt.mnemonic;
    Record record = entry->record;
    spoilt.spoil(record);
    EXPECT_NE(fault_of(record), "") << spoilt.mnemonic;
  }
}

// Facts in which a mistake would go unnoticed, by instruction.
TEST(Records, OfInstructionsThatDiffer) {
  Registry registry(*targets::find_target("gfx950"));
  register_rooms(registry);
  const auto record = [&](const char* mnemonic) { return registry.find(mnemonic)->record; };
  EXPECT_EQ(record("v_exp_f32").kind, IssueKind::transcendental);
  EXPECT_EQ(record("v_rcp_f64").kind, IssueKind::transcendental);
  EXPECT_EQ(record("v_cvt_f32_f64").kind, IssueKind::double_precision);
  EXPECT_EQ(record("v_pk_fma_f32").kind, IssueKind::packed);
  EXPECT_EQ(record("v_cvt_pk_f32_fp8").kind, IssueKind::plain);
  EXPECT_EQ(record("v_addc_co_u32").destinations, 2);
  EXPECT_EQ(record("v_cmpx_eq_u32").destinations, 1);
  EXPECT_TRUE(record("v_cmpx_eq_u32").compares_equal);
  EXPECT_TRUE(record("v_fma_mix_f32").op_sel_hi_is_zero);
  EXPECT_EQ(record("v_dot4_i32_i8").result, ResultKind::dot_product);
  EXPECT_EQ(record("v_cvt_scalef32_pk_fp4_f32").result, ResultKind::partial);
  EXPECT_EQ(record("ds_read2st64_b64").stride, 512);
  EXPECT_EQ(record("ds_read_u8_d16_hi").half, RegisterHalf::high);
  EXPECT_TRUE(record("flat_store_dword").counts_local);
  EXPECT_FALSE(record("global_store_dword").counts_local);
  EXPECT_FALSE(record("s_mulk_i32").writes_scc);
  EXPECT_TRUE(record("s_addk_i32").writes_scc);
}

}  // namespace
}  // namespace wavejit::simgpu::test
