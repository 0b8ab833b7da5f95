// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writes the seed corpora: small true inputs of each target, from which fuzzing starts.   seeds <folder> <binary seeds>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "cache/transfer.h"
#include "codegen/wire.h"
#include "forge.h"
#include "targets/targets.h"
#include "templates/attention_backward/kernel/spec.h"
#include "templates/attention_forward/call/descriptor.h"
#include "templates/attention_forward/kernel/spec.h"
#include "templates/attention_forward/kernel/walks/block_lists/spec.h"
#include "templates/attention_latent/kernel/spec.h"
#include "templates/sparse_indexer/kernel/spec.h"

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
    "attention_forward fp16 b3 q100 k200 h4 d64 bias=bh alibi=h sink softcap=30 splits=4",
    "attention_forward bf16 b3 q9 k9 h4 d128 layout=packed q_lengths=1,3,9 k_lengths=5,3,9 inputs=uniform",
    "attention_forward bf16 b64 q1..32 k0..8192 h64/8 d128 causal layout=paged:16:hnd lse",
    "attention_forward bf16 b64 q2048 k8192 h64/8 d128 causal layout=paged:64 q_rows=2111",
    "attention_forward fp16 b2 q3 k70 h4/2 d64 layout=paged:1 k_lengths=60,70 first_keys=3,9",
    "attention_forward fp16 b2 q3 k70 h4/2 d64 layout=paged:48:vectorised_keys k_lengths=60,70",
    "attention_forward bf16 b1 q65536 k65536 h24 d128 lists=64x64:10 lists_alike",
    "attention_forward fp16 b2 q300 k700 h4/2 d64 causal lse lists=128x64:1 layout=paged:64 k_lengths=700,3",
    "attention_forward bf16 b48 q1 k131072 h32/8 d128 layout=paged:64 top_k=2048:heads:mixed",
    "attention_forward fp16 b2 q1 k4096 h16/2 d64 layout=paged:16 top_k=512:slots:heads second_top_k=128",
    "attention_latent bf16 b2 q1 k4096 h16 d576/512 layout=paged:64 top_k=512:slots second_top_k=128",
    "attention_backward bf16 b2 q257 k190 h2/1 d64 window=20,7 layout=packed q_lengths=257,70 k_lengths=100,190",
    "attention_backward bf16 b2 q100 k130 h4/2 d128 causal softcap=30 alibi=h scale=-0.1 d_lse gradients=fp32",
    "attention_backward fp16 b1 q130 k200 h2/1 d64 bias=bh d_bias=fp32 layout=bhsd seed=7",
    "attention_backward fp16 b1 q64 k64 h2 d64 sink d_sink o=fp32",
    "attention_backward bf16 b1 q64 k64 h2 d192/128 causal",
    "attention_latent bf16 b64 q1 k8192 h16 d576/512 layout=paged:64 lse",
    "attention_latent fp16 b2 q3 k130 h12 d320/256 causal=2 apart sink softcap=20 k_lengths=130,3 splits=2 scale=0.1",
    "softmax_lse fp32 b2 h8 q128 k5000 weights=bf16 causal=3 lse scale=0.5 seed=7",
    "softmax_lse fp16 b1 h2 q4 k70 weights=none window=5,0 lse k_lengths=9",
    ("cache_append bf16 b2 q7 h2 d40/64 page=32:vectorised_keys queries=3 rotary=interleaved:16 angles=fp16 "
     "elements=source,queries holes seed=8"),
    "cache_append fp16 b1 q5 h3 d64 page=16:hnd rotary=halves cache=i8 cache_scales=token",
    "attention_merge fp32 b1 q9 h3 d80 parts=12 out=fp16 stacked lse empty seed=7",
    "cache_append bf16 b1 q5 h1 d64/512 page=64 cache=e4m3 row_scales=128",
    "sparse_indexer bf16 b2 q1 k131072 h64 page=64 key_scales top=2048 scores k_lengths=17,0 seed=7",
    "sparse_indexer fp32 b1 q4 k70 top=9 causal=3 window=5,0",
};

// A few points of the space: the fuzzer finds the rest.
std::vector<std::string> specs() {
  using namespace attention_forward;
  std::vector<std::string> texts;
  for (const bool odd : {false, true}) {
    for (const targets::Target& target : targets::complete_targets()) {
      ForwardKernel spec;
      spec.target = target.id;
      spec.lse = odd;
      spec.mask = odd ? Mask::causal : Mask::none;
      spec.pipeline = odd ? Pipeline::dualwave : Pipeline::generic;
      spec.output_store = odd ? OutputStore::permlane : OutputStore::scalar;
      spec.modifiers.set(Modifier::softcap, odd);
      spec.stagger = !odd;
      spec.paged = spec.whole_tiles = odd;
      texts.push_back(to_text(spec));
      spec.pipeline = Pipeline::generic;
      spec.whole_tiles = false;
      spec.paged = spec.vectorised = true;
      texts.push_back(to_text(spec));
      spec.paged = spec.vectorised = false;
      spec.block_lists = true;
      texts.push_back(to_text(spec));
      texts.push_back(attention_block_lists::to_text(attention_block_lists::lists_of(spec)));

      attention_backward::QueryKernel query_gradient;
      query_gradient.target = target.id;
      texts.push_back(attention_backward::to_text(query_gradient));
      attention_backward::KeyKernel key_gradient;
      key_gradient.target = target.id;
      texts.push_back(attention_backward::to_text(key_gradient));

      attention_latent::WalkKernel walk;
      walk.target = target.id;
      walk.pages = odd ? attention_latent::Pages::tiles : attention_latent::Pages::dense;
      walk.parts = odd;
      texts.push_back(attention_latent::to_text(walk));
      attention_latent::CombineKernel combine;
      combine.target = target.id;
      texts.push_back(attention_latent::to_text(combine));

      sparse_indexer::ScoresKernel scores;
      scores.blocks = odd ? 2 : 1;
      scores.cut = scores.paged = odd;
      scores.target = target.id;
      texts.push_back(sparse_indexer::to_text(scores));
    }
  }
  return texts;
}

