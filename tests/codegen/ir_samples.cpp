// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ir_samples.h"

#include <format>

namespace wavejit::codegen::samples {
namespace {

const std::string attributes =
    R"(attributes #0 = { "amdgpu-flat-work-group-size"="256,256" "amdgpu-agpr-alloc"="0" "uniform-work-group-size"="true"
  "amdgpu-no-implicitarg-ptr" "amdgpu-no-workitem-id-y" "amdgpu-no-workitem-id-z" }
declare i32 @llvm.amdgcn.workitem.id.x()
)";

// A kernel whose body maps %a (loaded from the lane's element) to %r.
std::string lane_function(const std::string& body, const std::string& declarations, const std::string& name) {
  return std::format(R"(define amdgpu_kernel void @{}(ptr addrspace(1) %p) #0 {{
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %q = getelementptr i32, ptr addrspace(1) %p, i32 %t
  %a = load i32, ptr addrspace(1) %q
{}
  store i32 %r, ptr addrspace(1) %q
  ret void
}}
{}
{})",
                     name, body, declarations, attributes);
}

}  // namespace

std::string add_constant(int addend, const std::string& name) {
  return lane_function(std::format("  %r = add i32 %a, {}", addend), "", name);
}

std::string permlane32_swap() {
  return lane_function(
      "  %s = call {i32, i32} @llvm.amdgcn.permlane32.swap(i32 %a, i32 %a, i1 false, i1 false)\n"
      "  %r = extractvalue {i32, i32} %s, 0",
      "declare {i32, i32} @llvm.amdgcn.permlane32.swap(i32, i32, i1, i1)", "permlane32_swap");
}

std::string permlane64() {
  return lane_function("  %r = call i32 @llvm.amdgcn.permlane64.i32(i32 %a)",
                       "declare i32 @llvm.amdgcn.permlane64.i32(i32)", "permlane64");
}

std::string scaled_convert() {
  return lane_function(
      "  %f = bitcast i32 %a to float\n"
      "  %v = call <2 x i16> @llvm.amdgcn.cvt.scalef32.pk.fp8.f32(<2 x i16> zeroinitializer, float %f, float %f, float "
      "1.0, i1 false)\n"
      "  %r = bitcast <2 x i16> %v to i32",
      "declare <2 x i16> @llvm.amdgcn.cvt.scalef32.pk.fp8.f32(<2 x i16>, float, float, float, i1)", "scaled_convert");
}

std::string static_lds(int bytes) {
  return std::format("@tile = internal addrspace(3) global [{} x i8] poison, align 16\n", bytes) +
         lane_function(
             "  %l = getelementptr i32, ptr addrspace(3) @tile, i32 %t\n"
             "  store i32 %a, ptr addrspace(3) %l\n"
             "  call void @llvm.amdgcn.s.barrier()\n"
             "  %o = xor i32 %t, 64\n"
             "  %m = getelementptr i32, ptr addrspace(3) @tile, i32 %o\n"
             "  %r = load i32, ptr addrspace(3) %m",
             "declare void @llvm.amdgcn.s.barrier()", "static_lds");
}

std::string register_pressure(int values) {
  std::string body = "  %l = getelementptr <4 x float>, ptr addrspace(1) %p, i32 %t\n";
  for (int i = 0; i < values; ++i) {
    body += std::format(
        "  %g{0} = getelementptr i8, ptr addrspace(1) %l, i64 {1}\n"
        "  %v{0} = load volatile <4 x float>, ptr addrspace(1) %g{0}\n",
        i, i * 4096);
  }
  body += "  call void @llvm.amdgcn.s.barrier()\n";
  for (int i = 0; i < values; ++i)
    body += std::format("  store volatile <4 x float> %v{0}, ptr addrspace(1) %g{0}\n", i);
  body += "  %r = add i32 %a, 1";
  return lane_function(body, "declare void @llvm.amdgcn.s.barrier()", "register_pressure");
}

std::string scratch_array(int declared) {
  std::string text = lane_function(
      "  %s = alloca [64 x i32], align 4, addrspace(5)\n"
      "  %i = and i32 %a, 63\n"
      "  %e = getelementptr [64 x i32], ptr addrspace(5) %s, i32 0, i32 %i\n"
      "  store volatile i32 %t, ptr addrspace(5) %e\n"
      "  %j = xor i32 %i, 5\n"
      "  %f = getelementptr [64 x i32], ptr addrspace(5) %s, i32 0, i32 %j\n"
      "  %r = load volatile i32, ptr addrspace(5) %f",
      "", "scratch_array");
  if (declared == 0) return text;
  const std::string before = "attributes #0 = {";
  return text.insert(text.find(before) + before.size(), std::format(R"( "wavejit-private-bytes"="{}")", declared));
}

