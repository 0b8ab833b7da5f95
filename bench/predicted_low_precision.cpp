// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Prints bench/predicted_low_precision.md: what the clock predicts for kernels whose Q, K and V are e4m3, beside the
// same problem in bf16 on the same clock. Kernels are launched as they are, without a call round them.
//
//   wavejit_predicted_low_precision                 the page
//   wavejit_predicted_low_precision --check <file>  exit 1 when the file differs
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "check_or_print.h"
#include "codegen/codegen_api.h"
#include "hip_abi/hip_functions.h"
#include "templates/attention_forward/kernel/arguments.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_forward/kernel/query_scale_arguments.h"
#include "wavejit/simgpu.h"

namespace {

using namespace wavejit;
using namespace wavejit::hip_abi;
using attention_forward::ForwardKernel;
using attention_forward::Mask;
using attention_forward::Pipeline;

constexpr const char* command = "./dev bench predicted-low-precision";

constexpr std::string_view introduction =
    R"(# What the clock predicts for 8 bits

Made by `./dev bench predicted-low-precision`. **Cycles and busy are predicted, never measured**: no kernel of this project has run on a GPU.
[docs/timing-model.md](../docs/timing-model.md) says how far to trust them.

Prompts on gfx950 with Q, K and V in e4m3 (`queries=e4m3`), O in bf16, beside the bf16 kernel of the same problem: dual-wave, head dim 128, 16 heads, as many keys as rows. Arrays hold zeros, so that no maximum grows.
A few workgroups are timed, and all are handed out.

| column | what it says |
|---|---|
| bf16, e4m3 | cycles of the launch |
| busy | matrix pipes of all compute units. Of e4m3 a ninth of it adds up weights |
| times bf16 | cycles of bf16 over those of e4m3 |

What keeps 8 bits from twice the speed: a tile of a wave is 576 cycles of matrix pipe, and 584 of the vector port beside them (32 exponentials of 8 cycles, 32 fused multiply-adds, 16 roundings of two weights, the maximum), which are no fewer
than bf16 has. So the port and not the pipe sets the pace: it is busy for 83 % of the time. A tile is two clusters over three LDS buffers, and what does not fit under its products is computed behind the barrier, beside the partner's. A row is one sum:
merging chunks of 1,024 keys took 20,000 of 225,000 cycles of a workgroup. The goal is 1.60. Tried without gain at 8,192 rows: four clusters a tile over two buffers 446,000; two clusters with all of a softmax before the barrier and merged chunks 451,000; one barrier a tile without a stagger, where one wave
of a SIMD runs ahead and waits, 499,000; no raised priority 415,000; 4 or 6 weights under the second product in place of 8 414,500, and 14 538,600. A compute cluster is 728 cycles of a wave that issues one instruction at a time, and its port 656.

Where maxima grow it is nearly the same: no row is multiplied for it. O and l are counted in a power of two, and the products' scales, a byte a row in the same instruction, say how many powers the weights of a tile stand above that ([canonical-arithmetic.md](../docs/canonical-arithmetic.md#queries-in-8-bits)).
With numbers from N(0, 1), 16/4 heads, without a mask `wavejit profile` says of 8,192 rows 420,902 cycles, and 627,918 of bf16: 1.49 times; of 16,384 rows 1,620,128 and 2,438,896: 1.51 times; of 8,192 causal ones 228,746 and 342,145: 1.50 times.
Before, a maximum could fall behind by 0.75 powers of two and O was multiplied when it grew by more, which nearly every tile had a row for: 540,374 cycles, 1.16 times. Larger growths would have made small weights 0: 2.75 took 457,898 cycles, 4.75 418,928.
What was found beside it: maxima of two that first bring both operands into a form (no signalling NaN) are three instructions, those of three with minus infinity one: 425,198 cycles, then 420,542. Ones for the sums of weights are of e2m1, four registers in place of eight, without which pairs of tiles spilled.
Tried without gain after that, at 8,192 rows of N(0, 1): 6 weights under the second product 428,590 cycles, 10 of them 437,514; 12 slots behind its first product and 17 behind the others 423,062; less in its shadow and more behind the barrier 447,730 and 592,202. What is left to 1.60, 392,449 cycles: a compute cluster waits some 36
cycles for the branch that asks for a mask, 20 for a lane swap and 30 at its barrier, in which the port stands still unless the partner has something to compute, and of what the partner could, LDS reads stand behind it.

Q and K in int8 (`qk=i8`) have no dual-wave kernel: the goal of 1.1 times bf16 is out of its reach, whatever its canon. At 8,192 rows, 16/4 heads, no mask, `wavejit profile` says of bf16 627,918 cycles, which is 1,226 for a tile of a wave: 1,024 of matrix pipe, and 82 % of it, 1,005, of the vector port. With keys in int8
the pipe has 768. The port has 256 more (32 conversions of sums and 32 multiplications by a row's scale, of 4 cycles each): 1,261, more than all of a bf16 tile, before it ever waits. Sums that start at 0x4B400000, so that one multiply-add is conversion and multiplication, have 1,133; a scale that only the exponent's
multiply-add sees has 1,005, and at the 83 % that ports reach 1.01 times bf16. The first changes scores, the second how a row is told its maximum; by hand, neither was built. The generic kernel takes 1,287,256 cycles, so int8 queries are for what has them already, not for speed.

Published for MI355X: 1.70 times bf16 by assembly (1 sequence of 75,600 rows and keys, 5 heads, no mask: 2,028 and 1,196 TFLOPS; AITER#3495).

| rows and keys | mask | bf16 | busy | e4m3 | busy | times bf16 |
|---|---|---|---|---|---|---|
)";

struct Shape {
  std::uint32_t rows;
  std::uint32_t heads;
  Mask mask;
};
constexpr std::array<Shape, 5> shapes = {{{2048, 16, Mask::none},
                                          {8192, 16, Mask::none},
                                          {16384, 16, Mask::none},
                                          {8192, 16, Mask::causal},
                                          {16384, 16, Mask::causal}}};

struct Prediction {
  std::uint64_t cycles = 0;
  double busy = 0;
};

class Memory {
 public:
  explicit Memory(std::size_t bytes) {
    if (hipMalloc(&pointer_, bytes) != hipSuccess) pointer_ = nullptr;
    const std::vector<std::uint8_t> zeros(bytes);
    static_cast<void>(hipMemcpy(pointer_, zeros.data(), bytes, hipMemcpyHostToDevice));
  }
  ~Memory() { static_cast<void>(hipFree(pointer_)); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(pointer_); }

 private:
  void* pointer_ = nullptr;
};

// The launch of one kernel; nothing, with the reason on stderr, where it cannot be timed.
std::optional<Prediction> predict(const Shape& shape, bool bytes) {
  constexpr std::uint32_t dim = 128;
  ForwardKernel spec{{.dtype = attention_forward::DataType::bf16, .mask = shape.mask, .narrow_queries = bytes},
                     {.paired_tiles = shape.mask == Mask::causal,
                      .pipeline = Pipeline::dualwave,
                      .tile_queries = 256,
                      .output_store = attention_forward::OutputStore::permlane,
                      .target = "gfx950"}};
  const struct wavejit_codegen_table* table = ::wavejit_codegen_table(WAVEJIT_CODEGEN_ABI);
  wavejit_codegen_options options{};
  options.size = sizeof options;
  char error[256] = {};
  wavejit_codegen_service* service = table->create(&options, error, sizeof error);
  wavejit_codegen_result compiled{};
  compiled.size = sizeof compiled;
  compiled.facts.size = sizeof compiled.facts;
  table->compile(service, attention_forward::to_text(spec).c_str(), &compiled);
  if (compiled.status != WAVEJIT_CODEGEN_OK) {
    fmt::print(stderr, "{}\n", compiled.detail);
    return {};
  }
  const std::uint32_t element = bytes ? 1 : 2;
  const std::uint64_t row_bytes = std::uint64_t{shape.heads} * dim * element;
  const std::uint64_t output_row_bytes = std::uint64_t{shape.heads} * dim * 2;
  const Memory q(shape.rows * row_bytes);
  const Memory k(shape.rows * row_bytes);
  const Memory v(shape.rows * row_bytes);
  const Memory o(shape.rows * output_row_bytes);
  attention_forward::Arguments arguments;
  arguments.q = q.address();
  arguments.k = k.address();
  arguments.v = v.address();
  arguments.o = o.address();
  arguments.q_row_stride = arguments.k_row_stride = arguments.v_row_stride = static_cast<std::uint32_t>(row_bytes);
  arguments.o_row_stride = static_cast<std::uint32_t>(output_row_bytes);
  arguments.q_head_stride = arguments.k_head_stride = arguments.v_head_stride = dim * element;
  arguments.o_head_stride = dim * 2;
  arguments.query_length = arguments.key_length = shape.rows;
  arguments.bottom_right_mask = ~0U;
  arguments.query_heads = arguments.kv_heads = shape.heads;
  arguments.scale_log2e = 0.1275F;
  // Neighbours in the grid go to the dies in turn (kernel/arguments.h).
  constexpr std::uint32_t dies = 8;
  arguments.heads_per_die = shape.heads / dies;
  arguments.die_multiplier = (1U << 31U) / (dies / 2);

  hipModule_t module = nullptr;
  hipFunction_t function = nullptr;
  if (hipModuleLoadData(&module, compiled.code_object) != hipSuccess ||
      hipModuleGetFunction(&function, module, compiled.facts.kernel_name) != hipSuccess)
    return {};
  const auto grid =
      attention_forward::launch_geometry(spec, *targets::find_target(spec.target), 1, shape.heads, shape.rows);
  // Scales of 1.
  attention_forward::QueryScaleArguments handed;
  std::memcpy(handed.others.others.data(), &arguments, sizeof arguments);
  std::size_t size = attention_forward::argument_bytes(spec);
  // HIP's list: buffer pointer (1), buffer size (2), end (3).
  void* extra[] = {reinterpret_cast<void*>(1), &handed, reinterpret_cast<void*>(2), &size, reinterpret_cast<void*>(3)};
  const bool launched = hipModuleLaunchKernel(function, grid.grid_x, grid.grid_y, grid.grid_z, grid.threads, 1, 1, 0,
                                              nullptr, nullptr, extra) == hipSuccess &&
                        hipDeviceSynchronize() == hipSuccess;
  std::string text(wavejit_simgpu_take_cycles(nullptr, 0) + 1, '\0');
  text.resize(wavejit_simgpu_take_cycles(text.data(), text.size()));
  static_cast<void>(hipModuleUnload(module));
  table->release(&compiled);
  table->destroy(service);
  if (!launched) return {};
  const auto launch = nlohmann::json::parse(text.substr(0, text.find('\n')));
  if (launch.contains("refused")) {
    fmt::print(stderr, "{}\n", launch["refused"].get<std::string>());
    return {};
  }
  return Prediction{.cycles = launch.at("cycles").get<std::uint64_t>(), .busy = launch.at("matrix_busy").get<double>()};
}

}  // namespace

int main(int count, char** values) {
  const auto arguments = std::span(values, static_cast<std::size_t>(count)).subspan(1);
  const bool checks = arguments.size() == 2 && std::string_view(arguments[0]) == "--check";
  if (!arguments.empty() && !checks) {
    fmt::print(stderr, "usage: {} [--check <file>]\n", values[0]);
    return 2;
  }
  int ordinal = 0;
  if (wavejit_simgpu_open_devices("gfx950", 1, &ordinal) != 0 || hipSetDevice(ordinal) != hipSuccess) return 1;
  wavejit_simgpu_settings settings{};
  settings.size = sizeof settings;
  wavejit_simgpu_get_settings(&settings);
  settings.sampled_only = 1;
  wavejit_simgpu_set_settings(&settings);
  wavejit_simgpu_set_clock(4);
  std::string text(introduction);
  for (const Shape& shape : shapes) {
    const auto wide = predict(shape, false);
    const auto bytes = predict(shape, true);
    if (!wide || !bytes) return 1;
    text += fmt::format("| {} | {} | {} | {:.1f} % | {} | {:.1f} % | {:.2f} |\n", shape.rows,
                        shape.mask == Mask::none ? "none" : "causal", wide->cycles, 100 * wide->busy, bytes->cycles,
                        100 * bytes->busy, static_cast<double>(wide->cycles) / static_cast<double>(bytes->cycles));
  }
  return bench::check_or_print(text, checks ? arguments[1] : nullptr, command);
}
