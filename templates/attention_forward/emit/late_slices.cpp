// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/late_slices.h"

#include "codegen/language/synchronize.h"
#include "templates/attention/emit/sequence.h"
#include "templates/attention/kernel/lds_layout.h"
#include "templates/attention_forward/kernel/arguments.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::attention_forward {

using language::Kernel;
using language::Value;

bool has_scalars_left(const ForwardKernel& spec) {
  return spec.chunk_waves != 0 && !spec.paged && !spec.first_keys && !spec.modified() && !spec.causal_flags &&
         !spec.query_fp32 && !has_kind(spec.mask);
}

bool makes_outputs_last(const Kernel& kernel, const ForwardKernel& spec) {
  if (spec.chunk_waves != 4 || spec.split_keys != 0 || !has_first_key(spec.mask)) return false;
  if (lds_layout(kernel.target()) == LdsLayout::lines) return false;
  return spec.bool_mask || (spec.paged && spec.head_dim_v <= 64);
}

void make_last_outputs(Kernel& kernel, const ForwardKernel& spec, Workgroup& workgroup) {
  if (!makes_outputs_last(kernel, spec)) return;
  const auto hidden = [&](Value* value) { return language::opaque(kernel, value); };
  workgroup.o = slice_of(kernel, o_fields, hidden(workgroup.batch), hidden(workgroup.query_head), workgroup.query_start,
                         workgroup.query_length, spec.head_dim_v * bytes_of(spec.output_type()), workgroup.group);
}

void make_later_slices(Kernel& kernel, const ForwardKernel& spec, Workgroup& workgroup) {
  Value* batch = language::opaque(kernel, workgroup.batch);
  if (!spec.paged) {
    workgroup.v = slice_of(kernel, v_fields, batch, language::opaque(kernel, workgroup.kv_head), workgroup.first_slot,
                           workgroup.key_length, spec.head_dim_v * bytes_of(spec.value_type()));
    workgroup.v.row_stride = language::opaque(kernel, workgroup.v.row_stride);
  }
  if (spec.split_keys != 0 || !has_scalars_left(spec)) return;
  workgroup.o = slice_of(kernel, o_fields, batch, workgroup.query_head, workgroup.query_start, workgroup.query_length,
                         spec.head_dim_v * bytes_of(spec.output_type()), workgroup.group);
  // Here, and not where rows end.
  language::pin_scalars(kernel, {workgroup.o.buffer.dwords(), kernel.argument_i64(offsetof(Arguments, sink))});
}

}  // namespace wavejit::attention_forward
