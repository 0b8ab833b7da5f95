// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writes the seed corpora: small true inputs of each target, from which fuzzing starts.   seeds <folder>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "cache/transfer.h"
#include "forge.h"
#include "targets/targets.h"
#include "templates/attention_forward/call/problem/descriptor.h"
#include "templates/attention_forward/call/spec.h"

namespace {

using namespace wavejit;

void write(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

const char* const descriptors[] = {
    "attention_forward fp16 b1 q1 k1 h1 d64",
    "attention_forward bf16 b1 q1024 k8192 h64/8 d128 causal lse",
    "attention_forward bf16 b2 q37 k333 h8/2 d128 causal=64 window=128,0 lse layout=bhsd scale=0.125 seed=7",
    "attention_forward fp16 b3 q100 k200 h4 d64 bias=bh alibi=h sink softcap=30 splits=4 invariance=none",
    "attention_forward bf16 b3 q9 k9 h4 d128 layout=packed q_lengths=1,3,9 k_lengths=5,3,9 inputs=uniform",
};

// A few points of the space: the fuzzer finds the rest.
std::vector<std::string> specs() {
  using namespace attention_forward;
  std::vector<std::string> texts;
  for (const bool odd : {false, true}) {
    for (const targets::Target& target : targets::all_targets()) {
      KernelSpec spec;
      spec.target = target.id;
      spec.lse = odd;
      spec.mask = odd ? Mask::causal : Mask::none;
      spec.pipeline = odd ? Pipeline::dualwave : Pipeline::generic;
      spec.output_store = odd ? OutputStore::permlane : OutputStore::scalar;
      spec.modifiers.set(Modifier::softcap, odd);
      spec.stagger = !odd;
      texts.push_back(to_text(spec));
    }
  }
  return texts;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("seeds <folder>\n", stderr);
    return 2;
  }
  const std::filesystem::path corpus = argv[1];
  const std::string scratch = (corpus / "scratch").string();
  std::filesystem::remove_all(corpus);
  std::filesystem::create_directories(corpus);
  std::filesystem::permissions(corpus, std::filesystem::perms::owner_all);
  {
    cache::Cache cache({.layers = {{.name = "seeds", .root = scratch, .writable = true}}});
    for (int i = 0; i < 3; ++i) {
      const std::vector<std::byte> code(40 + 100 * static_cast<std::size_t>(i), std::byte{0x7f});
      const std::vector<cache::KernelFacts> kernels(static_cast<std::size_t>(i) + 1,
                                                    {.name = "kernel", .threads = 256});
      const cache::Key key("key text " + std::to_string(i), i == 0 ? "gfx942" : "gfx950:sramecc+");
      if (!cache.publish(key, {.kernels = kernels, .code_object = code}).published) return 1;
    }
    int n = 0;
    cache.visit(
        [&](const cache::Visited& visited) { write(corpus / "entry" / std::to_string(n++), as_text(visited.file)); });
    std::filesystem::create_directories(corpus / "archive");
    if (!cache::pack_entries(cache, (corpus / "archive" / "three").string(), {})) return 1;
  }
  std::filesystem::remove_all(scratch);
  int n = 0;
  for (const char* text : descriptors) {
    write(corpus / "descriptor" / std::to_string(n), text);
    // Its kernel spec, as the router would print it, needs no device: the text of the same family.
    write(corpus / "kernel_spec" / std::to_string(n++), text);
  }
  for (const std::string& text : specs()) write(corpus / "kernel_spec" / std::to_string(n++), text);
  write(corpus / "kernel_spec" / "digest", cache::digest_of("x").hex());
  write(corpus / "kernel_spec" / "lock", "process 12 on host since 2026-01-01T00:00:00Z   \n");
  const std::string zero(1, '\0');
  write(corpus / "config" / "words",
        "sim:gfx950x2" + zero + "/tmp/x" + zero + "rw" + zero + "/image:/a.wavejit-archive" + zero + "512MiB" + zero +
            "250" + zero + "llvm" + zero + "isolated" + zero + "permlane" + zero + "debug" + zero + "dualwave" + zero +
            "on" + zero + "off" + zero + "on" + zero + "auto" + zero + "4" + zero + "/xdg" + zero + "/home/x" + zero +
            "hip:1" + zero + "/y" + zero + "ro" + zero + "/b" + zero + "none" + zero + "0" + zero + "scalar" + zero +
            "auto" + zero + "info");
  write(corpus / "config" / "empty", zero + zero + zero);
  return 0;
}