template <typename Number>
std::string little_endian(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

// A compiler's own (seeds/two_kernels.cl), alone and in bundles.
void write_code_objects(const std::filesystem::path& corpus, const std::filesystem::path& seeds) {
  const auto read = [&](const char* name) {
    std::ifstream file(seeds / name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string elf = read("two_kernels.gfx942.elf");
  write(corpus / "code_object" / "elf", elf);
  write(corpus / "offload_bundle" / "elf", elf);
  write(corpus / "offload_bundle" / "zstd", read("two_kernels.zstd.bundle"));
  const std::string id = "hipv4-amdgcn-amd-amdhsa--gfx942";
  const std::string magic = "__CLANG_OFFLOAD_BUNDLE__";
  const std::uint64_t header = magic.size() + 8 + 24 + id.size();
  write(corpus / "offload_bundle" / "plain", magic + little_endian(std::uint64_t{1}) + little_endian(header) +
                                                 little_endian(std::uint64_t{elf.size()}) +
                                                 little_endian(std::uint64_t{id.size()}) + id + elf);
  // The metadata's own bytes begin behind the note's name.
  if (const std::size_t note = elf.find("AMDGPU"); note != std::string::npos)
    write(corpus / "message_pack" / "metadata", elf.substr(note + 8, 1024));
  write(corpus / "message_pack" / "small", "\x83\xa1x\x93\x01\xcd\x12\x34\xc0\xa1y\xcb\x3f\xf0" + std::string(6, '\0') +
                                               "\xa1z\xda" + std::string(1, '\0') + "\x02hi");
}

void write_arrays(const std::filesystem::path& corpus) {
  const auto array = [](const std::string& header, const std::string& values) {
    return "\x93NUMPY\x01" + std::string(1, '\0') + little_endian(static_cast<std::uint16_t>(header.size())) + header +
           values;
  };
  const std::string shape = "{'descr': '<f2', 'fortran_order': False, 'shape': (1, 2, 1, 4), }\n";
  write(corpus / "npy" / "half", array(shape, std::string(16, 'x')));
  write(corpus / "npy" / "header", shape);
  write(corpus / "npy" / "fortran",
        array("{'descr': '>f4', 'fortran_order': True, 'shape': (1, 1, 2, 2), }\n", std::string(16, '\x3f')));
  write(corpus / "npy" / "vector",
        array("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", std::string(24, '\x40')));
}

// What servers and compilers answer; the first byte of a server's chooses the command.
void write_answers(const std::filesystem::path& corpus) {
  write(corpus / "redis" / "nil", std::string(1, '\0') + "$-1\r\n");
  write(corpus / "redis" / "string", std::string(1, '\0') + "$8\r\nWJREMOTE\r\n");
  write(corpus / "redis" / "ok", "\x01+OK\r\n");
  write(corpus / "redis" / "pong", "\x02+PONG\r\n");
  write(corpus / "redis" / "error", "\x02-NOAUTH Authentication required.\r\n");
  write(corpus / "redis" / "scan", "\x03*2\r\n$1\r\n0\r\n*2\r\n$3\r\nabc\r\n$1\r\nx\r\n");
  const auto nested = [](std::string answer) {
    for (int depth = 0; depth < 500; ++depth) answer += "*1\r\n";
    return answer + ":1\r\n";
  };
  write(corpus / "redis" / "lists_in_lists", nested(std::string(1, '\0')));
  write(corpus / "redis" / "lists_in_scan", nested("\x03*2\r\n$1\r\n0\r\n"));
  write(corpus / "redis" / "map", "\x03%1\r\n+a\r\n,1.5\r\n");
  write(corpus / "seal" / "magic", "WJREMOTE\x01" + std::string(43, '\0') + "entry");
  write(corpus / "seal" / "empty", "\0");
  codegen::Compiled compiled;
  compiled.status = codegen::Status::ok;
  compiled.detail = "a detail";
  compiled.bytes.assign(40, 'x');
  const codegen::Bytes frame = codegen::wire::encode(compiled);
  write(corpus / "wire" / "frame", {frame.begin(), frame.end()});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("seeds <folder> <folder with binary seeds>\n", stderr);
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
  write_code_objects(corpus, argv[2]);
  write_arrays(corpus);
  write_answers(corpus);
  const std::string zero(1, '\0');
  write(corpus / "config" / "words",
        "sim:gfx950x2" + zero + "/tmp/x" + zero + "rw" + zero + "llvm" + zero + "isolated" + zero + "debug" + zero +
            "dualwave stagger=off ladder=early lazy_rescale=off xcd_swizzle=on" + zero + "4" + zero +
            "/image:/a.wavejit-archive" + zero + "512MiB" + zero + "250" + zero);
  write(corpus / "config" / "pipeline", "hip:1" + zero + "/y" + zero + "ro" + zero + "comgr" + zero + "inprocess" +
                                            zero + "info" + zero + "o_store=scalar setprio=off" + zero + "auto");
  write(corpus / "config" / "empty", zero + zero + zero);
  return 0;
}
