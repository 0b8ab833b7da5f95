// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the seeds beside this file come from:
//   clang-22 --target=amdgcn-amd-amdhsa -mcpu=gfx942 -x cl -cl-std=CL2.0 -nogpulib -O1 -c two_kernels.cl -o gfx942.o
//   ld.lld-22 -shared -s gfx942.o -o two_kernels.gfx942.elf                                   (the same for gfx950)
//   clang-offload-bundler-22 -type=o -compress -bundle-align=64 -input=/dev/null -input=two_kernels.gfx942.elf
//     -input=two_kernels.gfx950.elf -output=two_kernels.zstd.bundle
//     -targets=host-x86_64-unknown-linux-gnu,hipv4-amdgcn-amd-amdhsa--gfx942,hipv4-amdgcn-amd-amdhsa--gfx950
kernel void one(global int *p, int n) { unsigned x = __builtin_amdgcn_workitem_id_x(); p[x] = n * 3; }
kernel void two(global float *p, global const float *q) { unsigned x = __builtin_amdgcn_workitem_id_x(); __builtin_amdgcn_s_barrier(); p[x] = q[x] * 2; }
