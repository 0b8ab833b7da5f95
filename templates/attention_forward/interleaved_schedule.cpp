#include "templates/attention_forward/interleaved_schedule.h"

namespace wavejit::attention_forward::interleaved {
namespace {

using language::Rung;

// Slots behind each matrix instruction, which takes 8 of 4 cycles, its own included; up to 7 are free. bf16: `finish`
// is 6 exp2, 33 plain ones and 16 roundings, 137 slots, with 24 of V's writes (12 for head dim 64); `begin` is 20 plain
// ones, an exchange, 32 plain ones and 26 exp2, 156 slots.
constexpr std::array<Rung, 1> finish_64 = {{{.matrix = 16, .vector = 9}}};
constexpr std::array<Rung, 1> finish_128 = {{{.matrix = 32, .vector = 5}}};
constexpr std::array<Rung, 2> begin_64 = {{{.matrix = 4, .vector = 8}, {.matrix = 12, .vector = 12}}};
constexpr std::array<Rung, 2> begin_128 = {{{.matrix = 8, .vector = 5}, {.matrix = 24, .vector = 6}}};

constexpr std::array<Step, 1> start_table = {{
    {.name = "fill", .fetch = {Stream::keys, 0}, .write = {Stream::keys, 0}},
}};

// t = −1.
constexpr std::array<Step, 2> prologue_table = {{
    {.name = "scores", .fetch = {Stream::keys, 2, true}, .product = Product::scores},
    {.name = "output", .fetch = {Stream::values, 1}, .softmax = Softmax::begin, .write = {Stream::keys, 2}},
}};

constexpr std::array<Step, 2> steady_table = {{
    {.name = "scores",
     .fetch = {Stream::keys, 2, true},
     .product = Product::scores,
     .softmax = Softmax::finish,
     .write = {Stream::values, 0},
     .write_after_64 = 130,
     .write_after_128 = 130,
     .lead = 16,
     .ladder_64 = finish_64,
     .ladder_128 = finish_128},
    {.name = "output",
     .fetch = {Stream::values, 1},
     .product = Product::output,
     .softmax = Softmax::begin,
     .write = {Stream::keys, 2},
     .write_after_64 = 150,
     .write_after_128 = 150,
     .lead = 8,
     .ladder_64 = begin_64,
     .ladder_128 = begin_128},
}};

constexpr std::array<Step, 2> drain_table = {{
    {.name = "weights", .softmax = Softmax::finish, .write = {Stream::values, 0}},
    {.name = "output", .product = Product::output},
}};

}  // namespace

std::span<const Step> start() { return start_table; }
std::span<const Step> prologue() { return prologue_table; }
std::span<const Step> steady() { return steady_table; }
std::span<const Step> drain() { return drain_table; }

}  // namespace wavejit::attention_forward::interleaved
