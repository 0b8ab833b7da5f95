// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attention that Triton compiled (bench/triton_attention.py), on the simulated GPU: against float64, whatever the order
// of waves, the arrival of memory results and the noise in registers and LDS, and with nothing for the checks to
// report.
//
// The first argument behind GoogleTest's own is the folder into which compile.py has written code objects and what
// Triton says of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hip_abi/hip_functions.h"
#include "support/attention_reference.h"
#include "support/attention_run.h"
#include "wavejit/simgpu.h"

namespace wavejit::tests {
namespace {

using namespace hip_abi;

// What Triton's own launcher would know of a kernel.
struct Compiled {
  std::string name;  // of the case, for messages
  std::string code_object;
  std::string kernel;
  std::string target;
  bool causal = false;
  unsigned head_dim = 0;
  unsigned rows = 0;  // of a workgroup
  unsigned threads = 0;
  unsigned lds_bytes = 0;
  std::size_t global_scratch_bytes = 0;  // of a workgroup
  std::size_t profile_scratch_bytes = 0;
  std::vector<std::string> arguments;  // in Triton's order; two pointers to scratch memory follow
};

Compiled read_compiled(const std::filesystem::path& path) {
  const auto said = nlohmann::json::parse(std::ifstream(path));
  return {.name = path.stem(),
          .code_object = std::filesystem::path(path).replace_extension(".co"),
          .kernel = said.at("kernel"),
          .target = said.at("target"),
          .causal = said.at("causal"),
          .head_dim = said.at("head_dim"),
          .rows = said.at("rows"),
          .threads = said.at("threads"),
          .lds_bytes = said.at("lds_bytes"),
          .global_scratch_bytes = said.at("global_scratch_bytes"),
          .profile_scratch_bytes = said.at("profile_scratch_bytes"),
          .arguments = said.at("arguments")};
}

std::string take_reports() {
  std::string text(wavejit_simgpu_take_reports(nullptr, 0) + 1, 0);
  text.resize(wavejit_simgpu_take_reports(text.data(), text.size()));
  return text;
}

// Device memory that frees itself.
class Memory {
 public:
  explicit Memory(std::size_t bytes) {
    if (bytes != 0) EXPECT_EQ(hipMalloc(&data_, bytes), hipSuccess);
  }
  explicit Memory(const std::vector<std::uint16_t>& values) : Memory(values.size() * 2) {
    EXPECT_EQ(hipMemcpy(data_, values.data(), values.size() * 2, hipMemcpyHostToDevice), hipSuccess);
  }
  ~Memory() {
    if (data_ != nullptr) (void)hipFree(data_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  void* get() const { return data_; }
  std::vector<std::uint16_t> read(std::size_t count) const {
    std::vector<std::uint16_t> values(count);
    EXPECT_EQ(hipMemcpy(values.data(), data_, count * 2, hipMemcpyDeviceToHost), hipSuccess);
    return values;
  }

 private:
  void* data_ = nullptr;
};

std::vector<std::uint16_t> stored(const std::vector<float>& values) {
  std::vector<std::uint16_t> bits(values.size());
  std::ranges::transform(values, bits.begin(), [](float value) { return to_storage(Storage::bf16, value); });
  return bits;
}

class Kernel {
 public:
  explicit Kernel(const Compiled& compiled) : compiled_(compiled) {
    EXPECT_EQ(hipModuleLoad(&module_, compiled.code_object.c_str()), hipSuccess) << compiled.code_object;
    EXPECT_EQ(hipModuleGetFunction(&function_, module_, compiled.kernel.c_str()), hipSuccess);
  }
  ~Kernel() { EXPECT_EQ(hipModuleUnload(module_), hipSuccess); }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  AttentionOutput run(const AttentionInputs& inputs) const {
    const Memory q(stored(inputs.q));
    const Memory k(stored(inputs.k));
    const Memory v(stored(inputs.v));
    const Memory o(inputs.q.size() * 2);
    const unsigned grid_rows = (unsigned(inputs.query_length) + compiled_.rows - 1) / compiled_.rows;
    const std::size_t workgroups = std::size_t(grid_rows) * inputs.query_heads;
    const Memory global_scratch(compiled_.global_scratch_bytes * workgroups);
    const Memory profile_scratch(compiled_.profile_scratch_bytes * workgroups);

    std::vector<void*> pointers;
    pointers.reserve(compiled_.arguments.size() + 2);
    std::vector<int> numbers(compiled_.arguments.size());
    float scale = static_cast<float>(inputs.scale * std::log2(std::exp(1.0)));
    void* const tensors[] = {q.get(), k.get(), v.get(), o.get()};
    for (std::size_t i = 0; i < compiled_.arguments.size(); ++i) {
      const std::string& name = compiled_.arguments[i];
      const std::size_t tensor = std::string("qkvo").find(name[0]);
      const bool of_tensor = name.size() == 1 || name.ends_with("_head") || name.ends_with("_row");
      const int row = inputs.head_dim * (name[0] == 'k' || name[0] == 'v' ? inputs.kv_heads : inputs.query_heads);
      pointers.push_back(&numbers[i]);
      if (of_tensor && name.size() == 1) {
        pointers.back() = const_cast<void**>(&tensors[tensor]);
      } else if (of_tensor) {
        numbers[i] = name.ends_with("_head") ? inputs.head_dim : row;
      } else if (name == "queries") {
        numbers[i] = inputs.query_length;
      } else if (name == "keys") {
        numbers[i] = inputs.key_length;
      } else if (name == "group") {
        numbers[i] = inputs.query_heads / inputs.kv_heads;
      } else if (name == "scale_log2e") {
        pointers.back() = &scale;
      } else {
        ADD_FAILURE() << "argument " << name << " is unknown here";
      }
    }
    void* scratch[] = {global_scratch.get(), profile_scratch.get()};
    pointers.push_back(static_cast<void*>(&scratch[0]));
    pointers.push_back(static_cast<void*>(&scratch[1]));

    AttentionOutput output;
    EXPECT_EQ(hipModuleLaunchKernel(function_, unsigned(inputs.query_heads), grid_rows, 1, compiled_.threads, 1, 1,
                                    compiled_.lds_bytes, nullptr, pointers.data(), nullptr),
              hipSuccess);
    const hipError_t error = hipDeviceSynchronize();
    output.reports = take_reports();
    if (error != hipSuccess) {  // with a report; the device is lost until a reset, which also frees its memory
      EXPECT_EQ(hipDeviceReset(), hipSuccess);
      return output;
    }
    output.o = o.read(inputs.q.size());
    return output;
  }

 private:
  const Compiled& compiled_;
  hipModule_t module_ = nullptr;
  hipFunction_t function_ = nullptr;
};

struct Conditions {
  const char* name;
  wavejit_simgpu_schedule schedule;
  wavejit_simgpu_arrival arrival;
  std::uint32_t checks;
  std::uint64_t seed;
};
constexpr Conditions runs[] = {
    {"in order", WAVEJIT_SIMGPU_IN_ORDER, WAVEJIT_SIMGPU_ARRIVES_EARLY, 0, 1},
    {"in reverse, results late", WAVEJIT_SIMGPU_REVERSE, WAVEJIT_SIMGPU_ARRIVES_LATE, 0, 2},
    {"at random, results too", WAVEJIT_SIMGPU_RANDOM, WAVEJIT_SIMGPU_ARRIVES_AT_RANDOM, 0, 3},
    {"all checks", WAVEJIT_SIMGPU_RANDOM, WAVEJIT_SIMGPU_ARRIVES_LATE, WAVEJIT_SIMGPU_CHECK_ALL, 4},
};

void set(const Conditions& run) {
  wavejit_simgpu_settings settings{};
  settings.size = sizeof settings;
  wavejit_simgpu_get_settings(&settings);
  settings.schedule = run.schedule;
  settings.arrival = run.arrival;
  settings.checks = run.checks;
  settings.seed = run.seed;
  ASSERT_EQ(wavejit_simgpu_set_settings(&settings), 0);
}

class TritonAttention : public testing::Test {
 public:
  explicit TritonAttention(Compiled compiled) : compiled_(std::move(compiled)) {}
  void TestBody() override {
    int ordinal = -1;
    ASSERT_EQ(wavejit_simgpu_open_devices(compiled_.target.c_str(), 1, &ordinal), 0);
    ASSERT_EQ(hipSetDevice(ordinal), hipSuccess);
    const Kernel kernel(compiled_);
    struct Lengths {
      int queries, keys;
    };
    // Ragged ends on both sides, fewer and more keys than rows: with a mask, rows that see nothing.
    for (const auto& [queries, keys] : {Lengths{77, 203}, Lengths{300, 130}, Lengths{1, 65}}) {
      const AttentionCase which = [&] {
        AttentionCase made = make_case(Storage::bf16, 1, queries, keys, 4, 2, int(compiled_.head_dim), compiled_.causal,
                                       std::uint64_t(queries * 1000 + keys));
        made.lse = false;
        return made;
      }();
      const AttentionAnswer exact = attention_reference(which.inputs);
      std::vector<std::uint16_t> first;
      for (const Conditions& run : runs) {
        SCOPED_TRACE(std::string(run.name) + ", " + std::to_string(queries) + " queries, " + std::to_string(keys) +
                     " keys");
        set(run);
        const AttentionOutput output = kernel.run(which.inputs);
        ASSERT_EQ(output.reports, "");
        EXPECT_EQ(compare_rows(which, exact, output).wrong(), "");
        if (first.empty()) first = output.o;
        EXPECT_EQ(output.o, first) << "O depends on the wave schedule";
      }
    }
  }

 private:
  Compiled compiled_;
};

}  // namespace
}  // namespace wavejit::tests

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 2) {
    std::fprintf(stderr, "triton_attention_test <folder that compile.py wrote>\n");
    return 2;
  }
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  if (paths.empty()) {
    std::fprintf(stderr, "%s: nothing that compile.py wrote\n", argv[1]);
    return 1;
  }
  for (const auto& path : paths) {
    wavejit::tests::Compiled compiled = wavejit::tests::read_compiled(path);
    std::ranges::replace(compiled.name, '-', '_');  // GoogleTest's filters begin a second list there
    testing::RegisterTest("TritonAttention", compiled.name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [compiled]() -> testing::Test* { return new wavejit::tests::TritonAttention(compiled); });
  }
  return RUN_ALL_TESTS();
}
