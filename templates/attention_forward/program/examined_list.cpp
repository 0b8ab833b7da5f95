// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/examined_list.h"

namespace wavejit::attention_forward::program {
namespace {

std::vector<std::string> with_name(std::vector<std::string> words) {
  for (std::string& text : words) text.insert(0, "attention_forward ");
  return words;
}

}  // namespace

std::vector<std::string> examined_list() {
  return with_name({
      "bf16 b1 q1 k64 h2 d64",
      "bf16 b2 q1 k300 h16/2 d128 lse",
      "bf16 b1 q1 k700 h8/2 d128 splits=2",
      "bf16 b1 q256 k256 h4/2 d128 causal lse",
      "fp16 b2 q100 k130 h8/2 d64 window=40,17 lse",
      "fp16 b1 q70 k300 h4/2 d128 causal lse softcap=5 bias=bh alibi=h sink",
      "bf16 b3 q300 k330 h4/2 d128 causal lse layout=packed q_lengths=3,300,100 k_lengths=130,330,0",
      "bf16 b1 q300 k330 h4/2 d128 splits=3 lse",
      "bf16 b3 q1 k300 h8/2 d128 lse layout=paged:16 k_lengths=77,300,0",
      "fp16 b2 q70 k200 h4/2 d64 causal lse layout=paged:48:hnd q_lengths=70,3 k_lengths=130,200",
      "bf16 b3 q1 k300 h8/2 d128 lse layout=paged:1 k_lengths=77,300,0",
      "bf16 b3 q1 k300 h8/2 d128 lse layout=paged:16:vectorised k_lengths=77,300,0",
      "fp16 b2 q70 k200 h4/2 d64 causal lse layout=paged:48:vectorised_keys q_lengths=70,3 k_lengths=130,200",
      "fp16 b2 q3 k200 h4/2 d64 causal lse first_keys=180,13",
      "bf16 b1 q200 k1300 h2/1 d64 lse lists=64x64:20",
      "fp16 b1 q300 k700 h4/2 d128 causal lse lists=128x128:30 lists_alike",
      // 8 bits: floats are of one target each.
      "bf16 b2 q3 k300 h8/2 d128 causal lse layout=paged:16 k_lengths=300,77 cache=e4m3 cache_scales=h",
      "bf16 b2 q3 k300 h8/2 d128 causal lse layout=paged:16 k_lengths=300,77 cache=e4m3_fnuz cache_scales=h",
      "bf16 b2 q3 k300 h8/2 d128 causal lse layout=paged:16 k_lengths=300,77 cache=i8 cache_scales=token",
      "bf16 b1 q256 k300 h4/2 d128 causal queries=e4m3 lse",
      "bf16 b1 q130 k200 h4/2 d64 qk=i8 lse",
  });
}

std::vector<std::string> timed_list() {
  return with_name({
      "bf16 b4 q4096 k4096 h32/8 d128",
      "bf16 b4 q4096 k4096 h32/8 d128 causal",
      "fp16 b4 q4096 k4096 h32/8 d128",
      "bf16 b4 q4096 k4096 h32/8 d64",
      "bf16 b1 q16384 k16384 h16/2 d128",
      "bf16 b1 q16384 k16384 h16/2 d128 causal",
      "bf16 b1 q16384 k16384 h16/2 d64 causal",
      "bf16 b4 q4096 k4096 h32/8 d128 causal softcap=30",
      "bf16 b16 q1 k8192 h32/8 d128",
      "bf16 b1 q1 k131072 h64/8 d128 splits=32",
  });
}

}  // namespace wavejit::attention_forward::program
