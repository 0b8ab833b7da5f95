// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/cache_append/emit/emit.h"

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "codegen/language/control.h"
#include "codegen/language/loads_first.h"
#include "templates/cache_append/emit/narrow.h"
#include "templates/cache_append/emit/rotary.h"

namespace wavejit::cache_append {
namespace {

using language::Buffer;
using language::Kernel;
using language::Value;
using language::Values;

enum class Kind : std::uint8_t { keys, values, queries };

class Emission {
 public:
  Emission(Kernel& kernel, const AppendKernel& spec) : kernel_(kernel), spec_(spec) {}

  void emit() {
    llvm::IRBuilder<>& ir = kernel_.ir();
    Value* part = kernel_.workgroup_z();
    Value* value_part = kernel_.argument_i32(offsetof(Arguments, value_part));
    Value* query_part = kernel_.argument_i32(offsetof(Arguments, query_part));
    Value* is_key = ir.CreateICmpULT(part, value_part);
    Value* is_query = ir.CreateICmpUGE(part, query_part);
    language::if_uniform(kernel_, is_key, language::Likelihood::even, [&] { emit_part(Kind::keys, part); });
    language::if_uniform(kernel_, ir.CreateNot(ir.CreateOr(is_key, is_query)), language::Likelihood::even,
                         [&] { emit_part(Kind::values, ir.CreateSub(part, value_part)); });
    if (spec_.queries != Access::none)
      language::if_uniform(kernel_, is_query, language::Likelihood::even,
                           [&] { emit_part(Kind::queries, ir.CreateSub(part, query_part)); });
  }

 private:
  // A token on its way.
  struct Moved {
    Buffer target;
    Number slot;  // but of Q
    Place place;
    Value* inside;
    Values dwords;
    Rotation::Loaded rotation;
  };

  Access target_access(Kind kind) const {
    return kind == Kind::keys ? spec_.key_access : kind == Kind::values ? spec_.value_access : spec_.queries;
  }

  // In rows of latent attention K is the rope, which stays as it is.
  bool is_narrowed(Kind kind) const {
    return is_narrow(spec_.cache) && kind != Kind::queries && !(in_rows(spec_.scales) && kind == Kind::keys);
  }

  void emit_part(Kind kind, Value* unit) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    const SideFields side = load_side(kernel_, static_cast<int>(kind));
    const Lane lane = lane_of(kernel_, side, unit);
    Value* source_piece = ir.CreateMul(side.source_dim_stride, kernel_.constant(dims_of_lane));
    Value* source_offset =
        ir.CreateAdd(ir.CreateMul(lane.head, side.source_head_stride), ir.CreateMul(lane.piece, source_piece));
    const Access access = target_access(kind);
    Value* piece_bytes = access == Access::vectors
                             ? side.target_piece_stride
                             : ir.CreateMul(side.target_piece_stride, kernel_.constant(dims_of_lane));
    Value* target_offset =
        ir.CreateAdd(ir.CreateMul(lane.head, side.target_head_stride), ir.CreateMul(lane.piece, piece_bytes));
    std::optional<Rotation> rotation;
    if (spec_.rotary != Rotary::none && kind != Kind::values) rotation.emplace(kernel_, spec_, side, lane);

    std::optional<Narrowing> narrowing;
    if (is_narrowed(kind)) narrowing.emplace(kernel_, spec_, static_cast<int>(kind), side, lane);

    std::vector<Moved> moved;
    for (int index = 0; index < tokens_of_wave; ++index) {
      const Token token = token_of(kernel_, index);
      const Buffer source = source_row(kernel_, side, token);
      const Number slot = kind == Kind::queries ? Number{} : slot_of(token);
      const Place place = kind == Kind::queries ? Place{} : place_of(kernel_, slot);
      const Buffer target = kind == Kind::queries ? row_of_token(kernel_, side, token)
                                                  : row_of_slot(kernel_, side, slot, place, token.inside);
      moved.push_back(
          {.target = target,
           .slot = slot,
           .place = place,
           .inside = token.inside,
           .dwords = load_piece(kernel_, source, spec_.source_access, source_offset, side.source_dim_stride, lane.live),
           .rotation = {}});
      if (rotation) moved.back().rotation = rotation->load(token, source, source_offset);
    }
    if (narrowing) narrowing->load();
    for (const Moved& each : moved) {
      Values dwords = rotation ? rotation->turned(each.dwords, each.rotation) : each.dwords;
      if (narrowing) dwords = narrowing->narrowed(dwords);
      store_piece(kernel_, each.target, access, dwords, target_offset, side.target_piece_stride, lane.live);
      if (narrowing) narrowing->store_scale(each.slot, each.place, each.inside);
    }
  }

  Number slot_of(const Token& token) {
    return number_of(kernel_, token, offsetof(Arguments, slots), offsetof(Arguments, slot_shift),
                     kernel_.argument_i32(offsetof(Arguments, slot_count)));
  }

  Kernel& kernel_;
  const AppendKernel& spec_;
};

std::string name_of(const AppendKernel& spec) {
  const auto name = [](const auto& names, auto value) { return std::string(families::name_in(names, value)); };
  std::string text = "cache_append_" + name(operand_types, spec.source) + "_" +
                     name(attention::data_types, spec.cache) + "_" + name(access_names, spec.source_access) + "_" +
                     name(access_names, spec.key_access) + "_" + name(access_names, spec.value_access);
  if (spec.rotary != Rotary::none) text += "_" + name(rotary_names, spec.rotary) + "_" + name(angle_names, spec.angles);
  if (spec.queries != Access::none) text += "_queries_" + name(access_names, spec.queries);
  if (spec.scales != Scales::none) text += "_" + name(scale_names, spec.scales);
  return text + "_" + spec.target;
}

}  // namespace

families::EmittedModule emit(const AppendKernel& spec, const targets::Target& target, llvm::LLVMContext& context) {
  Kernel kernel(context, target,
                {.name = name_of(spec),
                 .threads = threads,
                 .waves_per_simd = waves_per_simd(spec),
                 .argument_bytes = static_cast<int>(argument_bytes(spec)),
                 .strength_reduction = false});
  // Ids are made where they are first asked for: here, where every block can see them.
  (void)kernel.wave();
  (void)kernel.lane();
  (void)kernel.workgroup_x();
  (void)kernel.workgroup_y();
  Emission(kernel, spec).emit();
  language::loads_first(kernel);
  return kernel.finish();
}

std::span<const families::KernelEmitter> emitters() {
  static constexpr std::array all = {families::emitter_of<AppendKernel>};
  return all;
}

}  // namespace wavejit::cache_append