std::string reads_before_branch(int reads, bool dma_after) {
  std::string text = R"(@lds = external addrspace(3) global [0 x i8], align 16
define amdgpu_kernel void @reads_before_branch(ptr addrspace(1) %p, i32 %n) #0 {
entry:
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %o = shl i32 %t, 4
  %base = getelementptr i8, ptr addrspace(3) @lds, i32 %o
  br label %loop
loop:
  %i = phi i32 [0, %entry], [%next, %join]
)";
  for (int k = 0; k < reads; ++k)
    text += std::format("  %acc{0} = phi <4 x float> [zeroinitializer, %entry], [%sum{0}, %join]\n", k);
  for (int k = 0; k < reads; ++k) {
    text += std::format(
        "  %q{0} = getelementptr i8, ptr addrspace(3) %base, i32 {1}\n  %r{0} = load <4 x float>, ptr addrspace(3) "
        "%q{0}, align 16\n",
        k, k * 4096);
  }
  if (dma_after) {
    text +=
        "  call void @llvm.amdgcn.global.load.lds(ptr addrspace(1) %p, ptr addrspace(3) @lds, i32 4, i32 0, i32 0)\n";
  }
  text += R"(  call void @llvm.amdgcn.s.waitcnt(i32 49279)
  call void @llvm.amdgcn.s.barrier()
  %v = extractelement <4 x float> %acc0, i32 0
  %c = fcmp ogt float %v, 8.0
  %b = call i64 @llvm.amdgcn.ballot.i64(i1 %c)
  %u = icmp ne i64 %b, 0
  br i1 %u, label %rare, label %join
rare:
  %f = fmul float %v, 0.5
  br label %join
join:
  %m = phi float [1.0, %loop], [%f, %rare]
  %mi = insertelement <4 x float> poison, float %m, i32 0
  %ms = shufflevector <4 x float> %mi, <4 x float> poison, <4 x i32> zeroinitializer
)";
  for (int k = 0; k < reads; ++k) {
    text += std::format("  %w{0} = fmul <4 x float> %r{0}, %ms\n  %sum{0} = fadd <4 x float> %acc{0}, %w{0}\n", k);
  }
  text += R"(  call void @llvm.amdgcn.s.barrier()
  %next = add i32 %i, 1
  %again = icmp slt i32 %next, %n
  br i1 %again, label %loop, label %exit
exit:
  %g = getelementptr <4 x float>, ptr addrspace(1) %p, i32 %t
)";
  for (int k = 0; k < reads; ++k) {
    text += std::format(
        "  %g{0} = getelementptr i8, ptr addrspace(1) %g, i32 {1}\n"
        "  store <4 x float> %sum{0}, ptr addrspace(1) %g{0}\n",
        k, k * 4096);
  }
  text += R"(  ret void
}
declare void @llvm.amdgcn.s.waitcnt(i32)
declare void @llvm.amdgcn.s.barrier()
declare i64 @llvm.amdgcn.ballot.i64(i1)
declare void @llvm.amdgcn.global.load.lds(ptr addrspace(1), ptr addrspace(3), i32, i32, i32)
)";
  return text + attributes;
}

std::string inline_assembly_read() {
  return lane_function("  %o = shl i32 %t, 2\n  %r = call i32 asm sideeffect \"ds_read_b32 $0, $1\", \"=v,v\"(i32 %o)",
                       "", "inline_assembly_read");
}

std::string flat_load() {
  return R"(define amdgpu_kernel void @flat_load(ptr %p) #0 {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %q = getelementptr i32, ptr %p, i32 %t
  %a = load ptr, ptr %q
  %v = load i32, ptr %a
  store i32 %v, ptr %q
  ret void
}
)" + attributes;
}

std::string function_call() {
  return lane_function("  %r = call i32 @other(i32 %a)",
                       "define internal i32 @other(i32 %x) noinline { \n  %y = mul i32 %x, 3\n  ret i32 %y\n}",
                       "function_call");
}

}  // namespace wavejit::codegen::samples
